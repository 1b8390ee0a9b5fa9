"""The parts of a report about the decision, and what to be careful about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from aloof.calibration import Threshold
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.models import Model
from aloof.phrases import count, number, percent
from aloof.report.findings import Findings

__all__ = ["cautions", "key_figures", "tile"]

# A shift of the middle of the p-values is told when it is this large and no accident.
_SHIFT, _DEVIATIONS = 0.05, 4.0


def tile(name: str, number: str, note: str) -> dict[str, str]:
    """Return a key figure for the template."""
    return {"name": name, "number": number, "note": note}


def key_figures(found: Findings, quality: dict[str, Any] | None) -> list[dict[str, str]]:
    """Return what to know at a glance."""
    n, n_flagged, things = found.n(), found.n_flagged_of(), found.things
    tiles = [
        tile(f"{things.capitalize()} scored", f"{n:,}", _labels_in_words(found)),
        tile("Flagged", f"{n_flagged:,}", f"{percent(n_flagged / n)} of the {things}"),
        tile(
            "Threshold",
            number(found.level) if np.isfinite(found.level) else "none passes",
            _rule_in_words(found.decision.threshold, things),
        ),
    ]
    if quality is not None:
        precision = quality["precision_here"]
        tiles += [
            tile(
                "Anomalies found",
                f"{found.n_flagged[ANOMALY]:,} of {found.n(ANOMALY):,}",
                f"no labelled {found.one} is flagged"
                if precision is None
                else f"{percent(precision)} of the labelled {things} flagged are anomalies"
                if found.n(NORMAL)
                else f"{percent(precision)} of the {things} flagged are labelled anomalies",
            ),
            tile(
                "Ranking (AUROC)",
                percent(quality["auroc"]),
                f"average precision {percent(quality['average_precision'])}",
            ),
        ]
    return tiles


def cautions(model: Model, found: Findings, source: str | None) -> list[tuple[str, str]]:
    """Return what a reader should know before relying on the report, and what it is about."""
    said = list(model.training.get("warnings", ()))
    notes = [("Training", words) for words in said]
    if source is not None and source in str(model.training.get("source")).split(", "):
        words = (
            f"these {found.things} are the ones the model was trained on. It knows them, "
            "including the labels: expect worse results on new ones."
        )
        notes.append(("This data", words))
    doubts = [words for words in _doubts(found) if words not in said]
    return notes + [("Decisions", words) for words in doubts]


def _doubts(found: Findings) -> Iterator[str]:
    known, things = found.decision.calibration, found.things
    if known is None:
        yield (
            f"the model is not calibrated, so the threshold comes from training {things}, "
            "which look more normal than new ones."
        )
        return
    shortage = found.decision.threshold.shortage(len(known))
    if shortage is not None:
        yield shortage
    p_counts = found.p_counts[NORMAL] + found.p_counts[UNLABELLED]
    n, half = int(p_counts.sum()), len(p_counts) // 2
    if n and half:
        share, expected = p_counts[:half].sum() / n, half / len(p_counts)
        noise = 0.5 * np.sqrt(1 / n + 1 / len(known))
        if share - expected > max(_SHIFT, _DEVIATIONS * noise):
            yield (
                f"{percent(share)} of the {things} not labelled as anomalies look less normal "
                f"than the median of the calibration {things}; {percent(expected)} is "
                "expected. The data may have changed since training. If so, p-values are too "
                f"small and too many {things} are flagged. Consider training again."
            )
    if found.level == np.inf:
        yield f"the current threshold cannot flag any of these {things}."


def _labels_in_words(found: Findings) -> str:
    if not found.has_labels:
        return "no labels to compare with"
    n_normal = found.n(NORMAL)
    anomalies = count(found.n(ANOMALY), "labelled anomaly", "labelled anomalies")
    return anomalies + (f", {n_normal:,} labelled normal" if n_normal else "")


def _rule_in_words(threshold: Threshold, things: str) -> str:
    if threshold.value is not None:
        return "a score set by hand"
    if threshold.fdr is not None:
        return f"{threshold}, decided over these {things} together"
    return f"a score set for {threshold}"
