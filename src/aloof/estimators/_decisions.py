"""From scores to decisions: calibration, p-values and thresholds of a fitted detector."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from aloof.calibration import Decision, Threshold, p_values
from aloof.exceptions import CalibrationWarning
from aloof.labels import ANOMALY, read_labels

__all__ = ["Decisions"]


class Decisions:
    """What a detector decides, given its anomaly scores."""

    offset_: float
    training_scores_: NDArray[np.float64]
    calibration_scores_: NDArray[np.float64] | None
    _normal: NDArray[np.int64]  # the training rows not labelled as anomalies
    _rule: tuple[Threshold, float]  # and the offset that it led to

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how normal each row is."""
        raise NotImplementedError

    def anomaly_score(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how anomalous each row is; higher is worse."""
        return -self.score_samples(X)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return ``score_samples(X) - offset_``: negative for anomalies.

        Where `threshold_` is a false discovery rate, a negative value is what an anomaly must
        have at least; `predict` decides.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return -1 for anomalies and 1 for normal rows, as scikit-learn does.

        Where `threshold_` is a false discovery rate, the decision on a row depends on the
        rows given together with it.
        """
        check_is_fitted(self)
        return np.where(self.decision_.flag(self.anomaly_score(X)), -1, 1)

    def calibrate(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from held-out rows which anomaly scores normal rows have.

        The rule of `threshold_` stays; its level is taken from these rows from now on.

        Parameters
        ----------
        X
            Rows that were not used to fit, drawn as the rows to come will be.
        y
            Labels, as in `fit`. Rows labelled as anomalies are left out. Unlabelled rows
            count as normal: anomalies that hide among them make decisions more cautious.

        Returns
        -------
        The detector.

        Warns
        -----
        CalibrationWarning
            There are too few rows for the present rule.
        """
        check_is_fitted(self)
        scores = self.anomaly_score(X)
        self._calibrate(scores[self._normal_rows(y, len(scores))])
        return self

    def p_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how likely a normal row is to look at least as anomalous as each row.

        Split-conformal: the rank of a row's anomaly score among those of the calibration
        rows. If a normal row is drawn as they were, the p-value is at most t with a
        probability of at most t.
        """
        check_is_fitted(self)
        return p_values(self._calibration("p_values"), self.anomaly_score(X))

    def set_threshold(
        self,
        *,
        share: float | None = None,
        budget: str | None = None,
        fdr: float | None = None,
        value: float | None = None,
    ) -> Self:
        """Choose how many rows `predict` calls anomalies, without fitting again.

        Without `calibrate`, shares and budgets are those of the training rows not labelled
        as anomalies, which look a little more normal than new rows do.

        Parameters
        ----------
        share
            Share of normal rows that may be called anomalies.
        budget
            Alerts among all rows, as ``"50/10000"``.
        fdr
            Share of normal rows among those called anomalies (false discovery rate), by
            Benjamini-Hochberg over the p-values of the rows given to `predict` together.
            Needs `calibrate`.
        value
            The anomaly score above which a row is an anomaly.

        Returns
        -------
        The detector.

        Warns
        -----
        CalibrationWarning
            There are too few calibration rows for this rule.
        """
        check_is_fitted(self)
        threshold = Threshold(share=share, budget=budget, fdr=fdr, value=value)
        if threshold.fdr is not None:
            self._calibration("a false discovery rate")
        self._set(threshold)
        return self

    @property
    def threshold_(self) -> Threshold:
        """The rule that decides; where `offset_` was changed by hand, that value."""
        check_is_fitted(self)
        threshold, offset = self._rule
        return threshold if offset == self.offset_ else Threshold(value=-float(self.offset_))

    @property
    def decision_(self) -> Decision:
        """What decides: `threshold_`, the level that it leads to, the calibration scores."""
        return Decision(self.threshold_, -float(self.offset_), self.calibration_scores_)

    def _calibrate(self, scores: NDArray[np.float64]) -> None:
        """Take the anomaly scores of held-out rows that are not labelled as anomalies."""
        self.calibration_scores_ = np.sort(scores)
        self._set(self.threshold_, stacklevel=4)

    def _set(self, threshold: Threshold, *, warn: bool = True, stacklevel: int = 3) -> None:
        """Take a rule, and find the level it leads to."""
        scores, kind = self.calibration_scores_, "calibration"
        if scores is None:
            scores, kind = self.training_scores_[self._normal], "training"
        self._take(threshold, threshold.level(scores, held_out=kind == "calibration"))
        shortage = threshold.shortage(len(scores), kind=kind) if warn else None
        if shortage is not None:
            warnings.warn(shortage, CalibrationWarning, stacklevel=stacklevel)

    def _take(self, threshold: Threshold, level: float) -> None:
        """Take a rule and the level that it leads to."""
        self.offset_ = -level
        self._rule = threshold, self.offset_

    def _calibration(self, purpose: str) -> NDArray[np.float64]:
        if self.calibration_scores_ is None:
            raise NotFittedError(
                f"{type(self).__name__} is not calibrated, and {purpose} needs it to be. Call "
                "calibrate(X) with rows that were not used to fit."
            )
        return self.calibration_scores_

    def _normal_rows(self, y: ArrayLike | None, n_rows: int) -> NDArray[np.int64]:
        return np.flatnonzero(read_labels(y, n_rows) != ANOMALY)
