"""What detectors have to train, as one computation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from aloof.estimators._folds import NO_FOLD
from aloof.training import ProgressCallback, discard_checkpoints, progress_bar
from aloof.vae import FitResult, TrainingConfig, VAEProblem, count_epochs, train

if TYPE_CHECKING:
    from aloof.estimators._base import Detector

__all__ = ["Prepared", "Train", "fit_together", "train_parts", "unchanged_on_failure"]

Train = Callable[..., list[FitResult]]  # with the signature of `aloof.vae.train`

_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Prepared:
    """Checked data, and what is to be trained with it.

    Attributes
    ----------
    X
        The training rows as they came.
    normal
        Which of them are not labelled as anomalies.
    rows
        The training rows as the networks see them.
    problems
        Which of them are what, and the objective: one problem for all members, or one for each.
    folds
        Which member leaves out each row; None: no member leaves out any.
    confirmed
        Rows labelled as normal that count for more than others.
    """

    X: NDArray[Any]
    normal: NDArray[np.int64]
    rows: torch.Tensor
    problems: tuple[VAEProblem, ...]
    folds: NDArray[np.int64] | None = None
    confirmed: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)

    @property
    def left_out(self) -> NDArray[np.int64]:
        """The labelled anomalies that some member leaves out: enough of them, or none."""
        if self.folds is None:
            return self.normal[:0]
        return np.setdiff1d(np.flatnonzero(self.folds != NO_FOLD), self.normal)


def fit_together(
    detectors: Sequence[Detector],
    data: Sequence[tuple[ArrayLike, ArrayLike | None]],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    on_epoch: ProgressCallback | None = None,
    title: str | None = None,
    numbered: bool = False,
    train: Train = train,
) -> None:
    """Fit each detector to its own data; where that fails, all stay what they were.

    Parameters
    ----------
    detectors
        What to fit, in place.
    data
        ``(X, y)`` for each detector.
    checkpoint
        File to keep the state in; removed when all is done.
    on_epoch
        Called after each epoch.
    title
        Of a progress bar, which is then shown in place of calling `on_epoch`.
    numbered
        Whether the name of a single checkpoint has a number, too.
    train
        What trains networks.
    """
    if title is not None:
        with progress_bar(title) as report:
            fit_together(
                detectors,
                data,
                checkpoint=checkpoint,
                on_epoch=report,
                numbered=numbered,
                train=train,
            )
        return
    path = None if checkpoint is None else Path(checkpoint)
    with unchanged_on_failure(detectors):
        _fit(detectors, data, path, on_epoch, numbered, train)
    if path is not None:
        discard_checkpoints(path)


@contextmanager
def unchanged_on_failure(detectors: Sequence[Detector]) -> Iterator[None]:
    """Leave detectors as they were where a fit fails or is interrupted."""
    before = [dict(vars(detector)) for detector in detectors]
    try:
        yield
    except BaseException:
        for detector, state in zip(detectors, before, strict=True):
            detector.__dict__.clear()
            detector.__dict__.update(state)
        raise


def _fit(
    detectors: Sequence[Detector],
    data: Sequence[tuple[ArrayLike, ArrayLike | None]],
    checkpoint: Path | None,
    on_epoch: ProgressCallback | None,
    numbered: bool,
    train: Train,
) -> None:
    parts = [
        part
        for detector, (X, y) in zip(detectors, data, strict=True)
        for part in detector._parts(detector._prepare(X, y))
    ]
    configs = [detector._config(task.problems[0]) for detector, task in parts]
    results = train_parts(
        parts,
        configs,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
        numbered=numbered,
        train=train,
    )
    for (detector, task), found in zip(parts, results, strict=True):
        detector._finish(task, found)


def train_parts(
    parts: Sequence[tuple[Detector, Prepared]],
    configs: Sequence[TrainingConfig],
    *,
    start: Sequence[Sequence[Mapping[str, torch.Tensor]]] | None = None,
    checkpoint: Path | None = None,
    on_epoch: ProgressCallback | None = None,
    numbered: bool = False,
    train: Train = train,
) -> list[list[FitResult]]:
    """Train what belongs together in one run, and return the results of each part.

    Parameters
    ----------
    parts
        Detectors, and what is to be trained for them.
    configs
        The schedule of each.
    start
        The state that each problem of each part begins with; None: fresh networks.
    checkpoint, on_epoch, numbered, train
        As in `fit_together`.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, ((detector, _), config) in enumerate(zip(parts, configs, strict=True)):
        groups.setdefault((*_networks(detector), config), []).append(number)
    runs = [_joined([parts[number][1] for number in group]) for group in groups.values()]
    lengths = [
        count_epochs(problems, key[-1]) for key, (_, problems) in zip(groups, runs, strict=True)
    ]
    results: dict[int, list[FitResult]] = {}
    for place, ((key, group), (rows, problems)) in enumerate(
        zip(groups.items(), runs, strict=True)
    ):
        first = parts[group[0]][0]
        trained = iter(
            train(
                [rows],
                problems,
                first._architecture(),
                key[-1],
                device=first.device_,
                start=None if start is None else [s for number in group for s in start[number]],
                checkpoint=_path(checkpoint, place, numbered or len(runs) > 1),
                on_epoch=_shifted(on_epoch, sum(lengths[:place]), sum(lengths)),
            )
        )
        for number in group:
            results[number] = [next(trained) for _ in parts[number][1].problems]
    return [results[number] for number in range(len(parts))]


def _path(checkpoint: Path | None, number: int, numbered: bool) -> Path | None:
    if checkpoint is None or not numbered:
        return checkpoint
    return Path(f"{checkpoint}.{number}")


def _joined(tasks: Sequence[Prepared]) -> tuple[torch.Tensor, list[VAEProblem]]:
    """Put the rows of all tasks into one array, and let the problems index that."""
    if len({id(task.rows) for task in tasks}) == 1:  # they may be on disk: leave them there
        return tasks[0].rows, [problem for task in tasks for problem in task.problems]
    problems: list[VAEProblem] = []
    rows: list[torch.Tensor] = []
    starts: dict[bytes, int] = {}
    for task in tasks:
        digest = hashlib.sha256(task.rows.numpy().tobytes()).digest()
        if digest not in starts:  # the same rows are kept once, for any number of detectors
            starts[digest] = sum(map(len, rows))
            rows.append(task.rows)
        problems += [problem.shifted(starts[digest]) for problem in task.problems]
    return torch.cat(rows), problems


def _shifted(
    on_epoch: ProgressCallback | None, done: int, total: int
) -> ProgressCallback | None:
    """Count epochs over all groups."""
    if on_epoch is None:
        return None
    return lambda report: on_epoch(replace(report, epoch=done + report.epoch, max_epochs=total))


def _networks(detector: Detector) -> tuple[Any, ...]:
    """Return what must be equal for two detectors to have networks of one shape."""
    return (
        detector.encoder,
        detector.decoder,
        tuple(detector.hidden),
        detector.filters and tuple(detector.filters),
        detector.latent_dim,
        detector.likelihood == "gaussian",
        detector.shape_,
        detector.device_,
    )
