"""Detectors trained on a Ray cluster: their problems and their members, shared out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from aloof.estimators import Detector
from aloof.estimators import fit_many as fit_many_here
from aloof.exceptions import AloofError
from aloof.networks import Architecture
from aloof.ray.pool import RayPool, WorkerDied, connected
from aloof.training import EpochReport, ProgressCallback
from aloof.vae import FitResult, TrainingConfig, VAEProblem, count_epochs, train
from aloof.vae.pieces import joined_pieces, pieces_of

__all__ = ["fit_many"]


def fit_many(
    detectors: Sequence[Detector],
    data: Sequence[tuple[ArrayLike, ArrayLike | None]],
    *,
    workers: int | None = None,
    on_epoch: ProgressCallback | None = None,
) -> None:
    """Fit each detector to its own data on a Ray cluster; a single one, too.

    Detectors and the members of each are shared out among workers. The result is that of
    `aloof.fit_many`, up to floating-point rounding. What follows the training of networks, such
    as trees and thresholds, is done here.

    Parameters
    ----------
    detectors
        What to fit, in place, on processors: ``device="cpu"``.
    data
        ``(X, y)`` for each detector.
    workers
        How many, each with one processor; None: as many as the cluster has.
    on_epoch
        Called whenever a worker is done with its share, with the epochs done by then. Without
        it, a progress bar is shown if any of the detectors is verbose.
    """
    pool = RayPool(workers, _start)
    try:
        fit_many_here(detectors, data, on_epoch=on_epoch, train=_Cluster(pool))
    finally:
        pool.close()


class _Cluster:
    """What `aloof.vae.train` does, by the workers of a pool."""

    def __init__(self, pool: RayPool) -> None:
        self._pool = pool

    def __call__(
        self,
        data: Sequence[Tensor],
        problems: Sequence[VAEProblem],
        architecture: Architecture,
        config: TrainingConfig,
        *,
        device: torch.device,
        start: Sequence[Mapping[str, Tensor]] | None = None,
        checkpoint: Path | None = None,
        on_epoch: ProgressCallback | None = None,
    ) -> list[FitResult]:
        if device.type != "cpu":
            raise AloofError(
                f"Workers of a cluster train on processors, and the device is {device.type}: "
                "make the detectors with device='cpu'."
            )
        if start is not None or checkpoint is not None:
            raise ValueError("On a cluster, a fit begins afresh and has no checkpoint.")
        pieces = pieces_of(problems, config, self._pool.n_workers)
        shared = connected().put((list(data), architecture, config))  # to each machine once
        tasks = [(shared, piece.problems) for piece in pieces]
        found: dict[int, list[FitResult]] = {}
        n_epochs = count_epochs(problems, config)
        for place, result in self._pool.results(tasks):
            if isinstance(result, WorkerDied):
                raise AloofError(f"A part of the training failed: {result}.") from result
            if isinstance(result, Exception):
                raise result
            found[place] = result
            if on_epoch is not None:
                on_epoch(_report(list(found.values()), len(pieces), n_epochs))
        results = [found[place] for place in range(len(pieces))]
        return joined_pieces(pieces, results, len(problems))


def _start() -> Callable[..., list[FitResult]]:
    def run(shared: Any, problems: Sequence[VAEProblem]) -> list[FitResult]:
        data, architecture, config = shared
        # Arrays of Ray's store are read-only; nobody else sees these copies.
        return train(
            [part.clone() for part in data],
            problems,
            architecture,
            config,
            device=torch.device("cpu"),
        )

    return run


def _report(done: Sequence[list[FitResult]], total: int, n_epochs: int) -> EpochReport:
    results = [result for some in done for result in some]
    return EpochReport(
        epoch=round(n_epochs * len(done) / total),
        max_epochs=n_epochs,
        n_members=sum(result.ensemble.n_members for result in results),
        loss=float(np.mean([np.nanmean(result.history["loss"][-1]) for result in results])),
    )
