"""Every system of the image experiments behind one call: fit cases, get scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.baselines.images import (
    IMAGE_METHODS,
    ImageProblem,
    ShallowMethod,
    fit_image_baselines,
    hybrid_scores,
    raw_scores,
)
from aloof.experiments.image_experiment import ImageCase, ImageExperiment
from aloof.experiments.image_protocol import ImageSplit
from aloof.experiments.image_settings import image_architecture
from aloof.images import ImageDataset
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
    """Return what can be fitted together: our methods are one family."""
    return "ours" if method in METHODS else method


def fit_cases(
    experiment: ImageExperiment,
    cases: Sequence[ImageCase],
    splits: Sequence[ImageSplit],
    data: ImageDataset,
    device: torch.device,
    on_epoch: ProgressCallback | None,
) -> list[ImageScores]:
    """Fit cases of one family, and return a function for each that scores images."""
    precision: Precision = "bfloat16" if device.type == "cuda" else "float32"
    seeds = [_seeds(case, experiment.members) for case in cases]
    pixels = torch.from_numpy(data.train)
    method = cases[0].method
    if method in METHODS:
        problems = [
            Problem(
                normal=split.normal,
                anomaly=split.anomaly,
                seeds=own,
                objective=experiment.objective(case),
                rows_per_epoch=_rows_per_epoch(data, case),
            )
            for case, split, own in zip(cases, splits, seeds, strict=True)
        ]
        return _fit_ours(experiment, cases, problems, pixels, precision, device, on_epoch)
    schedule = experiment.schedule(method, precision=precision)
    network = PAPER_NETWORKS[experiment.dataset]
    problems_ = [
        ImageProblem(split.normal, own, split.anomaly)
        for split, own in zip(splits, seeds, strict=True)
    ]
    name = method.removesuffix("-ill")
    if name in IMAGE_METHODS:
        fitted = fit_image_baselines(
            pixels,
            problems_,
            name,
            network=network,
            schedule=schedule,
            device=device,
            on_epoch=on_epoch,
        )
        return [result.score for result in fitted]
    shallow = cast(ShallowMethod, method.removesuffix("-hybrid"))
    if method == shallow:
        return [
            _raw(shallow, data.train[split.normal], data.train[split.anomaly], own[0])
            for split, own in zip(splits, seeds, strict=True)
        ]
    autoencoders = fit_image_baselines(
        pixels,
        [ImageProblem(split.normal, own) for split, own in zip(splits, seeds, strict=True)],
        "cae",
        network=network,
        schedule=schedule,
        device=device,
        on_epoch=on_epoch,
    )
    return [
        _hybrid(shallow, cae, data.train[split.normal], data.train[split.anomaly], own[0])
        for cae, split, own in zip(autoencoders, splits, seeds, strict=True)
    ]


def _fit_ours(
    experiment: ImageExperiment,
    cases: Sequence[ImageCase],
    problems: Sequence[Problem],
    pixels: Tensor,
    precision: Precision,
    device: torch.device,
    on_epoch: ProgressCallback | None,
) -> list[ImageScores]:
    groups: dict[TrainingConfig, list[int]] = {}
    for i, case in enumerate(cases):  # methods of one schedule share warm-ups
        config = experiment.config(case, precision=precision)
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


def _raw(
    method: ShallowMethod, normal: NDArray[np.uint8], anomaly: NDArray[np.uint8], seed: int
) -> ImageScores:
    return lambda images: raw_scores(method, normal, anomaly, images, seed=seed)[None]


def _hybrid(
    method: ShallowMethod,
    cae: Any,
    normal: NDArray[np.uint8],
    anomaly: NDArray[np.uint8],
    seed: int,
) -> ImageScores:
    return lambda images: hybrid_scores(method, cae, normal, anomaly, images, seed=seed)


def _seeds(case: ImageCase, members: int) -> list[int]:
    """Return the members' seeds: the same for everything with this normal class."""
    own = 1000 * case.seed + case.normal
    return [derive(own, Stream.MEMBER, k) for k in range(members)]


def _rows_per_epoch(data: ImageDataset, case: ImageCase) -> int:
    """Return the mean size of a class's training part: all classes are one stack."""
    clean = 0.8 * len(data.train_labels) / len(data.classes)
    return round(clean / (1 - case.gamma_p))
