"""The ODDS study: its cases, each with its rows and its estimator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

from aloof.bench.identity import Identity
from aloof.bench.odds.plot import plot_results
from aloof.bench.odds.settings import build, build_peer
from aloof.bench.odds.specification import OddsSpecification, System
from aloof.bench.odds.summary import summarise
from aloof.bench.odds.tables import csv_lines, make_grids
from aloof.bench.records import Record
from aloof.bench.revisions import revision
from aloof.bench.specification import Setting
from aloof.bench.splits import (
    Scaling,
    Split,
    make_split,
    scale,
    split_record,
    training_rows,
)
from aloof.bench.splitting import SplitStudy, feasible_splits
from aloof.bench.study import Group, Where
from aloof.bench.tables import Grid, Line
from aloof.bench.trials import Trial, stacks
from aloof.datasets import PublicTable, Table, find_dataset
from aloof.exceptions import ExperimentError
from aloof.io import write_file
from aloof.report import save_figure

__all__ = ["Case", "OddsStudy", "Place", "make_odds"]

Place = tuple[str, float, float, int]
_SPLIT_KEYS = ("dataset", "data_sha256", "gamma_l", "gamma_p", "seed")


@dataclass(frozen=True, order=True)
class Case:
    """What one record is about.

    Attributes
    ----------
    dataset, method
        By name.
    setting
        Whose numbers it runs with; empty where all have the same.
    variant
        What is changed; empty: nothing.
    gamma_l, gamma_p, seed
        What the split was made from; `seed` is also the method's random state.
    scaling
        Of the columns.
    """

    dataset: str
    method: str
    setting: str
    variant: str
    gamma_l: float
    gamma_p: float
    seed: int
    scaling: str = "standard"

    @property
    def system(self) -> System:
        """The row of a table it belongs to."""
        return System(self.method, self.setting, self.variant, self.scaling)

    @property
    def place(self) -> Place:
        """The split it is run on."""
        return self.dataset, self.gamma_l, self.gamma_p, self.seed


@dataclass(frozen=True, eq=False)
class OddsStudy(SplitStudy[Case]):
    """Everything that is to be run.

    All seeds of our methods on one data set are one stacked run with one warm-up, and so are
    all seeds of a deep peer; other systems run one by one.

    Attributes
    ----------
    spec
        What it was made from.
    tables
        The data, by name.
    splits
        By data set, `gamma_l`, `gamma_p` and seed.
    reasons
        By the same, why there can be no such split.
    cases
        In the order of the tables.
    """

    case_type = Case

    spec: OddsSpecification
    tables: Mapping[str, Table]
    splits: Mapping[Place, Split]
    reasons: Mapping[Place, str]
    cases: tuple[Case, ...]

    def estimator(self, case: Case, *, device: str = "auto") -> Any:
        """Return the unfitted estimator of a case."""
        variant = self.spec.variant(case.system)
        if not case.system.ours:
            return build_peer(
                case.method,
                case.setting,
                case.dataset,
                seed=case.seed,
                overrides=variant.parameters,
                device=device,
            )
        return build(
            case.method,
            cast(Setting, case.setting),
            case.dataset,
            seed=case.seed,
            scaling=cast(Scaling, case.scaling),
            overrides=variant.parameters,
            network=variant.network,
            device=device,
        )

    def trial(self, case: Case, *, device: str = "auto") -> Trial:
        """Return a case with its estimator and its scaled rows."""
        table, split = self.tables[case.dataset], self.splits[case.place]
        X, y = training_rows(split, table.X)
        X, X_test = scale(X, table.X[split.test], cast(Scaling, case.scaling))
        estimator, y_test = self.estimator(case, device=device), table.y[split.test]
        if case.system.unfair:
            estimator.peek(X_test, y_test)
        return Trial(estimator, X, y, X_test, y_test)

    def identity(self, case: Case) -> Identity:
        """Return the data, the rows, the estimator's parameters and its revision."""
        facts = self._facts(case, self.tables[case.dataset].sha256)
        return Identity(self.estimator(case), facts, revision(case.method))

    def groups(self, cases: Sequence[Case], where: Where) -> Iterable[Group[Case]]:
        """Return stacks of what trains networks, single fits of others; large data first.

        Tuned hybrids are single fits, too: the grid takes far longer than the network.
        """
        together: dict[tuple[Any, ...], list[Case]] = {}
        for case in cases:
            key: tuple[Any, ...] = (case.dataset, case.gamma_l, case.gamma_p)
            key += (case.setting, case.scaling)
            if case.system.ours:  # all methods: they share the warm-up
                key += (case.variant,)
            else:
                stacked = stacks(self.estimator(case)) and not case.system.unfair
                alone = None if stacked else case.seed
                key += (case.method, case.variant, alone)
            together.setdefault(key, []).append(case)
        groups = [self._group(tuple(group), where) for group in together.values()]
        return sorted(
            groups,
            key=lambda group: (
                not group.cases[0].system.ours,
                -len(self.tables[group.cases[0].dataset].X),
            ),
        )

    def _group(self, cases: tuple[Case, ...], where: Where) -> Group[Case]:
        first = cases[0]
        systems = dict.fromkeys(case.system.label for case in cases)
        n_seeds = len(cases) // len(systems)
        label = f"{first.dataset} {', '.join(systems)}"
        if len(self.spec.conditions) > 1:
            label += f", gamma_l {first.gamma_l:g}, gamma_p {first.gamma_p:g}"
        label += f", {n_seeds} seeds" if n_seeds > 1 else f", seed {first.seed}"
        return self._together(label, cases, where, self.estimator(first))

    def manifest(self) -> Mapping[str, Any]:
        """Return the digests of the data."""
        return {"data_sha256": {name: table.sha256 for name, table in self.tables.items()}}

    def prepare(self, folder: Path) -> None:
        """Write the rows of every split, and keep those of earlier runs."""
        path = folder / "splits.json"
        entries: dict[tuple[Any, ...], dict[str, Any]] = {}
        if path.exists():
            try:
                for entry in json.loads(path.read_text(encoding="utf-8")):
                    entries[tuple(entry[key] for key in _SPLIT_KEYS)] = entry
            except (ValueError, KeyError, TypeError) as error:
                raise ExperimentError(
                    f"{path} is not a file of splits. Remove it, or choose another folder."
                ) from error
        for (name, *_), split in self.splits.items():
            sha256 = self.tables[name].sha256
            entry = {"dataset": name, "data_sha256": sha256, **split_record(split)}
            entries[tuple(entry[key] for key in _SPLIT_KEYS)] = entry
        lines = ",\n".join(json.dumps(entry) for entry in entries.values())
        write_file(path, f"[\n{lines}\n]\n", ExperimentError)

    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return AUROC, average precision, comparisons and times for each condition."""
        return make_grids(summarise(self.spec, records))

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each system and data set."""
        return csv_lines(summarise(self.spec, records))

    def draw(self, records: Sequence[Record], folder: Path) -> None:
        """Draw a panel for each data set."""
        figure = plot_results(summarise(self.spec, records))
        save_figure(figure, folder / "plot.png")


def make_odds(spec: OddsSpecification) -> OddsStudy:
    """Load the data and make every split.

    Where a data set has too few anomalies for a condition, its cases are kept with the
    reason; a study without any feasible case is an error.
    """
    tables = {name: find_dataset(name, PublicTable).load() for name in spec.datasets}

    def split(place: Place) -> Split:
        name, gamma_l, gamma_p, seed = place
        return make_split(tables[name].y, seed=seed, gamma_l=gamma_l, gamma_p=gamma_p)

    places = product(tables, spec.conditions, range(spec.seeds))
    splits, reasons = feasible_splits(
        [(name, *condition, seed) for name, condition, seed in places], split
    )
    cases = tuple(
        Case(
            name,
            system.method,
            system.setting,
            system.variant,
            *condition,
            seed,
            system.scaling,
        )
        for condition in spec.conditions
        for system in spec.systems
        for name in spec.datasets
        for seed in range(spec.seeds)
    )
    return OddsStudy(spec, tables, splits, reasons, cases)
