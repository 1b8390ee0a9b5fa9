"""A fitted detector as a manifest and tensors, and back."""

from __future__ import annotations

import os
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.calibration import Threshold
from aloof.estimators._parameters import check_parameters
from aloof.estimators._scaling import Standardizer
from aloof.exceptions import ModelError
from aloof.networks import NetworkFactory
from aloof.persistence import check_tensors, versions
from aloof.scoring import AggregatePrior, DirectionPenalty
from aloof.training import resolve_device
from aloof.vae import Ensemble

if TYPE_CHECKING:
    from aloof.estimators._base import Detector

__all__ = ["describe", "restored"]

_D = TypeVar("_D", bound="Detector")
_Path = str | os.PathLike[str]

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def describe(detector: Detector) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return all there is to a fitted detector: what JSON can hold, and the tensors."""
    fitted = detector._fitted_parameters
    threshold = {
        "anomaly_score": -float(detector.offset_),
        "rule": detector.threshold_.as_dict(),
    }
    parameters = {name: _plain(value) for name, value in fitted.items()}
    parameters["verbose"] = False
    manifest = {
        "estimator": type(detector).__name__,
        "method": detector.method,
        "parameters": parameters,
        "custom_networks": fitted["encoder"] is not None,
        "n_features_in": detector.n_features_in_,
        "shape": list(detector.shape_),
        "feature_names_in": list(getattr(detector, "feature_names_in_", [])) or None,
        "member_seeds": detector.member_seeds_,
        "scoring_dtype": str(detector._scoring_dtype).removeprefix("torch."),
        "probe": _probe(detector).tolist(),
        "threshold": threshold,
        "threshold_as_saved": threshold,  # may not be edited: shows what was
        "versions": versions(),
    }
    tensors = {f"network.{k}": v for k, v in detector._ensemble.state().items()}
    for name, curve in detector.history_.items():
        tensors[f"history.{name}"] = torch.from_numpy(curve)
    tensors["best_epoch"] = torch.from_numpy(detector.best_epoch_)
    tensors["training_scores"] = torch.from_numpy(detector.training_scores_)
    tensors["training_usual"] = torch.from_numpy(detector._usual)
    if detector._aggregate_prior is not None:
        tensors["aggregate_prior.mean"] = detector._aggregate_prior.mean
        tensors["aggregate_prior.log_var"] = detector._aggregate_prior.log_var
    if detector._direction_penalty is not None:
        tensors["direction_penalty.center"] = detector._direction_penalty.center
        tensors["direction_penalty.cost"] = detector._direction_penalty.cost
    if detector.calibration_scores_ is not None:
        tensors["calibration_scores"] = torch.from_numpy(detector.calibration_scores_)
    tensors["scaling.mean"] = torch.from_numpy(detector.scaling_.mean)
    tensors["scaling.scale"] = torch.from_numpy(detector.scaling_.scale)
    tensors["scaling.limit"] = torch.tensor(detector.scaling_.limit, dtype=torch.float64)
    return manifest, tensors


def restored(
    cls: type[_D],
    path: _Path,
    model: tuple[dict[str, Any], dict[str, Tensor]],
    encoder: NetworkFactory | None,
    decoder: NetworkFactory | None,
    device: str,
) -> _D:
    """Return the detector that `describe` described; parameters as in ``Detector.load``."""
    manifest, tensors = model
    folder, name = os.fspath(path), manifest.get("estimator")
    if name != cls.__name__:
        raise ModelError(
            f"{folder} holds a {name}, not a {cls.__name__}. Use {name}.load or aloof.load."
        )
    custom = manifest.get("custom_networks")
    if not custom and (encoder is not None or decoder is not None):
        raise ModelError(
            f"{folder} was fitted with aloof's own networks; load it without encoder and "
            "decoder."
        )
    if custom and (encoder is None or decoder is None):
        raise ModelError(
            f"{folder} was fitted with networks of your own, and a model folder holds no "
            "code. Pass the factories: load(path, encoder=..., decoder=...)."
        )
    where = resolve_device(device)
    try:
        parameters = dict(manifest["parameters"])
        for name in ("hidden", "filters"):
            if parameters.get(name) is not None:
                parameters[name] = tuple(parameters[name])
        parameters.update(encoder=encoder, decoder=decoder)
        detector = cls(**parameters)
        check_parameters(cls.__name__, detector.get_params(deep=False))
        detector.device_ = where
        _fill(detector, manifest, tensors, folder)
    except ModelError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"{folder} does not describe a {cls.__name__}: {type(error).__name__}: {error}."
        ) from error
    return detector


def _fill(
    detector: Detector, manifest: dict[str, Any], tensors: dict[str, Tensor], folder: str
) -> None:
    detector.n_features_in_ = int(manifest["n_features_in"])
    detector.shape_ = tuple(int(size) for size in manifest["shape"])
    if manifest["feature_names_in"] is not None:
        detector.feature_names_in_ = np.array(manifest["feature_names_in"], dtype=object)
    detector.member_seeds_ = [int(seed) for seed in manifest["member_seeds"]]
    parts: dict[str, dict[str, Tensor]] = {"": {}}
    for name, value in tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part if rest else "", {})[rest or part] = value
    scaling = parts["scaling"]
    detector.scaling_ = Standardizer(
        scaling["mean"].numpy(), scaling["scale"].numpy(), float(scaling["limit"])
    )
    detector.history_ = {name: value.numpy() for name, value in parts["history"].items()}
    detector.n_iter_ = len(detector.history_["loss"])
    detector.best_epoch_ = parts[""]["best_epoch"].numpy()
    detector.training_scores_ = parts[""]["training_scores"].numpy()
    detector._usual = parts[""]["training_usual"].numpy()
    calibration = parts[""].get("calibration_scores")
    detector.calibration_scores_ = None if calibration is None else calibration.numpy()
    detector._scoring_dtype = _DTYPES[manifest["scoring_dtype"]]
    ensemble = Ensemble.build(
        detector._architecture(),
        detector.member_seeds_,
        [torch.zeros(2, *detector.shape_)],
        device=torch.device("cpu"),
    )
    check_tensors(ensemble.state(), parts["network"], folder)
    ensemble.load(parts["network"])
    detector._ensemble = ensemble.select(slice(None))
    prior, penalty = parts.get("aggregate_prior"), parts.get("direction_penalty")
    detector._aggregate_prior = None if prior is None else AggregatePrior(**prior)
    detector._direction_penalty = None if penalty is None else DirectionPenalty(**penalty)
    detector._remember_parameters()
    detector._scorer = detector._make_scorer()
    if not np.allclose(_probe(detector), manifest["probe"], rtol=1e-3, atol=1e-5):
        raise ModelError(
            f"The networks do not give the scores that {folder} was saved with. "
            "Pass the factories that the model was fitted with."
        )
    _decide(detector, manifest, folder)


def _decide(detector: Detector, manifest: dict[str, Any], folder: str) -> None:
    """Take the threshold of the manifest: what was saved, or what somebody made of it."""
    saved, threshold = manifest["threshold_as_saved"], manifest.get("threshold")
    level = threshold.get("anomaly_score") if isinstance(threshold, dict) else None
    if isinstance(level, bool) or not isinstance(level, int | float) or not isfinite(level):
        raise ModelError(
            f"The threshold's anomaly_score in {folder} must be a number; got {level!r}."
        )
    assert isinstance(threshold, dict)
    rule = threshold.get("rule")
    if level == saved["anomaly_score"] and rule is not None:
        try:
            edited = Threshold.from_dict(rule)
        except (TypeError, ValueError) as error:
            raise ModelError(f"The threshold's rule in {folder} is wrong. {error}") from error
        if edited.fdr is not None and detector.calibration_scores_ is None:
            raise ModelError(
                f"The threshold's rule in {folder} is {edited}, which needs a calibrated "
                "detector, and this one is not."
            )
        if rule == saved["rule"]:
            detector._take(edited, float(level))
        else:
            detector._set(edited)
    elif rule is not None and rule != saved["rule"]:
        raise ModelError(
            f"Both the anomaly_score and the rule of the threshold in {folder} were edited. "
            "Edit one of them; the other one follows."
        )
    else:
        detector._take(Threshold(value=float(level)), float(level))


def _probe(detector: Detector) -> NDArray[np.float64]:
    """Return scores of two fixed rows, to recognise the networks by."""
    rows = np.stack([np.zeros(detector.shape_), np.ones(detector.shape_)])
    return detector._scorer.score(lambda chunk: rows[chunk], 2)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it; what it cannot hold is not kept."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return None
