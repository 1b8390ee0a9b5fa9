"""Run what is missing, the most important first, as far as the time goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from aloof.bench.deadline import Deadline
from aloof.bench.paper.cells import Want
from aloof.bench.paper.experiments import Experiment
from aloof.bench.paper.kinds import Fields, Kind
from aloof.bench.paper.speeds import Estimate, Speeds
from aloof.bench.paper.status import Status, Task
from aloof.bench.paper.work import Work, bundles
from aloof.bench.runner import run_study, stored, write_tables
from aloof.bench.specification import command_line
from aloof.bench.study import Study, Where
from aloof.bench.workers import Event, EventCallback
from aloof.exceptions import MissingExtraError
from aloof.training import resolve_device

__all__ = ["Done", "Least", "Tried", "choose", "find_least", "run_task"]

# What to reckon with, by how much is known: what ends early leaves time for more.
_CAUTION = {"measured": 1.1, "estimated": 1.5, "guessed": 3.0}

Tried = set[tuple[str, Want, tuple[Any, ...]]]
"""Cases that were started before, by experiment."""


@dataclass(frozen=True)
class Done:
    """What became of a task.

    Attributes
    ----------
    n_run, n_left
        Cases that were run, and that time was up for.
    errors
        Why cases that were run have no figure.
    notes
        What could not be done beside, a sentence each.
    """

    n_run: int
    n_left: int
    errors: tuple[str, ...]
    notes: tuple[str, ...]


def choose(
    status: Status,
    seconds: float,
    *,
    kinds: Sequence[str] | None = None,
    tried: Tried | None = None,
) -> list[Task]:
    """Return what to run in so much time, the most important first.

    With a GPU, systems that have no use for it are left to other machines. Without one they
    come first.

    Parameters
    ----------
    status
        What is missing.
    seconds
        How long.
    kinds
        Of studies; None: all.
    tried
        Not to be run once more.
    """
    speeds, left = status.speeds, seconds
    begun: set[str] = set()
    chosen: list[Work] = []
    for work in _ordered(status, kinds):
        cases = _fresh(work, tried or set())
        start = 0.0 if work.experiment.name in begun else speeds.start.seconds
        n = _fitting(work, len(cases), left - start, speeds)
        if not n:
            continue
        chosen.append(replace(work, cases=cases[:n]))
        begun.add(work.experiment.name)
        left -= start + _cautious(speeds.estimate(work.experiment, work.want, n))
    return [Task(bundle, status.time(bundle.works)) for bundle in bundles(chosen)]


@dataclass(frozen=True)
class Least:
    """What `choose` takes if there is only time for one thing.

    Attributes
    ----------
    work
        Which cell.
    n_cases
        How many of its cases: one, or all where a part takes as long.
    seconds
        The least that `choose` has to be given for them.
    estimate
        How long they take.
    """

    work: Work
    n_cases: int
    seconds: float
    estimate: Estimate


def find_least(status: Status, *, kinds: Sequence[str] | None = None) -> Least | None:
    """Return what `choose` needs the least time for; None: nothing is left to run."""
    speeds = status.speeds
    found = []
    for work in _ordered(status, kinds):
        n = 1 if work.experiment.kind.in_parts else len(work.cases)
        estimate = speeds.estimate(work.experiment, work.want, n)
        seconds = speeds.start.seconds + _cautious(estimate)
        found.append(Least(work, n, seconds, estimate))
    return min(found, key=lambda least: least.seconds, default=None)


def _ordered(status: Status, kinds: Sequence[str] | None) -> Iterator[Work]:
    works = [w for w in status.works if kinds is None or w.experiment.kind.name in kinds]
    if status.speeds.device == "gpu":
        yield from (work for work in works if work.experiment.kind.on_gpu(work.want))
    else:
        yield from sorted(works, key=_unfit_for_cpu)


def _unfit_for_cpu(work: Work) -> int:
    """Return 0 for what needs no network, 1 for small ones, 2 for those meant for a GPU."""
    kind = work.experiment.kind
    return 0 if not kind.on_gpu(work.want) else 1 if kind.name == "odds" else 2


def _fresh(work: Work, tried: Tried) -> tuple[Fields, ...]:
    kind, name = work.experiment.kind, work.experiment.name
    return tuple(
        case for case in work.cases if (name, work.want, kind.replicate(case)) not in tried
    )


def _fitting(work: Work, n: int, seconds: float, speeds: Speeds) -> int:
    """Return how many of so many cases to start in so much time."""

    def fits(count: int) -> bool:
        return _cautious(speeds.estimate(work.experiment, work.want, count)) <= seconds

    if not work.experiment.kind.in_parts:
        return n if n and fits(n) else 0
    return next((count for count in range(n, 0, -1) if fits(count)), 0)


def _cautious(estimate: Estimate) -> float:
    return estimate.seconds * _CAUTION[estimate.how]


def run_task(
    task: Task,
    results: Path,
    seconds: float,
    speeds: Speeds,
    *,
    device: str = "auto",
    jobs: int = 1,
    command: str = "",
    on_event: EventCallback | None = None,
    tried: Tried | None = None,
) -> Done:
    """Run a task into the folder of its experiment, and make the tables of that folder anew.

    Parameters
    ----------
    task
        What to run.
    results
        With the folders of results.
    seconds
        From now: what is not done by then is left.
    speeds
        Nothing is started that does not fit by these.
    device, jobs, command, on_event
        As in `run_study`.
    tried
        Gets the cases.
    """
    experiment = task.bundle.experiment
    kind, folder = experiment.kind, results / experiment.name
    deadline = Deadline(seconds, lambda cases: _time(experiment, cases, speeds))
    wanted = {
        (work.want, kind.replicate(case)) for work in task.bundle.works for case in work.cases
    }
    if tried is not None:
        tried |= {(experiment.name, *place) for place in wanted}
    study: Any = kind.make(experiment.spec)
    cases = type(study.cases)(c for c in study.cases if _place(kind, c) in wanted)
    counted = _Counted(on_event)
    run_study(
        replace(study, cases=cases),
        folder,
        jobs=jobs,
        device=device,
        command=command,
        on_event=counted,
        deadline=deadline,
    )
    notes = _tables(study, folder, Where(resolve_device(device), folder, jobs), task)
    return Done(counted.n_run, counted.n_left, tuple(counted.errors), notes)


class _Counted:
    """Counts what happens, and passes it on."""

    def __init__(self, on_event: EventCallback | None) -> None:
        self._on_event = on_event
        self.n_run = self.n_left = 0
        self.errors: list[str] = []

    def __call__(self, event: Event) -> None:
        self.n_run += event.kind == "outcome"
        self.n_left += event.n_cases if event.kind == "left" else 0
        self.errors += event.errors
        if self._on_event is not None:
            self._on_event(event)


def _tables(study: Study[Any], folder: Path, where: Where, task: Task) -> tuple[str, ...]:
    """Make tables and pictures of all that a folder holds; return what could not be made."""
    records = stored(study, folder)
    if not records:
        return ()
    experiment = task.bundle.experiment
    command = command_line(experiment.kind.name, experiment.path, experiment.stretched)
    write_tables(study, records, folder, command=command)
    try:
        study.draw(records, folder)
        study.draw_models(where)
    except MissingExtraError as error:
        return (f"Could not draw the pictures: {error}",)
    return ()


def _place(kind: Kind, case: Any) -> tuple[Want, tuple[Any, ...]]:
    fields = asdict(case)
    return kind.want(fields), kind.replicate(fields)


def _time(experiment: Experiment, cases: Sequence[Any], speeds: Speeds) -> float:
    counts: dict[Want, int] = {}
    for case in cases:
        want = experiment.kind.want(asdict(case))
        counts[want] = counts.get(want, 0) + 1
    return sum(speeds.estimate(experiment, want, n).seconds for want, n in counts.items())
