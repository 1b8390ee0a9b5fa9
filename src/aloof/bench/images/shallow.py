"""Shallow systems on pixels or on codes, as tasks that any process can carry out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from aloof.baselines import Baseline, CodeDetectors, fit_unfairly
from aloof.bench.images.specification import Detector

__all__ = ["Codes", "ShallowTask", "Task", "carried_out", "with_members_second"]

Task = Callable[[], NDArray[np.float64]]
"""Returns anomaly scores ``(members, n)``; any process can carry it out."""


def carried_out(
    tasks: Iterable[Task], n_processes: int
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Yield the scores of each task and the seconds it took, in their order.

    Parameters
    ----------
    tasks
        Each is made when a process is free for it.
    n_processes
        With one thread each; 1: this one.
    """
    if n_processes == 1:
        yield from map(_timed, tasks)
        return
    processes = Parallel(n_processes, return_as="generator", max_nbytes=None)  # no files
    answers = processes(map(delayed(_timed), tasks))
    try:
        for answer in answers:  # noqa: UP028 - `yield from` would close it first
            yield answer
    finally:
        with warnings.catch_warnings():  # who stops knows that tasks are left
            warnings.simplefilter("ignore")
            answers.close()


def _timed(task: Task) -> tuple[NDArray[np.float64], float]:
    started = time.monotonic()
    return task(), time.monotonic() - started


class Codes:
    """Stands in for an autoencoder where rows already are its codes."""

    @staticmethod
    def encode(codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return codes ``(n, members, size)`` as ``(members, n, size)``."""
        return np.moveaxis(codes, 1, 0)


def with_members_second(codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return codes ``(members, n, size)`` as rows, ``(n, members, size)``."""
    return np.moveaxis(codes, 0, 1)


@dataclass(frozen=True, eq=False)
class ShallowTask:
    """A shallow system with all it learns from and is asked about.

    Attributes
    ----------
    kind
        Which system it is.
    detector
        The shallow method, not fitted.
    rows, labels
        What it learns from: images, or for a hybrid codes ``(n, members, size)``.
    asked
        What is to be scored; as `rows`.
    seed
        Of a hybrid's detectors.
    peeked, truth
        Test rows that an unfair system looks at, and their labels.
    """

    kind: Detector
    detector: Baseline
    rows: NDArray[Any]
    labels: NDArray[np.int64]
    asked: NDArray[Any]
    seed: int
    peeked: NDArray[Any] | None = None
    truth: NDArray[np.int64] | None = None

    def __call__(self) -> NDArray[np.float64]:
        """Fit the system, and return its scores ``(members, n)``."""
        if self.kind.hybrid:
            return self._on_codes()
        if self.peeked is None:
            fitted = self.detector.fit(self.rows, self.labels)
        else:
            fitted = self._tuned(self.rows, self.peeked)
        return fitted.anomaly_score(self.asked)[None]

    def _on_codes(self) -> NDArray[np.float64]:
        codes = CodeDetectors(self.detector, Codes(), self.rows, self.labels, self.seed)
        if self.peeked is not None:
            (rows,), (peeked,) = codes.features(self.rows), codes.features(self.peeked)
            codes.detectors = [self._tuned(rows, peeked)]
        return codes.score(self.asked)

    def _tuned(self, rows: NDArray[Any], peeked: NDArray[Any]) -> Baseline:
        """Return the detector that is best on the rows it was allowed to look at."""
        assert self.truth is not None
        own = self.detector
        options = {"max_rows": own.max_rows, "random_state": own.random_state}
        return fit_unfairly(self.kind.name, rows, self.labels, peeked, self.truth, **options)
