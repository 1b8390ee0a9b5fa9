"""From numbers and labels to a calibrated detector."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.estimators import DETECTORS, Detector, fit_many
from aloof.exceptions import AloofError, CalibrationWarning
from aloof.labels import ANOMALY, NORMAL, UNLABELLED, normal_rows, with_gaps
from aloof.suggestion import closest
from aloof.training import Stream, derive

__all__ = ["check_choices", "distil_detector", "fit_detector", "hold_out"]

# More for calibration than this no decision needs, and training rows are worth more.
_MOST_CALIBRATION = 10_000
_OURS = {
    "epochs": "here it is called max_epochs",
    "n_members": "here it is called members",
    "random_state": "here it is called seed",
    "labels": "labels are read before the detector sees them",
    "encoder": "the model brings its own networks",
    "decoder": "the model brings its own networks",
}


def check_choices(
    method: str,
    calibration: float,
    parameters: Mapping[str, Any],
    *,
    refused: Mapping[str, str],
    error: type[AloofError],
    without: Collection[str] = (),
) -> None:
    """Refuse what cannot be chosen.

    Parameters
    ----------
    method
        A key of `aloof.estimators.DETECTORS`.
    calibration
        The share to hold out.
    parameters
        Those given for the detector.
    refused
        Parameters that cannot be given, and why, beside those that no model takes.
    error
        What to raise.
    without
        Methods that are not for such a model.
    """
    methods = [name for name in DETECTORS if name not in without]
    if method not in methods:
        raise error(f"The method must be one of {', '.join(methods)}; got {method!r}.")
    reasons = {**_OURS, **refused}
    if taken := sorted(set(parameters) & set(reasons)):
        raise error(f"You cannot set {taken[0]!r}: {reasons[taken[0]]}.")
    if not 0 <= calibration < 1:
        raise error(
            "The share to hold out for calibration must be at least 0 and less than 1; got "
            f"{calibration}."
        )
    kind = DETECTORS[method]
    names = {name for each in DETECTORS.values() for name in each._get_param_names()}
    if unknown := sorted(set(parameters) - names):
        near = closest(unknown[0], sorted(names))
        raise error(f"{kind.__name__} has no parameter {unknown[0]!r}{near}.")
    known = {
        name: value for name, value in parameters.items() if name in kind._get_param_names()
    }
    try:
        kind(**known)._check()
    except ValueError as wrong:
        raise error(str(wrong)) from wrong


def hold_out(
    labels: NDArray[np.int64],
    share: float,
    seed: int,
    *,
    things: str,
    better: int,
    error: type[AloofError],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places to train on and those to calibrate with, never labelled anomalies.

    At least two of those not labelled as anomalies are left to train on; `things`, `better` and
    `error` are as in `normal_rows`.
    """
    normal = normal_rows(labels, things=things, better=better, error=error)
    n_held = min(round(share * len(normal)), _MOST_CALIBRATION, len(normal) - 2)
    rng = np.random.default_rng(derive(seed, Stream.SPLIT))
    held_out = np.sort(rng.choice(normal, n_held, replace=False))
    return np.setdiff1d(np.arange(len(labels)), held_out), held_out


def fit_detector(
    detector: Detector,
    rows: Callable[[NDArray[np.int64]], NDArray[Any]],
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    *,
    things: str,
    calibrates: bool,
    checkpoint: str | os.PathLike[str] | None,
) -> tuple[dict[str, int], list[str]]:
    """Fit a detector, and calibrate it with what was held out.

    Parameters
    ----------
    detector
        Not fitted yet.
    rows
        From places to what the detector takes.
    labels
        1 anomaly, 0 normal, -1 unlabelled, of all places.
    train, held_out
        From `hold_out`.
    things
        What the rows are, in the plural.
    calibrates
        Whether something was to be held out.
    checkpoint
        File to keep the state of the fit in.

    Returns
    -------
    How many there are of each kind, and what to say about the calibration.
    """
    y = with_gaps(labels)[train]
    # Not the detector's own fit: that would keep the checkpoint's name in the model.
    kept = None if checkpoint is None else str(checkpoint)
    fit_many([detector], [(rows(train), y)], checkpoint=kept)
    remarks: list[str] = []
    if len(held_out):
        detector.calibrate(rows(held_out))
        remarks += filter(None, [detector.threshold_.shortage(len(held_out))])
    elif calibrates:
        remarks.append(
            f"There are too few {things} to hold any out for calibration, so there are no "
            "p-values."
        )
        warnings.warn(remarks[-1], CalibrationWarning, stacklevel=3)
    counts = {
        "n_anomalies": int((labels == ANOMALY).sum()),
        "n_labelled_normal": int((labels == NORMAL).sum()),
        "n_unlabelled": int((labels == UNLABELLED).sum()),
        "n_training": int((labels[train] != ANOMALY).sum()),
        "n_calibration": len(held_out),
    }
    if n_suspects := len(getattr(detector, "suspects_", ())):
        counts["n_suspects"] = n_suspects
    return counts, remarks


def distil_detector(
    detector: Detector,
    rows: Callable[[NDArray[np.int64]], NDArray[Any]],
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
) -> tuple[Detector, dict[str, float]]:
    """Distil a fitted detector to one member, and calibrate that as it was.

    Parameters
    ----------
    detector, rows, labels, train, held_out
        As in `fit_detector`.

    Returns
    -------
    The new detector, and what it lost: the rank correlation of both scores, of rows that were
    held out where there are some.
    """
    from scipy.stats import spearmanr

    small = detector.distil(rows(train), with_gaps(labels)[train])
    compared = rows(held_out if len(held_out) else train)
    if len(held_out):
        small.calibrate(compared)
    before, after = (each.anomaly_score(compared) for each in (detector, small))
    alike = 1.0
    if before.min() < before.max() and after.min() < after.max():
        alike = float(spearmanr(before, after).statistic)
    return small, {"rank_correlation": round(alike, 4)}
