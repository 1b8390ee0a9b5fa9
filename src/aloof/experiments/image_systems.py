"""Every system of the image experiments behind one call: fit cases, get scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.baselines.images import (
    SHALLOW_METHODS,
    FittedImages,
    ImageMethod,
    ImageProblem,
    ShallowMethod,
    fit_image_baselines,
    hybrid_scores,
    raw_scores,
)
from aloof.datasets import ImageDataset
from aloof.experiments.image_experiment import ImageCase, ImageExperiment
from aloof.experiments.image_protocol import ImageSplit
from aloof.experiments.image_settings import image_architecture
from aloof.networks import PAPER_NETWORKS
from aloof.scoring import Scorer
from aloof.training import (
    METHODS,
    Precision,
    Problem,
    ProgressCallback,
    Stream,
    TrainingConfig,
    derive,
    train,
)

__all__ = ["ImageScores", "family", "fit_cases"]

ImageScores = Callable[[NDArray[np.uint8]], NDArray[np.float64]]
"""From images to anomaly scores ``(members, n)``."""


def family(method: str) -> str:
    """Return what can be fitted together.

    Our methods share warm-ups, the CAE and hybrids the autoencoders whose codes they take, Deep
    SVDD and Deep SAD those that they start from.
    """
    if method in METHODS:
        return "ours"
    if method.endswith("-hybrid"):
        return "cae"
    return "deep-sad" if method == "deep-svdd" else method


def fit_cases(
    experiment: ImageExperiment,
    cases: Sequence[ImageCase],
    splits: Sequence[ImageSplit],
    data: ImageDataset,
    device: torch.device,
    on_epoch: ProgressCallback | None,
) -> list[ImageScores]:
    """Fit cases of one family, and return a function for each that scores images."""
    name = family(cases[0].method)
    if name == "ours":
        return _fit_ours(experiment, cases, splits, data, device, on_epoch)
    if name in SHALLOW_METHODS:
        pairs = zip(cases, splits, strict=True)
        return [_shallow(case, split, data) for case, split in pairs]
    problems = [
        ImageProblem(split.normal, _seeds(case, experiment.members), split.anomaly)
        for case, split in zip(cases, splits, strict=True)
    ]
    fitted = fit_image_baselines(
        torch.from_numpy(data.train),
        problems,
        cast(ImageMethod, name.removesuffix("-ill")),
        network=PAPER_NETWORKS[experiment.dataset],
        schedule=experiment.schedule(name, precision=_precision(device)),
        device=device,
        on_epoch=on_epoch,
    )
    return [
        _hybrid(case, split, data, own) if case.method.endswith("-hybrid") else own.score
        for case, split, own in zip(cases, splits, fitted, strict=True)
    ]


def _fit_ours(
    experiment: ImageExperiment,
    cases: Sequence[ImageCase],
    splits: Sequence[ImageSplit],
    data: ImageDataset,
    device: torch.device,
    on_epoch: ProgressCallback | None,
) -> list[ImageScores]:
    pixels = torch.from_numpy(data.train)
    problems = [
        Problem(
            normal=split.normal,
            anomaly=split.anomaly,
            seeds=_seeds(case, experiment.members),
            objective=experiment.objective(case),
            rows_per_epoch=_rows_per_epoch(data, case),
        )
        for case, split in zip(cases, splits, strict=True)
    ]
    groups: dict[TrainingConfig, list[int]] = {}
    for i, case in enumerate(cases):  # methods of one schedule share warm-ups
        config = experiment.config(case, precision=_precision(device))
        groups.setdefault(config, []).append(i)
    found: dict[int, ImageScores] = {}
    for config, numbers in groups.items():
        results = train(
            [pixels],
            [problems[i] for i in numbers],
            image_architecture(
                experiment.dataset, cast(tuple[int, int, int], tuple(pixels.shape[1:]))
            ),
            config,
            device=device,
            on_epoch=on_epoch,
        )
        for i, result in zip(numbers, results, strict=True):
            # Kept on the host until it is used: a device holds one ensemble to score with.
            ensemble = result.ensemble.to(torch.device("cpu"), torch.float32)
            found[i] = _ours(ensemble, problems[i], device)
    return [found[i] for i in range(len(cases))]


def _ours(ensemble: Any, problem: Problem, device: torch.device) -> ImageScores:
    def scores(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        scorer = Scorer(ensemble, problem.objective, device=device, dtype=torch.float32)
        return -scorer.member_scores(
            lambda chunk: images[chunk].astype(np.float32) / 255, len(images)
        )

    return scores


def _shallow(case: ImageCase, split: ImageSplit, data: ImageDataset) -> ImageScores:
    def scores(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        normal, anomaly = data.train[split.normal], data.train[split.anomaly]
        method = cast(ShallowMethod, case.method)
        return raw_scores(method, normal, anomaly, images, seed=_seeds(case, 1)[0])[None]

    return scores


def _hybrid(
    case: ImageCase, split: ImageSplit, data: ImageDataset, autoencoder: FittedImages
) -> ImageScores:
    def scores(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        normal, anomaly = data.train[split.normal], data.train[split.anomaly]
        method = cast(ShallowMethod, case.method.removesuffix("-hybrid"))
        seed = _seeds(case, 1)[0]
        return hybrid_scores(method, autoencoder, normal, anomaly, images, seed=seed)

    return scores


def _precision(device: torch.device) -> Precision:
    return "bfloat16" if device.type == "cuda" else "float32"


def _seeds(case: ImageCase, members: int) -> list[int]:
    """Return the members' seeds: the same for everything with this normal class."""
    own = 1000 * case.seed + case.normal
    return [derive(own, Stream.MEMBER, k) for k in range(members)]


def _rows_per_epoch(data: ImageDataset, case: ImageCase) -> int:
    """Return the mean size of a class's training part: all classes are one stack."""
    clean = 0.8 * len(data.train_labels) / len(data.classes)
    return round(clean / (1 - case.gamma_p))
