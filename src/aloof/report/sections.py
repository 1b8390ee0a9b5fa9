"""The parts of a report about all scores: words and pictures for the template."""

from __future__ import annotations

from typing import Any

import numpy as np

from aloof.calibration import smallest_p
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.phrases import count, number, percent
from aloof.report import pictures
from aloof.report.curves import curves_from_counts
from aloof.report.findings import Findings

__all__ = ["calibration", "quality", "scores"]


def scores(found: Findings) -> dict[str, Any]:
    """Say how the scores are spread."""
    n_flagged, n_rows = found.n_flagged_of(), found.n()
    words = (
        f"All {count(n_rows, found.one)} by anomaly score. The vertical axis is logarithmic, "
        f"so that single {found.things} show up next to thousands. "
    )
    words += (
        f"The dashed line is the threshold: {count(n_flagged, found.one)} "
        f"({percent(n_flagged / n_rows)}) beyond it are flagged. "
        if np.isfinite(found.level)
        else f"By the threshold {'every' if n_flagged else 'no'} {found.one} is flagged. "
    )
    words += "With a good detector there is a gap, or a thin tail, at the threshold."
    return {
        "svg": pictures.draw_scores(found),
        "alt": f"Histogram of the anomaly scores of {count(n_rows, found.one)}, from "
        f"{number(found.score_values[0])} to {number(found.score_values[-1])}"
        + (f", threshold at {number(found.level)}." if np.isfinite(found.level) else "."),
        "words": words,
    }


def quality(found: Findings) -> dict[str, Any] | None:
    """Compare scores and decisions with the labels; None where there are too few of them."""
    stand_in = not found.n(NORMAL)
    normal = UNLABELLED if stand_in else NORMAL
    if not found.n(ANOMALY) or not found.n(normal):
        return None
    curves = curves_from_counts(found.score_counts[normal], found.score_counts[ANOMALY])
    hits, alarms = found.n_flagged[ANOMALY], found.n_flagged[normal]
    recall, false_rate = hits / found.n(ANOMALY), alarms / found.n(normal)
    precision = hits / (hits + alarms) if hits + alarms else None
    kind = f"{found.things} without a label" if stand_in else f"normal {found.things}"
    words = (
        f"The area under the ROC curve is {percent(curves.auroc)}, the average precision "
        f"{percent(curves.average_precision)}. The threshold finds {hits:,} of "
        f"{count(found.n(ANOMALY), 'labelled anomaly', 'labelled anomalies')} "
        f"({percent(recall)}) and flags {percent(false_rate)} of the {kind}."
    )
    if stand_in:
        words += (
            f" No {found.one} is labelled as normal, so unlabelled {found.things} stand in. "
            "If anomalies hide among them, the true figures are better."
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


def calibration(found: Findings) -> dict[str, Any]:
    """Compare the p-values of what is not labelled as an anomaly with their promise."""
    known, one, things = found.decision.calibration, found.one, found.things
    if known is None:
        words = (
            f"The model was not calibrated with {things} held out of the training, so there "
            "are no p-values. To get them, fit with a calibration share above 0."
        )
        return {"words": words, "histogram": None}
    p_counts = found.p_counts[NORMAL] + found.p_counts[UNLABELLED]
    n = int(p_counts.sum())
    if not n:
        words = f"Every {one} is labelled as an anomaly: there is nothing to check."
        return {"words": words, "histogram": None}
    words = (
        f"Each p-value is a rank among {count(len(known), f'calibration {one}')} held out of "
        f"the training: the chance that a normal {one} looks at least as anomalous. If the "
        f"{things} here are like those, the p-values are spread evenly. "
    )
    words += (
        f"Shown are the {count(n, found.one)} not labelled as anomalies"
        if found.n(ANOMALY)
        else f"Shown {'are all' if n > 1 else 'is the'} {count(n, found.one)}"
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
        "histogram": pictures.draw_p_values(p_counts, things),
        "histogram_alt": f"Histogram of the p-values of {count(n, found.one)}, next to the "
        "even spread expected.",
        "curve": pictures.draw_calibration(p_counts, things),
        "curve_alt": f"Observed share of {things} with a p-value of at most t, against t: "
        f"{percent(low)} at {percent(bound)}.",
    }
