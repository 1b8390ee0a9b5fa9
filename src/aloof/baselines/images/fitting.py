"""Fit a deep baseline to the images of many problems at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from aloof.baselines.images.generative import fit_generative
from aloof.baselines.images.members import Autoencoders, Classifiers
from aloof.baselines.images.networks import ImageNetworks
from aloof.baselines.images.pretraining import Pretrained, distinct, pretrained_by
from aloof.baselines.images.problem import ImageProblem, ImageSchedule, seeds_of
from aloof.baselines.images.results import FittedImages
from aloof.baselines.images.training import Progress, Run, stacks_of
from aloof.exceptions import LabelError
from aloof.training import ProgressCallback
from aloof.training.rows import place

__all__ = ["IMAGE_METHODS", "ImageMethod", "fit_image_baselines", "pretrain"]

ImageMethod = Literal["cae", "deep-svdd", "deep-sad", "classifier", "ss-dgm"]
IMAGE_METHODS: tuple[ImageMethod, ...] = get_args(ImageMethod)


def fit_image_baselines(
    data: Tensor,
    problems: Sequence[ImageProblem],
    method: ImageMethod,
    *,
    network: Mapping[str, Any] | None = None,
    schedule: ImageSchedule | None = None,
    eta: float = 1.0,
    device: torch.device,
    pretrained: Pretrained | None = None,
    on_epoch: ProgressCallback | None = None,
) -> list[FittedImages]:
    """Fit every member of every problem, stacked.

    A member's result does not depend on what it is stacked with, up to floating-point
    rounding. All problems are trained at once, as far as their epochs have as many steps:
    pass as many as the device holds.

    Parameters
    ----------
    data
        The images that all problems index, ``(n, c, h, w)``: bytes, or numbers in [0, 1].
    problems
        What to learn.
    method
        ``"cae"``: the reconstruction error of an autoencoder. ``"deep-svdd"``: one-class
        Deep SVDD. Both leave labelled anomalies out, and learn once for all problems that
        differ in these alone. ``"deep-sad"``: Deep SAD, which is Deep
        SVDD where a problem has no labelled anomaly. ``"classifier"``: labelled anomalies
        against all other rows. ``"ss-dgm"``: M1+M2 of Kingma et al., on the codes of a VAE.
    network
        Options of `aloof.networks.ConvEncoder` and ``latent_dim``; None: its defaults, and 32.
    schedule
        How long and how fast; None: `ImageSchedule`'s defaults.
    eta
        Weight of labelled anomalies in Deep SAD.
    device
        Where to compute.
    pretrained
        What Deep SVDD and Deep SAD start from, if `pretrain` was called before.
    on_epoch
        Called after each epoch.

    Returns
    -------
    One result for each problem, in order.

    References
    ----------
    Ruff et al., "Deep One-Class Classification", ICML 2018, and "Deep Semi-Supervised Anomaly
    Detection", ICLR 2020. Kingma et al., "Semi-Supervised Learning with Deep Generative
    Models", NeurIPS 2014.
    """
    if method not in IMAGE_METHODS:
        raise ValueError(f"method must be one of {', '.join(IMAGE_METHODS)}; got {method!r}.")
    if method in ("classifier", "ss-dgm") and any(not len(p.anomaly) for p in problems):
        raise LabelError(
            f"{method} learns from labelled anomalies, and a problem has none. Leave it out, "
            "or take a method that needs no labels."
        )
    schedule = schedule or ImageSchedule()
    networks = ImageNetworks(data.shape[1:], network)
    places = list(range(len(problems)))
    if method in ("cae", "deep-svdd"):
        problems, places = _unlabelled(problems)
    total = _n_epochs(problems, method, schedule, pretrained)
    run = _run(data, schedule, device, on_epoch, total)
    if method == "ss-dgm":
        return fit_generative(run, networks, problems)
    if method == "cae":
        fitted = run.fit(
            problems,
            lambda own: Autoencoders.build(networks, seeds_of(own), device, bias=True),
            schedule.pretraining,
        )
        return [fitted[place] for place in places]
    if method == "classifier":
        return run.fit(
            problems,
            lambda own: Classifiers.build(networks, seeds_of(own), device),
            schedule.training,
        )
    start = pretrained or pretrained_by(run, networks, distinct(problems))
    fitted = run.fit(problems, lambda own: start.start(own, eta), schedule.training)
    return [fitted[place] for place in places]


def _unlabelled(problems: Sequence[ImageProblem]) -> tuple[list[ImageProblem], list[int]]:
    """Return what there is to learn without labels, once each, and every problem's place."""
    keys = [(problem.normal.tobytes(), tuple(problem.seeds)) for problem in problems]
    found = {
        key: replace(problem, anomaly=problem.anomaly[:0])
        for key, problem in zip(keys, problems, strict=True)
    }
    order = {key: place for place, key in enumerate(found)}
    return list(found.values()), [order[key] for key in keys]


def pretrain(
    data: Tensor,
    problems: Sequence[ImageProblem],
    *,
    network: Mapping[str, Any] | None = None,
    schedule: ImageSchedule | None = None,
    device: torch.device,
    on_epoch: ProgressCallback | None = None,
) -> Pretrained:
    """Train the autoencoders that Deep SVDD and Deep SAD start from.

    They learn from normal rows alone. The authors of Deep SAD leave labelled anomalies in;
    left out, one autoencoder serves all problems with the same normal rows and seed, whatever
    their anomalies, and both methods.

    Parameters
    ----------
    data, problems, network, schedule, device, on_epoch
        As in `fit_image_baselines`.
    """
    schedule = schedule or ImageSchedule()
    first = distinct(problems)
    total = schedule.pretrain_epochs * _n_stacks(list(first.values()), schedule)
    run = _run(data, schedule, device, on_epoch, total)
    return pretrained_by(run, ImageNetworks(data.shape[1:], network), first)


def _run(
    data: Tensor,
    schedule: ImageSchedule,
    device: torch.device,
    on_epoch: ProgressCallback | None,
    total: int,
) -> Run:
    (placed,) = place([data], device)
    if placed.dtype != torch.uint8:
        placed = placed.float()
    return Run(placed, schedule, device, Progress(on_epoch, total))


def _n_epochs(
    problems: Sequence[ImageProblem],
    method: ImageMethod,
    schedule: ImageSchedule,
    pretrained: Pretrained | None,
) -> int:
    """Return the epochs of all stacks and phases."""
    if method == "cae":
        return schedule.pretrain_epochs * _n_stacks(problems, schedule)
    own = [problem.evened() for problem in problems] if method == "ss-dgm" else problems
    total = schedule.max_epochs * _n_stacks(own, schedule)
    if method == "ss-dgm":
        total += schedule.pretrain_epochs * _n_stacks(problems, schedule)
    elif method != "classifier" and pretrained is None:
        first = list(distinct(problems).values())
        total += schedule.pretrain_epochs * _n_stacks(first, schedule)
    return total


def _n_stacks(problems: Sequence[ImageProblem], schedule: ImageSchedule) -> int:
    return len(stacks_of(problems, schedule.batch_size))
