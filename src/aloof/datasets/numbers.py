"""Columns of text or numbers as one array of numbers, for systems that know nothing else.

`aloof.models.table` reads tables for people and finds out what columns mean; this is for
benchmarks, where every system must see the same plain numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import DatasetError
from aloof.phrases import count

__all__ = ["MISSING", "MOST_TEXTS", "Column", "Numbers", "is_missing", "to_numbers"]

MISSING = ("", "?", "<null>", "na", "n/a", "nan", "null", "none")
"""Texts that say that there is no value, in small letters."""

MOST_TEXTS = 50
"""Different texts a column may hold to become indicators."""

Column = tuple[str, NDArray[np.str_] | NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Columns as numbers.

    Attributes
    ----------
    X
        Rows ``(n, n_features)``; missing values are NaN.
    notes
        What was done to the columns, in words.
    """

    X: NDArray[np.float64]
    notes: tuple[str, ...]


def to_numbers(columns: Sequence[Column], where: str) -> Numbers:
    """Make numbers of columns.

    Numbers written as text are numbers. A column with other texts becomes one indicator for
    each of them. Infinite values are taken as missing, and constant columns are left out.

    Parameters
    ----------
    columns
        Name and values of each.
    where
        The file, for errors.

    Raises
    ------
    DatasetError
        A column with too many different texts, or no column that varies.

    Examples
    --------
    >>> columns = [("weight", np.array(["1.5", "?", "2"])), ("type", np.array(["a", "b", "b"]))]
    >>> made = to_numbers(columns, "pumps.csv")
    >>> made.X.tolist()
    [[1.5, 1.0, 0.0], [nan, 0.0, 1.0], [2.0, 0.0, 1.0]]
    >>> made.notes
    ('1 column of text became 2 indicators', '1 missing value')
    """
    blocks, n_texts, n_indicators = [], 0, 0
    for name, values in columns:
        block = _numbers(values)
        if block is None:
            block = _indicators(name, values, where)  # type: ignore[arg-type]
            n_texts += 1
            n_indicators += block.shape[1]
        blocks.append(block)
    X = np.concatenate(blocks, 1) if blocks else np.empty((0, 0))
    X[~np.isfinite(X)] = np.nan
    varies = np.array([len(np.unique(column[~np.isnan(column)])) > 1 for column in X.T], bool)
    if not varies.any():
        raise DatasetError(f"{where} has no column that varies, beside its labels.")
    notes = []
    if n_texts:
        columns_of = count(n_texts, "column of text", "columns of text")
        notes.append(f"{columns_of} became {count(n_indicators, 'indicator')}")
    if not varies.all():
        notes.append(f"{count(int((~varies).sum()), 'constant column')} left out")
    X = np.ascontiguousarray(X[:, varies])
    if n_missing := int(np.isnan(X).sum()):
        notes.append(count(n_missing, "missing value"))
    return Numbers(X, tuple(notes))


def is_missing(values: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Return which texts say that there is no value."""
    return np.isin(np.char.lower(values), MISSING)


def _numbers(values: NDArray[np.str_] | NDArray[np.float64]) -> NDArray[np.float64] | None:
    if values.dtype.kind != "U":
        return np.asarray(values, np.float64)[:, None]
    texts = np.char.strip(np.asarray(values, np.str_))
    found = np.full(len(texts), np.nan)
    there = ~is_missing(texts)
    try:
        found[there] = texts[there].astype(np.float64)
    except ValueError:
        return None
    return found[:, None]


def _indicators(name: str, values: NDArray[np.str_], where: str) -> NDArray[np.float64]:
    texts = np.char.strip(values)
    different = np.unique(texts[~is_missing(texts)])
    if len(different) > MOST_TEXTS:
        raise DatasetError(
            f"The column {name!r} of {where} holds {len(different)} different texts, such as "
            f"{str(different[0])!r}; up to {MOST_TEXTS} become indicators. Write numbers "
            f"instead, or leave the column out (aloof bench tables --ignore {name!r})."
        )
    return np.asarray(texts[:, None] == different, np.float64)
