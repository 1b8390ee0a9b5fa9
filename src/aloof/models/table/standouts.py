"""The parts of a report about single rows and columns: what stands out, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.labels import ANOMALY, NORMAL
from aloof.models.table.explanation import TableExplanation
from aloof.models.table.files import Source
from aloof.models.table.lowest import Rows
from aloof.models.table.model import TableModel
from aloof.models.table.survey import Survey
from aloof.models.table.words import number_words
from aloof.phrases import count, number, percent

__all__ = ["columns", "top_rows"]

# Bars beside a row, columns in the list of all, values behind "All columns".
_BARS, _MOST_COLUMNS, _MOST_CELLS = 5, 25, 60
# Rows that are explained to say what the scores of all consist of.
_EXPLAINED = 500


def top_rows(
    model: TableModel, found: Survey, top: int, source: Source | None
) -> dict[str, Any]:
    """Say which rows are the most anomalous, and why; in a file, a row is named by its line."""
    rows = found.highest.take(np.arange(min(top, len(found.highest))))
    explanation = model.explain_encoded(rows["encoded"], rows.table)
    reasons = explanation.reasons(3)
    p_values = found.decision.p_values(rows["scores"])
    p = [""] * len(rows) if p_values is None else [number(value, 2) for value in p_values]
    name, names, counted = _names(model, rows, source)
    n_flagged = found.n_flagged_of()
    words = (
        f"The {count(len(rows), 'row')} with the highest anomaly scores"
        f"{', highest first' if len(rows) > 1 else ''}. "
        f"{_flagged_words(len(rows), n_flagged)} The first reason is the column that "
        "contributes most to the score; the bars show how the score is made up."
    )
    return {
        "words": words,
        "name": name,
        "caption": "The score has no unit: compare it with the threshold and with other rows."
        + counted,
        "rows": [
            {
                "rank": i + 1,
                "name": names[i],
                "pills": _pills(rows["scores"][i] > found.level, int(rows["labels"][i])),
                "score": number(rows["scores"][i]),
                "p": p[i],
                "reasons": reasons[i],
                "bars": _bars(explanation, i),
                "cells": _cells(explanation, i),
                "cells_caption": f"What number {i + 1} has in each column, most telling first",
            }
            for i in range(len(rows))
        ],
    }


def columns(model: TableModel, found: Survey) -> dict[str, Any]:
    """Say which columns the scores of normal and of flagged rows consist of."""
    flagged = np.flatnonzero(found.highest["scores"] > found.level)
    some_flagged = len(flagged) > 0
    high = found.highest.take(
        flagged if some_flagged else np.arange(min(20, len(found.highest)))
    )
    normal = found.normal if len(found.normal) else found.highest
    normal = normal.take(np.arange(min(_EXPLAINED, len(normal))))
    shares = [_shares(model, rows) for rows in (high, normal)]
    order = np.argsort(-shares[0], kind="stable")[:_MOST_COLUMNS]
    largest = max(float(part[order].max(initial=1e-9)) for part in shares)
    n_more = len(model.columns) - len(order)
    return {
        "words": "How much each column contributes to the mean anomaly score. Where a bar is "
        "much longer on the left than on the right, flagged rows differ from the rest in that "
        "column.",
        "caption": "Share of the mean score, by column."
        + (f" {count(n_more, 'more column')} contribute less." if n_more else ""),
        "high": (
            f"In {count(len(high), 'flagged row')}"
            if some_flagged
            else f"In the {count(len(high), 'row')} that score highest"
        ),
        "normal": f"In {count(len(normal), 'row')} drawn from "
        + ("those not labelled as anomalies" if found.has_labels else "all"),
        "rows": [
            {
                "name": model.columns[i],
                "high": _bar(shares[0][i], largest),
                "normal": _bar(shares[1][i], largest),
            }
            for i in order
        ],
    }


def _names(model: TableModel, rows: Rows, source: Source | None) -> tuple[str, list[str], str]:
    """Return what rows are named by, their names, and what to know about these."""
    if model.id is not None and model.id in rows.table.column_names:
        return model.id, [_shown(value) for value in rows.table[model.id].to_pylist()], ""
    numbers = [int(place) + 1 for place in rows["places"]]
    spots = {} if source is None else source.lines_at(numbers)
    if len(spots) < len(numbers):
        words = " Rows are counted from 1, without the header."
        return "Row", [f"{number:,}" for number in numbers], words
    return "Row", [str(spots[number]) for number in numbers], ""


def _pills(flagged: bool, label: int) -> list[tuple[str, str]]:
    pills = [] if flagged else [("quiet", "not flagged")]
    if label == ANOMALY:
        pills.append(("anomaly", "labelled anomaly"))
    if label == NORMAL:
        pills.append(("quiet", "labelled normal"))
    return pills


def _flagged_words(n_listed: int, n_flagged: int) -> str:
    if not n_flagged:
        return "None of them is flagged."
    if n_flagged < n_listed:
        return f"The first {n_flagged:,} {'is' if n_flagged == 1 else 'are'} flagged."
    if n_flagged == n_listed:
        return "All of them, and no other row, are flagged."
    return f"They are the first of {n_flagged:,} flagged rows."


def _bars(explanation: TableExplanation, row: int) -> list[dict[str, Any]]:
    shares = _shares_of(explanation.contributions[row])
    order = np.argsort(-shares, kind="stable")[:_BARS]
    return [
        {"column": _column(explanation, i), **_bar(shares[i], 1.0)}
        for i in order
        if shares[i] >= 0.005 or i == order[0]
    ]


def _cells(explanation: TableExplanation, row: int) -> list[dict[str, str]]:
    shares = _shares_of(explanation.contributions[row])
    order = np.argsort(-shares, kind="stable")[:_MOST_CELLS]
    return [
        {
            "column": _column(explanation, i),
            "here": _shown(explanation.values[name := explanation.columns[i]][row]),
            "expected": _shown(explanation.expected[name][row]),
            "share": percent(shares[i]),
        }
        for i in order
    ]


def _column(explanation: TableExplanation, place: int) -> str:
    name = explanation.columns[place]
    return f"{name} (filled)" if name in explanation.absent else name


def _shares(model: TableModel, rows: Rows) -> NDArray[np.float64]:
    found = model.detector.explain(rows["encoded"]).contributions
    return _shares_of(model.encoder.sum_by_column(found).mean(0))


def _shares_of(contributions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return contributions as shares of what speaks for an anomaly."""
    positive = np.clip(contributions, 0, None)
    total = positive.sum()
    shares: NDArray[np.float64] = positive / total if total > 0 else positive
    return shares


def _bar(share: float, whole: float) -> dict[str, str]:
    return {"share": percent(share), "width": f"{100 * min(share / whole, 1.0):.1f}"}


def _shown(value: Any) -> str:
    """Return a value of a table as text."""
    if value is None or value != value:
        return "missing"
    if isinstance(value, np.datetime64):
        return str(value).replace("T", " ")
    if isinstance(value, np.timedelta64):
        return str(value.item())
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return number_words(float(value))
    return str(value)
