"""What is compared: pixels, features of whole images, patches."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.bench.study import Outcome, Tell
from aloof.bench.vision.patchcore import anomalib_patchcore, patchcore
from aloof.bench.vision.problems import Problem
from aloof.exceptions import AloofWarning
from aloof.metrics import average_precision, region_overlap, roc_auc
from aloof.models.images import fit_images
from aloof.models.images.choosing import make_backbone
from aloof.models.images.patches import learn_patches, top_mean
from aloof.models.images.views import resized
from aloof.vision import Backbone
from aloof.vision.features import whole_features
from aloof.vision.memory import distances

__all__ = ["OPTIONAL", "SYSTEMS", "UNLABELLED_ONLY", "run_systems"]

_Scores = tuple[NDArray[np.float64], NDArray[np.float64] | None]  # of images, and maps
_PIXELS = 64  # across, for networks that learn from pixels


def run_systems(
    problem: Problem,
    wanted: Sequence[tuple[str, int]],
    options: dict[str, Any],
    tell: Tell,
) -> Iterator[Outcome]:
    """Yield how well each system, with so many labels, tells the images of a problem apart.

    Parameters
    ----------
    problem
        What is told apart.
    wanted
        Names of systems, and numbers of labelled anomalies.
    options
        ``backbone``, ``members``, ``max_epochs``, ``device`` and ``seed``.
    tell
        Told what is done.
    """
    for number, (name, labels) in enumerate(wanted):
        tell(number, len(wanted), name)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AloofWarning)
            score = SYSTEMS[name](problem, problem.labelled_first(labels), options)
            fitted = time.perf_counter()
            scores, maps = score(problem.test)
        seconds = time.perf_counter() - fitted
        yield {
            **_measured(problem, scores, maps),
            "fit_seconds": fitted - started,
            "images_per_second": len(problem.test) / seconds,
        }


def _measured(
    problem: Problem, scores: NDArray[np.float64], maps: NDArray[np.float64] | None
) -> Outcome:
    kinds, sizes = np.array(problem.kinds), np.array(problem.sizes)
    truth = (kinds != "").astype(np.int64)
    seen = np.isin(kinds, problem.seen)
    parts = {
        "auroc": truth == 1,
        "auroc_seen": seen,
        "auroc_unseen": (truth == 1) & ~seen,
        "auroc_small_unseen": (truth == 1) & ~seen & (sizes == "small"),
    }
    found: Outcome = {"average_precision": average_precision(truth, scores)}
    for name, bad in parts.items():
        if bad.any():
            chosen = bad | (truth == 0)
            found[name] = roc_auc(truth[chosen], scores[chosen])
    if maps is not None and problem.masks is not None:
        known = (truth == 0) | problem.masks.any((1, 2))
        masks, heat = problem.masks[known], maps[known]
        found["pixel_auroc"] = roc_auc(masks.ravel().astype(np.int64), heat.ravel())
        found["pro"] = region_overlap(masks, heat)
    return found


def _model(
    problem: Problem, labelled: NDArray[np.uint8], options: dict[str, Any], **more: Any
) -> Callable[[NDArray[np.uint8]], _Scores]:
    own = {"members": options["members"], "seed": options["seed"], "device": options["device"]}
    if options["max_epochs"] is not None:
        own["max_epochs"] = options["max_epochs"]
    bad = labelled if len(labelled) else None
    if bad is None and more.get("method") is None:
        more["method"] = "vae"
    model = fit_images(normal=problem.normal, anomaly=bad, **{**own, **more})

    def score(images: NDArray[np.uint8]) -> _Scores:
        if more.get("patches"):
            why = model.explain(images)
            return why.score, why.heat
        return model.anomaly_score(images), None

    return score


def _pixels(problem: Problem, labelled: NDArray[np.uint8], options: dict[str, Any]) -> Any:
    side = min(_PIXELS, problem.normal.shape[-1])
    small = Problem(**{**vars(problem), "normal": _shrunk(problem.normal, side)})
    score = _model(small, _shrunk(labelled, side), options, backbone="none")
    return lambda images: score(_shrunk(images, side))


def _whole(method: str | None) -> Any:
    def run(problem: Problem, labelled: NDArray[np.uint8], options: dict[str, Any]) -> Any:
        name = options["backbone"]
        return _model(problem, labelled, options, backbone=name, patches=False, method=method)

    return run


def _patches(problem: Problem, labelled: NDArray[np.uint8], options: dict[str, Any]) -> Any:
    return _model(problem, labelled, options, backbone=options["backbone"], patches=True)


def _network(problem: Problem, options: dict[str, Any]) -> Backbone:
    normal, device = problem.normal, torch.device(options["device"])
    every, labels = np.arange(len(normal)), np.zeros(len(normal), np.int64)
    name, seed = options["backbone"], options["seed"]
    return make_backbone(name, normal, labels, every, seed, device=device)


def _memory(problem: Problem, labelled: NDArray[np.uint8], options: dict[str, Any]) -> Any:
    network = _network(problem, options)
    view = learn_patches(network, problem.normal, labelled, {}, options["seed"]).view

    def score(images: NDArray[np.uint8]) -> _Scores:
        maps = np.concatenate(
            [
                distances(vectors.flatten(0, -2), view.memory).reshape(vectors.shape[:-1])
                for vectors in view.vectors(images)
            ]
        ).astype(np.float64)
        return top_mean(maps, view.n_top), resized(maps, view.shape[1:])

    return score


def _published(make: Any) -> Any:
    def run(problem: Problem, labelled: NDArray[np.uint8], options: dict[str, Any]) -> Any:
        return make(_network(problem, options), problem.normal, options["seed"])

    return run


def _whole_knn(problem: Problem, labelled: NDArray[np.uint8], options: dict[str, Any]) -> Any:
    network = _network(problem, options)
    rows = torch.from_numpy(whole_features(network, problem.normal))
    mean, scale = rows.mean(0), rows.std(0).clamp_min(1e-6)
    bank = (rows - mean) / scale

    def score(images: NDArray[np.uint8]) -> _Scores:
        new = (torch.from_numpy(whole_features(network, images)) - mean) / scale
        return distances(new, bank).double().numpy(), None

    return score


def _shrunk(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    if not len(images) or images.shape[-1] <= side:
        return images[..., :side, :side] if not len(images) else images
    values = torch.from_numpy(images).float()
    small = torch.nn.functional.interpolate(values, (side, side), mode="area")
    found: NDArray[np.uint8] = small.round().byte().numpy()
    return found


SYSTEMS: dict[str, Callable[[Problem, NDArray[np.uint8], dict[str, Any]], Any]] = {
    "pixels": _pixels,
    "whole-knn": _whole_knn,
    "whole-dp": _whole(None),
    "whole-mml": _whole("mml"),
    "whole-committee": _whole("committee"),
    "memory": _memory,
    "patches": _patches,
    "patchcore": _published(patchcore),
    "anomalib-patchcore": _published(anomalib_patchcore),
}
UNLABELLED_ONLY = ("whole-knn", "memory", "patchcore", "anomalib-patchcore")
OPTIONAL = ("anomalib-patchcore",)  # run where they are asked for
