"""Going on from the members that there are, with other rows or other labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from aloof.estimators._fitting import Prepared, train_parts, unchanged_on_failure
from aloof.training import ProgressCallback
from aloof.vae import FitResult, TrainingConfig

if TYPE_CHECKING:
    from aloof.estimators._base import Detector

__all__ = ["go_on"]

# Passes of a refit, of those of a fit.
_SHARE = 0.15


def go_on(
    detector: Detector,
    X: ArrayLike,
    y: ArrayLike | None,
    max_epochs: int | None,
    on_epoch: ProgressCallback | None,
) -> None:
    """Train all members further; where that fails, the detector stays what it was.

    Parameters
    ----------
    detector
        A fitted one; it may be of several parts.
    X, y, max_epochs, on_epoch
        As in ``Detector.refit``.
    """
    with unchanged_on_failure([detector]):
        parts = detector._parts(detector._prepare(X, y, again=True), again=True)
        configs = [
            _shortened(part._config(task.problems[0]), max_epochs) for part, task in parts
        ]
        start = [_states(part, task) for part, task in parts]
        results = train_parts(parts, configs, start=start, on_epoch=on_epoch)
        for (part, task), found in zip(parts, results, strict=True):
            trained = found[0] if len(found) == 1 else FitResult.joined(found)
            part._finish(task, [_continued(part.history_, trained)])


def _shortened(config: TrainingConfig, max_epochs: int | None) -> TrainingConfig:
    """Return a schedule without a warm-up, whose learning rate falls to zero."""
    if max_epochs is None:
        max_epochs = max(1, round(_SHARE * config.max_epochs))
    return replace(
        config,
        max_epochs=max_epochs,
        warmup_epochs=0,
        annealing_epochs=0,
        lr_schedule="cosine",
        separate_encoder=False,
    )


def _states(detector: Detector, task: Prepared) -> list[Mapping[str, Tensor]]:
    """Return the weights that each problem begins with: of all members, or of one."""
    ensemble = detector._ensemble
    if len(task.problems) == 1:
        return [ensemble.state()]
    return [ensemble.select(slice(k, k + 1)).state() for k in range(len(task.problems))]


def _continued(before: dict[str, NDArray[np.float64]], result: FitResult) -> FitResult:
    """Return the result of a refit with the curves of the training before it."""
    history = {
        name: np.concatenate([before[name], curve])
        for name, curve in result.history.items()
        if name in before
    }
    return replace(result, history=history, best_epoch=result.best_epoch + len(before["loss"]))
