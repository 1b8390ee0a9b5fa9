"""The autoencoders that Deep SVDD and Deep SAD start from, shared by all that can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from aloof.baselines.hypersphere import centre_of
from aloof.baselines.images.members import Autoencoders, Learners, Spheres
from aloof.baselines.images.networks import ImageNetworks
from aloof.baselines.images.problem import ImageProblem, seeds_of
from aloof.baselines.images.results import over_rows
from aloof.baselines.images.training import Run
from aloof.training import Stack

__all__ = ["Key", "Pretrained", "distinct", "pretrained_by"]

Key = tuple[bytes, int]
"""Normal rows and a seed."""


@dataclass(frozen=True, eq=False)
class Pretrained:
    """Encoders of trained autoencoders without biases, and their centres.

    Attributes
    ----------
    encoder
        A stack of such encoders, whichever.
    states
        Parameters and buffers of an encoder.
    centres
        Where it maps the normal rows to, on average.
    """

    encoder: Stack
    states: Mapping[Key, Mapping[str, Tensor]]
    centres: Mapping[Key, Tensor]

    def start(self, problems: Sequence[ImageProblem], eta: float) -> Spheres:
        """Return a hypersphere for each member of the problems, to be trained."""
        keys = [key for problem in problems for key in _keys(problem)]
        if any(key not in self.states for key in keys):
            raise ValueError(
                "A problem has normal rows and a seed that nothing was pre-trained with; pass "
                "it to pretrain too."
            )
        encoder = self.encoder.select([0] * len(keys))
        states = [self.states[key] for key in keys]
        encoder.load({name: torch.stack([s[name] for s in states]) for name in states[0]})
        return Spheres(encoder, torch.stack([self.centres[key] for key in keys]), eta)


def distinct(problems: Sequence[ImageProblem]) -> dict[Key, ImageProblem]:
    """Return problems of one member and no anomaly, one for each normal rows and seed."""
    return {
        key: ImageProblem(problem.normal, (seed,))
        for problem in problems
        for key, seed in zip(_keys(problem), problem.seeds, strict=True)
    }


def pretrained_by(
    run: Run, networks: ImageNetworks, problems: Mapping[Key, ImageProblem]
) -> Pretrained:
    """Train an autoencoder for each of the problems, which are `distinct`."""

    def build(own: Sequence[ImageProblem]) -> Learners:
        return Autoencoders.build(networks, seeds_of(own), run.device, bias=False)

    fitted = run.fit(list(problems.values()), build, run.schedule.pretraining)
    encoders = dict(zip(problems, [result.members.encoder for result in fitted], strict=True))
    states, centres = {}, {}
    for key, encoder in encoders.items():
        rows = torch.from_numpy(problems[key].rows).to(run.device)
        mean = over_rows(encoder, run.data, rows, 1).mean(1)
        centres[key] = centre_of(mean).float()
        states[key] = {name: value[0] for name, value in encoder.state().items()}
    return Pretrained(next(iter(encoders.values())), states, centres)


def _keys(problem: ImageProblem) -> list[Key]:
    normal = np.ascontiguousarray(problem.normal, np.int64).tobytes()
    return [(normal, seed) for seed in problem.seeds]
