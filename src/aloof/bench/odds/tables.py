"""The tables of the ODDS study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import cast

import numpy as np
from numpy.typing import NDArray

from aloof.bench.odds.paper import GAMMA_L, GAMMA_P, Figure, PaperTable, paper_figures
from aloof.bench.odds.specification import OddsSpecification, System
from aloof.bench.odds.summary import Block, Cell, overall_mean
from aloof.bench.statistics import NOTE, moments, paired
from aloof.bench.tables import Grid, Line

__all__ = ["csv_lines", "make_grids", "paper_rows"]

_COLUMNS = (
    "source",
    "gamma_l",
    "gamma_p",
    "method",
    "setting",
    "variant",
    "dataset",
    "seeds",
    "auroc_mean",
    "auroc_std",
    "auroc_sem",
    "average_precision_mean",
    "average_precision_std",
    "average_precision_sem",
    "fit_seconds_mean",
    "best_peer",
    "difference",
    "p_value",
    "note",
)
_MEASURES = {"auroc": "AUROC", "average_precision": "Average precision"}


def make_grids(spec: OddsSpecification, blocks: Sequence[Block]) -> list[Grid]:
    """Return every table of the study."""
    grids = []
    for block in blocks:
        grids.append(_figures(spec, block, "auroc"))
        grids.append(_figures(spec, block, "average_precision"))
        if block.comparisons:
            grids.append(_comparisons(block))
        grids.append(_times(block))
    return [*grids, *_pollution(blocks)]


def csv_lines(spec: OddsSpecification, blocks: Sequence[Block]) -> Iterator[Line]:
    """Yield every figure in percent, one line for each system and data set."""
    for block in blocks:
        condition = {"gamma_l": block.gamma_l, "gamma_p": block.gamma_p}
        tests = {(test.system, test.dataset): test for test in block.comparisons}
        for (system, name), cell in block.cells.items():
            row: dict[str, object] = dict.fromkeys(_COLUMNS, "")
            row |= {"source": "aloof", **condition, **asdict(system), "dataset": name}
            row |= _figures_of("auroc", cell) | _figures_of("average_precision", cell)
            row |= {"seeds": len(cell.seeds)}
            row |= {"note": "; ".join(sorted(set(cell.failures.values())))}
            if cell.seeds:
                row |= {"fit_seconds_mean": f"{cell.fit_seconds.mean():.3f}"}
            if (test := tests.get((system, name))) is not None:
                p_value = "" if test.result.p_value is None else f"{test.result.p_value:.6g}"
                row |= {"best_peer": test.peer.label, "p_value": p_value}
                row |= {"difference": f"{test.result.difference:.4f}"}
            yield row
        for system, figures in paper_rows(spec, block).items():
            for name, (mean, std) in figures.items():
                row = dict.fromkeys(_COLUMNS, "")
                row |= {"source": "paper", **condition, **asdict(system), "dataset": name}
                yield {**row, "seeds": 10, "auroc_mean": mean, "auroc_std": std}


def paper_rows(spec: OddsSpecification, block: Block) -> dict[System, Mapping[str, Figure]]:
    """Return the paper's figures for the systems and data sets of a block, in percent."""
    if (block.gamma_l, block.gamma_p) != (GAMMA_L, GAMMA_P):
        return {}
    found: dict[System, Mapping[str, Figure]] = {}
    for system in block.systems:
        ablation = spec.paper == "ablation"
        if ablation and system.method != "dp":
            continue
        name = system.variant if ablation else system.method
        figures = paper_figures(cast(PaperTable, spec.paper), name)
        shown = {name: figures[name] for name in block.datasets if name in figures}
        if shown:
            found[System(system.method, "", system.variant if ablation else "")] = shown
    return found


def _figures(spec: OddsSpecification, block: Block, measure: str) -> Grid:
    """Return means and standard deviations, the best of each column in bold."""
    header = ("%", *block.datasets, "mean")
    rows, means = [], []
    ordered = sorted(block.systems, key=lambda system: not system.ours)  # ours first
    for system in ordered:
        cells = [block.cells[system, name] for name in block.datasets]
        overall = overall_mean(block, system, measure, spec.seeds)
        texts = [_spread(cell, measure, spec.seeds) for cell in cells]
        rows.append((system.label, *texts, "" if overall is None else f"{100 * overall:.1f}"))
        # Only complete cells can be the best of their column, and only fair ones.
        column = [
            getattr(cell, measure).mean() if len(cell.seeds) == spec.seeds else np.nan
            for cell in cells
        ]
        column.append(np.nan if overall is None else overall)
        means.append([np.nan] * len(column) if system.unfair else column)
    bold = _best(np.array(means, float))
    if measure == "auroc":
        if block.best_peer:
            rows.append(_best_peers(block))
        rows += _paper(spec, block)
    notes = [
        f"Mean ± standard deviation over {spec.seeds} seeds; the mean over data sets"
        f"{_sets(block)} is given where all of them have all seeds.",
        NOTE,
    ]
    notes += _notes(block) if measure == "auroc" else []
    if any(system.unfair for system in block.systems):
        notes.append("Unfair: tuned with the labels of a tenth of the test rows.")
    title = f"{_MEASURES[measure]} (%), {_condition(block)}"
    return Grid(title, header, tuple(rows), bold, tuple(notes))


def _best_peers(block: Block) -> tuple[str, ...]:
    texts, means = [], []
    for name in block.datasets:
        if name not in block.best_peer:
            texts.append("")
            continue
        peer = block.best_peer[name]
        means.append(float(block.cells[peer, name].auroc.mean()))
        texts.append(f"{100 * means[-1]:.1f} {peer.label}")
    whole = means and len(means) == len(block.feasible)
    return ("best peer of each set", *texts, f"{100 * np.mean(means):.1f}" if whole else "")


def _paper(spec: OddsSpecification, block: Block) -> list[tuple[str, ...]]:
    rows = []
    for system, figures in paper_rows(spec, block).items():
        texts = [_printed(figures[name]) if name in figures else "" for name in block.datasets]
        whole = all(texts)
        mean = f"{np.mean([mean for mean, _ in figures.values()]):.1f}" if whole else ""
        rows.append((f"the paper's {system.label}", *texts, mean))
    return rows


def _printed(figure: Figure) -> str:
    """Return a figure of the paper with the digits it was printed with."""
    mean, std = figure
    return f"{mean:.1f} ± {std:.{2 if 0 < std < 0.1 else 1}f}"


def _comparisons(block: Block) -> Grid:
    by_system: dict[System, dict[str, str]] = {}
    for c in block.comparisons:
        by_system.setdefault(c.system, {})[c.dataset] = c.result.text
    rows = [
        (system.label, *(texts.get(name, "") for name in block.datasets))
        for system, texts in by_system.items()
    ]
    against = ("against", *(_label(block.best_peer.get(name)) for name in block.datasets))
    notes = (
        "Mean difference on the same seeds; p of the two-sided paired t-test, without "
        "correction for the choice of the best peer or for many tests.",
    )
    title = f"AUROC points ahead of the best peer of each set, {_condition(block)}"
    header = ("points", *block.datasets)
    return Grid(title, header, (against, *rows), notes=notes)


def _times(block: Block) -> Grid:
    rows = [
        (
            system.label,
            *(
                f"{cell.fit_seconds.mean():.2f}" if cell.seeds else ""
                for cell in (block.cells[system, name] for name in block.datasets)
            ),
        )
        for system in sorted(block.systems, key=lambda system: not system.ours)
    ]
    notes = (
        "A fit is all members of an ensemble. Fits trained as one stack have equal shares of "
        "its time; fits that ran beside each other slowed each other down.",
    )
    title = f"Seconds for one fit, {_condition(block)}"
    return Grid(title, ("s", *block.datasets), tuple(rows), notes=notes)


def _pollution(blocks: Sequence[Block]) -> list[Grid]:
    """Return what hidden anomalies cost, where there are results without and with them."""
    clean = {block.gamma_l: block for block in blocks if block.gamma_p == 0}
    grids = []
    for block in blocks:
        if block.gamma_p == 0 or block.gamma_l not in clean:
            continue
        base = clean[block.gamma_l]
        rows = []
        for system in sorted(block.systems, key=lambda system: not system.ours):
            changes = []
            for name in block.datasets:
                dirty, clear = block.cells[system, name], base.cells[system, name]
                changes.append(paired(dirty.by_seed, clear.by_seed))
            texts = [f"{c.difference:+.1f}" if c.n else "" for c in changes]
            known = [c.difference for c in changes if c.n]
            whole = known and len(known) == len(block.feasible)
            mean = f"{np.mean(known):+.1f}" if whole else ""
            rows.append((system.label, *texts, mean))
        title = f"AUROC points changed by pollution: {_condition(block)} against gamma_p = 0"
        notes = (
            "Mean difference on the same seeds and the same test rows; the mean over data sets"
            f"{_sets(block)} is given where all of them have results.",
        )
        grids.append(Grid(title, ("points", *block.datasets, "mean"), tuple(rows), notes=notes))
    return grids


def _notes(block: Block) -> list[str]:
    """Say why cells are empty or incomplete, each reason once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (system, name), cell in block.cells.items():
        for message in sorted(set(cell.failures.values())):
            seeds = [seed for seed, text in cell.failures.items() if text == message]
            who = reasons.setdefault((name, message), [])
            if not message.startswith("infeasible"):
                who.append(f"{system.label} ({len(seeds)} seeds)")
    return [
        f"{name}{': ' if not who else ', ' + ', '.join(who) + ': '}{' '.join(message.split())}"
        for (name, message), who in reasons.items()
    ]


def _sets(block: Block) -> str:
    """Say which data sets a mean is over, where it is not over all."""
    if block.feasible == block.datasets:
        return ""
    return f" that have enough anomalies ({', '.join(block.feasible)})"


def _spread(cell: Cell, measure: str, n_seeds: int) -> str:
    if not cell.seeds:
        return ""
    text = moments(100 * getattr(cell, measure)).text
    missing = len(cell.seeds) < n_seeds
    return f"{text} ({len(cell.seeds)} of {n_seeds} seeds)" if missing else text


def _best(means: NDArray[np.float64]) -> frozenset[tuple[int, int]]:
    """Return the cells that hold the best mean of their column, to the digit shown."""
    if len(means) < 2:
        return frozenset()
    shown = np.round(100 * means, 1)
    top = np.max(np.where(np.isnan(shown), -np.inf, shown), axis=0)
    rows, columns = np.nonzero(shown == top)
    return frozenset((int(r), int(c) + 1) for r, c in zip(rows, columns, strict=True))


def _figures_of(measure: str, cell: Cell) -> dict[str, str]:
    found = moments(100 * getattr(cell, measure))
    figures = {"mean": found.mean, "std": found.std, "sem": found.sem}
    return {f"{measure}_{k}": "" if np.isnan(v) else f"{v:.4f}" for k, v in figures.items()}


def _label(system: System | None) -> str:
    return "" if system is None else system.label


def _condition(block: Block) -> str:
    return f"gamma_l = {block.gamma_l:g}, gamma_p = {block.gamma_p:g}"
