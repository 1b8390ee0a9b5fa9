"""The detectors: scikit-learn's contract, thin."""

from __future__ import annotations

import os
from typing import Any

from torch import Tensor

from aloof.estimators._arrays import check_order
from aloof.estimators._base import Detector
from aloof.estimators._decisions import Decisions
from aloof.estimators._labelled import LabelledDetector
from aloof.estimators._parameters import seed_of
from aloof.estimators._saving import describe, restored
from aloof.estimators._scorers import check_scorer
from aloof.estimators.committee import Committee
from aloof.estimators.dual_prior import DualPriorVAE
from aloof.estimators.max_min import MaxMinVAE
from aloof.estimators.max_min_dual_prior import MaxMinDualPriorVAE
from aloof.estimators.pyod import PyODAdapter
from aloof.estimators.stacked import fit_many
from aloof.estimators.vae import VAE
from aloof.exceptions import ModelError
from aloof.networks import NetworkFactory
from aloof.persistence import read_model

__all__ = [
    "DETECTORS",
    "VAE",
    "Committee",
    "Decisions",
    "Detector",
    "DualPriorVAE",
    "LabelledDetector",
    "MaxMinDualPriorVAE",
    "MaxMinVAE",
    "PyODAdapter",
    "check_order",
    "check_scorer",
    "describe",
    "fit_many",
    "from_model",
    "load",
    "seed_of",
]

DETECTORS: dict[str, type[Detector]] = {
    "vae": VAE,
    "mml": MaxMinVAE,
    "dp": DualPriorVAE,
    "mml-dp": MaxMinDualPriorVAE,
    "committee": Committee,
}
"""By method. A detector from elsewhere is one more entry."""


def load(
    path: str | os.PathLike[str],
    *,
    encoder: NetworkFactory | None = None,
    decoder: NetworkFactory | None = None,
    device: str = "auto",
) -> Detector:
    """Read any detector that was saved with ``detector.save(path)``.

    Parameters
    ----------
    path
        The model folder.
    encoder, decoder
        The factories it was fitted with, if it was fitted with your own.
    device
        Where to score.
    """
    return from_model(path, read_model(path), encoder=encoder, decoder=decoder, device=device)


def from_model(
    path: str | os.PathLike[str],
    model: tuple[dict[str, Any], dict[str, Tensor]],
    *,
    encoder: NetworkFactory | None = None,
    decoder: NetworkFactory | None = None,
    device: str = "auto",
) -> Detector:
    """Return the detector in a model that was read; see `load`.

    Parameters
    ----------
    path
        Where it was read from, to be named in errors.
    model
        Manifest and tensors; `describe` gives those of a fitted detector.
    encoder, decoder, device
        As in `load`.
    """
    name = model[0].get("estimator")
    known = {estimator.__name__: estimator for estimator in DETECTORS.values()}
    if not isinstance(name, str) or name not in known:
        raise ModelError(f"{os.fspath(path)} holds an unknown estimator, {name!r}.")
    return restored(known[name], path, model, encoder, decoder, device)
