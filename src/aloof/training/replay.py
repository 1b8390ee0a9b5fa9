"""Steps recorded once and replayed: the host launches one thing instead of hundreds.

A training step of small networks is some hundred kernels of a few microseconds, and a GPU
waits for the host to launch each. A CUDA graph launches them all at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from aloof.training.batches import Batch

__all__ = ["Replay", "Step"]

Step = Callable[[Batch, Tensor, Tensor, int | None], Tensor]

# Libraries choose their algorithms and compile in the first calls, which cannot be recorded.
_FIRST_CALLS = 3


class Replay:
    """A step on a GPU: run as it is a few times, then recorded, then replayed.

    What cannot be recorded (a network that asks the GPU for a value, say) goes on as it is.

    Parameters
    ----------
    step
        Maps a batch, the KL weight ``(members, 1)``, the learning rate ``()`` and the number
        of rows that count to a tensor. It changes parameters in place.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._calls: dict[tuple[bool, int | None], int] = {}
        self._recorded: dict[tuple[bool, int | None], _Recorded] = {}
        self._works = True

    def __call__(
        self, batch: Batch, beta_kl: Tensor, rate: Tensor, n_kept: int | None
    ) -> Tensor:
        """Do a step; the result is overwritten by the next one of its kind."""
        kind = (batch.anomaly_noise is not None, n_kept)
        if kind in self._recorded:
            return self._recorded[kind](batch, beta_kl, rate)
        calls = self._calls.get(kind, 0)
        self._calls[kind] = calls + 1
        if not self._works or calls < _FIRST_CALLS:
            return self._step(batch, beta_kl, rate, n_kept)
        try:
            recorded = _Recorded(self._step, batch, beta_kl, rate, n_kept)
        except RuntimeError:
            self._works = False
            return self._step(batch, beta_kl, rate, n_kept)
        self._recorded[kind] = recorded
        return recorded(batch, beta_kl, rate)


class _Recorded:
    """A graph, with the tensors it reads and the one it writes."""

    def __init__(
        self, step: Step, batch: Batch, beta_kl: Tensor, rate: Tensor, n_kept: int | None
    ) -> None:
        noise = batch.anomaly_noise
        self._batch = replace(
            batch,
            rows=batch.rows.clone(),
            noise=batch.noise.clone(),
            anomaly_noise=None if noise is None else noise.clone(),
            chances=tuple(part.clone() for part in batch.chances),
        )
        self._beta_kl, self._rate = beta_kl.clone(), rate.clone()
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(batch.rows.device)  # type: ignore[no-untyped-call]
        with torch.cuda.graph(self._graph, stream=stream):
            self._result = step(self._batch, self._beta_kl, self._rate, n_kept)

    def __call__(self, batch: Batch, beta_kl: Tensor, rate: Tensor) -> Tensor:
        self._batch.rows.copy_(batch.rows)
        self._batch.noise.copy_(batch.noise)
        if self._batch.anomaly_noise is not None and batch.anomaly_noise is not None:
            self._batch.anomaly_noise.copy_(batch.anomaly_noise)
        for own, new in zip(self._batch.chances, batch.chances, strict=True):
            own.copy_(new)
        self._beta_kl.copy_(beta_kl)
        self._rate.copy_(rate)
        self._graph.replay()
        return self._result
