"""Which rows each member sees in each step, and with which noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.training.problem import Problem
from aloof.training.seeds import Stream, derive, generator

__all__ = ["Batch", "Batches"]

_BLOCK = 2**18  # numbers of noise drawn at once for one member


@dataclass(frozen=True)
class Batch:
    """One step of every member.

    Attributes
    ----------
    rows
        Row numbers, normal rows first, ``(members, B + A)``; A is 0 without anomalies.
    n_normal
        B.
    noise
        For the normal rows ``(members, B, latent_dim)``.
    anomaly_noise
        For S samples of each anomaly ``(S, members, A, latent_dim)``, or None.
    chances
        For each part of the context that is seen in part, a number in [0, 1) for each of its
        numbers, ``(members, B + A, ...)``: the small ones are lost.
    seeds
        One for each member, for networks that draw random numbers themselves.
    """

    rows: Tensor
    n_normal: int
    noise: Tensor
    anomaly_noise: Tensor | None
    chances: tuple[Tensor, ...]
    seeds: tuple[int, ...]


class Batches:
    """The batches of a stack: each member shuffles its own problem with its own seed.

    Parameters
    ----------
    problems
        The problem of each member; all of one `Problem.shape`.
    seeds
        The seed of each member.
    batch_size, anomaly_batch_size
        Most normal rows, and number of anomalous rows, in a batch. Anomalies are reused
        as often as it takes, all of them equally often.
    latent_dim
        Size of the noise.
    dropped
        Shapes of a row of those parts of the context that are seen in part.
    device, dtype
        Of what is drawn.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        seeds: Sequence[int],
        *,
        batch_size: int,
        anomaly_batch_size: int,
        latent_dim: int,
        dropped: Sequence[Sequence[int]] = (),
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        first = problems[0]
        self.n_steps = first.n_steps(batch_size)
        self.n_normal = first.n_rows(batch_size)
        self.n_anomaly = anomaly_batch_size
        self.n_samples = first.objective.n_samples
        self._latent_dim = latent_dim
        self._dropped = dropped
        self._device = device
        self._dtype = dtype
        self._seeds = tuple(seeds)
        # Members of one problem share one tensor of its row numbers.
        on_device: dict[int, Tensor] = {}
        self._normal = [self._move(p.normal, on_device) for p in problems]
        self._anomaly = [self._move(p.anomaly, on_device) for p in problems]
        self._begun: dict[tuple[int, int | None], Iterator[Batch]] = {}

    def epoch(self, epoch: int, *, anomaly_interval: int | None) -> Iterator[Batch]:
        """Return the batches of an epoch.

        Parameters
        ----------
        epoch
            Its number; it decides what is drawn.
        anomaly_interval
            Add anomalies to every so many batches; None: to none.
        """
        begun = self._begun.pop((epoch, anomaly_interval), None)
        self.forget()
        return self._drawn(epoch, anomaly_interval) if begun is None else begun

    def begin(self, epoch: int, *, anomaly_interval: int | None) -> None:
        """Draw an epoch's order and its first batch ahead of time.

        Called before waiting for a GPU, this costs nothing: it is busy with the last epoch.
        """
        self.forget()
        batches = self._drawn(epoch, anomaly_interval)
        self._begun[epoch, anomaly_interval] = chain([next(batches)], batches)

    def forget(self) -> None:
        """Drop what was begun: it holds memory, and will not come."""
        self._begun.clear()

    def _drawn(self, epoch: int, anomaly_interval: int | None) -> Iterator[Batch]:
        base = [derive(seed, Stream.EPOCH, epoch) for seed in self._seeds]
        generators = [generator(seed, self._device) for seed in base]
        # Of their own, so that what is lost does not depend on how many anomalies there are.
        losing = [
            generator(derive(seed, Stream.DROP, epoch), self._device)
            for seed in (self._seeds if self._dropped else ())
        ]
        normal = self._shuffle(self._normal, self.n_normal, generators)
        anomaly = (
            self._shuffle(self._anomaly, self.n_anomaly, generators)
            if anomaly_interval
            else None
        )
        extra = self.n_samples * self.n_anomaly if anomaly_interval else 0
        width = (self.n_normal + extra) * self._latent_dim
        n_rows = self.n_normal + (self.n_anomaly if anomaly_interval else 0)
        shapes = [(n_rows, *shape) for shape in self._dropped]
        block = max(1, _BLOCK // (width + sum(prod(shape) for shape in shapes)))
        for start in range(0, self.n_steps, block):
            steps = range(start, min(start + block, self.n_steps))
            noise = torch.stack(
                [self._normal_noise(len(steps), width, g) for g in generators], 1
            )
            chances = [self._chances(len(steps), shape, losing) for shape in shapes]
            for step in steps:
                seeds = tuple((seed + 2 * step) % 2**63 for seed in base)
                plain = noise[step - start].view(len(base), -1, self._latent_dim)
                if anomaly is None or anomaly_interval is None or step % anomaly_interval:
                    yield Batch(
                        normal[step],
                        self.n_normal,
                        plain[:, : self.n_normal],
                        None,
                        tuple(part[step - start][:, : self.n_normal] for part in chances),
                        seeds,
                    )
                    continue
                yield Batch(
                    torch.cat([normal[step], anomaly[step]], 1),
                    self.n_normal,
                    plain[:, : self.n_normal],
                    plain[:, self.n_normal :]
                    .reshape(len(base), self.n_samples, self.n_anomaly, -1)
                    .transpose(0, 1),
                    tuple(part[step - start] for part in chances),
                    seeds,
                )

    def _shuffle(
        self, rows: Sequence[Tensor], n: int, generators: Sequence[torch.Generator]
    ) -> Tensor:
        """Return ``(steps, members, n)`` row numbers, all rows (nearly) equally often."""
        total = self.n_steps * n
        drawn = []
        for own, private in zip(rows, generators, strict=True):
            missing = total - len(own)
            if missing <= min(self.n_steps, len(own)):  # each row once, a few twice
                order = torch.randperm(len(own), generator=private, device=self._device)
                order = torch.cat([order, order[: max(missing, 0)]])[:total]
            else:  # few rows: repeat them all, in random order
                order = torch.randperm(total, generator=private, device=self._device)
                order = order % len(own)
            drawn.append(own[order].view(self.n_steps, n))
        return torch.stack(drawn, 1)

    def _normal_noise(self, steps: int, width: int, private: torch.Generator) -> Tensor:
        return torch.randn(
            steps, width, generator=private, device=self._device, dtype=self._dtype
        )

    def _chances(
        self, steps: int, shape: tuple[int, ...], generators: Sequence[torch.Generator]
    ) -> Tensor:
        drawn = [
            torch.rand(steps, *shape, generator=g, device=self._device) for g in generators
        ]
        return torch.stack(drawn, 1)

    def _move(self, rows: NDArray[np.int64], cache: dict[int, Tensor]) -> Tensor:
        key = id(rows)
        if key not in cache:
            cache[key] = torch.from_numpy(np.asarray(rows, np.int64)).to(self._device)
        return cache[key]
