"""The study of tables: its cases, each with its rows and its estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from aloof.bench.identity import Identity
from aloof.bench.methods import make_ours, make_peer, table_options
from aloof.bench.records import Record
from aloof.bench.revisions import revision
from aloof.bench.splits import Split, standardise, training_rows
from aloof.bench.splitting import SplitStudy, feasible_splits
from aloof.bench.study import Group, Where
from aloof.bench.tables import Grid, Line
from aloof.bench.tabular.development import DEVELOPMENT
from aloof.bench.tabular.files import find_tables, read_table
from aloof.bench.tabular.plot import plot_results
from aloof.bench.tabular.protocols import Condition, labelled_kind, make_protocol_split
from aloof.bench.tabular.specification import System, TablesSpecification
from aloof.bench.tabular.summary import summarise
from aloof.bench.tabular.tables import csv_lines, make_grids, summary_lines, task_grids
from aloof.bench.tabular.tasks import TableTask, filled
from aloof.bench.tabular.variants import with_mixed
from aloof.bench.trials import Trial, stacks
from aloof.report import save_figure
from aloof.vae import METHODS

__all__ = ["Case", "Place", "TablesStudy", "make_tables"]

Place = tuple[str, Condition, int]


@dataclass(frozen=True, order=True)
class Case:
    """What one record is about.

    Attributes
    ----------
    task, method
        By name.
    variant
        Which change to the method; empty for the method as it is.
    protocol, labels, hidden
        The condition; see `aloof.bench.tabular.protocols.Condition`.
    seed
        Of the split; also the method's random state.
    """

    task: str
    method: str
    variant: str
    protocol: str
    labels: float
    hidden: float
    seed: int

    @property
    def system(self) -> System:
        """The row of a table it belongs to."""
        return System(self.method, self.variant)

    @property
    def condition(self) -> Condition:
        """The condition it is run under."""
        return Condition(self.protocol, self.labels, self.hidden)

    @property
    def place(self) -> Place:
        """The split it is run on."""
        return self.task, self.condition, self.seed


@dataclass(frozen=True, eq=False)
class TablesStudy(SplitStudy[Case]):
    """Everything that is to be run.

    All seeds of our methods on one task are one stacked run with one warm-up, and so are all
    seeds of a deep peer; other systems run one by one.

    Attributes
    ----------
    spec
        What it was made from.
    tasks
        By name.
    splits
        By task, condition and seed.
    reasons
        By the same, why there can be no such split.
    cases
        In the order of the tables.
    """

    case_type = Case

    spec: TablesSpecification
    tasks: Mapping[str, TableTask]
    splits: Mapping[Place, Split]
    reasons: Mapping[Place, str]
    cases: tuple[Case, ...]

    @cached_property
    def _examples(self) -> dict[System, Any]:
        """Estimators to look at: there are many cases, and making one takes time."""
        return {system: self.estimator(system, seed=0) for system in self.spec.systems}

    def estimator(self, system: System, *, seed: int, device: str = "auto") -> Any:
        """Return an unfitted estimator of a system."""
        variant = self.spec.variant(system)
        if not system.ours:
            options = table_options(system.method) | variant.parameters
            return make_peer(system.method, seed=seed, device=device, **options)
        own = make_ours(system.method, seed=seed, device=device, **variant.parameters)
        return own if variant.network is None else variant.network.given_to(own)

    def trial(self, case: Case, *, device: str = "auto") -> Trial:
        """Return a case with its estimator and its rows: without gaps, and standardised."""
        task, split = self.tasks[case.task], self.splits[case.place]
        X, y = training_rows(split, task.X)
        X, X_test = standardise(*filled(np.asarray(X, np.float64), task.X[split.test]))
        variant = self.spec.variant(case.system)
        X, y = with_mixed(X, y, variant.mixed, case.seed)
        X, X_test = variant.shown(X, X_test)
        estimator = self.estimator(case.system, seed=case.seed, device=device)
        y_test = task.y[split.test]
        if case.system.unfair:
            estimator.peek(X_test, y_test)
        return Trial(estimator, X, y, X_test, y_test)

    def identity(self, case: Case) -> Identity:
        """Return the data, the rows, the estimator's parameters and its revision."""
        task, split = self.tasks[case.task], self.splits[case.place]
        facts = self._facts(case, task.sha256)
        facts |= self.spec.variant(case.system).facts
        if case.protocol == "novel":
            facts["labelled_kind"] = labelled_kind(split, task.kinds)
        return Identity(self._examples[case.system], facts, revision(case.method))

    def groups(self, cases: Sequence[Case], where: Where) -> Iterable[Group[Case]]:
        """Return stacks of what trains networks, single fits of others; ours first.

        On an accelerator, which is idle with few networks, all conditions are one stack.
        """
        small = where.device.type == "cpu"
        together: dict[tuple[Any, ...], list[Case]] = {}
        for case in cases:
            alone = not stacks(self._examples[case.system])
            key: tuple[Any, ...] = (case.task, case.variant)
            key += (case.condition,) if small or alone else ()
            if case.method not in METHODS:  # the four share their warm-up
                key += (case.method, case.seed if alone else None)
            together.setdefault(key, []).append(case)
        groups = [self._group(tuple(group), where) for group in together.values()]
        return sorted(groups, key=lambda group: not group.cases[0].system.ours)

    def _group(self, cases: tuple[Case, ...], where: Where) -> Group[Case]:
        first = cases[0]
        systems = dict.fromkeys(case.system.label for case in cases)
        n_fits = len(cases) // len(systems)
        label = f"{first.task} {', '.join(systems)}"
        conditions = {case.condition for case in cases}
        label += f", {first.condition}" if len(conditions) == 1 else ", all conditions"
        label += f", {n_fits} fits" if n_fits > 1 else f", seed {first.seed}"
        return self._together(label, cases, where, self._examples[first.system])

    def manifest(self) -> Mapping[str, Any]:
        """Return the digests of the data, and what was done to it."""
        return {
            "data_sha256": {name: task.sha256 for name, task in self.tasks.items()},
            "data_notes": {name: task.notes for name, task in self.tasks.items() if task.notes},
        }

    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return the means over tasks, and how systems compare."""
        return make_grids(summarise(self.spec, records), self.tasks)

    def details(self, records: Sequence[Record]) -> list[Grid]:
        """Return a table of all tasks for each condition."""
        return task_grids(summarise(self.spec, records))

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each condition, system and task."""
        return csv_lines(summarise(self.spec, records))

    def summary(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each condition and system."""
        return summary_lines(summarise(self.spec, records))

    def draw(self, records: Sequence[Record], folder: Path) -> None:
        """Draw the means of every system under every protocol."""
        figure = plot_results(summarise(self.spec, records))
        save_figure(figure, folder / "plot.png")


def make_tables(spec: TablesSpecification) -> TablesStudy:
    """Read the tables and make every split.

    Where a table lacks what a condition needs, its cases are kept with the reason; a study
    without any feasible case is an error.
    """
    if spec.folder:
        paths = find_tables(Path(spec.folder))
        tasks = {name: read_table(name, paths[name], spec.reading) for name in spec.chosen}
    else:
        tasks = {name: DEVELOPMENT[name].load() for name in spec.chosen}

    def split(place: Place) -> Split:
        name, condition, seed = place
        kinds = tasks[name].kinds if condition.protocol == "novel" else None
        return make_protocol_split(tasks[name].y, condition, seed=seed, kinds=kinds)

    splits, reasons = feasible_splits(
        list(product(tasks, spec.conditions, range(spec.seeds))), split
    )
    cases = tuple(
        Case(
            name,
            system.method,
            system.variant,
            condition.protocol,
            condition.labels,
            condition.hidden,
            seed,
        )
        for condition in spec.conditions
        for system in spec.systems
        for name in tasks
        for seed in range(spec.seeds)
    )
    return TablesStudy(spec, tasks, splits, reasons, cases)
