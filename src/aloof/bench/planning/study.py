"""The planning study: who proposes states, and what a planner makes of them.

Every sampler meets the same unseen worlds. A folder also holds ``models/``, trained networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from aloof.bench.identity import Identity
from aloof.bench.methods import title_of
from aloof.bench.planning.pictures import planning_curves, planning_figure
from aloof.bench.planning.specification import (
    KINDS,
    UNIFORM,
    PlanningSpecification,
    Sampler,
)
from aloof.bench.planning.systems import (
    configuration,
    load_models,
    load_worlds,
    measure,
    model_folder,
)
from aloof.bench.planning.tables import csv_lines, planning_grids
from aloof.bench.records import Record
from aloof.bench.revisions import revision
from aloof.bench.statistics import summary_lines
from aloof.bench.study import Group, Outcome, Study, Tell, Where
from aloof.bench.tables import Grid, Line
from aloof.planning import StateGenerator, Trajectories
from aloof.report import save_figure

__all__ = ["PlanningCase", "PlanningStudy", "make_planning"]

_SHOWN = 3  # worlds in the figure, as in the paper


@dataclass(frozen=True)
class PlanningCase:
    """What one record is about.

    Attributes
    ----------
    sampler
        By its label.
    world
        The number of an unseen world.
    seed
        Of the networks and of the states.
    setting
        Whose numbers the networks have; empty for uniform states.
    """

    sampler: str
    world: int
    seed: int = 0
    setting: str = "ours"


@dataclass(frozen=True, eq=False)
class PlanningStudy(Study[PlanningCase]):
    """Every sampler in every unseen world.

    Attributes
    ----------
    spec
        What it was made from.
    cases
        Setting by setting, sampler by sampler, seed by seed.
    """

    case_type = PlanningCase

    spec: PlanningSpecification
    cases: list[PlanningCase]
    _samplers: dict[str, Sampler] = field(default_factory=dict, repr=False)

    def case_of(self, record: Record) -> PlanningCase:
        """Return what a record is about; uniform states have no setting."""
        case = super().case_of(record)
        return replace(case, setting="") if case.sampler == UNIFORM else case

    def identity(self, case: PlanningCase) -> Identity:
        """Return the configuration, which worlds follow from too, and the revision."""
        method = self._samplers[case.sampler].method
        config = configuration(self.spec, case.setting, method, case.seed)
        return Identity(config, revision=revision(method))

    def groups(
        self, cases: Sequence[PlanningCase], where: Where
    ) -> Iterable[Group[PlanningCase]]:
        """Return what the networks of one method can do, and uniform states."""
        together: dict[tuple[str, str], list[PlanningCase]] = {}
        for case in cases:
            method = self._samplers[case.sampler].method
            together.setdefault((case.setting, method), []).append(case)
        for (setting, method), own in together.items():
            work = partial(self._run, setting, method, own, where)
            label = f"{method} ({setting})" if setting else method
            yield Group(label, tuple(own), lambda work=work: work, here=True)  # type: ignore[misc]

    def _run(
        self,
        setting: str,
        method: str,
        cases: Sequence[PlanningCase],
        where: Where,
        tell: Tell,
    ) -> Iterator[Outcome]:
        seeds = list(dict.fromkeys(case.seed for case in cases))
        models: dict[int, StateGenerator] = {}
        if method != UNIFORM:
            models = load_models(self.spec, setting, method, seeds, where, tell)
        test = load_worlds(self.spec, where, tell, test=True)
        for number, case in enumerate(cases, 1):
            yield measure(
                self.spec,
                models.get(case.seed),
                self._samplers[case.sampler],
                test,
                case.world,
                case.seed,
            )
            tell(number, len(cases), "planning")

    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return quality of the states, and success, cost and time of the planner."""
        return planning_grids(self.spec, self._whole(records))

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each sampler, seed, world and number of states."""
        return csv_lines(self._whole(records))

    def summary(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each sampler, seed and number of states, over worlds."""
        percent = {"collision": 100, "coverage": 100, "found": 100}
        plans = [{**r, **plan} for r in self._whole(records) for plan in r["plans"]]
        by = ("setting", "sampler", "seed", "states")
        for plan in plans:
            plan["states"] = plan.pop("n")
        return summary_lines(plans, by, {**percent, "cost": 1, "seconds": 1})

    def draw(self, records: Sequence[Record], folder: Path) -> None:
        """Draw success and cost over the number of states."""
        save_figure(planning_curves(self.spec, self._whole(records)), folder / "curves.png")

    def draw_models(self, where: Where) -> None:
        """Draw the paper's figure for each setting: states of the VAE and of DP-VAE.

        A picture is left as it is where the folder does not hold the networks any more.
        """
        methods = [method for method in self.spec.methods if method in ("vae", "dp")]
        test = load_worlds(self.spec, where, _silent, test=True)
        first: Trajectories = replace(
            test, worlds=test.worlds[:_SHOWN], states=test.states[:_SHOWN]
        )
        for setting in self.spec.setting:
            folders = [model_folder(self.spec, setting, m, 0, where) for m in methods]
            if not folders or not all(folder.is_dir() for folder in folders):
                continue
            models = {
                method: load_models(self.spec, setting, method, [0], where, _silent)[0]
                for method in methods
            }
            states = {
                f"{title_of(method)}, {kind}": [
                    models[method].draw(world, self.spec.n_states, noise=noise, screen=screen)
                    for world in first.worlds
                ]
                for kind, (noise, screen) in KINDS.items()
                for method in methods
            }
            path = where.folder / f"states-{setting}.png"
            save_figure(planning_figure(first, states), path)

    def _whole(self, records: Sequence[Record]) -> list[Record]:
        """Return records with all fields of their cases."""
        return [{**record, **asdict(self.case_of(record))} for record in records]


def make_planning(spec: PlanningSpecification) -> PlanningStudy:
    """List the cases; worlds are solved and networks trained when they are needed."""
    samplers = {sampler.label: sampler for sampler in spec.samplers}
    systems = [(UNIFORM, "")]
    systems += [
        (label, setting) for setting in spec.setting for label in samplers if label != UNIFORM
    ]
    cases = [
        PlanningCase(label, number, seed, setting)
        for label, setting in systems
        for seed in range(spec.seeds)
        for number in range(spec.n_worlds)
    ]
    return PlanningStudy(spec, cases, samplers)


def _silent(done: int, total: int, what: str) -> None:
    pass
