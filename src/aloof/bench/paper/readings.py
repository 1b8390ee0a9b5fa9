"""What was run in another way than a cell shows: peers, and other readings of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from aloof.bench.paper.cells import PEER, Cell, Source, Want
from aloof.bench.paper.differences import Tally, markdown, signed
from aloof.bench.paper.filling import Filling, fill
from aloof.bench.paper.kinds import KINDS
from aloof.bench.paper.status import Status
from aloof.bench.tables import Grid

__all__ = ["otherwise", "readings"]


def otherwise(fillings: Sequence[Filling], status: Status) -> Iterator[str]:
    """Yield how peers did that were also run in another way, over the cells with both."""
    both: dict[tuple[str, str], list[tuple[Filling, Filling]]] = {}
    for shown in fillings:
        cell = shown.cell
        if cell.setting != PEER or shown.state != "filled" or shown.source is None:
            continue
        for source in _ways(cell, status):
            other = fill(replace(cell, sources=(source,)), status.results)
            if source != shown.source and other.state == "filled":
                key = source.label, shown.source.label
                both.setdefault(key, []).append((other, shown))
    if not both:
        return
    rows = []
    for labels, pairs in sorted(both.items()):
        row = [str(len(pairs))]
        for label, own in zip(labels, zip(*pairs, strict=True), strict=True):
            found = Tally(own)
            row += [label, signed(found.mean), signed(found.lowest)]
        rows.append((row[1], row[0], *row[2:]))
    yield (
        "Some of these peers were also run in other ways. Mean and lowest difference from the "
        "paper over the cells that have both, and those of the run shown above:"
    )
    header = ("also run as", "cells", "mean", "lowest", "shown above", "mean", "lowest")
    yield markdown(Grid("", header, tuple(rows)))


def _ways(cell: Cell, status: Status) -> Iterator[Source]:
    """Yield what can fill a cell, and variants of it that were run."""
    yield from cell.sources
    kind = KINDS[cell.kind]
    plain = {source.wants: source.label for source in cell.sources}
    for want in status.results.wants(kind.name):
        case = dict(zip(kind.key, want, strict=True))
        if variant := case.get("variant"):
            same = tuple((case | {"variant": ""}).values())
            if label := plain.get((same,)):
                yield Source(f"{label}: {variant}", (want,))


def readings(status: Status, fillings: Sequence[Filling]) -> Iterator[str]:
    """Yield the difference of each reading of the paper that was tried.

    A reading is a variant of the setting `paper`, on tables also with another scaling.
    """
    figures = [f.cell for f in fillings if f.cell.setting == "paper" and f.cell.kind]
    of = {want: cell for cell in figures for want in _wants(cell)}
    own_cells = {want for f in status.fillings for want in _wants(f.cell)}
    tried: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for name in dict.fromkeys(cell.kind for cell in figures):
        kind = KINDS[name]
        for want in status.results.wants(name):
            case = dict(zip(kind.key, want, strict=True))
            plain = case | {"variant": "", "scaling": "standard"}
            cell = of.get(tuple(plain[key] for key in kind.key))
            if cell is None or (case["variant"] and want in own_cells):
                continue
            found = fill(replace(cell, sources=(Source("", (want,)),)), status.results)
            if found.state == "filled" and found.difference is not None:
                own = tried.setdefault((case["variant"], case.get("scaling", "")), {})
                own[cell.row, _whole_column(cell)] = found.difference
    if len(tried) < 2:
        return
    yield (
        "The paper leaves some choices open. We tried several readings, each with everything "
        "else as in the setting `paper`. Differences from the paper:"
    )
    # What was only run as it is has nothing to stand beside.
    other = [found for reading, found in tried.items() if reading not in _AS_IT_IS]
    every = dict.fromkeys((cell.row, _whole_column(cell)) for cell in figures)
    places = [place for place in every if any(place in found for found in other)]
    for row in dict.fromkeys(row for row, _ in places):
        columns = [column for own, column in places if own == row]
        lines = [
            (
                _reading(*reading),
                *(signed(d[row, n]) if (row, n) in d else "" for n in columns),
            )
            for reading, d in sorted(tried.items())
        ]
        shown = tuple(line for line in lines if any(line[1:]))
        yield markdown(Grid("", (row, *columns), shown))


_AS_IT_IS = (("", ""), ("", "standard"))


def _wants(cell: Cell) -> Iterator[Want]:
    return (want for source in cell.sources for want in source.wants)


def _whole_column(cell: Cell) -> str:
    return f"{cell.dataset} {cell.condition}".strip()


def _reading(variant: str, scaling: str) -> str:
    columns = {"standard": "columns standardised", "unit": "columns in [0, 1]"}.get(scaling)
    return ", ".join(filter(None, (variant, columns))) or "setting `paper`"
