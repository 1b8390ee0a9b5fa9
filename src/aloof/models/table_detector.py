"""Frames of mixed columns under scikit-learn's contract: in pipelines and in searches."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from aloof.estimators import Detector, DualPriorVAE, check_scorer, seed_of
from aloof.exceptions import TableError
from aloof.labels import Labels, read_labels, with_gaps
from aloof.metrics import check_both, roc_auc

if TYPE_CHECKING:
    import pyarrow as pa

    from aloof.models.table import TableModel
    from aloof.models.table.explanation import TableExplanation

__all__ = ["TableDetector"]

# Parameters of a detector that a table decides, or that have their own way.
_SET_HERE = {"labels", "n_members", "random_state", "verbose", "checkpoint"}


@dataclass(kw_only=True, repr=False, eq=False)
class TableDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Anomaly detection in frames of numbers, categories, times and text, gaps and all.

    Does what `aloof.fit` does, with the labels in a separate `y`: it learns from the training
    rows how to read each column, and a detector learns from what was read.

    Parameters
    ----------
    detector
        One of aloof's detectors, whose parameters can be searched as ``detector__beta_kl``.
        None: `aloof.DualPriorVAE`. Its parameter `labels` names the convention of the labels.
    kinds, drop, text, embedder
        How to read the columns, as in `aloof.models.table.fit`.
    calibration
        Share of the rows not labelled as anomalies to hold out for the threshold. 0: none.

    Attributes
    ----------
    model_
        The fitted `aloof.TableModel`: p-values, thresholds, reports, saving.
    feature_names_in_, n_features_in_
        The columns of the frame.

    Examples
    --------
    >>> import numpy as np
    >>> from aloof import DualPriorVAE, TableDetector
    >>> rng = np.random.default_rng(0)
    >>> frame = {"amount": rng.normal(50, 5, 900), "city": rng.choice(["Oslo", "Bern"], 900)}
    >>> y = np.r_[np.ones(10), np.zeros(890)]
    >>> frame["amount"][:10] += 40
    >>> detector = TableDetector(detector=DualPriorVAE(n_members=1, max_epochs=5))
    >>> detector.fit(frame, y).score(frame, y) > 0.9
    True
    """

    detector: Detector | None = None
    kinds: Mapping[str, str] | None = None
    drop: Sequence[str] = ()
    text: str | Sequence[str] = ()
    embedder: str | None = None
    calibration: float = 0.2

    @property
    def labels(self) -> Labels:
        """Who wrote the labels: what the detector's parameter says."""
        return "aloof" if self.detector is None else self.detector.labels

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn what is normal.

        Parameters
        ----------
        X
            A frame of any flavour, a mapping from names to columns, or an array.
        y
            Labels, one for each row, beside the frame and not in it.

        Returns
        -------
        The fitted detector.
        """
        from aloof.models.table import fit, to_table

        detector = DualPriorVAE() if self.detector is None else self.detector
        if not isinstance(detector, Detector):
            raise TableError(
                "The detector of a TableDetector must be one of aloof's, such as "
                f"DualPriorVAE(); got {detector!r}."
            )
        table = to_table(X)
        names, label = list(table.column_names), None
        if y is not None:
            labels = read_labels(y, table.num_rows, detector.labels)
            name = getattr(y, "name", None)
            if name in set(names) - set(self.drop):
                raise TableError(
                    f"X has a column {name!r}, the same name as the labels. A detector that "
                    "reads the labels as a column would learn nothing else. Set "
                    f"drop=({name!r},)."
                )
            table, label = _beside(table, labels, name)
        options: dict[str, Any] = {} if self.embedder is None else {"embedder": self.embedder}
        self.model_: TableModel = fit(
            table,
            label=label,
            method=detector.method,
            kinds=self.kinds,
            drop=self.drop,
            text=self.text,
            members=detector.n_members,
            calibration=self.calibration,
            seed=seed_of(detector.random_state),
            checkpoint=detector.checkpoint,
            verbose=detector.verbose,
            **options,
            **_chosen(detector),
        )
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        return self

    def fit_predict(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.int64]:
        """Fit, and return the decisions on the training rows."""
        return self.fit(X, y).predict(X)

    def anomaly_score(self, X: Any) -> NDArray[np.float64]:
        """Return how anomalous each row is; higher is worse."""
        check_is_fitted(self)
        return self.model_.anomaly_score(X)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return how normal each row is: higher is more normal, as in scikit-learn."""
        return -self.anomaly_score(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return ``score_samples(X) - offset_``: negative for anomalies."""
        check_scorer(type(self).__name__, self.labels, "decision_function")
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for anomalies and 1 for normal rows, as scikit-learn does."""
        check_scorer(type(self).__name__, self.labels, "predict")
        return np.where(self.model_.decide(self.anomaly_score(X)), -1, 1)

    def score(self, X: Any, y: ArrayLike) -> float:
        """Return the area under the ROC curve of the anomaly scores; see `aloof.VAE.score`."""
        scores = self.anomaly_score(X)
        labels = read_labels(y, len(scores), self.labels, training=False)
        check_both(labels, in_folds=True)
        return roc_auc(labels, scores)

    def explain(self, X: Any) -> TableExplanation:
        """Return what every column contributes to the anomaly score of each row."""
        check_is_fitted(self)
        return self.model_.explain(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `model_` to a folder; `aloof.load` reads it as an `aloof.TableModel`."""
        check_is_fitted(self)
        self.model_.save(path)

    @property
    def offset_(self) -> float:
        """The score below which a row is an anomaly."""
        return self.model_.detector.offset_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _beside(table: pa.Table, labels: NDArray[np.int64], name: Any) -> tuple[pa.Table, str]:
    """Return a table with a column of labels, and the name of that."""
    import pyarrow as pa

    label = name if isinstance(name, str) and name else "label"
    while label in table.column_names:
        label += "_"
    return table.append_column(label, pa.array(with_gaps(labels), from_pandas=True)), label


def _chosen(detector: Detector) -> dict[str, Any]:
    """Return the parameters that somebody chose; a table has its own defaults for others."""
    defaults = type(detector)().get_params(deep=False)
    return {
        name: value
        for name, value in detector.get_params(deep=False).items()
        if name not in _SET_HERE and value != defaults[name]
    }
