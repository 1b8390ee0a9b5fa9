"""Which scores are those of anomalies: the one place that decides, for arrays and streams."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloof.calibration.conformal import (
    count_p_values,
    discoveries,
    p_values,
    rows_needed,
    smallest_p,
)
from aloof.calibration.threshold import Threshold
from aloof.phrases import count

__all__ = ["Decision"]


@dataclass(frozen=True, eq=False)
class Decision:
    """A rule, the level that it leads to, and what it was calibrated with.

    Whatever the rule, rows are anomalies whose scores are above one level. A false discovery
    rate has it when all rows that are decided together are known; of a stream, the counts of
    their p-values are enough.

    Attributes
    ----------
    threshold
        The rule.
    least
        The anomaly score above which a row is an anomaly; with a false discovery rate, may be
        one, depending on the others.
    calibration
        Anomaly scores of the calibration rows, sorted; None: there are none. A false discovery
        rate needs them.

    Examples
    --------
    >>> rule = Decision(Threshold(fdr=0.5), 0.3, np.array([0.1, 0.2, 0.3, 0.4]))
    >>> rule.flag([0.0, 0.25, 9.0, 9.0])
    array([False, False,  True,  True])
    """

    threshold: Threshold
    least: float
    calibration: NDArray[np.float64] | None = None

    def flag(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Return which of the rows that have these anomaly scores are anomalies."""
        together = self.threshold.fdr is not None
        level = self.level(self.counts(scores)) if together else self.least
        flagged: NDArray[np.bool_] = np.asarray(scores, np.float64) > level
        return flagged

    def counts(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Return how many scores have which p-value; those of parts of a stream add up.

        See `count_p_values`. Without calibration all have the p-value 1.
        """
        return count_p_values(() if self.calibration is None else self.calibration, scores)

    def level(self, counts: NDArray[np.int64]) -> float:
        """Return the anomaly score above which rows are anomalies; infinite where none is.

        Parameters
        ----------
        counts
            Of all rows that are decided together; see `counts`.
        """
        if self.threshold.fdr is None:
            return self.least
        assert self.calibration is not None  # or there would be no such rule
        n = self.discovered(counts)
        return float(self.calibration[len(self.calibration) - n]) if n else np.inf

    def discovered(self, counts: NDArray[np.int64]) -> int:
        """Return how many p-values there can be are those of anomalies, the smallest first.

        Of a false discovery rate; see `level`. A p-value of 1 is never among them.
        """
        assert self.threshold.fdr is not None
        return discoveries(counts, self.threshold.fdr)

    def why_none(self, counts: NDArray[np.int64]) -> str:
        """Say why a false discovery rate flags none of the rows, and what would change it.

        Nothing where it flags some, and of other rules.

        Parameters
        ----------
        counts
            See `level`.

        Examples
        --------
        >>> rule = Decision(Threshold(fdr=0.1), 0.3, np.array([0.1, 0.2, 0.3, 0.4]))
        >>> rule.why_none(rule.counts([0.0, 9.0]))[:53]
        'With 4 calibration rows, no p-value can be below 0.2,'
        """
        fdr, n_rows = self.threshold.fdr, int(counts.sum())
        if fdr is None or not n_rows or self.discovered(counts):
            return ""
        assert self.calibration is not None
        n, best = len(self.calibration), int(counts[0])
        least = smallest_p(n)
        needed = ceil(round(n_rows * least / fdr, 6))
        bound = f"With {count(n, 'calibration row')}, no p-value can be below {least:.2g}, "
        if needed > n_rows:
            return (
                f"{bound}but {self.threshold} needs smaller ones. Calibrate with more rows "
                f"(about {rows_needed(fdr, anomalies=0.01):,} if one row in 100 is an "
                "anomaly), or decide by a share, a budget or the top rows."
            )
        if not best:
            return (
                f"No row scores above all {count(n, 'calibration row')}, so none stands out "
                f"enough for {self.threshold}. Allow a larger rate, or decide by a share, a "
                "budget or the top rows."
            )
        enough = rows_needed(fdr, anomalies=best / n_rows)
        return (
            f"{bound}so {self.threshold} needs at least {needed:,} of {n_rows:,} rows to "
            f"stand out that far; {count(best, 'row does', 'rows do')}. Allow a larger rate, "
            f"calibrate with more rows (at least {enough:,}), or decide by a share, a budget "
            "or the top rows."
        )

    def p_values(self, scores: ArrayLike) -> NDArray[np.float64] | None:
        """Return the p-value of each score; None without calibration."""
        return None if self.calibration is None else p_values(self.calibration, scores)
