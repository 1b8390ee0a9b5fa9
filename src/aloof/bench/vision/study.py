"""The study of images people have: how well defects and strange photographs are found."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aloof.bench.identity import Identity
from aloof.bench.records import Record
from aloof.bench.revisions import vision_revision
from aloof.bench.statistics import NOTE, with_mean
from aloof.bench.study import Group, Study, Where, Work
from aloof.bench.tables import Grid, Line
from aloof.bench.vision.problems import Problem, make_problem
from aloof.bench.vision.specification import VisionSpecification
from aloof.bench.vision.surfaces import SURFACES
from aloof.bench.vision.systems import LABELLED_ONLY, UNLABELLED_ONLY, Bench, run_systems

__all__ = ["VisionCase", "VisionStudy", "make_vision"]

_Key = tuple[str, int]  # a problem and a seed

_MEASURES = {
    "auroc": "AUROC (%) of images",
    "auroc_seen": "AUROC (%) of images, kinds that are labelled",
    "auroc_unseen": "AUROC (%) of images, kinds that nobody labelled",
    "auroc_small_unseen": "AUROC (%) of images, small defects of kinds that nobody labelled",
    "pixel_auroc": "AUROC (%) of pixels",
    "pro": "Overlap with defects (PRO, %)",
}


@dataclass(frozen=True)
class VisionCase:
    """What one record is about."""

    problem: str
    system: str
    labels: int
    seed: int


@dataclass(frozen=True, eq=False)
class VisionStudy(Study[VisionCase]):
    """Every system on every problem."""

    case_type = VisionCase

    spec: VisionSpecification
    cases: tuple[VisionCase, ...]

    def identity(self, case: VisionCase) -> Identity:
        """Return the numbers that the result depends on."""
        names = ("normal", "test", "side", "backbone")
        if case.system not in UNLABELLED_ONLY:
            names += ("members", "max_epochs")  # type: ignore[assignment]
        config = {name: getattr(self.spec, name) for name in names}
        return Identity(config, {}, vision_revision(case.system))

    def groups(self, cases: Sequence[VisionCase], where: Where) -> Iterable[Group[VisionCase]]:
        """Return what learns together.

        On a processor, these are the systems on the same images, so that processes share the
        images out. Elsewhere it is one system on all images: its detectors learn in one stack.
        """
        here = where.device.type != "cpu"
        made: dict[_Key, Bench] = {}
        together: dict[str, list[VisionCase]] = {}
        for case in cases:
            label = case.system if here else f"{case.problem}, seed {case.seed}"
            together.setdefault(label, []).append(case)
        if here:
            together = {name: together[name] for name in self.spec.systems if name in together}
        for label, own in together.items():
            benches = made if here else {}
            prepare = partial(self._prepare, tuple(own), where, benches)
            yield Group(label, tuple(own), prepare, here)

    def _prepare(
        self, own: Sequence[VisionCase], where: Where, benches: dict[_Key, Bench]
    ) -> Work:
        keys = list(dict.fromkeys((case.problem, case.seed) for case in own))
        self._make(benches, [key for key in keys if key not in benches], where)
        wanted = [(keys.index((case.problem, case.seed)), case) for case in own]
        return partial(
            run_systems,
            [benches[key] for key in keys],
            [(place, case.system, case.labels) for place, case in wanted],
        )

    def _make(self, benches: dict[_Key, Bench], keys: Sequence[_Key], where: Where) -> None:
        """Make problems, in several processes where they are drawn."""
        drawn = all(name in SURFACES for name, _ in keys)
        if drawn and len(keys) > 1 and where.jobs > 1:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(min(where.jobs, len(keys)), context) as pool:
                problems = list(pool.map(self._problem, keys))
        else:
            problems = [self._problem(key) for key in keys]
        spec = self.spec
        for key, problem in zip(keys, problems, strict=True):
            options = {
                "backbone": spec.backbone,
                "members": spec.members,
                "max_epochs": spec.max_epochs,
                "device": str(where.device),
                "seed": key[1],
            }
            benches[key] = Bench(problem, options)

    def _problem(self, key: _Key) -> Problem:
        spec = self.spec
        return make_problem(
            *key,
            normal=spec.normal,
            labelled=max(spec.labels),
            test=spec.test,
            side=spec.side,
            root=None if spec.root is None else Path(spec.root),
        )

    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return a table for each measure, and one of times without those of features."""
        done = [record for record in records if record.get("status") == "ok"]
        grids = [
            self._grid(title, done, lambda r, name=name: 100 * r[name], name)  # type: ignore[misc]
            for name, title in _MEASURES.items()
            if any(name in record for record in done)
        ]
        title = "Seconds to fit, a share of what is fitted together"
        seconds = self._grid(title, done, lambda r: r["fit_seconds"], "fit_seconds")
        return [*grids, seconds]

    def _grid(
        self, title: str, records: Sequence[Record], value: Callable[[Any], float], name: str
    ) -> Grid:
        rows = []
        for system, labels in dict.fromkeys((c.system, c.labels) for c in self.cases):
            own = [r for r in records if (r["system"], r["labels"]) == (system, labels)]
            groups = [
                [value(r) for r in own if r["problem"] == problem and name in r]
                for problem in self.spec.problems
            ]
            rows.append((f"{system}, {labels} labels", *with_mean(groups)))
        return Grid(title, ("system", *self.spec.problems, "mean"), tuple(rows), notes=(NOTE,))

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each record."""
        measures = (*_MEASURES, "average_precision", "fit_seconds")
        for record in records:
            if record.get("status") == "ok":
                yield {
                    **{name: record[name] for name in ("problem", "system", "labels", "seed")},
                    **{name: f"{record[name]:.6f}" for name in measures if name in record},
                }


def make_vision(spec: VisionSpecification) -> VisionStudy:
    """List the cases; images are made when they are needed."""
    cases = tuple(
        VisionCase(problem, system, labels, seed)
        for seed in range(spec.seeds)
        for problem in spec.problems
        for system in spec.systems
        for labels in ((0,) if system in UNLABELLED_ONLY else spec.labels)
        if not (system in LABELLED_ONLY and labels == 0)
    )
    return VisionStudy(spec, cases)
