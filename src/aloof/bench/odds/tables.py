"""The tables of the ODDS study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import cast

import numpy as np

from aloof.bench.odds.paper import GAMMA_L, GAMMA_P, Figure, PaperTable, paper_figures
from aloof.bench.odds.specification import System
from aloof.bench.odds.summary import Block, Kind
from aloof.bench.statistics import NOTE, paired
from aloof.bench.tables import Grid, Line, best_cells

__all__ = ["csv_lines", "make_grids", "paper_rows"]

_MEASURES = {"auroc": "AUROC", "average_precision": "Average precision"}


def make_grids(blocks: Sequence[Block]) -> list[Grid]:
    """Return every table."""
    grids = []
    for block in blocks:
        grids += [_figures(block, measure) for measure in _MEASURES]
        if any(block.best_peer.values()):
            grids.append(_comparisons(block))
        grids.append(_times(block))
    return [*(grid for grid in grids if grid.rows), *_pollution(blocks)]


def csv_lines(blocks: Sequence[Block]) -> Iterator[Line]:
    """Yield every figure in percent, one line for each system and data set."""
    for block in blocks:
        condition = {"gamma_l": block.gamma_l, "gamma_p": block.gamma_p}
        for (system, name), cell in block.cells.items():
            test = block.ahead(system, name)
            peers = block.best_peer[block.kind_of(system)]
            seconds, p_value = cell.fit_seconds, None if test is None else test.p_value
            yield {
                "source": "aloof",
                **condition,
                **asdict(system),
                "dataset": name,
                "seeds": cell.moments("auroc").n,
                **cell.moments("auroc").columns("auroc"),
                **cell.moments("average_precision").columns("average_precision"),
                "fit_seconds_mean": "" if np.isnan(seconds) else f"{seconds:.3f}",
                "best_peer": "" if test is None else peers[name].label,
                "difference": "" if test is None else f"{test.difference:.4f}",
                "p_value": "" if p_value is None else f"{p_value:.6g}",
                "note": "; ".join(sorted(set(cell.failures.values()))),
            }
        for system, figures in paper_rows(block).items():
            for name, (mean, std) in figures.items():
                own = {"source": "paper", **condition, **asdict(system), "dataset": name}
                yield {**own, "seeds": 10, "auroc_mean": mean, "auroc_std": std}


def paper_rows(block: Block) -> dict[System, Mapping[str, Figure]]:
    """Return the paper's figures for the systems and data sets of a block, in percent."""
    if (block.gamma_l, block.gamma_p) != (GAMMA_L, GAMMA_P):
        return {}
    found: dict[System, Mapping[str, Figure]] = {}
    table = cast(PaperTable, block.spec.paper)
    for system in block.spec.systems:
        if table == "ablation" and system.method != "dp":
            continue
        variant = system.variant if table == "ablation" else ""
        method = system.method.removesuffix("-unfair")  # as the paper has them
        figures = paper_figures(table, variant or method)
        shown = {name: figures[name] for name in block.spec.datasets if name in figures}
        if shown:
            found[System(method, "", variant)] = shown
    return found


def _figures(block: Block, measure: str) -> Grid:
    """Return means and standard deviations, the best of each column in bold."""
    spec = block.spec
    rows, means = [], []
    for system in block.started:
        found = [block.cells[system, name].moments(measure) for name in spec.datasets]
        overall = block.overall(system, measure)
        texts = [
            cell.text
            + (f" ({cell.n} of {spec.seeds} seeds)" if 0 < cell.n < spec.seeds else "")
            for cell in found
        ]
        rows.append((system.label, *texts, "" if overall is None else f"{overall:.1f}"))
        # Only complete cells can be the best of their column, and only fair ones.
        column = [cell.mean if cell.n == spec.seeds else np.nan for cell in found]
        column.append(np.nan if overall is None else overall)
        means.append([np.nan] * len(column) if system.unfair else column)
    bold: set[tuple[int, int]] = set()
    for kind in block.kinds:
        # What cannot be compared is left out: no row of another kind is in the way of a best.
        one = System("", kind[0], "", kind[1])
        bold |= best_cells(
            [
                m if s.meets(one) else [np.nan] * len(m)
                for s, m in zip(block.started, means, strict=True)
            ]
        )
    if measure == "auroc":
        rows += _best_peers(block)
        rows += _paper(block)
    notes = [
        f"Mean ± standard deviation over {spec.seeds} seeds; the mean over data sets"
        f"{_sets(block)} is given where all of them have all seeds.",
        NOTE,
    ]
    if len(block.kinds) > 1:
        notes.append(
            "Settings and scalings are not compared with each other: the best of each is bold. "
            "A system without a setting is compared with both."
        )
        if own := [s.label for s in block.started if s.ours and not s.setting]:
            notes.append(
                f"{', '.join(own)}: compared with the best peers of the first setting."
            )
    notes += _notes(block) if measure == "auroc" else []
    if waiting := [s.label for s in block.rows if s not in block.started]:
        notes.append(f"Without any result here: {', '.join(waiting)}.")
    if any(system.unfair for system in spec.systems):
        notes.append(
            "Unfair: tuned with the labels of a tenth of the test rows, as the paper's "
            "one-class SVM, SSAD and their hybrids are."
        )
    title = f"{_MEASURES[measure]} (%), {_condition(block)}"
    columns = ("%", *spec.datasets, "mean")
    return Grid(title, columns, tuple(rows), frozenset(bold), tuple(notes))


def _best_peers(block: Block) -> list[tuple[str, ...]]:
    rows = []
    for kind, peers in block.best_peer.items():
        means = {
            name: block.cells[peer, name].moments("auroc").mean for name, peer in peers.items()
        }
        texts = [
            f"{means[name]:.1f} {peers[name].label}" if name in means else ""
            for name in block.spec.datasets
        ]
        whole = len(means) == len(block.feasible)
        mean = f"{np.mean(list(means.values())):.1f}" if whole else ""
        if peers:
            rows.append((f"best peer of each set{_named(block, kind)}", *texts, mean))
    return rows


def _named(block: Block, kind: Kind) -> str:
    """Say which setting and scaling is meant, where there are several."""
    if len(block.kinds) == 1:
        return ""
    return System("", kind[0], "", kind[1]).label


def _paper(block: Block) -> list[tuple[str, ...]]:
    rows = []
    for system, figures in paper_rows(block).items():
        texts = [
            _printed(figures[name]) if name in figures else "" for name in block.spec.datasets
        ]
        mean = f"{np.mean([mean for mean, _ in figures.values()]):.1f}" if all(texts) else ""
        rows.append((f"the paper's {system.label}", *texts, mean))
    return rows


def _printed(figure: Figure) -> str:
    """Return a figure of the paper with the digits it was printed with."""
    mean, std = figure
    return f"{mean:.1f} ± {std:.{2 if 0 < std < 0.1 else 1}f}"


def _comparisons(block: Block) -> Grid:
    names = block.spec.datasets
    rows: list[tuple[str, ...]] = []
    for kind, peers in block.best_peer.items():
        found = [
            (system.label, *("" if test is None else test.text for test in tests))
            for system in block.spec.systems
            if block.kind_of(system) == kind
            and any(tests := [block.ahead(system, name) for name in names])
        ]
        if found:
            labels = (peers[name].label if name in peers else "" for name in names)
            rows += [(f"against{_named(block, kind)}", *labels), *found]
    notes = (
        "Mean difference on the same seeds; p of the two-sided paired t-test, without "
        "correction for the choice of the best peer or for many tests.",
    )
    title = f"AUROC points ahead of the best peer of each set, {_condition(block)}"
    return Grid(title, ("points", *names), tuple(rows), notes=notes)


def _times(block: Block) -> Grid:
    rows = []
    for system in block.started:
        seconds = [block.cells[system, name].fit_seconds for name in block.spec.datasets]
        rows.append((system.label, *("" if np.isnan(s) else f"{s:.2f}" for s in seconds)))
    notes = (
        "A fit is all members of an ensemble. Fits trained as one stack have equal shares of "
        "its time; fits that ran beside each other slowed each other down.",
    )
    title = f"Seconds for one fit, {_condition(block)}"
    return Grid(title, ("s", *block.spec.datasets), tuple(rows), notes=notes)


def _pollution(blocks: Sequence[Block]) -> Iterator[Grid]:
    """Yield what hidden anomalies cost, where there are results without and with them."""
    clean = {block.gamma_l: block for block in blocks if block.gamma_p == 0}
    for block in blocks:
        if block.gamma_p == 0 or block.gamma_l not in clean:
            continue
        rows = []
        for system in block.started:
            changes = []
            for name in block.spec.datasets:
                own, without = (b.cells[system, name] for b in (block, clean[block.gamma_l]))
                changes.append(paired(own.percent("auroc"), without.percent("auroc")))
            known = [change.difference for change in changes if change.n]
            whole = known and len(known) == len(block.feasible)
            texts = [f"{change.difference:+.1f}" if change.n else "" for change in changes]
            rows.append((system.label, *texts, f"{np.mean(known):+.1f}" if whole else ""))
        title = f"AUROC points changed by pollution: {_condition(block)} against gamma_p = 0"
        notes = (
            "Mean difference on the same seeds and the same test rows; the mean over data sets"
            f"{_sets(block)} is given where all of them have results.",
        )
        yield Grid(title, ("points", *block.spec.datasets, "mean"), tuple(rows), notes=notes)


def _notes(block: Block) -> list[str]:
    """Say why cells are empty or incomplete, each reason once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (system, name), cell in block.cells.items():
        for message in sorted(set(cell.failures.values())):
            n = list(cell.failures.values()).count(message)
            who = reasons.setdefault((name, message), [])
            if not message.startswith("infeasible"):
                who.append(f"{system.label} ({n} seeds)")
    return [
        f"{', '.join([name, *who])}: {' '.join(message.split())}"
        for (name, message), who in reasons.items()
    ]


def _sets(block: Block) -> str:
    """Say which data sets a mean is over, where it is not over all."""
    if block.feasible == block.spec.datasets:
        return ""
    return f" that have enough anomalies ({', '.join(block.feasible)})"


def _condition(block: Block) -> str:
    return f"gamma_l = {block.gamma_l:g}, gamma_p = {block.gamma_p:g}"
