"""The one contract: ``fit(X, y)``, ``anomaly_score(X)``, and whether labels are used."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from aloof.estimators._documentation import inherit_sections
from aloof.estimators._images import as_numbers, check_images
from aloof.estimators._parameters import Check, check_parameters, integer, or_none, seed_of
from aloof.exceptions import LabelError, LabelWarning
from aloof.labels import ANOMALY, normal_rows, read_labels

__all__ = ["Baseline", "LabelUse", "SubsampledBaseline", "numpy_seed"]

LabelUse = Literal["none", "optional", "required"]


def numpy_seed(seed: int) -> int:
    """Return a seed that NumPy's old generators, and so scikit-learn, take."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


@dataclass(kw_only=True, repr=False, eq=False)
class Baseline(ABC, BaseEstimator):  # type: ignore[misc]
    """A system to compare with: a scikit-learn estimator, all settings by keyword.

    Rows of numbers ``(n, n_features)`` are expected to be standardised; nothing is scaled here
    unless the class says so. Images ``(n, channels, height, width)`` are bytes, or numbers in
    [0, 1]; to a method that is not for images they are rows of pixels. Methods that use no
    labels leave rows labelled as anomalies out of the training.

    Parameters
    ----------
    random_state
        Seed. No global generator is read or changed.

    Attributes
    ----------
    seed_
        The seed that was used.
    n_features_in_
        Number of columns.
    """

    random_state: int | np.random.RandomState | None = None

    label_use: ClassVar[LabelUse] = "none"
    # Whether rows of numbers are refused.
    images_only: ClassVar[bool] = False
    # Whether files are needed that no package brings: such a system has to be asked for.
    needs_weights: ClassVar[bool] = False
    # What a method that can do without labels is then.
    without_labels: ClassVar[str] = ""
    # What must hold for the parameters that a class adds, beside what holds for those it has.
    checks: ClassVar[Mapping[str, Check]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_sections(cls, "Parameters", "Attributes")

    @property
    def uses_labels(self) -> bool:
        """Whether labelled anomalies are more to the method than rows to leave out."""
        return self.label_use != "none"

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X
            Standardised rows ``(n, n_features)``, or images.
        y
            Labels: 1 anomaly, 0 normal, -1, NaN or None unlabelled.

        Returns
        -------
        The fitted baseline.
        """
        X, labels, seed = self._prepared(X, y)
        self._fit(X, labels, seed)
        self.seed_ = seed
        return self

    def anomaly_score(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how anomalous each row is; higher is worse, the same in every call."""
        check_is_fitted(self)
        scores = self._anomaly_score(self._validate(X, reset=False))
        return np.asarray(scores, np.float64)

    def drawn(self, labels: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        """Return the numbers of the rows to learn what is normal from, sorted."""
        return np.flatnonzero(labels != ANOMALY)

    def drawn_with_anomalies(self, labels: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        """Return what `drawn` does, and then the numbers of all labelled anomalies."""
        return np.concatenate([self.drawn(labels, seed), np.flatnonzero(labels == ANOMALY)])

    @abstractmethod
    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], seed: int) -> None:
        """Learn from checked rows; `labels` holds 1, 0 and -1."""

    @abstractmethod
    def _anomaly_score(self, X: NDArray[Any]) -> NDArray[np.floating]:
        """Score checked rows."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "seed_")

    def _prepared(
        self, X: ArrayLike, y: ArrayLike | None
    ) -> tuple[NDArray[Any], NDArray[np.int64], int]:
        """Check parameters and data; return rows, labels and the seed to use."""
        self._check_parameters()
        rows = self._validate(X, reset=True)
        labels = read_labels(y, len(rows))
        normal_rows(labels)
        self._check_labels(labels)
        return rows, labels, seed_of(self.random_state)

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, self.get_params(deep=False), self._own_checks())

    def _own_checks(self) -> dict[str, Check]:
        """Return what must hold for parameters, those of the class in place of its bases'."""
        own: dict[str, Check] = {}
        for owner in reversed(type(self).__mro__):
            own.update(vars(owner).get("checks", {}))
        return own

    def _check_labels(self, labels: NDArray[np.int64]) -> None:
        if (labels == ANOMALY).any():
            return
        name = type(self).__name__
        if self.label_use == "required":
            raise LabelError(
                f"{name} learns from labelled anomalies, but y has none (no 1). Label some "
                "rows, or use a method that needs no labels."
            )
        if self.label_use == "optional":
            warnings.warn(
                f"{name} was given no labelled anomalies, so it trains as "
                f"{self.without_labels}. Label known anomalies with 1.",
                LabelWarning,
                stacklevel=4,
            )

    def _validate(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        """Return checked rows as numbers, flat."""
        if getattr(X, "ndim", 2) == 4:
            pixels = np.asarray(X)
            self._check_images(pixels, reset=reset)
            X = as_numbers(pixels.reshape(len(pixels), prod(pixels.shape[1:])))
        elif reset:
            self.__dict__.pop("shape_", None)
        checked: NDArray[np.float64] = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_min_samples=2 if reset else 1
        )
        return checked

    def _check_images(self, pixels: NDArray[Any], *, reset: bool) -> None:
        """Refuse pixels that are neither bytes nor in [0, 1], and images of another size."""
        name = type(self).__name__
        check_images(pixels, name, standardize=None, likelihood="squared-error")
        if reset:
            self.shape_ = pixels.shape[1:]
        elif pixels.shape[1:] != getattr(self, "shape_", None):
            raise ValueError(
                f"X has images of shape {pixels.shape[1:]}, but {name} was fitted with "
                f"{getattr(self, 'shape_', 'rows of numbers')}."
            )


@dataclass(kw_only=True, repr=False, eq=False)
class SubsampledBaseline(Baseline):
    """A baseline whose cost grows with the square of the rows it learns from.

    Parameters
    ----------
    max_rows
        Most normal rows to learn from; of more, so many are drawn. Labelled anomalies are all
        kept. None: all rows.
    """

    max_rows: int | None = None

    checks: ClassVar[Mapping[str, Check]] = {"max_rows": or_none(integer(2))}

    def drawn(self, labels: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        """Return the numbers of the normal rows to learn from, sorted."""
        normal = super().drawn(labels, seed)
        if self.max_rows is None or len(normal) <= self.max_rows:
            return normal
        return np.sort(np.random.default_rng(seed).choice(normal, self.max_rows, replace=False))
