"""The study of reviews: anomalies found, and how well the rest is told apart, by questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from aloof.bench.identity import Identity
from aloof.bench.pictures import make_figure, tidy
from aloof.bench.records import Record
from aloof.bench.review.simulation import halve, simulate
from aloof.bench.review.specification import ASKERS, FOREST, NEVER, ReviewSpecification
from aloof.bench.revisions import revision
from aloof.bench.statistics import NOTE, moments, with_mean
from aloof.bench.study import Group, Study, Where, Work
from aloof.bench.tables import Grid, Line
from aloof.bench.tabular.development import DEVELOPMENT
from aloof.bench.tabular.tasks import filled
from aloof.datasets import PublicTable, find_dataset
from aloof.feedback.asking import DEFAULT_WAY
from aloof.report import save_figure

__all__ = ["ReviewCase", "ReviewStudy", "make_review"]

_COLOURS = ("#cc3311", "#ee7733", "#aa3377", "#ccbb44", "#777777", "#222222", "#4477aa")


@dataclass(frozen=True)
class ReviewCase:
    """What one record is about: a data set, who asks, and a seed."""

    dataset: str
    asker: str
    seed: int


@dataclass(frozen=True, eq=False)
class ReviewStudy(Study[ReviewCase]):
    """Every asker on every data set."""

    case_type = ReviewCase

    spec: ReviewSpecification
    tables: Mapping[str, Any]
    cases: tuple[ReviewCase, ...]

    def identity(self, case: ReviewCase) -> Identity:
        """Return the numbers of the review, the data and the revision."""
        names: tuple[str, ...] = ("questions", "batch", "max_rows", "max_share")
        if case.asker != FOREST:
            names += ("members", "max_epochs", "confirmed_weight")
        if case.asker == DEFAULT_WAY:
            names += ("compared_at",)
        config = {name: getattr(self.spec, name) for name in names}
        facts = {"data_sha256": self.tables[case.dataset].sha256}
        return Identity(config, facts, 1 if case.asker == FOREST else revision("dp"))

    def groups(self, cases: Sequence[ReviewCase], where: Where) -> Iterable[Group[ReviewCase]]:
        """Return the reviews of one half of a table: they begin with the same detector."""
        together: dict[tuple[str, int], list[ReviewCase]] = {}
        for case in cases:
            together.setdefault((case.dataset, case.seed), []).append(case)
        for (name, seed), own in together.items():

            def prepare(
                name: str = name, seed: int = seed, own: Sequence[ReviewCase] = own
            ) -> Work:
                table = self.tables[name]
                halves = halve(
                    table.X,
                    table.y,
                    max_rows=self.spec.max_rows,
                    max_share=self.spec.max_share,
                    seed=seed,
                )
                askers = [case.asker for case in own]
                return partial(simulate, halves, askers, self.spec, seed, str(where.device))

            here = where.device.type != "cpu"
            yield Group(f"{name}, seed {seed}", tuple(own), prepare, here)

    def manifest(self) -> Mapping[str, Any]:
        """Return the digests of the data."""
        return {"data_sha256": {name: table.sha256 for name, table in self.tables.items()}}

    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return anomalies found, average precision after all questions, and refits."""
        done = [record for record in records if record.get("status") == "ok"]
        found = self._grid(f"Anomalies found in {self.spec.questions} questions", done, _found)
        precision = self._grid(
            f"Average precision (%) after {self.spec.questions} questions", done, _precision
        )
        return [found, precision, *self._compared(done)]

    def _grid(self, title: str, records: Sequence[Record], value: Any) -> Grid:
        rows = []
        for asker in self.spec.askers:
            own = [r for r in records if r["asker"] == asker]
            groups = [
                [value(r) for r in own if r["dataset"] == name] for name in self.spec.datasets
            ]
            rows.append((asker, *with_mean(groups)))
        said = self._ratios(records) if value is _found else []
        header = ("asks", *self.spec.datasets, "mean")
        return Grid(title, header, tuple(rows), notes=(NOTE, *said))

    def _ratios(self, records: Sequence[Record]) -> list[str]:
        """Say how many times as many the default way finds, on average, as others do."""
        by = {(r["asker"], r["dataset"], r["seed"]): _found(r) for r in records}
        said = []
        for rival in (NEVER, FOREST):
            pairs = [
                (n, by[rival, name, seed])
                for (asker, name, seed), n in by.items()
                if asker == DEFAULT_WAY and (rival, name, seed) in by
            ]
            if not pairs:
                continue
            ratio = moments([n / max(1, other) for n, other in pairs])
            own, others = (sum(part) for part in zip(*pairs, strict=True))
            said.append(
                f"{DEFAULT_WAY!r} finds {ratio.mean:.2f} times as many as {rival!r}, on "
                f"average over {ratio.n} reviews (standard error {ratio.sem:.2f}); in all, "
                f"{own:,.0f} and {others:,.0f}."
            )
        return said

    def _compared(self, records: Sequence[Record]) -> list[Grid]:
        """Compare refits with fresh fits that have the same labels."""
        rows = []
        for name in self.spec.datasets:
            own = [r for r in records if r["dataset"] == name and "compared_refit_auroc" in r]
            if not own:
                continue
            share = [r["compared_refit_seconds"] / r["compared_fresh_seconds"] for r in own]
            rows.append(
                (
                    name,
                    *(
                        moments([100 * r[f"compared_{who}_{measure}"] for r in own]).text
                        for measure in ("auroc", "average_precision")
                        for who in ("refit", "fresh")
                    ),
                    moments([100 * part for part in share]).text,
                )
            )
        header = ("data set", "AUROC refit", "fresh", "AP refit", "fresh", "time (%)")
        title = f"A refit after {self.spec.compared_at} answers, and a fresh fit with them"
        notes = (NOTE, *self._margins(records))
        return [Grid(title, header, tuple(rows), notes=notes)] if rows else []

    def _margins(self, records: Sequence[Record]) -> Iterable[str]:
        """Say how far refits and fresh fits are apart, on average over the data sets."""
        for measure, word in (("auroc", "AUROC"), ("average_precision", "average precision")):
            apart: dict[str, list[float]] = {}
            for r in records:
                if f"compared_refit_{measure}" in r:
                    refit, fresh = (
                        r[f"compared_{who}_{measure}"] for who in ("refit", "fresh")
                    )
                    apart.setdefault(r["dataset"], []).append(100 * (refit - fresh))
            own = [moments(values) for values in apart.values()]
            if own and all(each.n > 1 for each in own):
                error = np.sqrt(sum(each.sem**2 for each in own)) / len(own)
                mean = np.mean([each.mean for each in own])
                yield (
                    f"{word}, refit less fresh, mean over the data sets: {mean:+.2f} points "
                    f"(standard error {error:.2f})."
                )

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each review and number of questions with a measurement."""
        for record in records:
            if record.get("status") != "ok":
                continue
            case = {name: record[name] for name in ("dataset", "asker", "seed")}
            for place, auroc in enumerate(record["auroc"]):
                asked = place * self.spec.batch
                yield {
                    **case,
                    "questions": asked,
                    "found": record["found"][asked - 1] if asked else 0,
                    "anomalies": record["n_anomalies"],
                    "auroc": f"{auroc:.6f}",
                    "average_precision": f"{record['average_precision'][place]:.6f}",
                }

    def draw(self, records: Sequence[Record], folder: Path) -> None:
        """Draw anomalies found and average precision over questions, means of all."""
        done = [record for record in records if record.get("status") == "ok"]
        names = [n for n in self.spec.datasets if any(r["dataset"] == n for r in done)]
        figure = make_figure(3.2 * max(2, len(names)), 5.6)
        axes = figure.subplots(2, max(1, len(names)), squeeze=False)
        for column, name in enumerate(names):
            for asker, colour in zip(ASKERS, _COLOURS, strict=True):
                own = [r for r in done if (r["dataset"], r["asker"]) == (name, asker)]
                if not own:
                    continue
                found = np.mean([r["found"] for r in own], axis=0)
                precision = 100 * np.mean([r["average_precision"] for r in own], axis=0)
                axes[0, column].plot(np.arange(1, len(found) + 1), found, c=colour, label=asker)
                asked = self.spec.batch * np.arange(len(precision))
                axes[1, column].plot(asked, precision, c=colour)
            axes[0, column].set_title(name, fontsize=10)
            axes[1, column].set_xlabel("questions")
            for row in (0, 1):
                tidy(axes[row, column])
        axes[0, 0].set_ylabel("anomalies found")
        axes[1, 0].set_ylabel("average precision (%)")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
        save_figure(figure, folder / "plot.png")


def _found(record: Record) -> float:
    return float(record["found"][-1])


def _precision(record: Record) -> float:
    return 100.0 * float(record["average_precision"][-1])


def _table(name: str) -> Any:
    if name in DEVELOPMENT:
        task = DEVELOPMENT[name].load()
        return replace(task, X=filled(task.X, task.X[:0])[0])
    return find_dataset(name, PublicTable).load()


def make_review(spec: ReviewSpecification) -> ReviewStudy:
    """Load the data and list the cases."""
    tables = {name: _table(name) for name in spec.datasets}
    cases = tuple(
        ReviewCase(name, asker, seed)
        for seed in range(spec.seeds)
        for name in spec.datasets
        for asker in spec.askers
    )
    return ReviewStudy(spec, tables, cases)
