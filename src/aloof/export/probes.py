"""Rows to try an exported model with: made up from what was learned about the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.models.table.columns import (
    CategoryColumn,
    Column,
    ConstantColumn,
    NumberColumn,
    TimestampColumn,
)

__all__ = ["probe_column", "probe_inputs"]

_YEAR = 365.25 * 86_400.0


def probe_column(column: Column, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return values of a column as the graph takes them: usual, rare, missing, far off."""
    if isinstance(column, NumberColumn):
        return _numbers(column, n, rng)
    if isinstance(column, TimestampColumn):
        return _times(column, n, rng)
    if isinstance(column, CategoryColumn):
        known = [*column.categories, *column.rare[:8], "never seen", ""]
        weights = np.ones(len(known))
        weights[: len(column.categories)] = len(known) * np.asarray(column.shares) + 1
        return _drawn(known, n, rng, weights)
    assert isinstance(column, ConstantColumn)
    value = "" if column.value is None else column.value
    return _drawn([value, "", "never seen"], n, rng, np.array([16.0, 1.0, 1.0]))


def probe_inputs(column: Column, values: NDArray[Any]) -> pa.Array:
    """Return the same values as a table would hold them."""
    if isinstance(column, NumberColumn):
        return pa.array(values)
    if isinstance(column, TimestampColumn):
        kind = pa.timestamp("us") if column.position else pa.time64("us")
        missing = np.isnan(values)
        whole = np.round(np.where(missing, 0.0, values) * 1e6).astype(np.int64)
        return pa.array(whole, pa.int64(), mask=missing).cast(kind)
    return pa.array([value or None for value in values], pa.string())


def _numbers(column: NumberColumn, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    span = column.high - column.low
    near = rng.uniform(column.low, column.high, n)
    middle = column.middle + (near - column.middle) * rng.uniform(0, 1, n) ** 3
    values = np.where(rng.uniform(size=n) < 0.3, near, middle)
    odd = rng.uniform(size=n)
    far = column.middle + span * rng.choice([-1e6, -3.0, 3.0, 1e6], n)
    values = np.where(odd < 0.03, far, values)
    values = np.where((0.03 <= odd) & (odd < 0.06), np.nan, values)
    values = np.where((0.06 <= odd) & (odd < 0.07), rng.choice([-np.inf, np.inf], n), values)
    found: NDArray[np.float64] = np.asarray(values, np.float64)
    return np.round(found) if column.whole else found


def _times(column: TimestampColumn, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    values = np.floor(rng.uniform(column.low, column.high, n))
    odd = rng.uniform(size=n)
    if column.position:
        far = values + rng.choice([-40.0, -6.0, 6.0, 40.0], n) * _YEAR
        values = np.where(odd < 0.05, np.floor(far), values)
    return np.where(odd > 0.95, np.nan, values)


def _drawn(
    known: list[str], n: int, rng: np.random.Generator, weights: NDArray[np.float64]
) -> NDArray[Any]:
    places = rng.choice(len(known), n, p=weights / weights.sum())
    return np.array(known, object)[places]
