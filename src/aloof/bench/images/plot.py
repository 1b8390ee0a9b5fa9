"""The image experiments as a picture: lines over a ratio, or one dot for each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from aloof.bench.images.paper import image_paper_figure
from aloof.bench.images.specification import system_label, with_setting
from aloof.bench.pictures import make_figure, tidy
from aloof.bench.statistics import moments
from aloof.vae import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_images"]

_COLOURS = {"mml": "#cc3311", "dp": "#0077bb", "mml-dp": "#aa3377", "deep-sad": "#333333"}
_PEER = "#999999"
_Records = Sequence[Mapping[str, Any]]
_System = tuple[str, str, str]
_MARKERS = {"paper": "^"}  # of a setting, where it is not a dot


def plot_images(records: _Records) -> Figure:
    """Show the AUROC of every system, with the paper's figures for the main ones.

    Against the ratio of labelled anomalies, or of hidden ones where only these vary; with a
    single ratio a dot and its standard deviation over problems for each system. Triangles have
    the paper's numbers and networks.
    """
    records = list(map(with_setting, records))
    labelled = {r["gamma_l"] for r in records if r["gamma_l"]}
    polluted = {r["gamma_p"] for r in records}
    hidden = len(polluted) > 1 and len(labelled) <= 1
    if not hidden:
        records = [r for r in records if r["gamma_p"] == min(polluted)]
    axis = "gamma_p" if hidden else "gamma_l"
    ratios = sorted({r[axis] for r in records})
    systems = list(dict.fromkeys((r["method"], r["variant"], r["setting"]) for r in records))
    one = len(ratios) == 1
    size = (7.2, 1.4 + 0.3 * len(systems)) if one else (8.4, max(4.4, 0.3 * len(systems)))
    figure = make_figure(*size)
    axes = figure.add_subplot()
    axes.set_title(str(records[0]["dataset"]), loc="left")
    if one:
        _dots(axes, records, systems)
    else:
        _lines(axes, records, systems, axis, ratios)
        kind = "hidden" if hidden else "labelled"
        axes.set_xlabel(f"{kind} anomalies, ratio; dashed: the paper")
    return figure


def _dots(axes: Axes, records: _Records, systems: Sequence[_System]) -> None:
    """Draw a row for each system."""
    first = records[0]
    heights = range(len(systems), 0, -1)
    for height, (method, variant, setting) in zip(heights, systems, strict=True):
        found = moments(_values(records, method, variant, setting))
        colour = _COLOURS.get(method, _PEER)
        spread = found.std if found.n > 1 else None
        marker = _MARKERS.get(setting, "o")
        axes.errorbar(found.mean, height, xerr=spread, fmt=marker, c=colour)
        figure = image_paper_figure(
            first["dataset"], method, first["gamma_l"], first["gamma_p"], variant
        )
        if figure is not None:
            axes.plot(figure[0], height - 0.25, "D", ms=4, mfc="white", c=_PEER)
    axes.set_yticks(heights, [system_label(*system) for system in systems])
    axes.set_ylim(0.4, len(systems) + 0.6)
    axes.set_xlabel("AUROC (%); diamonds: the paper")
    tidy(axes, grid="x")


def _lines(
    axes: Axes,
    records: _Records,
    systems: Sequence[_System],
    axis: str,
    ratios: Sequence[float],
) -> None:
    """Draw a line for each system, with its name where it ends."""
    alone: list[tuple[float, str, str]] = []
    ends: list[tuple[float, str, str]] = []
    dashed: set[str] = set()
    for method, variant, setting in systems:
        means = [_mean(records, method, variant, setting, axis, r) for r in ratios]
        if axis == "gamma_l" and means[0] is None and method in METHODS:
            # What it is without labels.
            means[0] = _mean(records, "vae", "", setting, axis, ratios[0])
        points = [(place, mean) for place, mean in enumerate(means) if mean is not None]
        colour = _COLOURS.get(method, _PEER)
        line = f"{_MARKERS.get(setting, 'o')}-"
        axes.plot(*zip(*points, strict=True), line, color=colour, ms=4)
        label = (points[-1][1], system_label(method, variant, setting), colour)
        (ends if points[-1][0] else alone).append(label)
        if method in _COLOURS and not variant and method not in dashed:
            dashed.add(method)
            gammas = {name: max(r[name] for r in records) for name in ("gamma_l", "gamma_p")}
            printed = [
                image_paper_figure(records[0]["dataset"], method, **{**gammas, axis: ratio})
                for ratio in ratios
            ]
            paper = [(place, figure[0]) for place, figure in enumerate(printed) if figure]
            if len(paper) > 1:
                axes.plot(*zip(*paper, strict=True), "--", color=colour, alpha=0.5, lw=1)
    _names(axes, alone, 0, "right")
    _names(axes, ends, len(ratios) - 1, "left")
    axes.set_xlim(-1.1 if alone else -0.2, len(ratios) - 0.1)
    axes.set_xticks(range(len(ratios)), [f"{ratio:g}" for ratio in ratios])
    axes.set_ylabel("AUROC (%)")
    tidy(axes)


def _names(axes: Axes, names: list[tuple[float, str, str]], place: int, side: str) -> None:
    """Write names beside a place, apart from each other and as near to their values as can be.

    Heights less their number of gaps may not fall: an isotonic regression.
    """
    if not names:
        return
    low, high = axes.get_ylim()
    wanted = sorted(names)
    gaps = (high - low) * 0.042 * np.arange(len(wanted))
    heights = isotonic_regression([value for value, *_ in wanted] - gaps) + gaps
    axes.set_ylim(min(low, heights[0]), max(high, heights[-1]))
    offset = 0.12 if side == "left" else -0.12
    for height, (_, name, colour) in zip(heights, wanted, strict=True):
        axes.text(place + offset, height, name, color=colour, ha=side, va="center", fontsize=8)


def _values(records: _Records, *system: str) -> list[float]:
    return [
        100 * r["auroc"] for r in records if (r["method"], r["variant"], r["setting"]) == system
    ]


def _mean(
    records: _Records, method: str, variant: str, setting: str, axis: str, ratio: float
) -> float | None:
    own = [r for r in records if r[axis] == ratio]
    values = _values(own, method, variant, setting)
    return float(np.mean(values)) if values else None
