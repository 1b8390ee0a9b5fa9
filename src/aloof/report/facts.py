"""The parts of a report about the model, the decision and what to be careful about."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.persistence import versions
from aloof.report.phrases import count, number, percent
from aloof.report.survey import Survey
from aloof.tabular import TableModel

__all__ = ["METHODS", "cautions", "key_figures", "model_facts", "reproduce"]

METHODS = {"vae": "VAE", "mml": "MML-VAE", "dp": "DP-VAE", "mml-dp": "MML-DP-VAE"}

# A shift of the middle of the p-values is told when it is this large and no accident.
_SHIFT, _DEVIATIONS = 0.05, 4.0


def key_figures(
    model: TableModel, found: Survey, quality: dict[str, Any] | None
) -> list[dict[str, str]]:
    """Return what to know at a glance."""
    n_rows, n_flagged = found.n(), found.n_flagged_of()
    tiles = [
        _tile("Rows scored", f"{n_rows:,}", _labels_in_words(found)),
        _tile("Flagged", f"{n_flagged:,}", f"{percent(n_flagged / n_rows)} of the rows"),
        _tile("Threshold", _level_in_words(found.level), _rule_in_words(model)),
    ]
    if quality is not None:
        precision = quality["precision_here"]
        tiles += [
            _tile(
                "Anomalies found",
                f"{found.n_flagged[ANOMALY]:,} of {found.n(ANOMALY):,}",
                "no labelled row is flagged"
                if precision is None
                else f"{percent(precision)} of the labelled rows flagged are anomalies"
                if found.n(NORMAL)
                else f"{percent(precision)} of the rows flagged are labelled anomalies",
            ),
            _tile(
                "Ranking (AUROC)",
                percent(quality["auroc"]),
                f"average precision {percent(quality['average_precision'])}",
            ),
        ]
    return tiles


def cautions(model: TableModel, found: Survey, source: str | None) -> list[tuple[str, str]]:
    """Return what a reader should know before relying on the report, and what it is about."""
    said = list(model.training["warnings"])
    notes = [("Training", words) for words in said]
    notes += [("Training", words) for words in model.encoder.warnings if words not in said]
    notes += [("This table", words) for words in found.warnings]
    if source is not None and source == model.training["source"]:
        words = (
            "the rows are those that the model was trained on. It knows them, and the labels "
            "among them: expect it to do worse on new rows."
        )
        notes.append(("This table", words))
    if model.id is not None and model.id not in found.highest.table.column_names:
        words = (
            f"there is no column {model.id!r}, which names the rows; they are counted instead."
        )
        notes.append(("This table", words))
    doubts = [words for words in _doubts(model, found) if words not in said]
    return notes + [("Decisions", words) for words in doubts]


def model_facts(model: TableModel) -> dict[str, Any]:
    """Say what was trained, and on what."""
    detector, training = model.detector, model.training
    n_used, n_rows = training["n_used"], training["n_rows"]
    known = detector.calibration_scores_
    rows = count(n_used, "row")
    if n_used < n_rows:
        rows += f", drawn at random from {n_rows:,}, with all labelled anomalies"
    hidden = " - ".join(map(str, detector.hidden))
    facts = [
        (
            "Method",
            f"{METHODS[detector.method]}, {count(len(detector.member_seeds_), 'member')}",
        ),
        ("Trained on", f"{training['source'] or 'a table in memory'}: {rows}"),
        (
            "Labels",
            f"column {model.label}: "
            f"{count(training['n_anomalies'], 'anomaly', 'anomalies')}, "
            f"{training['n_labelled_normal']:,} normal, "
            f"{training['n_unlabelled']:,} without a label (taken as normal)"
            if model.label is not None
            else "none: all rows are taken as normal",
        ),
        (
            "Calibrated with",
            "nothing: there are no p-values"
            if known is None
            else f"{count(len(known), 'row')} held out of the training, none of them labelled "
            "as an anomaly",
        ),
        ("Threshold", f"{model.threshold}; change it without training: aloof threshold"),
        ("Networks", f"encoder {hidden}, {detector.latent_dim} latent dimensions"),
        (
            "Training",
            f"{count(detector.n_iter_, 'epoch')}, seed {training['seed']}, weight of the "
            f"KL divergence {detector.beta_kl:g}",
        ),
    ]
    features = [len(column.features) for column in model.encoder.columns]
    dropped = [(name, f"left out: it {why}") for name, why in model.encoder.dropped.items()]
    named = [(model.label, "the labels"), (model.id, "names the rows")]
    named += [(name, "left out on request") for name in model.drop]
    return {
        "facts": facts,
        "caption": f"{count(len(features), 'column')} make {count(sum(features), 'feature')}.",
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "missing": percent(column.missing_share) if column.missing_share else "never",
                "features": n,
            }
            for column, n in zip(model.encoder.columns, features, strict=True)
        ],
        "dropped": [pair for pair in named if pair[0] is not None] + dropped,
    }


def reproduce(model: TableModel, source: str | None, top: int) -> dict[str, Any]:
    """Say how to make the model and the report again."""
    trained_on = model.training["source"]
    lines = _calls(model, top)
    if trained_on is not None and source is not None:
        lines = _commands(model, trained_on, source, top)
    found = versions() | {"pyarrow": pa.__version__}
    return {
        "words": "The same data, settings and versions give the same model and scores.",
        "commands": "\n".join(lines),
        "facts": [("Versions", ", ".join(f"{name} {text}" for name, text in found.items()))],
    }


def _commands(model: TableModel, trained_on: str, source: str, top: int) -> Iterator[str]:
    epochs = model.detector.max_epochs
    options = [
        *(["--label", model.label] if model.label is not None else []),
        *(["--anomaly-value", model.anomaly_value] if model.anomaly_value is not None else []),
        *(["--id", model.id] if model.id is not None else []),
        *(part for name in model.drop for part in ("--drop", name)),
        *("--method", model.detector.method),
        *("--members", str(len(model.detector.member_seeds_))),
        *(["--epochs", str(epochs)] if epochs is not None else []),
        *("--seed", str(model.training["seed"])),
    ]
    yield shlex.join(["aloof", "fit", trained_on, *options, "--out", "MODEL"])
    ((rule, value),) = model.threshold.as_dict().items()
    yield shlex.join(["aloof", "threshold", "MODEL", f"--{rule}", str(value)])
    yield shlex.join(
        ["aloof", "report", "MODEL", source, "--top", str(top), "--out", "report.html"]
    )


def _calls(model: TableModel, top: int) -> Iterator[str]:
    given = {
        "label": model.label,
        "anomaly_value": model.anomaly_value,
        "id": model.id,
        "drop": list(model.drop) or None,
        "method": model.detector.method,
        "members": len(model.detector.member_seeds_),
        "max_epochs": model.detector.max_epochs,
        "seed": model.training["seed"],
    }
    options = ", ".join(f"{k}={v!r}" for k, v in given.items() if v is not None)
    ((rule, value),) = model.threshold.as_dict().items()
    yield "import aloof"
    yield "from aloof.report import write_report"
    yield ""
    yield f"model = aloof.fit(frame, {options})"
    yield f"model.set_threshold({rule}={value!r})"
    yield f'write_report(model, new_rows, "report.html", top={top})'


def _doubts(model: TableModel, found: Survey) -> Iterator[str]:
    known = model.detector.calibration_scores_
    if known is None:
        yield (
            "the model is not calibrated, so the threshold comes from training rows, which "
            "look a little more normal than new rows do."
        )
        return
    shortage = model.threshold.shortage(len(known))
    if shortage is not None:
        yield shortage
    p_counts = found.p_counts[NORMAL] + found.p_counts[UNLABELLED]
    n, half = int(p_counts.sum()), len(p_counts) // 2
    if n and half:
        share, expected = p_counts[:half].sum() / n, half / len(p_counts)
        noise = 0.5 * np.sqrt(1 / n + 1 / len(known))
        if share - expected > max(_SHIFT, _DEVIATIONS * noise):
            yield (
                f"{percent(share)} of the rows not labelled as anomalies look less normal than "
                f"the middle of the calibration rows, where {percent(expected)} is expected. "
                "The data may have changed since the training: p-values and flags are then too "
                "bold. Consider training again."
            )
    if found.level == np.inf:
        yield "no row can be flagged by the present threshold in this table."


def _labels_in_words(found: Survey) -> str:
    if not found.has_labels:
        return "no labels in this table"
    n_normal = found.n(NORMAL)
    anomalies = count(found.n(ANOMALY), "labelled anomaly", "labelled anomalies")
    return anomalies + (f", {n_normal:,} labelled normal" if n_normal else "")


def _level_in_words(level: float) -> str:
    if np.isfinite(level):
        return number(level)
    return "none passes" if level > 0 else "all pass"


def _rule_in_words(model: TableModel) -> str:
    threshold = model.threshold
    if threshold.value is not None:
        return "a score set by hand"
    if threshold.fdr is not None:
        return f"{threshold}, decided over these rows together"
    return f"a score set for {threshold}"


def _tile(name: str, number: str, note: str) -> dict[str, str]:
    return {"name": name, "number": number, "note": note}
