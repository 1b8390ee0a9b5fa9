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
        """How many, the mean and the worst; empty where no such cell is in the paper."""
        if not self.fillings:
            return ""
        n = sum(f.state == "filled" for f in self.fillings)
        words = f"{n} of {len(self.fillings)}"
        if self.compared:
            words += f", {signed(self.mean)}, {signed(self.worst)}"
        return words

    @property
    def mean(self) -> float:
        """The mean difference."""
        return sum(difference for difference, _ in self.compared) / len(self.compared)

    @property
    def worst(self) -> float:
        """The smallest difference."""
        return min(difference for difference, _ in self.compared)

    @property
    def sentence(self) -> str:
        """The same for people, and which are off by more than two standard errors."""
        worst, where = min(self.compared, key=lambda pair: pair[0])
        words = f"mean difference {signed(self.mean)}, worst {signed(worst)}"
        words += f" ({where.cell.label})"
        known = [(d, f.error, f) for d, f in self.compared if f.error is not None]
        if known:
            above = sum(difference > 2 * error for difference, error, _ in known)
            below = [f.cell for difference, error, f in known if difference < -2 * error]
            near = len(known) - above - len(below)
            words += f"; {near} within two standard errors, {above} above, {len(below)} below"
            words += f": {name_cells(below)}" if below else ""
        return words


def signed(value: float) -> str:
    """Return a difference; none is minus zero."""
    return f"{round(value, 1) + 0.0:+.1f}"


def markdown(grid: Grid) -> str:
    """Return the lines of a table alone."""
    return "\n".join(
        line for line in to_markdown([grid], title="").split("\n") if line.startswith("|")
    )
