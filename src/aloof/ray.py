"""Scores on a Ray cluster: of the files of a folder, or of a Ray data set.

The model is loaded once in each worker. Ray finds the cluster by ``RAY_ADDRESS``; where there
is none, it uses this machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from aloof.exceptions import AloofError, MissingExtraError, TableError
from aloof.models.table import TableModel
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.folders import FileTask, FolderPool, FolderWork
from aloof.models.table.harmless import Harmless
from aloof.models.table.rows import RowScorer
from aloof.models.table.words import short

__all__ = ["RayPool", "WorkerDied", "folder_pool", "score"]

# What kills its worker so often is at fault itself.
_DEATHS = 3


class WorkerDied(Exception):
    """A worker was killed while it did something, mostly for want of memory."""


class RayPool:
    """Workers of a Ray cluster, each with one processor, that do one thing after the other.

    Parameters
    ----------
    n_workers
        How many; None: as many as the cluster has processors.
    start
        Called in each worker once; what it returns is called with what is submitted.

    Notes
    -----
    In the place of a worker that was killed comes another, on another machine if need be. What
    it was doing ends with `WorkerDied`; whoever submitted it may do so again.
    """

    def __init__(self, n_workers: int | None, start: Callable[[], Callable[..., Any]]) -> None:
        self._is_ours = not _ray().is_initialized()
        self._ray = _started()
        if n_workers is None:
            n_workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        kind = self._ray.remote(num_cpus=1)(_Worker)
        self._start = self._ray.put(start)  # the model goes to each machine once
        self._new: Callable[[], Any] = lambda: kind.remote(self._start)
        self.n_workers = n_workers
        self._free = [self._new() for _ in range(n_workers)]
        self._running: dict[Any, tuple[Any, Any]] = {}

    @property
    def has_room(self) -> bool:
        """Whether a worker has nothing to do."""
        return bool(self._free)

    @property
    def is_busy(self) -> bool:
        """Whether a worker has something to do."""
        return bool(self._running)

    def submit(self, key: Any, *arguments: Any) -> None:
        """Give a worker that has nothing to do something; `key` tells it from others."""
        actor = self._free.pop()
        self._running[actor.run.remote(*arguments)] = (key, actor)

    def wait(self, seconds: float | None = None) -> list[tuple[Any, Future[Any]]]:
        """Return what is done, at least one thing unless the time is over."""
        refs = list(self._running)
        ready, _ = self._ray.wait(refs, num_returns=1, timeout=seconds)
        found = []
        for ref in ready:
            key, actor = self._running.pop(ref)
            future: Future[Any] = Future()
            try:
                future.set_result(self._ray.get(ref))
            except self._ray.exceptions.RayTaskError as error:
                future.set_exception(error.cause or error)
            except self._ray.exceptions.RayError as error:
                future.set_exception(WorkerDied(" ".join(str(error).split())))
                self._ray.kill(actor)
                actor = self._new()
            self._free.append(actor)
            found.append((key, future))
        return found

    def close(self) -> None:
        """End the workers, and Ray where it was started for them."""
        for actor in [*self._free, *(actor for _, actor in self._running.values())]:
            self._ray.kill(actor)
        self._free, self._running = [], {}
        if self._is_ours:
            self._ray.shutdown()


class _Worker:
    """What runs in a worker."""

    def __init__(self, start: Callable[[], Callable[..., Any]]) -> None:
        import torch

        torch.set_num_threads(1)
        self._run = start()

    def run(self, *arguments: Any) -> Any:
        return self._run(*arguments)


def folder_pool(n_workers: int | None = None) -> FolderPool:
    """Return what scores the files of a folder on a cluster; see `TableModel.score_folder`.

    Parameters
    ----------
    n_workers
        How many workers, each with one processor; None: as many as the cluster has.
    """

    def pool(work: FolderWork, tasks: Sequence[FileTask]) -> Iterator[tuple[int, Any]]:
        workers = RayPool(n_workers, work.start)
        waiting, deaths = list(range(len(tasks)))[::-1], [0] * len(tasks)
        try:
            while waiting or workers.is_busy:
                while waiting and workers.has_room:
                    place = waiting.pop()
                    workers.submit(place, tasks[place])
                for place, future in workers.wait():
                    error = future.exception()
                    if isinstance(error, WorkerDied):
                        deaths[place] += 1
                        if deaths[place] < _DEATHS:
                            waiting.append(place)
                            continue
                        error = TableError(
                            f"its worker was killed {_DEATHS} times, perhaps because memory "
                            f"ran out ({short(str(error), 200)})"
                        )
                    yield place, future.result() if error is None else error
        finally:
            workers.close()

    return pool


def score(
    dataset: Any,
    model: TableModel | str | os.PathLike[str],
    *,
    reasons: int = 3,
    keep: Sequence[str] = (),
    keep_all: bool = False,
    missing_columns: MissingColumns = "refuse",
    harmless: Sequence[Harmless] = (),
    workers: int | tuple[int, int] | None = None,
    **options: Any,
) -> Any:
    """Return the scores of a Ray data set, as one; nothing is computed until it is asked for.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``.
    model
        What scores, or its folder. A false discovery rate is refused: it needs all rows.
    reasons, keep, keep_all, missing_columns, harmless
        See `TableModel.score_file`.
    workers
        How many have the model: a number, or the least and the most. None: as Ray sees fit.
    **options
        Of ``Dataset.map_batches``, such as ``batch_size`` or ``num_gpus``.
    """
    _started()
    scorer = RowScorer.of(
        model,
        reasons=reasons,
        keep=keep,
        keep_all=keep_all,
        missing_columns=missing_columns,
        harmless=harmless,
    )
    if workers is not None:
        options["concurrency"] = workers
    return dataset.map_batches(
        _Scorer, fn_constructor_args=(scorer,), batch_format="pyarrow", **options
    )


class _Scorer:
    """What scores batches in a worker of Ray Data."""

    def __init__(self, scorer: RowScorer) -> None:
        self._score = scorer.start()

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self._score(batch)


def _started() -> Any:
    ray = _ray()
    if not ray.is_initialized():
        try:
            ray.init(logging_level="warning", log_to_driver=False, runtime_env=_environment())
        except Exception as error:  # of any sort
            raise AloofError(
                f"Ray cannot be reached: {' '.join(str(error).split())}. Set RAY_ADDRESS to "
                "that of a cluster, or unset it to use this machine."
            ) from error
    return ray


def _environment() -> Mapping[str, Any]:
    """Return the environment of workers: threads of theirs must not wait actively."""
    return {"env_vars": {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}}


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "Scoring on a Ray cluster") from error
    return ray
