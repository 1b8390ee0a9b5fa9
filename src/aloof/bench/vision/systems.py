"""What is compared: pixels, features of whole images, patches.

Features are made once for each problem, and all detectors of one system learn in one stack.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.bench.study import Outcome, Tell, epochs
from aloof.bench.vision.patchcore import anomalib_patchcore, patchcore
from aloof.bench.vision.problems import Problem
from aloof.estimators import DETECTORS, Committee, Detector, fit_many
from aloof.exceptions import AloofWarning
from aloof.metrics import average_precision, region_overlap, roc_auc
from aloof.models.images.choosing import make_backbone
from aloof.models.images.defaults import DEFAULTS, default_epochs, default_filters
from aloof.models.images.learning import patch_detectors, patch_tasks, whole_detector
from aloof.models.images.patches import PatchRows, PatchView, learn_patches, top_mean
from aloof.models.images.views import resized
from aloof.vision import Backbone
from aloof.vision.features import patch_features, whole_features
from aloof.vision.memory import distances, oddness

__all__ = ["LABELLED_ONLY", "OPTIONAL", "SYSTEMS", "UNLABELLED_ONLY", "Bench", "run_systems"]

_Scores = tuple[NDArray[np.float64], NDArray[np.float64] | None]  # of images, and maps
_Scorer = Callable[[], _Scores]
_SIDE = 128  # pixels across that heat maps and masks are compared in
_MOST_AT_ONCE = 128  # detectors in one stack


@dataclass(frozen=True, eq=False)
class Bench:
    """A problem, with what several systems need of it.

    Attributes
    ----------
    problem
        What is told apart.
    options
        ``backbone``, ``members``, ``max_epochs``, ``device`` and ``seed``.
    """

    problem: Problem
    options: dict[str, Any]

    @cached_property
    def network(self) -> Backbone:
        """What makes features; one that learns from images knows of no labels here."""
        normal, options = self.problem.normal, self.options
        return make_backbone(
            options["backbone"],
            normal,
            np.zeros(len(normal), np.int64),
            np.arange(len(normal)),
            options["seed"],
            device=torch.device(options["device"]),
        )

    @cached_property
    def whole(self) -> dict[str, NDArray[np.float32]]:
        """Features of whole images: normal, labelled, mirrored (labelled), test."""
        problem = self.problem
        images = {
            "normal": problem.normal,
            "labelled": problem.labelled,
            "mirrored": problem.labelled[..., ::-1],
            "test": problem.test,
        }
        return {name: whole_features(self.network, each) for name, each in images.items()}

    @cached_property
    def patches(self) -> PatchRows:
        """What normal images teach about patches."""
        return learn_patches(self.network, self.problem.normal, self.options["seed"])

    @cached_property
    def taught(self) -> dict[int, PatchRows]:
        """The same with so many labels; see `patches_with`."""
        return {}

    def patches_with(self, labels: int) -> PatchRows:
        """Return what normal images and the first labelled ones teach about patches."""
        if not labels:
            return self.patches
        if labels not in self.taught:
            bad, seed = self.problem.labelled_first(labels), self.options["seed"]
            self.taught[labels] = self.patches.labelled(bad, {}, seed)
        return self.taught[labels]

    @cached_property
    def plain(self) -> list[Detector]:
        """The fitted detector of patches that knows no labels, once there is one."""
        return []

    @cached_property
    def test_patches(self) -> list[NDArray[np.float16]]:
        """Features of the patches of the images to score."""
        found = patch_features(self.patches.view.backbone, self.problem.test)
        return [part.astype(np.float16) for part in found]

    @property
    def common(self) -> dict[str, Any]:
        """What all detectors have."""
        return {"n_members": self.options["members"], "random_state": self.options["seed"]}

    @property
    def parameters(self) -> dict[str, Any]:
        """What was asked for."""
        most = self.options["max_epochs"]
        chosen = {} if most is None else {"max_epochs": most}
        return {"device": self.options["device"], **chosen}


_Wanted = Sequence[tuple[Bench, int]]


def run_systems(
    benches: Sequence[Bench], wanted: Sequence[tuple[int, str, int]], tell: Tell
) -> Iterator[Outcome]:
    """Yield how well each system, with so many labels, tells the images of a problem apart.

    Parameters
    ----------
    benches
        Problems.
    wanted
        The place of a problem, the name of a system, and a number of labelled anomalies.
    tell
        Told what is done.
    """
    for name, own in groupby(wanted, lambda each: each[1]):
        cases = [(benches[place], labels) for place, _, labels in own]
        for start in range(0, len(cases), _MOST_AT_ONCE):
            stack = cases[start : start + _MOST_AT_ONCE]
            tell(start, len(cases), name)
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AloofWarning)
                scorers = SYSTEMS[name](stack, _about(tell, name))
                seconds = (time.perf_counter() - started) / len(stack)
                for place, ((bench, _), score) in enumerate(zip(stack, scorers, strict=True)):
                    tell(place, len(stack), f"{name}, scoring")
                    outcome = _measured(bench.problem, *score())
                    yield {**outcome, "fit_seconds": seconds}


def _about(tell: Tell, name: str) -> Tell:
    def about(done: int, total: int, what: str) -> None:
        tell(done, total, what or name)

    return about


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
        every = max(1, problem.masks.shape[-1] // _SIDE)
        known = (truth == 0) | problem.masks.any((1, 2))
        masks = problem.masks[known, ::every, ::every]
        heat = maps[known, ::every, ::every]
        found["pixel_auroc"] = roc_auc(masks.ravel().astype(np.int64), heat.ravel())
        found["pro"] = region_overlap(masks, heat)
    return found


def _pixels(side: int) -> Callable[[_Wanted, Tell], list[_Scorer]]:
    def run(wanted: _Wanted, tell: Tell) -> list[_Scorer]:
        detectors, data = [], []
        for bench, labels in wanted:
            problem, method = bench.problem, "dp" if labels else "vae"
            normal, bad = (
                _shrunk(images, side)
                for images in (problem.normal, problem.labelled_first(labels))
            )
            known = DETECTORS[method]().get_params(deep=False)
            own = {name: value for name, value in DEFAULTS.items() if name in known}
            own |= {
                "max_epochs": default_epochs(len(normal)),
                "filters": default_filters(normal.shape[1:]),
            }
            detectors.append(DETECTORS[method](**{**own, **bench.parameters, **bench.common}))
            data.append(_together(normal, bad))
        _fit(detectors, data, tell)
        return [
            partial(_rows_scored, detector, _shrunk(bench.problem.test, side))
            for detector, (bench, _) in zip(detectors, wanted, strict=True)
        ]

    return run


def _whole(method: str) -> Callable[[_Wanted, Tell], list[_Scorer]]:
    def run(wanted: _Wanted, tell: Tell) -> list[_Scorer]:
        detectors, data = [], []
        for place, (bench, labels) in enumerate(wanted):
            tell(place, len(wanted), "")
            bench.problem.labelled_first(labels)
            rows = bench.whole
            bad = np.concatenate([rows["labelled"][:labels], rows["mirrored"][:labels]])
            own = method if labels or method == Committee.method else "vae"
            detectors.append(whole_detector(own, bench.parameters, bench.common))
            data.append(_together(rows["normal"], bad))
        _fit(detectors, data, tell)
        return [
            partial(_rows_scored, detector, bench.whole["test"])
            for detector, (bench, _) in zip(detectors, wanted, strict=True)
        ]

    return run


def _rows_scored(detector: Detector, rows: NDArray[Any]) -> _Scores:
    return detector.anomaly_score(rows), None


def _whole_knn(wanted: _Wanted, tell: Tell) -> list[_Scorer]:
    def score(bench: Bench) -> _Scores:
        rows, new = (torch.from_numpy(bench.whole[name]) for name in ("normal", "test"))
        mean, scale = rows.mean(0), rows.std(0).clamp_min(1e-6)
        return distances((new - mean) / scale, (rows - mean) / scale).double().numpy(), None

    return [partial(score, bench) for bench, _ in wanted]


def _memory(wanted: _Wanted, tell: Tell) -> list[_Scorer]:
    def score(bench: Bench) -> _Scores:
        view = bench.patches.view
        found = []
        for features in bench.test_patches:
            vectors = view.turned(features)
            odd = oddness(vectors.flatten(0, -2), view.memory, view.spread)
            found.append(odd.reshape(vectors.shape[:-1]).double().numpy())
        return _maps_scored(view, np.concatenate(found))

    return [partial(score, bench) for bench, _ in wanted]


def _published(make: Any) -> Callable[[_Wanted, Tell], list[_Scorer]]:
    def run(wanted: _Wanted, tell: Tell) -> list[_Scorer]:
        found: list[_Scorer] = []
        for bench, _ in wanted:
            score = make(bench.network, bench.problem.normal, bench.options["seed"])
            found.append(partial(score, bench.problem.test))
        return found

    return run


def _patches(method: str, wanted: _Wanted, tell: Tell) -> list[_Scorer]:
    """Fit a VAE for each problem, and what labels teach for each number of labels."""
    learned, detectors, data = [], [], []
    for place, (bench, labels) in enumerate(wanted):
        tell(place, len(wanted), "")
        rows = bench.patches_with(labels)
        plain, taught = patch_detectors(rows, method, bench.parameters, bench.common)
        tasks = patch_tasks(rows, taught=taught is not None)
        if not bench.plain:
            bench.plain.append(plain)
            detectors.append(plain)
            data.append(tasks[0])
        if taught is not None:
            detectors.append(taught)
            data.append(tasks[1])
        learned.append((rows, taught))
    _fit(detectors, data, tell)

    def score(bench: Bench, rows: PatchRows, taught: Detector | None) -> _Scores:
        (detector,) = bench.plain
        view = rows.scaled(detector, taught)
        found = [view.map_of(detector, features) for features in bench.test_patches]
        return _maps_scored(view, np.concatenate(found))

    return [
        partial(score, bench, *own) for (bench, _), own in zip(wanted, learned, strict=True)
    ]


def _maps_scored(view: PatchView, maps: NDArray[np.float64]) -> _Scores:
    return top_mean(maps, view.n_top), resized(maps, view.shape[1:])


def _together(
    normal: NDArray[Any], bad: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    return np.concatenate([normal, bad]), np.repeat([np.nan, 1.0], [len(normal), len(bad)])


def _fit(detectors: Sequence[Detector], data: Sequence[Any], tell: Tell) -> None:
    if detectors:
        fit_many(detectors, data, on_epoch=epochs(tell))


def _shrunk(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    if images.shape[-1] <= side or not len(images):
        return images[..., :side, :side]
    values = torch.from_numpy(images).float()
    small = torch.nn.functional.interpolate(values, (side, side), mode="area")
    found: NDArray[np.uint8] = small.round().byte().numpy()
    return found


SYSTEMS: dict[str, Callable[[_Wanted, Tell], list[_Scorer]]] = {
    "patches": partial(_patches, "vae"),
    "patches-dp": partial(_patches, "dp"),
    "memory": _memory,
    "patchcore": _published(patchcore),
    "pixels": _pixels(64),
    "pixels-256": _pixels(256),
    "whole-knn": _whole_knn,
    "whole-dp": _whole("dp"),
    "whole-mml": _whole("mml"),
    "whole-committee": _whole("committee"),
    "anomalib-patchcore": _published(anomalib_patchcore),
}
UNLABELLED_ONLY = ("whole-knn", "memory", "patchcore", "anomalib-patchcore")
OPTIONAL = ("pixels-256", "anomalib-patchcore")  # run where they are asked for
LABELLED_ONLY = ("whole-mml", "patches-dp")  # without labels they are others
