"""Tables: for the terminal, in Markdown, and as CSV.

A cell holds what was run and is empty where nothing was; notes below say why. The paper's
figures stand in rows of their own and are marked as the paper's.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Grid", "Line", "best_cells", "to_csv", "to_markdown", "to_rich"]

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Grid:
    """A table of text.

    Attributes
    ----------
    title
        Above it.
    header, rows
        Text; the first column names the row.
    bold
        Cells ``(row, column)`` that stand out.
    notes
        Below it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()
    notes: tuple[str, ...] = ()


def best_cells(means: Sequence[Sequence[float]]) -> set[tuple[int, int]]:
    """Return the cells that hold the best mean of their column, to the digit shown.

    NaN is never the best; column 0 of a grid has the names.
    """
    if len(means) < 2:
        return set()
    shown = np.round(np.array(means, float), 1)
    top = np.max(np.where(np.isnan(shown), -np.inf, shown), axis=0)
    rows, columns = np.nonzero(shown == top)
    return {(int(r), int(c) + 1) for r, c in zip(rows, columns, strict=True)}


def to_markdown(grids: Sequence[Grid], *, title: str, footer: str = "") -> str:
    """Return tables as a Markdown document."""
    parts = [f"# {title}"]
    for grid in grids:
        lines = [f"## {grid.title}", "", _line(grid.header)]
        lines.append("|" + "|".join(["---"] + ["---:"] * (len(grid.header) - 1)) + "|")
        for number, row in enumerate(grid.rows):
            lines.append(
                _line(
                    f"**{text}**" if (number, column) in grid.bold else text
                    for column, text in enumerate(row)
                )
            )
        parts.append("\n".join(lines))
        if grid.notes:
            parts.append("\n".join(f"- {note}" for note in grid.notes))
    if footer:
        parts.append(footer)
    return "\n\n".join(parts) + "\n"


def to_rich(grid: Grid) -> Table:
    """Return a table for a terminal."""
    from rich.markup import escape
    from rich.table import Table

    notes = "\n".join(escape(note) for note in grid.notes) or None
    table = Table(title=grid.title, caption=notes, caption_justify="left")
    for column, name in enumerate(grid.header):
        table.add_column(name, justify="left" if column == 0 else "right", no_wrap=column == 0)
    for number, row in enumerate(grid.rows):
        table.add_row(
            *(
                f"[bold]{escape(text)}[/bold]"
                if (number, column) in grid.bold
                else escape(text)
                for column, text in enumerate(row)
            )
        )
    return table


def to_csv(lines: Iterable[Line]) -> str:
    """Return lines as CSV; the columns are those of any line, the first line's first."""
    rows = list(lines)
    columns = dict.fromkeys(name for row in rows for name in row)
    file = io.StringIO()
    writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _line(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
