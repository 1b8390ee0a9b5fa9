"""The pictures of a report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.report.findings import Findings
from aloof.report.inline import ANOMALOUS, BASE, INK, LEVEL, MUTED, PAPER, picture

__all__ = [
    "draw_calibration",
    "draw_curve",
    "draw_map",
    "draw_p_values",
    "draw_scores",
]


def draw_scores(found: Findings) -> str:
    """Draw how many have which anomaly score, with the level that flags them."""
    values, counts = found.score_values, found.score_counts
    normal = counts[NORMAL] + counts[UNLABELLED]
    with picture("scores", 8.6, 3.3) as drawn:
        axis = drawn.axis
        edges, logarithmic = _edges(values, normal + counts[ANOMALY], found.level)
        inside = np.clip(values, edges[0], edges[-1])
        for weights, colour, label in (
            (normal, BASE, f"other {found.things}" if counts[ANOMALY].any() else found.things),
            (counts[ANOMALY], ANOMALOUS, "labelled anomalies"),
        ):
            if weights.any():
                heights, _ = np.histogram(inside, edges, weights=weights)
                axis.stairs(heights, edges, fill=True, color=colour, alpha=0.55, label=label)
                axis.stairs(heights, edges, color=colour, lw=1.0)
        if np.isfinite(found.level):
            axis.axvline(found.level, color=LEVEL, lw=1.8, ls="--", label="flagged above")
        axis.set_xscale("log" if logarithmic else "linear")
        axis.set_yscale("log")
        axis.set_ylim(bottom=0.7)
        axis.set_xlim(edges[0], edges[-1])
        axis.grid(axis="x", visible=False)
        axis.set_xlabel("anomaly score")
        axis.set_ylabel(f"{found.things} (log scale)")
        _plain_ticks(axis.xaxis)
        _plain_ticks(axis.yaxis)
        axis.legend(loc="upper right")
    return drawn.svg


def draw_curve(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    *,
    point: tuple[float, float] | None,
    labels: tuple[str, str],
    chance: tuple[float, float],
) -> str:
    """Draw a curve of shares against each other, in percent.

    Parameters
    ----------
    x, y
        The curve.
    point
        Where the threshold is on it.
    labels
        Of the axes.
    chance
        Where the line of a detector that guesses begins and ends, as values of y.
    """
    with picture(labels[0], 4.2, 3.5) as drawn:
        axis = drawn.axis
        x, y = _thinned(x, y)
        axis.plot([0, 100], [100 * c for c in chance], color=MUTED, lw=1, ls=":")
        axis.plot(100 * x, 100 * y, color=BASE, lw=2, solid_joinstyle="round")
        axis.fill_between(100 * x, 100 * y, color=BASE, alpha=0.12, lw=0)
        if point is not None:
            axis.plot(
                *(100 * share for share in point),
                marker="o",
                ms=8,
                mec=PAPER,
                color=LEVEL,
                ls="none",
                label="threshold",
                clip_on=False,
                zorder=5,
            )
            axis.legend(loc="lower right" if chance[0] < chance[1] else "lower left")
        axis.set_xlim(-1, 101)
        axis.set_ylim(-1, 103)
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1])
        for ticks in (axis.xaxis, axis.yaxis):
            ticks.set_major_locator(_locator([0, 20, 40, 60, 80, 100]))
            ticks.set_major_formatter("{x:.0f} %")
    return drawn.svg


def draw_p_values(p_counts: NDArray[np.int64], things: str) -> str:
    """Draw the p-values of what is not known to be an anomaly, against what they should be."""
    with picture("p-values", 4.2, 3.1) as drawn:
        axis = drawn.axis
        p = np.arange(1, len(p_counts) + 1) / len(p_counts)
        n_bins = min(20, len(p_counts))
        heights, edges = np.histogram(p - 0.5 / len(p), n_bins, (0, 1), weights=p_counts)
        shares = 100 * heights / heights.sum()
        axis.stairs(shares, edges, fill=True, color=BASE, alpha=0.55)
        axis.stairs(shares, edges, color=BASE, lw=1)
        axis.axhline(100 / n_bins, color=LEVEL, lw=1.8, ls="--", label="expected")
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1.25 * max(shares.max(), 100 / n_bins))
        axis.grid(axis="x", visible=False)
        axis.set_xlabel("p-value")
        axis.set_ylabel(f"share of {things}")
        axis.yaxis.set_major_formatter("{x:g} %")
        axis.legend(loc="upper right")
    return drawn.svg


def draw_calibration(p_counts: NDArray[np.int64], things: str) -> str:
    """Draw which share of rows has a p-value of at most t, against t."""
    with picture("calibration", 4.2, 3.1) as drawn:
        axis = drawn.axis
        p = 100 * np.arange(1, len(p_counts) + 1) / len(p_counts)
        observed = 100 * np.cumsum(p_counts) / p_counts.sum()
        shown = observed > 0
        low = min(p[0], observed[shown].min())
        axis.plot([low, 100], [low, 100], color=LEVEL, lw=1.8, ls="--", label="expected")
        axis.plot(p[shown], observed[shown], color=BASE, lw=2, label="observed")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("p-value of at most")
        axis.set_ylabel(f"share of {things}")
        for ticks in (axis.xaxis, axis.yaxis):
            ticks.set_major_formatter("{x:g} %")
            ticks.set_minor_formatter("")
        axis.legend(loc="upper left")
    return drawn.svg


def draw_map(
    places: NDArray[np.float64],
    scores: NDArray[np.float64],
    is_anomaly: NDArray[np.bool_],
    ranks: NDArray[np.int64],
) -> str:
    """Draw rows on a plane.

    Parameters
    ----------
    places
        Where each row is, ``(n, 2)``.
    scores
        Anomaly scores; they colour the rows.
    is_anomaly
        Which rows are labelled as anomalies.
    ranks
        The rank of each row among the anomalies listed; 0: it is not.
    """
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    with picture("map", 8.6, 4.4) as drawn:
        axis = drawn.axis
        order = np.argsort(scores, kind="stable")
        places, scores = places[order], scores[order]
        is_anomaly, ranks = is_anomaly[order], ranks[order]
        low, high = (float(bound) for bound in np.percentile(scores, [1, 99.5]))
        norm = LogNorm(low, high) if 0 < low < high else Normalize(low, max(high, low + 1e-9))
        shades = LinearSegmentedColormap.from_list("scores", _SHADES)
        dots = axis.scatter(*places.T, c=scores, s=13, lw=0, alpha=0.8, cmap=shades, norm=norm)
        listed = ranks > 0
        for chosen, marker, size, colour, label in (
            (is_anomaly, "x", 34, ANOMALOUS, "labelled anomaly"),
            (listed, "o", 70, INK, "listed above"),
        ):
            if chosen.any():
                face = {"c": colour} if marker == "x" else {"facecolors": "none"}
                edge = {} if marker == "x" else {"edgecolors": colour}
                axis.scatter(
                    *places[chosen].T,
                    s=size,
                    marker=marker,
                    lw=1.2,
                    label=label,
                    **face,
                    **edge,
                )
        for place, rank in zip(places[listed], ranks[listed], strict=True):
            if rank <= _NUMBERED:
                axis.annotate(
                    str(rank), place, (6, 5), textcoords="offset points", fontweight="bold"
                )
        bar = drawn.figure.colorbar(dots, ax=axis, pad=0.015, aspect=30)
        bar.outline.set_visible(False)
        bar.set_label("anomaly score")
        _plain_ticks(bar.ax.yaxis)
        axis.set_xlabel("first direction")
        axis.set_ylabel("second direction")
        axis.tick_params(labelbottom=False, labelleft=False, length=0)
        axis.grid(visible=False)
        axis.margins(0.05)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(loc="best")
    return drawn.svg


_SHADES = ("#7fa6d6", "#8a8fc0", "#a8689a", "#c64a55", "#d8361a")
_NUMBERED = 5


def _edges(
    values: NDArray[np.float64], counts: NDArray[np.int64], level: float
) -> tuple[NDArray[np.float64], bool]:
    """Return the bins of a histogram, and whether they are even on a logarithmic scale."""
    shares = np.cumsum(counts) / counts.sum()
    # The lowest rows of many are put into the first bin: they are of no interest.
    low, high = values[np.searchsorted(shares, 1e-4)], values[-1]
    if np.isfinite(level):
        low, high = min(low, level), max(high, level)
    if low > 0:
        wide = max(high / low, 1.05)
        return np.geomspace(low / wide**0.02, high * wide**0.02, 71), True
    room = 0.02 * max(high - low, 1e-6)
    return np.linspace(low - room, high + room, 71), False


def _thinned(
    x: NDArray[np.float64], y: NDArray[np.float64], most: int = 500
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points of a curve that are about evenly far from each other, and both ends."""
    length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    steps = np.searchsorted(length, np.linspace(0, length[-1], most))
    chosen = np.unique(np.concatenate([[0], steps, [len(x) - 1]]))
    return x[chosen], y[chosen]


def _plain_ticks(ticks: Any) -> None:
    """Write 0.5, 20 and 3,000 rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    def words(value: float, _: Any = None) -> str:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"

    ticks.set_major_formatter(FuncFormatter(words))
    ticks.set_minor_formatter(NullFormatter())
    low, high = sorted(ticks.get_view_interval())
    if ticks.get_scale() == "log" and 0 < low and high / low < 30:
        ticks.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def _locator(ticks: list[float]) -> Any:
    from matplotlib.ticker import FixedLocator

    return FixedLocator(ticks)
