"""Changes to methods on tables: also to what they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, model_validator

from aloof.bench.specification import Whole
from aloof.bench.variants import Variant, distinct_variants, given_variants
from aloof.labels import ANOMALY

__all__ = ["TableVariant", "TableVariants", "in_bins", "in_unit", "with_mixed"]

_N_BINS = 8

_Rows = NDArray[np.float64]


class TableVariant(Variant):
    """A change to methods that a study is about.

    Attributes
    ----------
    columns
        How they are shown: ``standard``, in [0, 1] (``unit``), or each as several, one for
        each eighth of its values (``bins``). Ranks are a parameter of the estimator.
    mixed
        How many labelled anomalies are made by mixing two at a time.
    """

    columns: Literal["standard", "unit", "bins"] = "standard"
    mixed: Whole = 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.name and (self.columns, self.mixed) != ("standard", 0):
            raise ValueError("a variant with columns or mixed needs a name.")
        return self

    def shown(self, X: _Rows, X_test: _Rows) -> tuple[_Rows, _Rows]:
        """Return training and test rows as they are shown."""
        how = _SHOWN.get(self.columns)
        return (X, X_test) if how is None else how(X, X_test)

    @property
    def facts(self) -> dict[str, str | int]:
        """What a record says of it beside the estimator's parameters."""
        return {"columns": self.columns, "mixed": self.mixed} if self.name else {}


TableVariants = Annotated[
    tuple[TableVariant, ...],
    BeforeValidator(given_variants),
    AfterValidator(distinct_variants),
]


def in_unit(X: _Rows, X_test: _Rows) -> tuple[_Rows, _Rows]:
    """Scale columns so that those of the training rows lie between 0 and 1.

    Examples
    --------
    >>> in_unit(np.array([[2.0], [4.0]]), np.array([[5.0]]))[1].tolist()
    [[1.5]]
    """
    low, width = X.min(0), np.ptp(X, 0)
    width = np.where(width > 0, width, 1.0)
    return (X - low) / width, (X_test - low) / width


def in_bins(X: _Rows, X_test: _Rows) -> tuple[_Rows, _Rows]:
    """Encode columns piecewise: how far a value has come through each part of its range.

    Parts have equally many training rows. The first and the last go on beyond the range, so
    that no two values become one.

    Examples
    --------
    >>> train, test = in_bins(np.arange(9.0)[:, None], np.array([[2.5], [10.0]]))
    >>> test.round(2).tolist()
    [[1.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0]]
    """
    parts = [
        _in_bins(np.unique(np.quantile(column, np.linspace(0, 1, _N_BINS + 1))), column, other)
        for column, other in zip(X.T, X_test.T, strict=True)
    ]
    return tuple(np.concatenate(both, 1) for both in zip(*parts, strict=True))  # type: ignore[return-value]


def _in_bins(edges: _Rows, *columns: _Rows) -> tuple[_Rows, ...]:
    if len(edges) < 2:
        return tuple(column[:, None] for column in columns)
    low, width = edges[:-1], np.diff(edges)
    least, most = np.zeros(len(width)), np.ones(len(width))
    least[0], most[-1] = -np.inf, np.inf
    return tuple(np.clip((column[:, None] - low) / width, least, most) for column in columns)


def with_mixed(
    X: _Rows, y: NDArray[np.int64], number: int, seed: int
) -> tuple[_Rows, NDArray[np.int64]]:
    """Add labelled anomalies between two that are there; none where there is one alone.

    Examples
    --------
    >>> X, y = with_mixed(np.array([[0.0], [2.0], [9.0]]), np.array([1, 1, 0]), 4, seed=0)
    >>> y.tolist(), bool((X[3:] >= 0).all() and (X[3:] <= 2).all())
    ([1, 1, 0, 1, 1, 1, 1], True)
    """
    labelled = np.flatnonzero(y == ANOMALY)
    if number == 0 or len(labelled) < 2:
        return X, y
    rng = np.random.default_rng([seed, number])
    pairs = np.array([rng.choice(labelled, 2, replace=False) for _ in range(number)])
    share = rng.uniform(size=(number, 1))
    made = share * X[pairs[:, 0]] + (1 - share) * X[pairs[:, 1]]
    return np.concatenate([X, made]), np.concatenate([y, np.full(number, ANOMALY, y.dtype)])


_SHOWN: Mapping[str, Callable[[_Rows, _Rows], tuple[_Rows, _Rows]]] = {
    "unit": in_unit,
    "bins": in_bins,
}
