"""From scores to decisions: calibration, p-values and thresholds of a fitted detector."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from aloof.calibration import Decision, ProbabilityCurve, Threshold, p_values
from aloof.estimators._arrays import as_array
from aloof.estimators._scorers import check_scorer
from aloof.exceptions import CalibrationWarning
from aloof.labels import ANOMALY, Labels, read_labels
from aloof.metrics import check_both, roc_auc

__all__ = ["Decisions"]


def _has_probabilities(detector: Decisions) -> bool:
    check_is_fitted(detector)
    if detector._probability is None:
        raise AttributeError(
            f"{type(detector).__name__} has no probabilities yet. Call calibrate(X, y) with "
            "rows that were not used to fit: normal ones and labelled anomalies, in the "
            "proportions you expect."
        )
    return True


class Decisions:
    """What a detector decides, given its anomaly scores."""

    labels: Labels
    offset_: float
    training_scores_: NDArray[np.float64]
    calibration_scores_: NDArray[np.float64] | None
    _normal: NDArray[np.int64]  # the training rows not labelled as anomalies
    _probability: ProbabilityCurve | None
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
        check_scorer(type(self).__name__, self.labels, "decision_function")
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return -1 for anomalies and 1 for normal rows, as scikit-learn does.

        Where `threshold_` is a false discovery rate, the decision on a row depends on the
        rows given together with it.
        """
        check_is_fitted(self)
        check_scorer(type(self).__name__, self.labels, "predict")
        return np.where(self.decision_.flag(self.anomaly_score(X)), -1, 1)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probabilities that each row is normal and an anomaly, ``(n, 2)``.

        There are none before `calibrate` was given labelled anomalies, and they are as good as
        the rows that it was given: the share of anomalies among them is taken for the share
        among the rows to come. They rise with the anomaly score, and have nothing to do with
        the threshold.
        """
        check_scorer(type(self).__name__, self.labels, "predict_proba")
        return self._probabilities(self.anomaly_score(X))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the area under the ROC curve of the anomaly scores: 1 is best.

        It is what a search goes by where it is given no scorer; see `aloof.metrics` for
        others.

        Parameters
        ----------
        X
            Rows.
        y
            Labels, as in `fit`; there must be anomalies and normal rows. Unlabelled rows have
            no say.
        """
        scores = self.anomaly_score(X)
        labels = self._read_labels(y, len(scores), training=False)
        check_both(labels, in_folds=True)
        return roc_auc(labels, scores)

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
            With labelled anomalies, there is `predict_proba` from now on.

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
        self._calibrate(scores, self._read_labels(y, len(scores)))
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

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of normal and anomaly for anomaly scores, ``(n, 2)``."""
        assert self._probability is not None  # see `_has_probabilities`
        anomaly = self._probability(scores)
        return np.column_stack([1 - anomaly, anomaly])

    def _calibrate(self, scores: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        """Take the anomaly scores and the labels of held-out rows."""
        anomalous = labels == ANOMALY
        normal = scores[~anomalous]
        self.calibration_scores_, self._probability = np.sort(normal), None
        if anomalous.any():
            self._probability = ProbabilityCurve.fit(normal, scores[anomalous])
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
                f"{type(self).__name__} is not calibrated, which {purpose} needs. Call "
                "calibrate(X) with rows that were not used to fit."
            )
        return self.calibration_scores_

    def _read_labels(
        self, y: ArrayLike | None, n_rows: int, *, training: bool = True
    ) -> NDArray[np.int64]:
        given = None if y is None else as_array(y)
        return read_labels(given, n_rows, self.labels, training=training)
