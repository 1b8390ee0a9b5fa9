"""Whether what is scored differs from what was learned from: what tables and images share."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from aloof.io.sections import STRICT
from aloof.models.results import Drift
from aloof.phrases import count, percent

__all__ = [
    "FEWEST",
    "LARGEST",
    "Judge",
    "NumberProfile",
    "Share",
    "flagged_drift",
    "in_percent",
    "together",
]

_QUANTILES = np.linspace(0, 1, 33)
LARGEST = 1e300

# The chance that data of the same source is said to differ, over all its columns.
_CHANCE = 1e-3
# With fewer rows nothing is said about values.
FEWEST = 10
# A share may be off by rounding.
Share = Annotated[float, Field(ge=0, le=1 + 1e-9)]

# More than this share flagged, and so many times what was to be expected, is odd; and less
# than one in so many of what was to be expected.
_FLAGGED, _TIMES, _FEWER = 0.05, 3.0, 5.0
_FLAGGED_TOGETHER = 0.2  # with a false discovery rate


@dataclass(frozen=True)
class NumberProfile:
    """What is kept of numbers.

    Attributes
    ----------
    zero_share
        The share of zeros among the numbers that are there.
    n_others
        How many others there are.
    quantiles
        Of the others, from the smallest to the largest, evenly spaced.
    """

    __pydantic_config__ = STRICT

    zero_share: Share
    n_others: Annotated[int, Field(ge=1)]
    quantiles: Annotated[tuple[float, ...], Field(min_length=2)]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> NumberProfile | None:
        """Return the profile of numbers; None where too few are there."""
        there = np.clip(values[np.isfinite(values)], -LARGEST, LARGEST)
        others = there[there != 0]
        if len(others) < FEWEST:
            return None
        quantiles = np.quantile(others, _QUANTILES, method="inverted_cdf")
        zero_share = float((there == 0).mean())
        return cls(zero_share, len(others), tuple(map(float, quantiles)))

    @property
    def median(self) -> float:
        """The median of all numbers, also the zeros."""
        negative = self.at_most(np.zeros(1))[0] * (1 - self.zero_share)
        if negative < 0.5 <= negative + self.zero_share:
            return 0.0
        place = 0.5 if negative >= 0.5 else 0.5 - self.zero_share
        return float(np.quantile(self.quantiles, place / (1 - self.zero_share)))

    def at_most(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return about which share of the numbers that are not 0 is at most each value."""
        place = np.searchsorted(self.quantiles, values, side="right")
        shares: NDArray[np.float64] = np.clip(place / len(self.quantiles), 0, 1)
        return shares

    def distance(self, values: NDArray[np.float64]) -> float:
        """Return how far numbers that are not 0 are from these, from 0 to 1.

        The largest difference of the distribution functions at the quantiles. Ties count
        in favour of no difference.
        """
        ordered, quantiles = np.sort(values), np.asarray(self.quantiles)
        shares = np.linspace(0, 1, len(quantiles))
        up_to = np.searchsorted(ordered, quantiles, side="right") / len(ordered)
        below = np.searchsorted(ordered, quantiles, side="left") / len(ordered)
        return float(max((shares - up_to).max(), (below - shares).max(), 0.0))


def flagged_drift(
    n_rows: int,
    n_flagged: int,
    rate: float | None,
    anomalies: float,
    *,
    together: bool,
    things: str = "rows",
) -> list[Drift]:
    """Say where more or fewer are flagged than the threshold explains.

    Parameters
    ----------
    n_rows, n_flagged
        How many there are.
    rate
        The share of normal rows that the threshold flags; None: nobody knows.
    anomalies
        The share of labelled anomalies in training.
    together
        Whether all were decided together, by a false discovery rate.
    things
        What was scored, in the plural.
    """
    if not n_rows or rate is None:
        return []
    share = n_flagged / n_rows
    most = (_FLAGGED_TOGETHER if together else _FLAGGED) + _TIMES * (anomalies + rate)
    needed = log(1 / _CHANCE)
    if share > most and n_rows * _divergence(share, most) > needed:
        normal = f"{in_percent(rate)} of normal {things}"
        aim = "" if together else f", but the threshold aims at {normal}"
        words = (
            f"{n_flagged:,} of {count(n_rows, things.removesuffix('s'))} are flagged "
            f"({in_percent(share)}){aim}: the {things} are unlike the training {things}"
        )
        return [Drift(None, "flagged", words)]
    if not together and rate * n_rows >= 50 and share < rate / _FEWER:
        words = (
            f"only {n_flagged:,} of {n_rows:,} {things} are flagged, but about "
            f"{rate * n_rows:,.0f} normal ones were expected: the {things} are unlike the "
            f"training {things}"
        )
        return [Drift(None, "flagged", words)]
    return []


@dataclass(frozen=True)
class Judge:
    """Says whether a difference can be chance: seldom in any of the columns of a table."""

    n_training: int
    n_columns: int

    def is_real(self, share: float, learned: float, n: int) -> bool:
        """Say whether a share of `n` rows can be that of the training rows."""
        m = self.n_training
        toward = (learned * m + 2) / (m + 2) if share > learned else learned * m / (m + 2)
        if (share > learned) != (share > toward):
            return False
        return together(n, m) * _divergence(share, toward) > self._needed

    def is_far(self, distance: float, n: int, *, classes: int = 1) -> bool:
        """Say whether a distance between distributions is more than chance makes."""
        bound = (self._needed + (classes - 1) * log(2)) / (2 * together(n, self.n_training))
        return distance > sqrt(bound)

    @property
    def _needed(self) -> float:
        return log(2 * self.n_columns / _CHANCE)


def in_percent(share: float) -> str:
    """Return a share in percent, with a plain space as terminals like it."""
    return percent(share).replace("\u00a0", " ")


def together(n: int, m: int) -> float:
    """Return how many rows are as good as `n` compared with `m`."""
    return n * m / (n + m)


def _divergence(share: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of two shares."""
    other = min(max(other, 1e-12), 1 - 1e-12)
    parts = ((share, other), (1 - share, 1 - other))
    return sum(p * log(p / q) for p, q in parts if p > 0)
