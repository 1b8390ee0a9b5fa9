"""Every system of the image experiments behind one call: fit cases, get scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.baselines.images import (
    SHALLOW_METHODS,
    FittedImages,
    ImageMethod,
    ImageProblem,
    ImageSchedule,
    ShallowMethod,
    fit_image_baselines,
    hybrid_scores,
    raw_scores,
)
from aloof.bench.images.settings import PAPER_NETWORKS, ImageSetting, image_architecture
from aloof.bench.images.specification import IMAGE_VARIANTS, ImageCase, ImageSpecification
from aloof.bench.images.splits import ImageSplit
from aloof.images import ImageDataset
from aloof.scoring import Scorer
from aloof.training import (
    METHODS,
    Method,
    Precision,
    Problem,
    ProgressCallback,
    Stream,
    TrainingConfig,
    derive,
    train,
)

__all__ = ["ImageScores", "configuration", "family", "fit_cases"]

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


def configuration(spec: ImageSpecification, case: ImageCase) -> dict[str, Any]:
    """Return what the result of a case depends on, beside rows and code."""
    if case.method in SHALLOW_METHODS:
        return {}  # one detector, and nothing to train
    found = {"network": PAPER_NETWORKS[spec.dataset], "members": spec.members}
    if case.method not in METHODS:
        epochs = spec.pretrain_epochs(case.method)
        return {**found, "max_epochs": spec.baseline_epochs, "pretrain_epochs": epochs}
    setting = _setting(spec, case)
    training = asdict(setting.config(**IMAGE_VARIANTS[case.variant]))
    del training["precision"]  # follows the device
    return {
        **found,
        "objective": setting.objective(case.method),
        "training": training,
    }


def _setting(spec: ImageSpecification, case: ImageCase) -> ImageSetting:
    return spec.setting(cast(Method, case.method), polluted=case.gamma_p > 0)


def fit_cases(
    spec: ImageSpecification,
    cases: Sequence[ImageCase],
    splits: Sequence[ImageSplit],
    data: ImageDataset,
    device: torch.device,
    on_epoch: ProgressCallback | None,
) -> list[ImageScores]:
    """Fit cases of one family, and return a function for each that scores images."""
    name = family(cases[0].method)
    if name == "ours":
        return _fit_ours(spec, cases, splits, data, device, on_epoch)
    if name in SHALLOW_METHODS:
        pairs = zip(cases, splits, strict=True)
        return [_shallow(case, split, data) for case, split in pairs]
    problems = [
        ImageProblem(split.normal, _seeds(case, spec.members), split.anomaly)
        for case, split in zip(cases, splits, strict=True)
    ]
    fitted = fit_image_baselines(
        torch.from_numpy(data.train),
        problems,
        cast(ImageMethod, name.removesuffix("-ill")),
        network=PAPER_NETWORKS[spec.dataset],
        schedule=ImageSchedule(
            max_epochs=spec.baseline_epochs,
            pretrain_epochs=spec.pretrain_epochs(name),
            precision=_precision(device),
        ),
        device=device,
        on_epoch=on_epoch,
    )
    return [
        _hybrid(case, split, data, own) if case.method.endswith("-hybrid") else own.score
        for case, split, own in zip(cases, splits, fitted, strict=True)
    ]


def _fit_ours(
    spec: ImageSpecification,
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
            seeds=_seeds(case, spec.members),
            objective=_setting(spec, case).objective(cast(Method, case.method)),
            rows_per_epoch=_rows_per_epoch(data, case),
        )
        for case, split in zip(cases, splits, strict=True)
    ]
    groups: dict[TrainingConfig, list[int]] = {}
    for i, case in enumerate(cases):  # methods of one schedule share warm-ups
        variant = IMAGE_VARIANTS[case.variant]
        config = _setting(spec, case).config(**variant, precision=_precision(device))
        groups.setdefault(config, []).append(i)
    found: dict[int, ImageScores] = {}
    for config, numbers in groups.items():
        results = train(
            [pixels],
            [problems[i] for i in numbers],
            image_architecture(
                spec.dataset, cast(tuple[int, int, int], tuple(pixels.shape[1:]))
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
