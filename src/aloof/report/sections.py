"""The parts of a report about all rows: words and pictures for the template."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.calibration import smallest_p
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.report import pictures
from aloof.report.curves import curves_from_counts
from aloof.report.phrases import count, number, percent
from aloof.report.survey import Rows, Survey
from aloof.tabular import TableModel

__all__ = ["calibration", "latent_plane", "quality", "scores"]


def scores(model: TableModel, found: Survey) -> dict[str, Any]:
    """Say how the scores are spread."""
    n_flagged, n_rows = found.n_flagged_of(), found.n()
    words = (
        f"All {count(n_rows, 'row')} by anomaly score. The number of rows is on a logarithmic "
        "scale, so that single rows can be seen beside thousands. "
    )
    words += (
        f"The dashed line is the threshold: {count(n_flagged, 'row')} "
        f"({percent(n_flagged / n_rows)}) beyond it are flagged. "
        if np.isfinite(found.level)
        else f"By the threshold {'every' if n_flagged else 'no'} row is flagged. "
    )
    words += "A good detector leaves a gap, or a thin tail, where the threshold is."
    return {
        "svg": pictures.draw_scores(found),
        "alt": f"Histogram of the anomaly scores of {count(n_rows, 'row')}, from "
        f"{number(found.score_values[0])} to {number(found.score_values[-1])}"
        + (f", threshold at {number(found.level)}." if np.isfinite(found.level) else "."),
        "words": words,
    }


def quality(found: Survey) -> dict[str, Any] | None:
    """Compare scores and decisions with the labels; None where there are too few of them."""
    stand_in = not found.n(NORMAL)
    normal = UNLABELLED if stand_in else NORMAL
    if not found.n(ANOMALY) or not found.n(normal):
        return None
    curves = curves_from_counts(found.score_counts[normal], found.score_counts[ANOMALY])
    hits, alarms = found.n_flagged[ANOMALY], found.n_flagged[normal]
    recall, false_rate = hits / found.n(ANOMALY), alarms / found.n(normal)
    precision = hits / (hits + alarms) if hits + alarms else None
    kind = "rows without a label" if stand_in else "normal rows"
    words = (
        f"The area under the ROC curve is {percent(curves.auroc)}, the average precision "
        f"{percent(curves.average_precision)}. The threshold finds {hits:,} of "
        f"{count(found.n(ANOMALY), 'labelled anomaly', 'labelled anomalies')} "
        f"({percent(recall)}) and flags {percent(false_rate)} of the {kind}."
    )
    if stand_in:
        words += (
            " No row is labelled as normal, so rows without a label stand in: where anomalies "
            "hide among them, the true figures are better."
        )
    rows = []
    for label, name in (
        (ANOMALY, "anomaly"),
        (NORMAL, "normal"),
        (UNLABELLED, "without a label"),
    ):
        if n := found.n(label):
            flagged = found.n_flagged[label]
            cells = (f"{n:,}", f"{flagged:,}", f"{n - flagged:,}", percent(flagged / n))
            rows.append((name, *cells))
    return {
        "auroc": curves.auroc,
        "average_precision": curves.average_precision,
        "recall": recall,
        "precision_here": precision,
        "words": words,
        "table": rows,
        "roc": pictures.draw_curve(
            curves.false_positive_rate,
            curves.recall,
            point=(false_rate, recall),
            labels=(f"{kind} flagged", "anomalies found"),
            chance=(0.0, 1.0),
        ),
        "roc_alt": f"ROC curve; the area under it is {percent(curves.auroc)}.",
        "precision": pictures.draw_curve(
            curves.recall,
            curves.precision,
            point=None if precision is None else (recall, precision),
            labels=("anomalies found (recall)", "anomalies among flagged (precision)"),
            chance=(curves.prevalence, curves.prevalence),
        ),
        "precision_alt": "Precision-recall curve; the average precision is "
        f"{percent(curves.average_precision)}.",
    }


def calibration(model: TableModel, found: Survey) -> dict[str, Any]:
    """Compare the p-values of rows that are not labelled as anomalies with their promise."""
    known = model.detector.calibration_scores_
    if known is None:
        words = (
            "The model was not calibrated with rows held out of the training, so there are no "
            "p-values. Fit with a calibration share above 0 to have them."
        )
        return {"words": words, "histogram": None}
    p_counts = found.p_counts[NORMAL] + found.p_counts[UNLABELLED]
    n = int(p_counts.sum())
    if not n:
        words = "Every row is labelled as an anomaly: there is nothing to check."
        return {"words": words, "histogram": None}
    words = (
        f"The p-value of a row is its rank among {count(len(known), 'calibration row')} that "
        "were held out of the training: the chance that a normal row looks at least as "
        "anomalous. If the rows here are like those, their p-values are spread evenly. "
    )
    words += (
        f"Shown are the {count(n, 'row')} not labelled as anomalies"
        if found.n(ANOMALY)
        else f"Shown {'are all' if n > 1 else 'is the'} {count(n, 'row')}"
    )
    bound = max(0.01, smallest_p(len(known)))
    low = int(p_counts[: int(bound * len(p_counts) * (1 + 1e-12))].sum()) / n
    noise = np.sqrt(bound * (1 - bound) * (1 / n + 1 / len(p_counts)))
    words += f": {percent(low)} have a p-value of at most {percent(bound)}, "
    words += (
        "more than chance explains: there are anomalies among them, or the data has changed."
        if low > bound + 3 * noise
        else "which chance explains."
    )
    return {
        "words": words,
        "histogram": pictures.draw_p_values(p_counts),
        "histogram_alt": f"Histogram of the p-values of {count(n, 'row')} beside the even "
        "spread that is expected.",
        "curve": pictures.draw_calibration(p_counts),
        "curve_alt": "Observed share of rows with a p-value of at most t, against t: "
        f"{percent(low)} at {percent(bound)}.",
    }


def latent_plane(model: TableModel, found: Survey, top: int) -> dict[str, Any] | None:
    """Draw the rows where one member of the ensemble sees them; None for too few rows."""
    listed = found.highest.take(np.arange(min(top, len(found.highest))))
    groups = (listed, found.anomalies, found.usual)
    places = np.concatenate([rows.places for rows in groups])
    _, first = np.unique(places, return_index=True)
    if len(first) < 3:
        return None
    codes = np.concatenate([_codes(model, rows) for rows in groups])
    is_usual = np.arange(len(codes)) >= len(listed) + len(found.anomalies)
    flat, shown_share = _plane(codes, codes[is_usual] if is_usual.sum() > 2 else codes)
    spread = flat[is_usual].std() if is_usual.sum() > 2 else flat.std()
    flat = np.arcsinh(flat / max(2 * spread, 1e-9))
    ranks = np.zeros(len(codes), np.int64)
    ranks[: len(listed)] = 1 + np.arange(len(listed))
    labels = np.concatenate([rows.labels for rows in groups])
    values = np.concatenate([rows.scores for rows in groups])
    n_drawn, n_rows = len(first), found.n()
    words = (
        f"{count(n_drawn, 'row')}{f', drawn from {n_rows:,},' if n_drawn < n_rows else ''} as "
        "the first member of the ensemble sees them: its latent means, along the two "
        f"directions in which they vary most ({percent(shown_share)} of the variance). Rows "
        "close together look alike to the model. Rings are the rows listed above, the first "
        "with their numbers. "
    )
    words += "Crosses are labelled anomalies. " if found.n(ANOMALY) else ""
    words += (
        "Rows far out are drawn closer than they are. Distances are not scores: a row can be "
        "anomalous in a direction that is not shown."
    )
    return {
        "svg": pictures.draw_map(
            flat[first], values[first], labels[first] == ANOMALY, ranks[first]
        ),
        "alt": f"Map of {count(n_drawn, 'row')}, coloured by anomaly score.",
        "words": words,
    }


def _codes(model: TableModel, rows: Rows) -> NDArray[np.float64]:
    width = model.detector.latent_dim
    if not len(rows):
        return np.empty((0, width))
    first: NDArray[np.float64] = model.detector.latent(rows.encoded)[0]
    return first


def _plane(
    codes: NDArray[np.float64], usual: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return codes along two principal directions, and their share of the variance."""
    centre = usual.mean(0)
    _, spread, directions = np.linalg.svd(usual - centre, full_matrices=False)
    flat = np.zeros((len(codes), 2))
    axes = directions[:2]
    axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])[:, None]
    flat[:, : len(axes)] = (codes - centre) @ axes.T
    total = float((spread**2).sum())
    return flat, float((spread[:2] ** 2).sum()) / total if total > 0 else 1.0
