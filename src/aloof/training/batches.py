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

from aloof.training.seeds import Stream, derive, generator
from aloof.training.task import Task

__all__ = ["Batch", "Batches"]

_BLOCK = 2**18  # numbers of noise drawn at once for one member


@dataclass(frozen=True)
class Batch:
    """One step of every member.

    Attributes
    ----------
    rows
        Row numbers, extra rows last, ``(members, B + E)``; E is 0 without extra rows.
    n_rows
        B.
    noise
        For the rows ``(members, B, noise_size)``.
    extra_noise
        For S samples of each extra row ``(S, members, E, noise_size)``, or None.
    labels
        Of the rows, ``(members, B)``, or None.
    chances
        For each part of the context that is seen in part, a number in [0, 1) for each of its
        numbers, ``(members, B + E, ...)``: the small ones are lost.
    seeds
        One for each member, for networks that draw random numbers themselves.
    """

    rows: Tensor
    n_rows: int
    noise: Tensor
    extra_noise: Tensor | None
    labels: Tensor | None
    chances: tuple[Tensor, ...]
    seeds: tuple[int, ...]


class Batches:
    """The batches of a stack: each member shuffles its own task with its own seed.

    Parameters
    ----------
    tasks
        The task of each member; all of one `Task.shape`.
    seeds
        The seed of each member.
    batch_size
        Most rows in a batch.
    extra_size
        Extra rows in a batch that has any; None: as many as other rows. They are reused as
        often as it takes, all of them equally often.
    noise_size, extra_samples
        Random numbers for each row, and how often for each extra row.
    dropped
        Shapes of a row of those parts of the context that are seen in part.
    device, dtype
        Of what is drawn.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        seeds: Sequence[int],
        *,
        batch_size: int,
        extra_size: int | None = None,
        noise_size: int = 0,
        extra_samples: int = 1,
        dropped: Sequence[Sequence[int]] = (),
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        first = tasks[0]
        self.n_steps = first.n_steps(batch_size)
        self.n_rows = first.n_rows(batch_size)
        self.n_extra = self.n_rows if extra_size is None else extra_size
        self._n_samples = extra_samples
        self._noise_size = noise_size
        self._dropped = dropped
        self._device = device
        self._dtype = dtype
        self._seeds = tuple(seeds)
        # Members of one task share one tensor of its row numbers.
        on_device: dict[int, Tensor] = {}
        self._rows = [self._move(task.rows, on_device) for task in tasks]
        self._extra = [self._move(task.extra, on_device) for task in tasks]
        self._labels = [
            self._move(task.labels, on_device) for task in tasks if task.labels is not None
        ]
        self._begun: dict[tuple[int, int | None], Iterator[Batch]] = {}

    def epoch(self, epoch: int, *, extra_interval: int | None) -> Iterator[Batch]:
        """Return the batches of an epoch.

        Parameters
        ----------
        epoch
            Its number; it decides what is drawn.
        extra_interval
            Add extra rows to every so many batches; None: to none.
        """
        begun = self._begun.pop((epoch, extra_interval), None)
        self.forget()
        return self._drawn(epoch, extra_interval) if begun is None else begun

    def begin(self, epoch: int, *, extra_interval: int | None) -> None:
        """Draw an epoch's order and its first batch ahead of time.

        Called before waiting for a GPU, this costs nothing: it is busy with the last epoch.
        """
        self.forget()
        batches = self._drawn(epoch, extra_interval)
        self._begun[epoch, extra_interval] = chain([next(batches)], batches)

    def forget(self) -> None:
        """Drop what was begun: it holds memory, and will not come."""
        self._begun.clear()

    def _drawn(self, epoch: int, interval: int | None) -> Iterator[Batch]:
        base = [derive(seed, Stream.EPOCH, epoch) for seed in self._seeds]
        generators = [generator(seed, self._device) for seed in base]
        # Of their own, so that what is lost does not depend on how many extra rows there are.
        losing = [
            generator(derive(seed, Stream.DROP, epoch), self._device)
            for seed in (self._seeds if self._dropped else ())
        ]
        order = self._shuffle(self._rows, self.n_rows, generators)
        rows = self._taken(self._rows, order)
        labels = self._taken(self._labels, order) if self._labels else None
        n_extra = self.n_extra if interval else 0
        if interval:
            order = self._shuffle(self._extra, n_extra, generators)
            extra = self._taken(self._extra, order)
        width = (self.n_rows + self._n_samples * n_extra) * self._noise_size
        shapes = [(self.n_rows + n_extra, *shape) for shape in self._dropped]
        block = max(1, _BLOCK // max(1, width + sum(prod(shape) for shape in shapes)))
        for start in range(0, self.n_steps, block):
            steps = range(start, min(start + block, self.n_steps))
            noise = torch.stack(
                [self._normal_noise(len(steps), width, g) for g in generators], 1
            )
            chances = [self._chances(len(steps), shape, losing) for shape in shapes]
            for step in steps:
                drawn = noise[step - start].view(
                    len(base), self.n_rows + self._n_samples * n_extra, self._noise_size
                )
                joined = bool(interval) and step % (interval or 1) == 0
                own, others = drawn[:, : self.n_rows], drawn[:, self.n_rows :]
                seen = self.n_rows + n_extra if joined else self.n_rows
                yield Batch(
                    torch.cat([rows[step], extra[step]], 1) if joined else rows[step],
                    self.n_rows,
                    own,
                    others.reshape(len(base), self._n_samples, n_extra, -1).transpose(0, 1)
                    if joined
                    else None,
                    None if labels is None else labels[step],
                    tuple(part[step - start][:, :seen] for part in chances),
                    tuple((seed + 2 * step) % 2**63 for seed in base),
                )

    def _shuffle(
        self, rows: Sequence[Tensor], n: int, generators: Sequence[torch.Generator]
    ) -> list[Tensor]:
        """Return ``steps x n`` places in each member's rows, all (nearly) equally often."""
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
            drawn.append(order)
        return drawn

    def _taken(self, values: Sequence[Tensor], order: Sequence[Tensor]) -> Tensor:
        """Return what is in those places, ``(steps, members, n)``."""
        taken = [own[place] for own, place in zip(values, order, strict=True)]
        return torch.stack([part.view(self.n_steps, -1) for part in taken], 1)

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
