"""A detector of fewer members with nearly the same scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloof.estimators._arrays import as_array
from aloof.labels import ANOMALY, normal_rows, read_labels
from aloof.scoring import distil

if TYPE_CHECKING:
    from aloof.estimators._base import Detector

__all__ = ["distilled"]

_D = TypeVar("_D", bound="Detector")

# Of the rows to learn from where labels decide about scores, as those of trees do.
_SHARE_OF_ANOMALIES = 0.1


def distilled(
    detector: Detector, kind: type[_D], X: ArrayLike, y: ArrayLike | None, n_members: int
) -> _D:
    """Return a new detector, whose members are some of the detector's, trained further.

    Parameters
    ----------
    detector
        A fitted one.
    kind
        Of the new one: the detector's own, or what its members alone make up. In that case they
        learn its scores, which members alone do not give.
    X, y, n_members
        As in ``Detector.distil``.
    """
    X = detector._validate(X, reset=False)
    if X.ndim != 2:
        raise ValueError("Only detectors of rows of numbers can be distilled.")
    if not 1 <= n_members <= len(detector.member_seeds_):
        raise ValueError(
            f"n_members must be between 1 and the {len(detector.member_seeds_)} members there "
            f"are; got {n_members}."
        )
    labels = read_labels(None if y is None else as_array(y), len(X), detector.labels)
    rows = detector.scaling_.transform(X).astype(np.float32)

    def wanted(some: NDArray[np.float32]) -> NDArray[np.float64]:
        return -detector._score_samples(detector.scaling_.inverse(some))

    same = kind is type(detector)
    found = distil(
        detector._scorer,
        detector._ensemble,
        detector._aggregate_prior,
        detector._direction_penalty,
        rows if same else _with_more(rows, labels == ANOMALY),
        detector.member_seeds_,
        n_members,
        wanted=None if same else wanted,
    )
    known = {
        name: value
        for name, value in detector._fitted_parameters.items()
        if name in kind._get_param_names()
    }
    other = kind(**{**known, "n_members": n_members})
    for name in ("n_features_in_", "feature_names_in_", "shape_", "scaling_", "device_"):
        if hasattr(detector, name):
            setattr(other, name, getattr(detector, name))
    other._scoring_dtype = detector._scoring_dtype
    other.member_seeds_ = [detector.member_seeds_[k] for k in found.members]
    other._take_members(found.result)
    other._aggregate_prior, other._direction_penalty = found.prior, found.penalty
    other._scorer = other._make_scorer()
    other._take_scores(-other._score_samples(X), normal_rows(labels))
    return other


def _with_more(rows: NDArray[np.float32], anomalous: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return rows with labelled anomalies repeated, up to a share of all."""
    anomalies = rows[anomalous]
    if not len(anomalies):
        return rows
    times = int(_SHARE_OF_ANOMALIES * len(rows) / len(anomalies))
    return np.concatenate([rows, *[anomalies] * times])
