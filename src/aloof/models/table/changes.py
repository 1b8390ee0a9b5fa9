"""Tests of whether rows are drawn as those of the training were, column by column.

`find_drift` says what is odd enough for a warning; this is the whole picture, with a statistic
for each column, for the codes and for the score. Numbers and scores: the two-sample
Kolmogorov-Smirnov test, for numbers at the quantiles that were kept, which makes it cautious.
Categories: the chi-squared test of homogeneity. Gaps: the same, of two shares. Codes: a
permutation test of the energy distance. p-values are Holm's over all tests, so that the chance
of any false alarm in a table of the same source is at most `LEVEL`; and what is significant
counts as changed only where the difference is at least `LEAST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats

from aloof.models.table.columns import Column, one_array
from aloof.models.table.columns.category import CategoryColumn
from aloof.models.table.columns.constant import ConstantColumn
from aloof.models.table.columns.number import NumberColumn
from aloof.models.table.drift import Profile, RowSample
from aloof.models.table.files import column_names
from aloof.models.table.model import TableModel
from aloof.phrases import percent

__all__ = ["LEAST", "LEVEL", "Change", "find_changes", "holm"]

LEVEL, LEAST = 0.01, 0.05
_FEWEST = 20  # rows
_BINS = 8
_SMALL = 5.0  # expected counts below this are put together
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
    source, sample = model.read(data), RowSample(model.encoder)
    for batch in model.batches(source):
        sample.add(pa.Table.from_batches([batch]))
    rows, names = sample.rows(), column_names(source)
    n_training = model.encoder.n_rows if model.profile is None else model.profile.n_rows
    found = [
        _column(column, one_array(rows[column.name]), model.profile, n_training)
        for column in model.encoder.columns
        if column.name in names
    ]
    encoded = model._accepting("fill").encode(rows, warn=lambda words: None)
    found += _codes(model, encoded) + _score(model, encoded)
    adjusted = holm([each.p_value for each in found])
    return [replace(each, adjusted=p) for each, p in zip(found, adjusted, strict=True)]


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
    p = min(1.0, len(both) * min(both)) if both and n >= _FEWEST else None
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
    if learned is None or len(values) < _FEWEST:
        return Change(name, test, None, None)
    zeros, others = float((values == 0).mean()), values[values != 0]
    distances, p_values = [abs(zeros - learned.zero_share)], []
    n_learned = round(learned.n_others / max(1e-9, 1 - learned.zero_share))
    if (p := _two_shares(zeros, len(values), learned.zero_share, n_learned)) is not None:
        p_values.append(p)
    if len(others) >= _FEWEST:
        distances.append(learned.distance(others))
        p_values.append(_kolmogorov(distances[-1], len(others), learned.n_others))
    edges = np.unique(np.quantile(learned.quantiles, np.linspace(0, 1, _BINS + 1)[1:-1]))
    then = np.array(learned.quantiles[1:])
    bins = [
        np.bincount(np.searchsorted(edges, v), None, len(edges) + 1) for v in (then, others)
    ]
    before, now = (b / max(1, b.sum()) for b in bins)
    ends = ["", *(f"{edge:.4g}" for edge in edges), ""]
    words = [
        f"up to {b}" if not a else f"above {a}" if not b else f"{a} to {b}"
        for a, b in pairwise(ends)
    ]
    return Change(
        name,
        test,
        max(distances),
        min(1.0, len(p_values) * min(p_values)) if p_values else None,
        tuple(map(float, before)),
        tuple(map(float, now)),
        tuple(words),
    )


def _kolmogorov(distance: float, n: int, m: int) -> float:
    return float(stats.kstwobign.sf(sqrt(n * m / (n + m)) * distance))


def _categories(column: CategoryColumn, values: NDArray[np.object_], m: int) -> Change:
    text = pa.array(values, pa.string())
    counts = {pair["values"]: pair["counts"] for pair in pc.value_counts(text).to_pylist()}
    n, there = len(text), 1 - column.missing_share
    if n < _FEWEST or not there:
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


def _score(model: TableModel, encoded: NDArray[np.float32]) -> list[Change]:
    known = model.detector.calibration_scores_
    if known is None or len(encoded) < _FEWEST:
        return []
    scores = model.detector.anomaly_score(encoded)
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


def _codes(model: TableModel, encoded: NDArray[np.float32]) -> list[Change]:
    prior = model.detector._aggregate_prior
    if prior is None or len(encoded) < _FEWEST:
        return []
    learned = prior.mean[0].double().numpy()[:_CODES]
    now = model.detector.latent(encoded[:_CODES])[0]
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
