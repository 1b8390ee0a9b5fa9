"""A fitted detector as a manifest and tensors, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.calibration import ProbabilityCurve, Threshold
from aloof.estimators._scaling import RankStandardizer, Scaling, Standardizer
from aloof.exceptions import ModelError
from aloof.networks import NetworkFactory
from aloof.persistence import SavedTensors, check_tensors, refusing, section_of, versions
from aloof.scoring import AggregatePrior, DirectionPenalty
from aloof.training import resolve_device
from aloof.vae import Ensemble

if TYPE_CHECKING:
    from aloof.estimators._base import Detector
    from aloof.estimators._manifest import DetectorManifest

__all__ = ["describe", "restored"]

_D = TypeVar("_D", bound="Detector")
_Path = str | os.PathLike[str]

_DTYPES = {"float32": torch.float32, "float64": torch.float64}
# Of a score on another device. Where float64 is not to be had, float32 is close to it.
_TOLERANCE = {"float32": (1e-3, 1e-5), "float64": (1e-4, 1e-6)}
_PENALTY = ("center", "cost")


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
    tensors["training_normal"] = torch.from_numpy(detector._normal)
    if detector._aggregate_prior is not None:
        tensors["aggregate_prior.mean"] = detector._aggregate_prior.mean
        tensors["aggregate_prior.log_var"] = detector._aggregate_prior.log_var
    if detector._direction_penalty is not None:
        tensors["direction_penalty.center"] = detector._direction_penalty.center
        tensors["direction_penalty.cost"] = detector._direction_penalty.cost
    if detector._probability is not None:
        numbers = astuple(detector._probability)
        tensors["probability"] = torch.tensor(numbers, dtype=torch.float64)
    if detector.calibration_scores_ is not None:
        tensors["calibration_scores"] = torch.from_numpy(detector.calibration_scores_)
    scaling = detector.scaling_
    if isinstance(scaling, RankStandardizer):
        tensors["scaling.knots"] = torch.from_numpy(scaling.knots)
        scaling = scaling.standard
    tensors["scaling.mean"] = torch.from_numpy(scaling.mean)
    tensors["scaling.scale"] = torch.from_numpy(scaling.scale)
    tensors["scaling.limit"] = torch.tensor(scaling.limit, dtype=torch.float64)
    detector._describe(manifest, tensors)
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
    from aloof.estimators._manifest import DetectorManifest

    saved = section_of(DetectorManifest, manifest, folder)
    if not saved.custom_networks and (encoder is not None or decoder is not None):
        raise ModelError(
            f"{folder} was fitted with aloof's own networks; load it without encoder and "
            "decoder."
        )
    if saved.custom_networks and (encoder is None or decoder is None):
        raise ModelError(
            f"{folder} was fitted with your own networks, and a model folder holds no code. "
            "Pass the factories: load(path, encoder=..., decoder=...)."
        )
    where = resolve_device(device)
    with refusing(folder):
        detector = _unfitted(cls, saved)
        detector.encoder, detector.decoder = encoder, decoder
        detector.device_ = where
        _fill(detector, saved, manifest, SavedTensors(tensors, folder), folder)
    return detector


def _unfitted(cls: type[_D], saved: DetectorManifest) -> _D:
    """Return the detector with the parameters of the manifest, checked as `fit` does."""
    if saved.method != cls.method:
        raise ValueError(f"method is {saved.method!r}, but should be {cls.method!r}")
    parameters = dict(saved.parameters)
    if unknown := sorted(parameters.keys() - cls().get_params(deep=False).keys()):
        raise ValueError(
            f"{cls.__name__} has no parameter {unknown[0]!r}. It was saved by aloof "
            f"{saved.versions['aloof']}; if that version had one, fit the model again"
        )
    for name in ("hidden", "filters"):
        if isinstance(parameters.get(name), list):
            parameters[name] = tuple(parameters[name])
    if isinstance(parameters.get("labels"), list):
        parameters["labels"] = {value: meaning for value, meaning in parameters["labels"]}
    detector = cls(**parameters)
    detector._check()
    if len(saved.member_seeds) != detector.n_members:
        raise ValueError(f"there are not {detector.n_members} member_seeds")
    return detector


def _fill(
    detector: Detector,
    saved: DetectorManifest,
    manifest: Mapping[str, Any],
    tensors: SavedTensors,
    folder: str,
) -> None:
    n_members, shape = detector.n_members, tuple(saved.shape)
    detector.scaling_ = _scaling(tensors, shape)
    detector.n_features_in_, detector.shape_ = saved.n_features_in, shape
    detector.member_seeds_ = list(saved.member_seeds)
    detector._scoring_dtype = _DTYPES[saved.scoring_dtype]
    detector._ensemble = _ensemble(detector, tensors.take_all("network"), folder)
    _fill_scores(detector, tensors)
    detector._aggregate_prior = detector._direction_penalty = None
    codes = n_members, None, detector.latent_dim
    if "aggregate_prior.mean" in tensors:
        mean = tensors.take("aggregate_prior.mean", torch.float32, *codes)
        log_var = tensors.take("aggregate_prior.log_var", torch.float32, *mean.shape)
        detector._aggregate_prior = AggregatePrior(mean, log_var)
    if "direction_penalty.center" in tensors:
        detector._direction_penalty = DirectionPenalty(
            *(
                tensors.take(f"direction_penalty.{name}", torch.float64, n_members, 1)
                for name in _PENALTY
            )
        )
    detector._restore(manifest, tensors, folder)
    tensors.finish()
    detector._remember_parameters()
    detector._scorer = detector._make_scorer()
    detector._validate(_probed(detector), reset=False)  # where parameters do not go together
    rtol, atol = _TOLERANCE[saved.scoring_dtype]
    if not np.allclose(_probe(detector), saved.probe, rtol=rtol, atol=atol):
        raise ModelError(
            f"These networks do not reproduce the scores saved in {folder}. Pass the "
            "factories the model was fitted with."
        )
    if saved.feature_names_in is not None:
        detector.feature_names_in_ = np.array(saved.feature_names_in, dtype=object)
    _decide(detector, saved, folder)


def _scaling(tensors: SavedTensors, shape: tuple[int, ...]) -> Scaling:
    scale = tensors.take("scaling.scale", torch.float64, *shape)
    if not bool((scale > 0).all()):
        raise ValueError("the tensor scaling.scale has values that are not above 0")
    standard = Standardizer(
        tensors.take("scaling.mean", torch.float64, *shape).numpy(),
        scale.numpy(),
        float(tensors.take("scaling.limit", torch.float64, infinite=True)),
    )
    if "scaling.knots" not in tensors:
        return standard
    knots = tensors.take("scaling.knots", torch.float64, None, *shape).numpy()
    if (np.diff(knots, axis=0) < 0).any():
        raise ValueError("the tensor scaling.knots is not sorted")
    return RankStandardizer(knots, standard)


def _fill_scores(detector: Detector, tensors: SavedTensors) -> None:
    """Take what was seen in training: curves, and the scores of rows."""
    n_members = detector.n_members
    loss = tensors.take("history.loss", torch.float64, None, n_members, infinite=True)
    curves = {"loss": loss, **tensors.take_all("history")}
    if any(curve.shape[:1] != loss.shape[:1] for curve in curves.values()):
        raise ValueError("the tensors of the history have different lengths")
    detector.history_ = {name: curve.numpy() for name, curve in curves.items()}
    detector.n_iter_ = len(loss)
    detector.best_epoch_ = tensors.take("best_epoch", torch.int64, n_members).numpy()
    scores = tensors.take("training_scores", torch.float64, None, infinite=True)
    normal = tensors.take("training_normal", torch.int64, None)
    if not 0 <= int(normal.min()) <= int(normal.max()) < len(scores):
        raise ValueError("the tensor training_normal names rows that do not exist")
    detector.training_scores_, detector._normal = scores.numpy(), normal.numpy()
    detector.calibration_scores_ = None
    if "calibration_scores" in tensors:
        scores = tensors.take("calibration_scores", torch.float64, None, infinite=True)
        if not bool((scores.diff() >= 0).all()):
            raise ValueError("the tensor calibration_scores is not sorted")
        detector.calibration_scores_ = scores.numpy()
    detector._probability = None
    if "probability" in tensors:
        curve = tensors.take("probability", torch.float64, 4).tolist()
        detector._probability = ProbabilityCurve(*curve)


def _ensemble(detector: Detector, found: dict[str, Tensor], folder: str) -> Ensemble:
    """Return the networks with the weights that were found."""
    if detector.encoder is None:  # before any memory is taken: the manifest may ask for a lot
        check_tensors(_expected(detector), found, folder)
    ensemble = Ensemble.build(
        detector._architecture(),
        detector.member_seeds_,
        [torch.zeros(2, *detector.shape_)],
        device=torch.device("cpu"),
    )
    check_tensors(ensemble.state(), found, folder)
    ensemble.load(found)
    return ensemble.select(slice(None))


def _expected(detector: Detector) -> dict[str, Tensor]:
    """Return what the networks of all members need, as tensors without content."""
    with torch.device("meta"):
        architecture = detector._architecture()
        networks = {"encoder": architecture.encoder(), "decoder": architecture.decoder()}
    return {
        f"{part}.{name}": value.expand(detector.n_members, *value.shape)
        for part, network in networks.items()
        for name, value in (*network.named_parameters(), *network.named_buffers())
    }


def _decide(detector: Detector, saved: DetectorManifest, folder: str) -> None:
    """Take the threshold of the manifest: what was saved, or what somebody made of it."""
    before, now = saved.threshold_as_saved, saved.threshold
    if now.anomaly_score == before.anomaly_score and now.rule is not None:
        rule = Threshold.from_dict(now.rule)
        if rule.fdr is not None and detector.calibration_scores_ is None:
            raise ModelError(
                f"The threshold's rule in {folder} is {rule}, which needs a calibrated "
                "detector, but this one is not calibrated."
            )
        if now.rule == before.rule:
            detector._take(rule, now.anomaly_score)
        else:
            detector._set(rule)
    elif now.rule is not None and now.rule != before.rule:
        raise ModelError(
            f"Both the anomaly_score and the rule of the threshold in {folder} were edited. "
            "Edit only one; the other follows."
        )
    else:
        detector._take(Threshold(value=now.anomaly_score), now.anomaly_score)


def _probe(detector: Detector) -> NDArray[np.float64]:
    """Return scores of two fixed rows, to recognise the networks by."""
    rows = _probed(detector)
    return detector._scorer.score(lambda chunk: rows[chunk], 2)


def _probed(detector: Detector) -> NDArray[np.float64]:
    return np.stack([np.zeros(detector.shape_), np.ones(detector.shape_)])


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
    if isinstance(value, Mapping):  # as pairs: keys of JSON are text
        return [[_plain(key), _plain(part)] for key, part in value.items()]
    return None
