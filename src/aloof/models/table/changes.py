"""Tests of whether rows are drawn as those of the training were, column by column.

`find_drift` says what is odd enough for a warning; this is the whole picture, with a statistic
for each column, for the codes and for the score. Numbers and scores: the two-sample
Kolmogorov-Smirnov test, for numbers at the quantiles that were kept, which makes it cautious.
Categories: the chi-squared test of homogeneity. Gaps: the same, of two shares. What counts as
changed: see `aloof.models.changes`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats

from aloof.models.changes import (
    FEWEST,
    Change,
    adjusted,
    code_changes,
    in_classes,
    kolmogorov,
    score_changes,
)
from aloof.models.table.columns import Column, one_array
from aloof.models.table.columns.category import CategoryColumn
from aloof.models.table.columns.constant import ConstantColumn
from aloof.models.table.columns.number import NumberColumn
from aloof.models.table.drift import Profile
from aloof.models.table.files import column_names
from aloof.models.table.model import TableModel

__all__ = ["find_changes"]

_SMALL = 5.0  # expected counts below this are put together


def find_changes(model: TableModel, data: object) -> list[Change]:
    """Compare rows with those that a model learned from.

    Parameters
    ----------
    model
        Of a table.
    data
        A frame, a path or a `Source`; a few thousand rows of it are looked at, drawn at
        random.

    Returns
    -------
    One for each column that is used, then those of the codes and of the score.
    """
    source = model.read(data)
    rows, names = model._sampled(source).rows(), column_names(source)
    n_training = model.encoder.n_rows if model.profile is None else model.profile.n_rows
    found = [
        _column(column, one_array(rows[column.name]), model.profile, n_training)
        for column in model.encoder.columns
        if column.name in names
    ]
    encoded = model._accepting("fill").encode(rows, warn=lambda words: None)
    detector = model.detector
    return adjusted(
        [
            *found,
            *code_changes(detector, encoded),
            *score_changes(detector, detector.anomaly_score(encoded)),
        ]
    )


def _column(column: Column, array: pa.Array, profile: Profile | None, m: int) -> Change:
    values = column.read(array)
    missing = pc.is_null(pa.array(values, from_pandas=True)).to_numpy(zero_copy_only=False)
    there, n = values[~missing], len(values)
    gaps = _two_shares(float(missing.mean()), n, column.missing_share, m)
    found = Change(column.name, "chi-squared test of gaps", None, None)
    if isinstance(column, NumberColumn):
        found = _numbers(column.name, np.asarray(there, np.float64), profile)
    elif isinstance(column, CategoryColumn):
        found = _categories(column, there, m)
    elif isinstance(column, ConstantColumn) and column.value is not None and len(there):
        _, same = column._compare(pa.array(there, pa.string()))
        share = float(1 - same.mean())
        test = "chi-squared test of other values"
        found = Change(column.name, test, share, _two_shares(share, len(same), 0.0, m))
    # Values and gaps are two tests of one column.
    both = [p for p in (found.p_value, gaps) if p is not None]
    p = min(1.0, len(both) * min(both)) if both and n >= FEWEST else None
    shift = abs(float(missing.mean()) - column.missing_share)
    size = max(found.size or 0.0, shift) if p is not None else None
    return replace(
        found,
        p_value=p,
        size=size,
        missing_learned=column.missing_share,
        missing_now=float(missing.mean()),
    )


def _two_shares(now: float, n: int, learned: float, m: int) -> float | None:
    """Return the p-value of two shares being one."""
    counts = np.array([[now * n, (1 - now) * n], [learned * m, (1 - learned) * m]])
    return _homogeneous(counts)


def _homogeneous(counts: NDArray[np.float64]) -> float | None:
    """Return the p-value of the chi-squared test; classes that are small are put together."""
    expected = counts.sum(0) * counts.sum(1, keepdims=True).min() / counts.sum()
    small = expected < _SMALL
    if small.sum() > 1:
        counts = np.column_stack([counts[:, ~small], counts[:, small].sum(1)])
    counts = counts[:, counts.sum(0) > 0]
    if counts.shape[1] < 2:
        return None
    return float(stats.chi2_contingency(np.round(counts)).pvalue)


def _numbers(name: str, values: NDArray[np.float64], profile: Profile | None) -> Change:
    learned = None if profile is None else profile.numbers.get(name)
    test = "Kolmogorov-Smirnov"
    values = values[np.isfinite(values)]
    if learned is None or len(values) < FEWEST:
        return Change(name, test, None, None)
    zeros, others = float((values == 0).mean()), values[values != 0]
    distances, p_values = [abs(zeros - learned.zero_share)], []
    n_learned = round(learned.n_others / max(1e-9, 1 - learned.zero_share))
    if (p := _two_shares(zeros, len(values), learned.zero_share, n_learned)) is not None:
        p_values.append(p)
    if len(others) >= FEWEST:
        distances.append(learned.distance(others))
        p_values.append(kolmogorov(distances[-1], len(others), learned.n_others))
    return Change(
        name,
        test,
        max(distances),
        min(1.0, len(p_values) * min(p_values)) if p_values else None,
        *in_classes(learned.quantiles, others, ".4g"),
    )


def _categories(column: CategoryColumn, values: NDArray[np.object_], m: int) -> Change:
    text = pa.array(values, pa.string())
    counts = {pair["values"]: pair["counts"] for pair in pc.value_counts(text).to_pylist()}
    n, there = len(text), 1 - column.missing_share
    if n < FEWEST or not there:
        return Change(column.name, "chi-squared", None, None)
    learned = np.array([*column.shares, column.rare_share]) / there
    now = np.array([counts.get(value, 0) for value in column.categories], np.float64)
    now = np.append(now, n - now.sum())
    p = _homogeneous(np.stack([now, learned * m * there]))
    return Change(
        column.name,
        "chi-squared",
        float(np.abs(now / n - learned).sum() / 2),
        p,
        tuple(map(float, learned)),
        tuple(map(float, now / n)),
        (*(repr(value) for value in column.categories), "others"),
    )
