"""From an experiment to the cases it consists of, each with its rows and its estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from aloof.datasets import PublicTable, Table, find_dataset
from aloof.exceptions import ExperimentError
from aloof.experiments.experiment import Experiment, System
from aloof.experiments.measure import Trial
from aloof.experiments.methods import peers, unfair_peers
from aloof.experiments.protocol import (
    Split,
    make_split,
    split_digest,
    standardise,
    training_rows,
)
from aloof.experiments.records import Case, jsonable
from aloof.experiments.settings import Setting, build

__all__ = ["Place", "Plan", "make_plan", "what_counts"]

Place = tuple[str, float, float, int]

# Where and how loudly it runs is not what it computes, and neither is what is done to images
# or to rows that are not standardised yet.
_NO_CONFIG = ("device", "random_state", "verbose", "checkpoint", "filters", "standardize")


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is to be run.

    Attributes
    ----------
    experiment
        What it was made from.
    tables
        The data, by name.
    splits, digests
        By data set, `gamma_l`, `gamma_p` and seed.
    infeasible
        By the same, why there can be no such split.
    cases
        In the order of the tables.
    """

    experiment: Experiment
    tables: Mapping[str, Table]
    splits: Mapping[Place, Split]
    digests: Mapping[Place, str]
    infeasible: Mapping[Place, str]
    cases: tuple[Case, ...]

    def estimator(self, case: Case, *, device: str = "auto") -> Any:
        """Return the unfitted estimator of a case."""
        system = case.system
        if not system.ours:
            return {**peers(), **unfair_peers()}[case.method](random_state=case.seed)
        return build(
            case.method,
            cast(Setting, case.setting),
            case.dataset,
            seed=case.seed,
            overrides=self.experiment.overrides(system),
            device=device,
        )

    def trial(self, case: Case, *, device: str = "auto") -> Trial:
        """Return a case with its estimator and its standardised rows."""
        table, split = self.tables[case.dataset], self.splits[case.place]
        X, y = training_rows(split, table.X)
        X, X_test = standardise(X, table.X[split.test])
        estimator, y_test = self.estimator(case, device=device), table.y[split.test]
        if case.system.unfair:
            estimator.peek(X_test, y_test)
        return Trial(estimator, X, y, X_test, y_test)

    def identity(self, case: Case) -> dict[str, Any]:
        """Return what a record must say to be the result of this case: data, rows, config."""
        split = self.splits[case.place]
        config = what_counts(self.estimator(case).get_params(deep=False))
        identity: dict[str, Any] = jsonable(
            {
                "data_sha256": self.tables[case.dataset].sha256,
                "split_sha256": self.digests[case.place],
                "n_unlabelled": len(split.train_unlabelled),
                "n_labelled": len(split.train_anomaly),
                "n_hidden": len(split.hidden),
                "n_test": len(split.test),
                "config": config,
            }
        )
        return identity


def what_counts(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator that its results depend on."""
    return {key: value for key, value in config.items() if key not in _NO_CONFIG}


def make_plan(experiment: Experiment) -> Plan:
    """Load the data and make every split.

    Where a data set has too few anomalies for a condition, its cases are kept with the
    reason; an experiment without any feasible case is an error.
    """
    tables = {name: find_dataset(name, PublicTable).load() for name in experiment.datasets}
    splits: dict[Place, Split] = {}
    infeasible: dict[Place, str] = {}
    for name, table in tables.items():
        for gamma_l, gamma_p in experiment.conditions:
            for seed in range(experiment.seeds):
                place = (name, gamma_l, gamma_p, seed)
                try:
                    splits[place] = make_split(
                        table.y, seed=seed, gamma_l=gamma_l, gamma_p=gamma_p
                    )
                except ValueError as error:
                    infeasible[place] = str(error)
    if not splits:
        reasons = {place[0]: reason for place, reason in infeasible.items()}
        raise ExperimentError(
            "Nothing of this can be run. "
            + " ".join(f"{name}: {reason}" for name, reason in reasons.items())
        )
    cases = tuple(
        _case(name, system, condition, seed)
        for condition in experiment.conditions
        for system in experiment.systems
        for name in experiment.datasets
        for seed in range(experiment.seeds)
    )
    digests = {place: split_digest(split) for place, split in splits.items()}
    return Plan(experiment, tables, splits, digests, infeasible, cases)


def _case(name: str, system: System, condition: tuple[float, float], seed: int) -> Case:
    return Case(name, system.method, system.setting, system.variant, *condition, seed)
