"""Frames of mixed columns under scikit-learn's contract: in pipelines and in searches."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from aloof.estimators import Committee, Decisions, Detector, check_order, seed_of
from aloof.exceptions import LabelError, TableError
from aloof.labels import ANOMALY, Labels, with_gaps
from aloof.models.making import made_by

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from aloof.models.table import TableModel
    from aloof.models.table.explanation import TableExplanation

__all__ = ["TableDetector"]

# Parameters of a detector that a table decides, or that have their own way.
_SET_HERE = {"labels", "n_members", "random_state", "verbose", "checkpoint"}
# Parameters that a table has, too.
_COLUMNS = ("kinds", "drop", "text", "embedder", "calibration")


def _of_detector(name: str) -> Any:
    """Return an attribute that the detector of the fitted model has."""

    def get(self: TableDetector) -> Any:
        return getattr(self.model_.detector, name)

    def set(self: TableDetector, value: Any) -> None:
        setattr(self.model_.detector, name, value)

    return property(get, set)


@dataclass(kw_only=True, repr=False, eq=False)
class TableDetector(Decisions, OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Anomaly detection in frames of numbers, categories, times and text, gaps and all.

    Does what `aloof.fit` does, with the labels in a separate `y`: it learns from the training
    rows how to read each column, and a detector learns from what was read.

    Parameters
    ----------
    detector
        One of aloof's detectors, whose parameters can be searched as ``detector__beta_kl``.
        None: `aloof.Committee`. Its parameter `labels` names the convention of the labels.
    kinds, drop, text, embedder
        How to read the columns, as in `aloof.models.table.fit`.
    calibration
        Share of the rows not labelled as anomalies to hold out for the threshold. 0: none.

    Attributes
    ----------
    model_
        The fitted `aloof.TableModel`: files, reports, drift, reasons in words.
    feature_names_in_, n_features_in_
        The columns of the frame; of a detector that was loaded, those that it uses.
    offset_, threshold_, calibration_scores_, training_scores_, history_
        As in `aloof.VAE`. The rows that were held out set the threshold: `calibration` of
        them are not among the training rows.

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

    offset_ = _of_detector("offset_")
    calibration_scores_ = _of_detector("calibration_scores_")
    training_scores_ = _of_detector("training_scores_")
    history_ = _of_detector("history_")
    _normal = _of_detector("_normal")
    _probability = _of_detector("_probability")
    _rule = _of_detector("_rule")

    @property
    def labels(self) -> Labels:  # type: ignore[override]
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

        detector = Committee() if self.detector is None else self.detector
        if not isinstance(detector, Detector):
            raise TableError(
                "The detector of a TableDetector must be one of aloof's, such as "
                f"Committee(); got {detector!r}."
            )
        check_order(X, y)
        table = to_table(self._rows(X, reset=True))
        names, label = list(table.column_names), None
        if y is not None:
            labels = self._read_labels(y, table.num_rows, training=False)
            if 2 * (n_anomalies := int((labels == ANOMALY).sum())) > len(labels):
                raise LabelError(
                    f"{n_anomalies:,} of {len(labels):,} rows are labelled as anomalies, and "
                    "it takes mostly normal rows to learn what is normal. If 1 means normal, "
                    "say so: detector=Committee(labels={1: 0, 0: 1})."
                )
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
        self.model_.detector.labels = detector.labels
        self.model_.detector._remember_parameters()  # for `save`
        if not _is_array(X):
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        return self

    def fit_predict(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.int64]:
        """Fit, and return the decisions on the training rows."""
        return self.fit(X, y).predict(X)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return how normal each row is: higher is more normal, as in scikit-learn."""
        check_is_fitted(self)
        return -self.model_.anomaly_score(self._rows(X, reset=False))

    def explain(self, X: Any) -> TableExplanation:
        """Return what every column contributes to the anomaly score of each row."""
        check_is_fitted(self)
        return self.model_.explain(self._rows(X, reset=False))

    def plot_history(self) -> Figure:
        """Return a picture of `history_`; see `aloof.VAE.plot_history`."""
        check_is_fitted(self)
        return self.model_.detector.plot_history()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `model_` to a folder, which `load`, `aloof.load` and the commands read."""
        check_is_fitted(self)
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read a detector that `save` wrote, or the model of a table that `aloof.fit` made.

        Parameters
        ----------
        path
            The folder.
        device
            Where to score.
        """
        from aloof.models.table import TableModel

        model = TableModel.load(path, device=device)
        options = model.training.get("made", {}).get("options", {})
        columns: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in options.items()
            if name in _COLUMNS
        }
        unscaled = clone(model.detector).set_params(standardize=None, device=device)
        loaded = cls(detector=unscaled, **columns)
        loaded.model_ = model
        loaded.feature_names_in_ = np.array(model.columns, dtype=object)
        loaded.n_features_in_ = len(model.columns)
        return loaded

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Return a frame as it is, and anything else as an array that was checked."""
        if not _is_array(X):
            return X
        most = {"dtype": None, "ensure_all_finite": False}
        return validate_data(self, X, reset=reset, ensure_min_samples=1 + reset, **most)

    def _calibrate(self, scores: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        call = made_by(self.model_.calibrate, None, {})
        self.model_._calibrated(labels, scores, call)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _is_array(X: Any) -> bool:
    """Say whether rows are an array, or what scikit-learn makes one of: no names."""
    if isinstance(X, str | os.PathLike | Mapping) and not issparse(X):
        return False
    if hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__"):
        return False
    return getattr(getattr(X, "dtype", None), "names", None) is None


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
