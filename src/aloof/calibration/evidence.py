r"""How surprising a score is among those of normal rows: minus the logarithm of its p-value.

Scores of different detectors have different units; their evidence has one, and means the same
for all: a normal row has an evidence above :math:`t` with a probability of :math:`e^{-t}`. The
p-value is read from scores of rows that were held out, between which it is interpolated. Where
there are hardly any, above the 95th percentile, the tail is taken to be exponential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FARTHEST", "LARGEST", "Evidence"]

# Share of the held-out rows that the tail is fitted to, the fewest of them, and how many
# scores are kept.
_TAIL, _FEWEST, _MOST = 0.05, 10, 512

# Scores whose difference is a smaller part of them are equal but for rounding.
_ROUNDING = 1e-6

# Scores are cut off here, and evidence there: far from what means anything, and their sums
# are finite, in float32 as well.
FARTHEST, LARGEST = 1e300, 1e30


@dataclass(frozen=True)
class Evidence:
    """From anomaly scores to evidence: a continuous function that never falls.

    Attributes
    ----------
    scores
        Of held-out rows, in strictly ascending order, up to where the tail begins.
    evidence
        What they are worth.
    scale
        How much further a score has to be for one more unit, in the tail.
    """

    scores: NDArray[np.float64]
    evidence: NDArray[np.float64]
    scale: float

    @classmethod
    def fit(cls, scores: ArrayLike, *, resolution: float = 0.0) -> Evidence:
        """Learn from anomaly scores of rows that were held out.

        Parameters
        ----------
        scores
            Of these rows.
        resolution
            The smallest difference between scores that means something. One unit of evidence
            is never less, however alike the held-out rows are.

        Examples
        --------
        >>> found = Evidence.fit(np.random.default_rng(0).exponential(size=2000))
        >>> found([1.0, 5.0]).round()
        array([1., 5.])
        """
        ordered = np.sort(_finite(scores))
        n = len(ordered)
        n_tail = min(max(_FEWEST, round(_TAIL * n)), max(1, n // 2))
        start = ordered[n - n_tail]
        scale = float((ordered[n - n_tail :] - start).mean())
        if ordered[n - n_tail - 1] == start < ordered[-1] and n_tail < n:
            # Equal scores run into the tail, which then begins above them.
            above = ordered[ordered > start]
            n_tail, scale, start = len(above), float((above - start).mean()), above[0]
        values, first, counts = np.unique(ordered, return_index=True, return_counts=True)
        p = (n - first - 0.5 * counts) / n
        body = values <= start
        values, p = values[body], p[body]
        # Where the tail begins. Of rows that have the same score, half are worse.
        p[-1] = max(n_tail / n, p[-1])
        if len(values) > _MOST:
            kept = np.linspace(0, len(values) - 1, _MOST).round().astype(np.int64)
            values, p = values[kept], p[kept]
        # In a tail without any spread nothing says how far is far.
        spread = scale if scale > 0 else float(values[-1] - values[0]) / n
        rounding = _ROUNDING * max(abs(float(start)), 1.0)
        return cls(values, -np.log(p), max(spread, rounding, resolution))

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the evidence of anomaly scores; it is never negative."""
        x = _finite(scores)
        low, high = self.scores[0], self.scores[-1]
        found: NDArray[np.float64] = np.interp(x, self.scores, self.evidence)
        with np.errstate(over="ignore"):
            found += np.minimum(np.maximum(x - high, 0.0) / self.scale, LARGEST)
        # Below all that was held out, evidence goes to 0 without reaching it.
        found *= np.exp(np.minimum(x - low, 0.0) / max(self.scale, high - low))
        return found


def _finite(scores: ArrayLike) -> NDArray[np.float64]:
    """Return scores with what is infinite as large as can be computed with."""
    return np.clip(np.asarray(scores, np.float64), -FARTHEST, FARTHEST)
