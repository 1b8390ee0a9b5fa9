"""The tables of the study of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized

import numpy as np

from aloof.bench.statistics import Paired
from aloof.bench.tables import Grid, Line, best_cells
from aloof.bench.tabular.summary import Block, shown_systems
from aloof.bench.tabular.tasks import TableTask
from aloof.phrases import count

__all__ = ["csv_lines", "make_grids", "summary_lines", "task_grids"]

_MEASURES = ("auroc", "average_precision")
_BOTH = "AUROC / average precision"
_MOST_COLUMNS = 6  # conditions of one table; where there are more, each protocol has its own


def make_grids(blocks: Sequence[Block], tasks: Mapping[str, TableTask]) -> list[Grid]:
    """Return the tables that people read: all protocols, each of them, comparisons, costs."""
    protocols: dict[str, list[Block]] = {}
    for block in blocks:
        protocols.setdefault(block.condition.protocol, []).append(block)
    grids = [_overview(protocols)] if len(blocks) > len(protocols) else []
    parts = [*protocols.values()] if len(blocks) > _MOST_COLUMNS else [blocks]
    for part in parts:
        grids.append(_means(part))
        if len(part[0].spec.systems) > 1:
            grids += [_differences(part), _ranks(part)]
    grids.append(_costs(blocks))
    notes = _notes(blocks, tasks)
    return [*grids[:-1], _with_notes(grids[-1], notes)]


def task_grids(blocks: Sequence[Block]) -> list[Grid]:
    """Return a table of tasks and systems for each condition."""
    grids = []
    for block in blocks:
        for measure, title in zip(_MEASURES, ("AUROC", "Average precision"), strict=True):
            rows, figures = [], []
            for task in block.feasible:
                found = [block.cells[system, task].moments(measure) for system in block.shown]
                rows.append((task, *(cell.text for cell in found)))
                figures.append([cell.mean for cell in found])
            header = ("%", *(system.label for system in block.shown))
            turned = best_cells(np.array(figures, float).T.tolist()) if rows else set()
            bold = {(row - 1, column + 1) for column, row in turned}
            notes = ("Mean ± sample standard deviation over seeds.",)
            if rows:
                title_ = f"{title} (%): {block.condition}"
                grids.append(Grid(title_, header, tuple(rows), frozenset(bold), notes))
    return grids


def csv_lines(blocks: Sequence[Block]) -> Iterator[Line]:
    """Yield every figure in percent, one line for each condition, system and task."""
    for block in blocks:
        for (system, task), cell in block.cells.items():
            yield {
                **_place(block),
                "method": system.method,
                "variant": system.variant,
                "task": task,
                "seeds": cell.moments("auroc").n,
                **cell.moments("auroc").columns("auroc"),
                **cell.moments("average_precision").columns("average_precision"),
                "fit_seconds_mean": _number(cell.fit_seconds, 3),
                "note": "; ".join(sorted(set(cell.failures.values()))),
            }


def summary_lines(blocks: Sequence[Block]) -> Iterator[Line]:
    """Yield a line for each condition and system: means over the tasks that all have."""
    for block in blocks:
        for system in block.shown:
            line = {
                **_place(block),
                "method": system.method,
                "variant": system.variant,
                "tasks": len(block.common),
            }
            for measure in _MEASURES:
                ahead = block.ahead(system, measure)
                line |= {
                    f"{measure}_mean": _number(block.mean(system, measure), 4),
                    f"{measure}_difference": _number(ahead.difference, 4),
                    f"{measure}_difference_sem": _number(ahead.sem, 4),
                }
            line |= {
                "rank": _number(block.ranks.get(system, float("nan")), 4),
                "wins": block.wins.get(system, ""),
                "fit_seconds_mean": _number(block.mean_of(system, "fit_seconds"), 4),
                "score_seconds_mean": _number(block.mean_of(system, "score_seconds"), 5),
                "model_bytes_mean": _number(block.mean_of(system, "model_bytes"), 0),
                "peak_memory_mib_mean": _number(block.mean_of(system, "peak_memory_mib"), 1),
            }
            yield line


def _place(block: Block) -> dict[str, object]:
    condition = block.condition
    return {
        "protocol": condition.protocol,
        "labels": condition.labels,
        "hidden": condition.hidden,
    }


def _overview(protocols: Mapping[str, Sequence[Block]]) -> Grid:
    """Return one column for each protocol: means over its amounts of labels and so on."""
    every = [block for blocks in protocols.values() for block in blocks]
    systems = shown_systems(every)
    full = [block for block in every if set(block.shown) == set(systems)] or every
    rows, figures = [], []
    for system in systems:
        cells, own = [], []
        for protocol in protocols:
            own_full = [block for block in full if block.condition.protocol == protocol]
            blocks = own_full or protocols[protocol]
            both = [
                float(np.mean([block.mean(system, measure) for block in blocks]))
                for measure in _MEASURES
            ]
            cells.append(_pair(*both))
            own.append(both[0])
        ranks = [block.ranks.get(system, float("nan")) for block in full]
        cells.append(_number(float(np.mean(ranks)), 2))
        rows.append((system.label, *cells))
        figures.append([float("nan")] * len(own) if system.unfair else own)
    which = "the conditions of each protocol"
    if len(full) < len(every):
        which += f" that all of these have run under ({'; '.join(map(_column, full))})"
    notes = (
        f"Means over {which}. They have tables of their own below. The last column is the mean "
        "of the average ranks by AUROC under these conditions.",
    )
    header = (_BOTH, *protocols, "rank")
    return Grid("All protocols (%)", header, tuple(rows), frozenset(best_cells(figures)), notes)


def _means(blocks: Sequence[Block]) -> Grid:
    rows, figures = [], []
    for system in shown_systems(blocks):
        both = [tuple(block.mean(system, m) for m in _MEASURES) for block in blocks]
        rows.append((system.label, *(_pair(*pair) for pair in both)))
        figures.append([float("nan") if system.unfair else pair[0] for pair in both])
    rows.append(("tasks", *(f"{len(b.common)} of {len(b.spec.chosen)}" for b in blocks)))
    figures.append([float("nan")] * len(blocks))
    notes = [
        f"Means over {count(blocks[0].spec.seeds, 'seed')} of each task, then over the tasks "
        "on which every system that has a result has all of them. Bold: the best AUROC."
    ]
    for block in blocks:
        notes += _gaps(block)
    return Grid(
        f"{_BOTH} (%){_part(blocks)}",
        ("%", *map(_column, blocks)),
        tuple(rows),
        frozenset(best_cells(figures)),
        tuple(notes),
    )


def _gaps(block: Block) -> Iterator[str]:
    """Say which tasks, seeds and systems are not in the means of a condition."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for system in block.shown:
        if missing := block.lacking(system):
            lacking.setdefault(tuple(missing), []).append(system.label)
    for tasks, labels in lacking.items():
        who = "every system" if len(labels) == len(block.shown) > 1 else _some(labels)
        verb = "lack" if len(labels) > 1 and who != "every system" else "lacks"
        yield f"{block.condition}: {who} {verb} {_some(tasks)}, left out for all."
    if len(block.seeds) < block.spec.seeds:
        yield f"{block.condition}: over {count(len(block.seeds), 'seed')}, which all have."
    few = [s for s in block.n_tasks if s not in block.shown]
    if few:
        said = ", ".join(f"{s.label} ({count(block.n_tasks[s], 'task')})" for s in few)
        yield f"{block.condition}: without systems that have run on few tasks: {said}."


def _differences(blocks: Sequence[Block]) -> Grid:
    reference = blocks[0].spec.reference
    rows = []
    for system in shown_systems(blocks):
        texts = [
            " / ".join(filter(None, (_ahead(block.ahead(system, m)) for m in _MEASURES)))
            for block in blocks
        ]
        if any(texts):
            rows.append((system.label, *texts))
    notes = (
        "Mean difference over the same tasks ± its standard error (paired, over tasks): "
        f"{_BOTH}.",
    )
    return Grid(
        f"Points ahead of {reference.label}{_part(blocks)}",
        ("points", *map(_column, blocks)),
        tuple(rows),
        notes=notes,
    )


def _ranks(blocks: Sequence[Block]) -> Grid:
    rows, figures = [], []
    for system in shown_systems(blocks):
        found = [block.ranks.get(system) for block in blocks]
        texts = [
            "" if rank is None else f"{rank:.2f} / {block.wins[system]}"
            for block, rank in zip(blocks, found, strict=True)
        ]
        rows.append((system.label, *texts))
        figures.append([float("nan") if rank is None else -rank for rank in found])
    return Grid(
        f"Average rank / tasks won, by AUROC{_part(blocks)}",
        ("rank / won", *map(_column, blocks)),
        tuple(rows),
        frozenset(best_cells(figures)),
        ("Of systems with equal AUROC, each has the mean of their ranks, and each has won.",),
    )


def _costs(blocks: Sequence[Block]) -> Grid:
    """Return what a fit takes: over all conditions, on the tasks that all systems have."""
    fields = {
        "fit (s)": ("fit_seconds", 1.0, 2),
        "score (s)": ("score_seconds", 1.0, 3),
        "model (KiB)": ("model_bytes", 1 / 1024, 0),
        "peak memory (MiB)": ("peak_memory_mib", 1.0, 0),
    }
    rows = []
    for system in shown_systems(blocks):
        texts = []
        for field, scale, digits in fields.values():
            found = [block.mean_of(system, field) for block in blocks]
            known = [figure for figure in found if not np.isnan(figure)]
            texts.append(_number(scale * float(np.mean(known)), digits) if known else "")
        rows.append((system.label, *texts))
    notes = (
        "Means over fits. Fits trained as one stack have equal shares of its time; fits that "
        "ran beside each other slowed each other down. Memory is that of the whole process "
        "and of all fits of a stack.",
    )
    return Grid("One fit", ("", *fields), tuple(rows), notes=notes)


def _notes(blocks: Sequence[Block], tasks: Mapping[str, TableTask]) -> list[str]:
    """Say what was done to the data, why cells are empty, and what failed, each once."""
    notes = []
    done: dict[str, list[str]] = {}
    for name, own in tasks.items():
        if own.notes:
            done.setdefault("; ".join(own.notes), []).append(name)
    notes += [
        f"{_some(names)}: {words}"
        + (", replaced by the medians of the training rows." if "missing" in words else ".")
        for words, names in done.items()
    ]
    shown = shown_systems(blocks)
    if absent := [s.label for s in blocks[0].spec.systems if s not in shown]:
        notes.append(f"Not run, or on few tasks: {', '.join(absent)}.")
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for block in blocks:
        for (system, task), cell in block.cells.items():
            for message in sorted(set(cell.failures.values())):
                words = " ".join(message.split())
                if words.startswith("infeasible"):
                    reasons.setdefault((str(block.condition), "infeasible"), {})[task] = None
                else:
                    reasons.setdefault((system.label, words), {})[task] = None
    for (where, words), names in reasons.items():
        if words == "infeasible":
            few = "too few anomalies for some or all seeds (reasons in table.csv)"
            notes.append(f"{where}: {_some([*names])} {_verb(names)} {few}.")
        else:
            notes.append(f"{where} on {_some([*names])}: {words}")
    return notes


def _with_notes(grid: Grid, notes: Sequence[str]) -> Grid:
    return Grid(grid.title, grid.header, grid.rows, grid.bold, (*grid.notes, *notes))


def _verb(names: Sized) -> str:
    return "has" if len(names) == 1 else "have"


def _part(blocks: Sequence[Block]) -> str:
    """Say which protocol a table is of, where it is of one."""
    protocols = {block.condition.protocol for block in blocks}
    return f", {protocols.pop()}" if len(protocols) == 1 else ""


def _column(block: Block) -> str:
    return str(block.condition)


def _pair(auroc: float, precision: float) -> str:
    return "" if np.isnan(auroc) else f"{auroc:.1f} / {precision:.1f}"


def _ahead(found: Paired) -> str:
    if not found.n:
        return ""
    return f"{found.difference:+.1f}" + ("" if np.isnan(found.sem) else f" ± {found.sem:.1f}")


def _number(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def _some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )
