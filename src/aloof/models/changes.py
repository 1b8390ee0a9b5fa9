"""How data compares with what was learned from: one change for each thing that is tested.

Codes: a permutation test of the energy distance. Scores: the two-sample Kolmogorov-Smirnov
test against the rows to calibrate with. p-values are Holm's over all tests, so that the chance
of any false alarm in data of the same source is at most `LEVEL`; and what is significant counts
as changed only where the difference is at least `LEAST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from aloof.phrases import percent

if TYPE_CHECKING:
    from aloof.estimators import Detector

__all__ = [
    "FEWEST",
    "LEAST",
    "LEVEL",
    "Change",
    "adjusted",
    "code_changes",
    "holm",
    "in_classes",
    "kolmogorov",
    "score_changes",
]

LEVEL, LEAST = 0.01, 0.05
FEWEST = 20  # rows
_BINS = 8  # classes in a picture
_CODES, _PERMUTATIONS, _SEED = 256, 9999, 0
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Change:
    """How one column, the codes or the score compare with training.

    Attributes
    ----------
    name
        The column; "(score)" and "(codes)" for those.
    test
        The name of the statistic.
    size
        How large the difference is, from 0 to 1: between distribution functions, or in total
        variation; None: it is not measured so.
    p_value
        By itself, and by Holm over all that was tested; None: there is nothing to test.
    adjusted
        See above.
    learned, now
        Shares of the training rows and of these in the same classes, for a small picture.
    classes
        What the classes are.
    missing_learned, missing_now
        Shares of gaps; None for score and codes.
    """

    name: str
    test: str
    size: float | None
    p_value: float | None
    learned: tuple[float, ...] = ()
    now: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    missing_learned: float | None = None
    missing_now: float | None = None
    adjusted: float | None = None

    @property
    def has_changed(self) -> bool:
        """Whether it differs, and chance is no explanation."""
        large = self.size is None or self.size >= LEAST
        return self.adjusted is not None and self.adjusted <= LEVEL and large

    @property
    def picture(self) -> str:
        """Shares of these rows in the classes as bars."""
        top = max((*self.now, *self.learned), default=0.0)
        if not top:
            return ""
        return "".join(_BARS[round(share / top * (len(_BARS) - 1))] for share in self.now)

    @property
    def words(self) -> str:
        """What changed most, in words."""
        if self.missing_now is not None and self.missing_learned is not None:
            if abs(self.missing_now - self.missing_learned) >= LEAST:
                gaps = (percent(share) for share in (self.missing_now, self.missing_learned))
                return "{} missing, {} in training".format(*gaps).replace("\u00a0", " ")
        if not self.now:
            return ""
        at = int(np.abs(np.subtract(self.now, self.learned)).argmax())
        shares = (percent(float(share)) for share in (self.now[at], self.learned[at]))
        words = f"{self.classes[at]}: {{}} of the rows, {{}} in training"
        return words.format(*shares).replace("\u00a0", " ")


def adjusted(found: Sequence[Change]) -> list[Change]:
    """Return changes whose p-values allow for all of them."""
    every = holm([each.p_value for each in found])
    return [replace(each, adjusted=p) for each, p in zip(found, every, strict=True)]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values that allow for all of them: the chance of any false alarm is kept.

    Examples
    --------
    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    tested = [(p, place) for place, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(sorted(tested)):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        adjusted[place] = highest
    return adjusted


def kolmogorov(distance: float, n: int, m: int) -> float:
    """Return the p-value of a distance between distribution functions of n and m values."""
    return float(stats.kstwobign.sf(sqrt(n * m / (n + m)) * distance))


def in_classes(
    quantiles: Sequence[float], now: NDArray[np.float64], spec: str
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[str, ...]]:
    """Return `learned`, `now` and `classes` of a `Change` of numbers, for its picture.

    Parameters
    ----------
    quantiles
        Of the numbers in training, evenly spaced; classes hold about as many of them each.
    now
        The numbers to compare.
    spec
        How the ends of classes are written, as in `format`.

    Examples
    --------
    >>> in_classes((0, 1, 2), np.array([0.5, 0.5, 3]), ".1f")[2][:2]
    ('up to 0.2', '0.2 to 0.5')
    """
    edges = np.unique(np.quantile(quantiles, np.linspace(0, 1, _BINS + 1)[1:-1]))
    counts = [
        np.bincount(np.searchsorted(edges, values), None, len(edges) + 1)
        for values in (np.array(quantiles[1:]), now)
    ]
    learned, seen = (tuple(map(float, part / max(1, part.sum()))) for part in counts)
    ends = ["", *(format(edge, spec) for edge in edges), ""]
    words = (
        f"up to {b}" if not a else f"above {a}" if not b else f"{a} to {b}"
        for a, b in pairwise(ends)
    )
    return learned, seen, tuple(words)


def score_changes(detector: Detector, scores: NDArray[np.float64]) -> list[Change]:
    """Compare anomaly scores with those of the rows to calibrate with, if there are some."""
    known = detector.calibration_scores_
    if known is None or len(scores) < FEWEST:
        return []
    found = stats.ks_2samp(scores, known, method="asymp")
    edges = np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1])
    shares = [
        np.bincount(np.searchsorted(edges, v), None, _BINS) / len(v) for v in (known, scores)
    ]
    words = [f"eighth {k} of the scores in training" for k in range(1, _BINS + 1)]
    return [
        Change(
            "(score)",
            "Kolmogorov-Smirnov",
            float(found.statistic),
            float(found.pvalue),
            tuple(map(float, shares[0])),
            tuple(map(float, shares[1])),
            tuple(words),
        )
    ]


def code_changes(detector: Detector, rows: NDArray[Any]) -> list[Change]:
    """Compare the codes of the first member with those that it keeps, if it does."""
    prior = detector._aggregate_prior
    if prior is None or len(rows) < FEWEST:
        return []
    learned = prior.mean[0].double().numpy()[:_CODES]
    now = detector.latent(rows[:_CODES])[0]
    p = _energy_test(learned, now)
    return [Change("(codes)", "energy distance, permuted", None, p)]


def _energy_test(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """Return the p-value of two samples being of one distribution."""
    both = np.concatenate([one, two])
    squares = (both**2).sum(1)
    distances = np.sqrt(np.clip(squares[:, None] + squares - 2 * both @ both.T, 0, None))
    rng = np.random.default_rng(_SEED)
    first = np.zeros((_PERMUTATIONS + 1, len(both)))
    first[0, : len(one)] = 1
    for row in first[1:]:
        row[rng.permutation(len(both))[: len(one)]] = 1
    n, m = len(one), len(two)
    across = first @ distances
    within_one = (across * first).sum(1)
    between = across.sum(1) - within_one
    within_two = distances.sum() - within_one - 2 * between
    energy = 2 * between / (n * m) - within_one / n**2 - within_two / m**2
    return float((energy >= energy[0]).mean())
