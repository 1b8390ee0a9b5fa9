"""Differences from the paper, as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aloof.bench.paper.filling import Filling
from aloof.bench.paper.status import name_cells
from aloof.bench.tables import Grid, to_markdown

__all__ = ["Tally", "markdown", "signed"]


@dataclass(frozen=True)
class Tally:
    """The differences of some cells.

    Attributes
    ----------
    fillings
        What fills them.
    """

    fillings: Sequence[Filling]

    @property
    def compared(self) -> list[tuple[float, Filling]]:
        """The differences there are, with their cells."""
        found = ((f.difference, f) for f in self.fillings if f.state in ("filled", "older"))
        return [(difference, f) for difference, f in found if difference is not None]

    @property
    def text(self) -> str:
        """How many, the mean and the range; empty where no such cell is in the paper."""
        if not self.fillings:
            return ""
        n = sum(f.state == "filled" for f in self.fillings)
        words = f"{n} of {len(self.fillings)}"
        if self.compared:
            words += f", {signed(self.mean)} ({signed(self.lowest)} to {signed(self.highest)})"
        return words

    @property
    def mean(self) -> float:
        """The mean difference."""
        return sum(difference for difference, _ in self.compared) / len(self.compared)

    @property
    def lowest(self) -> float:
        """The smallest difference: the cell that is furthest below the paper."""
        return min(difference for difference, _ in self.compared)

    @property
    def highest(self) -> float:
        """The largest difference."""
        return max(difference for difference, _ in self.compared)

    @property
    def sentence(self) -> str:
        """The same for people, and which are off by more than two standard errors."""
        ordered = sorted(self.compared, key=lambda pair: pair[0])
        ends = [f"{signed(d)} ({f.cell.label})" for d, f in (ordered[0], ordered[-1])]
        words = f"mean difference {signed(self.mean)}"
        if len(ordered) > 1:
            words += f", from {ends[0]} to {ends[1]}"
        known = [(d, f.error, f) for d, f in self.compared if f.error is not None]
        if known:
            above = [f.cell for difference, error, f in known if difference > 2 * error]
            below = [f.cell for difference, error, f in known if difference < -2 * error]
            near = len(known) - len(above) - len(below)
            words += f"; {near} within two standard errors"
            for cells, where in ((above, "above"), (below, "below")):
                words += f"; {len(cells)} {where}"
                words += f": {name_cells(cells)}" if cells else ""
        return words


def signed(value: float) -> str:
    """Return a difference; none is minus zero."""
    return f"{round(value, 1) + 0.0:+.1f}"


def markdown(grid: Grid) -> str:
    """Return the lines of a table alone."""
    return "\n".join(
        line for line in to_markdown([grid], title="").split("\n") if line.startswith("|")
    )
