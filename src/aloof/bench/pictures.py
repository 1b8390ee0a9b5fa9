"""What the pictures of all studies have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from aloof.exceptions import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["make_figure", "tidy"]


def make_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "Drawing pictures") from error
    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: Axes, *, grid: Literal["both", "x"] = "both") -> None:
    """Take away lines that say nothing, and draw a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, axis=grid)
