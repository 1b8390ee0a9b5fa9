"""Many detectors, one computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike

from aloof.estimators._base import Detector
from aloof.training import ProgressCallback, train

__all__ = ["fit_many"]


def fit_many(
    detectors: Sequence[Detector],
    data: Sequence[tuple[ArrayLike, ArrayLike | None]],
    *,
    checkpoint: str | Path | None = None,
    on_epoch: ProgressCallback | None = None,
) -> None:
    """Fit each detector to its own data, all members of all detectors in one stack.

    The result is that of fitting one after the other, up to floating-point rounding, in a
    fraction of the time: for cross-validation, for repeated splits, for a grid of numbers
    such as `beta_kl`, `alpha` and `gamma`. Detectors that differ in anything else (method,
    networks, schedule) or in the size of their batches form stacks of their own.

    Parameters
    ----------
    detectors
        What to fit, in place.
    data
        ``(X, y)`` for each detector.
    checkpoint
        File to keep the state of the run in, as the detectors' own `checkpoint` does for a
        single fit.
    on_epoch
        Called after each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from aloof import VAE, fit_many
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> grid = [VAE(beta_kl=b, max_epochs=5, random_state=0) for b in (0.01, 0.1, 1.0)]
    >>> fit_many(grid, [(X, None)] * 3)
    >>> [round(d.history_["kl"][-1].mean(), 1) > 0 for d in grid]
    [True, True, True]
    """
    if len(detectors) != len(data):
        raise ValueError(
            f"fit_many needs (X, y) for each detector; got {len(detectors)} detectors and "
            f"{len(data)} pairs."
        )
    if any(detector.checkpoint is not None for detector in detectors):
        raise ValueError("Pass the checkpoint to fit_many, not to its detectors.")
    tasks = [detector._prepare(X, y) for detector, (X, y) in zip(detectors, data, strict=True)]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, detector in enumerate(detectors):
        groups.setdefault(_key(detector), []).append(index)
    for number, group in enumerate(groups.values()):
        problems, start = [], 0
        for index in group:
            problem = tasks[index].problem
            problems.append(
                replace(
                    problem,
                    normal=problem.normal + start,
                    anomaly=problem.anomaly + start,
                    validation_normal=problem.validation_normal + start,
                    validation_anomaly=problem.validation_anomaly + start,
                )
            )
            start += len(tasks[index].rows)
        first = detectors[group[0]]
        results = train(
            [torch.cat([tasks[index].rows for index in group])],
            problems,
            first._architecture(),
            first._config(),
            device=first.device_,
            checkpoint=None if checkpoint is None else Path(f"{checkpoint}.{number}"),
            on_epoch=on_epoch,
        )
        for index, result in zip(group, results, strict=True):
            detectors[index]._finish(tasks[index], result)


def _key(detector: Detector) -> tuple[Any, ...]:
    """Return what must be equal for two detectors to share networks and schedule."""
    return (
        detector.encoder,
        detector.decoder,
        tuple(detector.hidden),
        detector.latent_dim,
        detector.likelihood == "gaussian",
        detector.shape_,
        detector.device_,
        detector._config(),
    )
