"""Steps recorded once and replayed: the host launches one thing instead of hundreds.

A training step of small networks is some hundred kernels of a few microseconds, and a GPU
waits for the host to launch each. A CUDA graph launches them all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

import torch
from torch import Tensor

from aloof.training.batches import Batch
from aloof.training.learner import Phase

__all__ = ["Replay", "Step"]

Step = Callable[[Batch, Phase, Tensor], Tensor]

# Libraries choose their algorithms and compile in the first calls, which cannot be recorded.
_FIRST_CALLS = 3


class Replay:
    """A step on a GPU: run as it is a few times, then recorded, then replayed.

    What cannot be recorded (a network that asks the GPU for a value, say) goes on as it is.

    Parameters
    ----------
    step
        Maps a batch, the phase and the learning rate ``()`` to a tensor. It changes parameters
        in place.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._calls: dict[Hashable, int] = {}
        self._recorded: dict[Hashable, _Recorded] = {}
        self._works = True

    def __call__(self, batch: Batch, phase: Phase, rate: Tensor) -> Tensor:
        """Do a step; the result is overwritten by the next one of its kind."""
        kind = (batch.extra_noise is not None, phase.kind)
        if kind in self._recorded:
            return self._recorded[kind](batch, phase, rate)
        calls = self._calls.get(kind, 0)
        self._calls[kind] = calls + 1
        if not self._works or calls < _FIRST_CALLS:
            return self._step(batch, phase, rate)
        try:
            recorded = _Recorded(self._step, batch, phase, rate)
        except RuntimeError:
            self._works = False
            return self._step(batch, phase, rate)
        self._recorded[kind] = recorded
        return recorded(batch, phase, rate)


class _Recorded:
    """A graph, with the tensors it reads and the one it writes."""

    def __init__(self, step: Step, batch: Batch, phase: Phase, rate: Tensor) -> None:
        own = replace(
            batch,
            rows=batch.rows.clone(),
            noise=batch.noise.clone(),
            extra_noise=None if batch.extra_noise is None else batch.extra_noise.clone(),
            labels=None if batch.labels is None else batch.labels.clone(),
            chances=tuple(part.clone() for part in batch.chances),
        )
        numbers = {name: value.clone() for name, value in phase.numbers.items()}
        self._read = _tensors(own, replace(phase, numbers=numbers), rate := rate.clone())
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(batch.rows.device)  # type: ignore[no-untyped-call]
        with torch.cuda.graph(self._graph, stream=stream):
            self._result = step(own, replace(phase, numbers=numbers), rate)

    def __call__(self, batch: Batch, phase: Phase, rate: Tensor) -> Tensor:
        for own, new in zip(self._read, _tensors(batch, phase, rate), strict=True):
            own.copy_(new)
        self._graph.replay()
        return self._result


def _tensors(batch: Batch, phase: Phase, rate: Tensor) -> list[Tensor]:
    """Return every tensor that a step reads."""
    found = [batch.rows, batch.noise, batch.extra_noise, batch.labels, *batch.chances]
    return [part for part in found if part is not None] + [*phase.numbers.values(), rate]
