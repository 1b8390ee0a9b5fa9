"""The planning study: who proposes states, and what a planner makes of them.

Every sampler meets the same unseen worlds. A folder also holds ``models/``, trained networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from aloof.bench.identity import Identity
from aloof.bench.planning.pictures import planning_curves, planning_figure
from aloof.bench.planning.specification import UNIFORM, PlanningSpecification, Sampler
from aloof.bench.planning.systems import configuration, load_model, load_worlds, measure
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
    """What one record is about: a sampler by its label, and the number of an unseen world."""

    sampler: str
    world: int


@dataclass(frozen=True, eq=False)
class PlanningStudy(Study[PlanningCase]):
    """Every sampler in every unseen world.

    Attributes
    ----------
    spec
        What it was made from.
    cases
        Sampler by sampler.
    """

    case_type = PlanningCase

    spec: PlanningSpecification
    cases: list[PlanningCase]
    _samplers: dict[str, Sampler] = field(default_factory=dict, repr=False)

    def identity(self, case: PlanningCase) -> Identity:
        """Return the configuration, which worlds follow from too, and the revision."""
        method = self._samplers[case.sampler].method
        return Identity(configuration(self.spec, method), revision=revision(method))

    def groups(
        self, cases: Sequence[PlanningCase], where: Where
    ) -> Iterable[Group[PlanningCase]]:
        """Return what one trained network can do, and uniform states."""
        for method in (UNIFORM, *self.spec.methods):
            own = tuple(c for c in cases if self._samplers[c.sampler].method == method)
            if own:
                work = partial(self._run, method, own, where)
                yield Group(method, own, lambda work=work: work, here=True)  # type: ignore[misc]

    def _run(
        self, method: str, cases: Sequence[PlanningCase], where: Where, tell: Tell
    ) -> Iterator[Outcome]:
        model = None if method == UNIFORM else load_model(self.spec, method, where, tell)
        test = load_worlds(self.spec, where, tell, test=True)
        for number, case in enumerate(cases, 1):
            yield measure(self.spec, model, self._samplers[case.sampler], test, case.world)
            tell(number, len(cases), "planning")

    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return quality of the states, and success, cost and time of the planner."""
        return planning_grids(self.spec, records)

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each sampler, world and number of states."""
        return csv_lines(records)

    def summary(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each sampler and number of states, over worlds."""
        percent = {"collision": 100, "coverage": 100, "found": 100}
        plans = [{**record, **plan} for record in records for plan in record["plans"]]
        return summary_lines(plans, ("sampler", "n"), {**percent, "cost": 1, "seconds": 1})

    def draw(self, records: Sequence[Record], folder: Path) -> None:
        """Draw success and cost over the number of states."""
        save_figure(planning_curves(self.spec, records), folder / "curves.png")

    def draw_states(self, where: Where) -> None:
        """Draw the paper's figure: states of the VAE and of DP-VAE in three worlds."""
        samplers = [s for s in self.spec.samplers if s.method in ("vae", "dp") and s.noise]
        if not samplers:
            return
        test = load_worlds(self.spec, where, _silent, test=True)
        first: Trajectories = replace(
            test, worlds=test.worlds[:_SHOWN], states=test.states[:_SHOWN]
        )
        models: dict[str, StateGenerator] = {}
        states = {}
        for sampler in samplers:
            if sampler.method not in models:
                models[sampler.method] = load_model(self.spec, sampler.method, where, _silent)
            states[sampler.label] = [
                models[sampler.method].draw(world, self.spec.n_states, screen=sampler.screen)
                for world in first.worlds
            ]
        save_figure(planning_figure(first, states), where.folder / "figure.png")


def make_planning(spec: PlanningSpecification) -> PlanningStudy:
    """List the cases; worlds are solved and networks trained when they are needed."""
    samplers = {sampler.label: sampler for sampler in spec.samplers}
    cases = [
        PlanningCase(label, number) for label in samplers for number in range(spec.n_worlds)
    ]
    return PlanningStudy(spec, cases, samplers)


def _silent(done: int, total: int, what: str) -> None:
    pass
