"""Figures as elements of a page: SVG in the page's colours, light or dark."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aloof.exceptions import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "ANOMALOUS",
    "BASE",
    "INK",
    "LEVEL",
    "MUTED",
    "PAPER",
    "Picture",
    "check_report_drawing",
    "picture",
]

# Colours as matplotlib writes them, and the page's names for them.
INK, MUTED, _GRID = "#1b2430", "#5b6675", "#d9dee6"
BASE, ANOMALOUS, LEVEL, PAPER = "#3b6fb6", "#c8351b", "#b07a00", "#fefefe"
_NAMES = {
    INK: "ink",
    MUTED: "muted",
    _GRID: "grid",
    BASE: "base",
    ANOMALOUS: "anomaly",
    LEVEL: "level",
    PAPER: "paper",
}
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.size": 10.0,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "legend.edgecolor": "none",
    "legend.facecolor": PAPER,
    "legend.fancybox": False,
    "legend.framealpha": 0.85,
    "legend.labelcolor": INK,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}
# Ids that nothing refers to, the same in every picture.
_NUMBERED_ID = re.compile(r' id="(?!C\d)[\w.]+_\d+"')
# matplotlib's settings are those of the process: one thread at a time changes them.
_SETTINGS = threading.Lock()


def check_report_drawing() -> None:
    """Raise `MissingExtraError` unless pictures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "report", "Writing a report") from error


@dataclass
class Picture:
    """A figure and, once it is drawn, the element of a page that shows it."""

    figure: Figure
    axis: Any
    svg: str = ""


@contextmanager
def picture(name: str, width: float, height: float) -> Iterator[Picture]:
    """Draw a picture in the style of the report; its `svg` is there after the block.

    Parameters
    ----------
    name
        Tells its ids from those of the other pictures of a page.
    width, height
        In inches.
    """
    check_report_drawing()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with _SETTINGS, rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
        drawn = Picture(figure, figure.subplots())
        drawn.axis.set_facecolor("none")
        yield drawn
        drawn.svg = _inline(figure)


def _inline(figure: Figure) -> str:
    """Return a figure as an element of an HTML page."""
    text = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(text, format="svg", metadata=nothing)
    svg = text.getvalue()
    svg = _NUMBERED_ID.sub("", svg[svg.index("<svg") :])
    for colour, name in _NAMES.items():
        svg = svg.replace(colour, f"var(--{name}, {colour})")
    return svg
