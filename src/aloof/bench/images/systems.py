"""Every system of the image experiments behind one call: fit cases, get scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.baselines import (
    BASELINES,
    UNFAIR_GRIDS,
    Baseline,
    DeepBaseline,
    Fitted,
    peeked_rows,
)
from aloof.bench.images.settings import (
    LENETS,
    PAPER_NETWORKS,
    ImageSetting,
    image_architecture,
)
from aloof.bench.images.shallow import ShallowTask, Task, with_members_second
from aloof.bench.images.specification import (
    ONLY_PUBLISHED,
    Detector,
    ImageCase,
    ImageSpecification,
    deep_peer,
    is_shallow,
    looks_at_test_labels,
)
from aloof.bench.images.splits import ImageSplit
from aloof.bench.resuming import resumed
from aloof.bench.specification import Setting
from aloof.datasets import ImageDataset, PublicImages, find_dataset
from aloof.labels import ANOMALY, NORMAL
from aloof.networks import count_multiplications
from aloof.problem import Problem
from aloof.scoring import Scorer
from aloof.training import Precision, ProgressCallback, Stream, derive
from aloof.vae import METHODS, Method, TrainingConfig, VAEProblem, train

__all__ = [
    "Asking",
    "configuration",
    "count_case_multiplications",
    "family",
    "fit_cases",
]

Asking = Callable[[NDArray[np.uint8]], Task]
"""Asks a fitted system about images."""


def family(method: str) -> str:
    """Return what can be fitted together.

    Our methods share warm-ups, the CAE and hybrids the autoencoders whose codes they take, Deep
    SVDD and Deep SAD those that they start from.
    """
    if method in METHODS:
        return "ours"
    detector = Detector.of(method)
    if detector is not None and detector.hybrid:
        return "cae"
    return "deep-sad" if method == "deep-svdd" else method


def configuration(spec: ImageSpecification, case: ImageCase) -> dict[str, Any]:
    """Return what the result of a case depends on, beside rows and code."""
    if case.method not in METHODS:
        return _configuration_of_peer(spec, case)
    setting = _setting(spec, case)
    separate = spec.variant(case.variant).separate_encoder
    training = asdict(setting.config(separate_encoder=separate))
    del training["precision"]  # follows the device
    if not training["milestones"]:  # records from before there were any lack them
        del training["milestones"]
    return {
        "network": PAPER_NETWORKS[spec.dataset],
        "members": spec.members,
        "objective": setting.objective(cast(Method, case.method)),
        "training": training,
    }


def _configuration_of_peer(spec: ImageSpecification, case: ImageCase) -> dict[str, Any]:
    found: dict[str, Any] = {}
    detector = Detector.of(case.method)
    if detector is not None:
        found["detector"] = _detector(spec, case, detector)
        if detector.unfair:
            found["grid"] = UNFAIR_GRIDS[detector.key]
    if detector is None or detector.hybrid:  # the precision follows the device
        own = _deep(spec, family(case.method), case.setting)
        found["baseline"] = own.set_params(precision=None)
    return found


def count_case_multiplications(spec: ImageSpecification, case: ImageCase) -> float | None:
    """Return those of a row in an epoch, in all members; None: nothing is trained."""
    shape = find_dataset(spec.dataset, PublicImages).shape
    if case.method in METHODS:
        made = image_architecture(spec.dataset, shape)
        encoder = count_multiplications(made.encoder, shape)
        decoder = count_multiplications(made.decoder, (made.latent_dim,))
        return spec.members * (encoder + decoder)
    if is_shallow(case.method):
        return None
    baseline = _deep(spec, family(case.method), case.setting)
    n_members = 1 if _is_tuned(case.method) else baseline.n_members
    return n_members * baseline.multiplications(shape)


def _setting(spec: ImageSpecification, case: ImageCase) -> ImageSetting:
    setting = cast(Setting, case.setting)
    return spec.numbers_of(
        cast(Method, case.method), setting, case.variant, polluted=case.gamma_p > 0
    )


def fit_cases(
    spec: ImageSpecification,
    cases: Sequence[ImageCase],
    splits: Sequence[ImageSplit],
    data: ImageDataset,
    device: torch.device,
    checkpoint: Path,
    on_epoch: ProgressCallback | None,
) -> list[Asking]:
    """Fit cases of one family and setting; return for each what asks it about images.

    Networks are trained here, and their state is kept: the same call goes on from there.
    Shallow systems are fitted when their task is carried out.
    """
    name, setting = family(cases[0].method), cases[0].setting
    if name == "ours":
        return _fit_ours(spec, cases, splits, data, device, checkpoint, on_epoch)
    pairs = list(zip(cases, splits, strict=True))
    if Detector.of(name) is not None:
        return [_shallow(spec, case, split, data) for case, split in pairs]
    # Rows whose codes only tuned hybrids see need one autoencoder.
    whole = {s.normal.tobytes() for case, s in pairs if not _is_tuned(case.method)}
    problems = [
        Problem(
            normal=split.normal,
            anomaly=split.anomaly,
            seeds=_seeds(case, spec.n_baselines if split.normal.tobytes() in whole else 1),
        )
        for case, split in pairs
    ]
    rows = data.train
    if looks_at_test_labels(name):
        rows = np.concatenate([data.train, data.test])
        problems = [
            _with_peeked(problem, case, data)
            for problem, case in zip(problems, cases, strict=True)
        ]
    baseline = _deep(spec, name, setting)
    baseline.set_params(device=str(device), precision=_precision(device))
    learn = partial(baseline.fit_problems, torch.from_numpy(rows), problems, on_epoch=on_epoch)
    fitted = resumed(learn, checkpoint)
    return [
        _network(own.score)
        if Detector.of(case.method) is None
        else _hybrid(spec, case, split, data, own)
        for (case, split), own in zip(pairs, fitted, strict=True)
    ]


def _is_tuned(method: str) -> bool:
    """Return whether a shallow method or hybrid chooses its numbers with test labels."""
    detector = Detector.of(method)
    return detector is not None and detector.unfair


# What Ruff et al. published, and for SS-DGM what we took beside it. In our setting the rate is
# a tenth after two thirds of the epochs.
_SPHERE: Mapping[str, Any] = {"learning_rate": 1e-4, "weight_decay": 5e-7}
_PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "cae": {"learning_rate": 1e-4, "weight_decay": 5e-4},
    "deep-svdd": _SPHERE,
    "deep-svdd-soft": _SPHERE,
    "deep-sad": _SPHERE,
    "deep-sad-5": _SPHERE,
    "deep-sad-no-pretraining": _SPHERE,
    "classifier": _SPHERE,
    "ss-dgm": {**_SPHERE, "beta_kl": 0.05},
}

# The candidates of Ruff et al. too: held-out pixels would prefer narrower kernels, and those
# learn hidden anomalies by heart.
_BANDWIDTHS = tuple(2.0 ** (k / 2) for k in range(1, 11))


def _deep(spec: ImageSpecification, name: str, setting: str) -> DeepBaseline:
    """Return the deep peer of a family."""
    called = name.removesuffix("-ill")
    peer = cast(DeepBaseline, BASELINES[cast(str, deep_peer(name))]())
    peer.set_params(n_members=spec.n_baselines)
    if setting == "paper" and called not in _PUBLISHED:
        if called in ONLY_PUBLISHED and peer.takes_image_networks:
            peer.set_params(images=LENETS[spec.dataset])
        peer.set_params(**peer.published.get(spec.dataset, {}))
        return peer
    networks = LENETS if setting == "paper" else PAPER_NETWORKS
    peer.set_params(images=networks[spec.dataset], max_epochs=spec.baseline_epochs)
    peer.set_params(**_PUBLISHED.get(called, {}))
    known = peer.get_params(deep=False)
    if known.get("pretrain_epochs") != 0 and "pretrain_epochs" in known:
        peer.set_params(pretrain_epochs=spec.pretrain_epochs(name))
    if setting == "paper":
        peer.set_params(**_steps(spec, called, known))
    return peer


def _steps(spec: ImageSpecification, called: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the steps of the rate that Ruff et al. published: a tenth from epoch 50 on.

    Of 150, that is: the share stays where there are other epochs. Their autoencoders, which
    have no biases either, keep the rate.
    """
    if called == "cae":
        return {"milestones": (), "bias": False}
    found: dict[str, Any] = {"milestones": (max(1, round(spec.baseline_epochs / 3)),)}
    return found | ({"pretrain_milestones": ()} if "pretrain_milestones" in known else {})


def _detector(spec: ImageSpecification, case: ImageCase, detector: Detector) -> Baseline:
    """Return a shallow peer."""
    own: dict[str, Any] = {}
    if detector.name != "iforest":
        own["max_rows"] = spec.rows_of(detector)
    if detector.name == "kde":
        own["bandwidths"] = _BANDWIDTHS
    return BASELINES[detector.name](random_state=_seeds(case, 1)[0], **own)


def _fit_ours(
    spec: ImageSpecification,
    cases: Sequence[ImageCase],
    splits: Sequence[ImageSplit],
    data: ImageDataset,
    device: torch.device,
    checkpoint: Path,
    on_epoch: ProgressCallback | None,
) -> list[Asking]:
    pixels = torch.from_numpy(data.train)
    problems = [
        VAEProblem(
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
        config = _setting(spec, case).config(
            separate_encoder=spec.variant(case.variant).separate_encoder,
            precision=_precision(device),
        )
        groups.setdefault(config, []).append(i)
    found: dict[int, Asking] = {}
    for config, numbers in groups.items():
        learn = partial(
            train,
            [pixels],
            [problems[i] for i in numbers],
            image_architecture(
                spec.dataset, cast(tuple[int, int, int], tuple(pixels.shape[1:]))
            ),
            config,
            device=device,
            on_epoch=on_epoch,
        )
        # A number for each schedule: `discard_checkpoints` knows such names.
        own = checkpoint.with_name(f"{checkpoint.name}.{len(found)}")
        results = resumed(learn, own)
        for i, result in zip(numbers, results, strict=True):
            # Kept on the host until it is used: a device holds one ensemble to score with.
            ensemble = result.ensemble.to(torch.device("cpu"), torch.float32)
            found[i] = _ours(ensemble, problems[i], device)
        del results, result  # of the device, before the next schedule trains there
    return [found[i] for i in range(len(cases))]


def _ours(ensemble: Any, problem: VAEProblem, device: torch.device) -> Asking:
    def scores(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        scorer = Scorer(ensemble, problem.objective, device=device, dtype=torch.float32)
        return -scorer.member_scores(
            lambda chunk: images[chunk].astype(np.float32) / 255, len(images)
        )

    return _network(scores)


def _shallow(
    spec: ImageSpecification, case: ImageCase, split: ImageSplit, data: ImageDataset
) -> Asking:
    kind = cast(Detector, Detector.of(case.method))

    def ask(images: NDArray[np.uint8]) -> Task:
        rows, labels = _rows(split, data)
        peeked, truth = None, None
        if kind.unfair:
            numbers, truth = _peeked(case, data)
            peeked = data.test[numbers]
        own, seed = _detector(spec, case, kind), _seeds(case, 1)[0]
        return ShallowTask(kind, own, rows, labels, images, seed, peeked, truth)

    return ask


def _hybrid(
    spec: ImageSpecification,
    case: ImageCase,
    split: ImageSplit,
    data: ImageDataset,
    autoencoder: Fitted,
) -> Asking:
    pixels = _shallow(spec, case, split, data)
    kind = cast(Detector, Detector.of(case.method))

    def ask(images: NDArray[np.uint8]) -> Task:
        # The codes of one autoencoder, as in the paper, where there is a grid.
        encoder = autoencoder.select(slice(1)) if kind.unfair else autoencoder
        task = cast(ShallowTask, pixels(images))
        codes: dict[str, Any] = {
            name: with_members_second(encoder.encode(own))
            for name in ("rows", "asked", "peeked")
            if (own := getattr(task, name)) is not None
        }
        return replace(task, **codes)

    return ask


def _network(score: Callable[[NDArray[np.uint8]], NDArray[np.float64]]) -> Asking:
    """Ask a network at once: it is on the device of this process."""
    return lambda images: partial(np.asarray, score(images))


def _peeked(case: ImageCase, data: ImageDataset) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of a tenth of the test images, and whether each is an anomaly.

    These are what unfair systems look at.
    """
    truth = (data.test_labels != case.normal).astype(np.int64)
    rows = peeked_rows(truth, random_state=_seeds(case, 1)[0])
    return rows, truth[rows]


def _with_peeked(problem: Problem, case: ImageCase, data: ImageDataset) -> Problem:
    """Return a problem that chooses its epoch by test images, which follow the training's."""
    rows, truth = _peeked(case, data)
    rows = rows + len(data.train)
    return replace(
        problem, validation_normal=rows[truth == 0], validation_anomaly=rows[truth == 1]
    )


def _rows(split: ImageSplit, data: ImageDataset) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the training images of a split, and their labels."""
    rows = np.concatenate([split.normal, split.anomaly])
    labels = np.repeat([NORMAL, ANOMALY], [len(split.normal), len(split.anomaly)])
    return data.train[rows], labels


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
