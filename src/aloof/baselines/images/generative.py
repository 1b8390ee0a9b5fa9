"""SS-DGM on images: a convolutional VAE (M1), and a labelled model of its codes (M2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from aloof.baselines.fitting import built
from aloof.baselines.images.members import Learners, Members
from aloof.baselines.images.networks import ImageNetworks
from aloof.baselines.images.problem import ImageProblem, seeds_of
from aloof.baselines.images.results import FittedImages, over_rows
from aloof.baselines.images.training import Run
from aloof.baselines.ss_dgm import SSDGM, LabelledGenerativeModel
from aloof.training import (
    EpochReport,
    Objective,
    Problem,
    Stack,
    Stream,
    TrainingConfig,
    derive,
    train,
)

__all__ = ["CodeClassifiers", "GenerativeMembers", "StandardCodes", "fit_generative"]


@dataclass(frozen=True, eq=False)
class StandardCodes:
    """M1 of some members: posterior means, standardised on the rows learned from.

    Attributes
    ----------
    encoder
        The VAEs' encoders.
    mean, scale
        Of each member's codes, ``(members, 1, size)``.
    """

    encoder: Stack
    mean: Tensor
    scale: Tensor

    @classmethod
    def measured(cls, encoder: Stack, data: Tensor, rows: Tensor) -> Self:
        """Learn mean and scale from some rows of the data."""
        codes = over_rows(lambda x: encoder(x)[0], data, rows, encoder.n_members).float()
        scale, mean = torch.std_mean(codes, 1, correction=0, keepdim=True)
        return cls(encoder, mean, torch.where(scale > 0, scale, torch.ones_like(scale)))

    def __call__(self, x: Tensor) -> Tensor:
        """Return the codes of images, ``(members, n, size)``."""
        code: Tensor = self.encoder(x)[0]
        return (code - self.mean) / self.scale


class CodeClassifiers(Learners):
    """M2 of some members; rows are codes ``(members, n, size)``."""

    @classmethod
    def build(cls, size: int, seeds: Sequence[int], device: torch.device) -> Self:
        """Initialise one member for each seed."""
        networks = [built(partial(_LabelledModel, size), seed) for seed in seeds]
        codes = torch.zeros(len(seeds), 2, size)
        example = [codes, torch.zeros(len(seeds), 2, dtype=torch.int64), codes]
        return cls(Stack(networks, engine="auto", example=example, device=device))

    @property
    def noise_size(self) -> int:
        """Return the size of the noise: that of a code."""
        model = self.encoder.network
        assert isinstance(model, _LabelledModel)
        return model.size

    def loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return minus what `LabelledGenerativeModel.objective` maximises."""
        gain: Tensor = self.encoder(x, labels, noise, training=True)
        return -gain

    def score(self, x: Tensor) -> Tensor:
        """Return the logit."""
        logit: Tensor = self.encoder(x)
        return logit

    def select(self, members: Sequence[int] | slice) -> Self:
        """Return some of the members."""
        return type(self)(self.encoder.select(members))


class GenerativeMembers(Members):
    """M1 and M2 of some members; the score is M2's logit.

    Parameters
    ----------
    codes
        M1 of all of them.
    models
        M2 of each.
    """

    def __init__(self, codes: StandardCodes, models: Sequence[Members]) -> None:
        super().__init__(codes.encoder)
        self._codes, self._models = codes, models

    def encode(self, x: Tensor) -> Tensor:
        """Return the standardised codes."""
        return self._codes(x)

    def score(self, x: Tensor) -> Tensor:
        """Return the logit."""
        codes = self._codes(x)
        scores = [model.score(codes[k : k + 1]) for k, model in enumerate(self._models)]
        return torch.cat(scores)


def fit_generative(
    run: Run, networks: ImageNetworks, problems: Sequence[ImageProblem]
) -> list[FittedImages]:
    """Train M1 of all members on all their rows, then M2 of all members on the codes.

    Half of what M2 sees are labelled anomalies, repeated.
    """
    codes = _first_models(run, networks, problems)
    blocks, of_codes, start = [], [], 0
    for problem, own in zip(problems, codes, strict=True):
        rows = torch.from_numpy(problem.rows).to(run.device)
        blocks.append(over_rows(own, run.data, rows, len(problem.seeds)).flatten(0, 1))
        for seed in problem.seeds:  # every member has codes of its own
            places = np.arange(start, start + len(rows))
            normal, anomaly = np.split(places, [len(problem.normal)])
            of_codes.append(ImageProblem(normal, (seed,), anomaly).evened())
            start += len(rows)

    def build(some: Sequence[ImageProblem]) -> Learners:
        return CodeClassifiers.build(networks.latent_dim, seeds_of(some), run.device)

    schedule = replace(run.schedule, precision="float32")  # small networks, sums of squares
    second = replace(run, data=torch.cat(blocks).float(), schedule=schedule)
    fitted = iter(second.fit(of_codes, build, schedule.training))
    results = []
    for problem, own in zip(problems, codes, strict=True):
        parts = [next(fitted) for _ in problem.seeds]
        members = GenerativeMembers(own, [part.members for part in parts])
        curve = np.concatenate([part.loss_curve for part in parts], 1)
        results.append(FittedImages(members, curve, run.device))
    return results


def _first_models(
    run: Run, networks: ImageNetworks, problems: Sequence[ImageProblem]
) -> list[StandardCodes]:
    """Train M1 for each problem, as long and as fast as autoencoders are."""

    def count(report: EpochReport) -> None:
        run.progress.add(report.n_members, report.loss)

    schedule = run.schedule
    fitted = train(
        [run.data],
        [
            Problem(
                problem.rows,
                [derive(seed, Stream.MEMBER) for seed in problem.seeds],
                Objective(method="vae"),
            )
            for problem in problems
        ],
        networks.vae(),
        TrainingConfig(
            max_epochs=schedule.pretrain_epochs,
            warmup_epochs=0,
            batch_size=schedule.batch_size,
            learning_rate=schedule.pretrain_learning_rate,
            precision=schedule.precision,
        ),
        device=run.device,
        on_epoch=count,
    )
    return [
        StandardCodes.measured(
            result.ensemble.encoder, run.data, torch.from_numpy(problem.rows).to(run.device)
        )
        for problem, result in zip(problems, fitted, strict=True)
    ]


class _LabelledModel(nn.Module):
    """`LabelledGenerativeModel` as a function of what there is of a row."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.model = LabelledGenerativeModel(size, size, SSDGM.anomaly_share)

    def forward(
        self, x: Tensor, labels: Tensor | None = None, noise: Tensor | None = None
    ) -> Tensor:
        if labels is None or noise is None:
            return self.model.logit(x)
        return self.model.objective(x, labels, noise, SSDGM.classifier_weight)
