"""Workers of a Ray cluster.

Ray finds the cluster by ``RAY_ADDRESS``; where there is none, it uses this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from aloof.exceptions import AloofError, MissingExtraError
from aloof.models.table.words import short

__all__ = ["RayPool", "WorkerDied", "connected"]

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
        self._ray = connected()
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

    def results(
        self, tasks: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield the place of each task and what came of it, or why nothing did, as they end.

        A task whose worker was killed is given to another, up to a limit.
        """
        waiting, deaths = list(range(len(tasks)))[::-1], [0] * len(tasks)
        while waiting or self.is_busy:
            while waiting and self.has_room:
                place = waiting.pop()
                self.submit(place, *tasks[place])
            for place, future in self.wait():
                error = future.exception()
                if isinstance(error, WorkerDied):
                    deaths[place] += 1
                    if deaths[place] < _DEATHS:
                        waiting.append(place)
                        continue
                    error = WorkerDied(
                        f"its worker was killed {_DEATHS} times, perhaps because memory "
                        f"ran out ({short(str(error), 200)})"
                    )
                yield place, future.result() if error is None else error

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


def connected() -> Any:
    """Return Ray, in touch with its cluster."""
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
