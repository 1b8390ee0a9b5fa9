"""Pictures: latent maps, score histograms, ROC curves, pairs of images.

Every function returns a matplotlib figure of its own and touches no global state, so that
pictures can be made in a server or a thread.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score, roc_curve

from aloof.exceptions import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "check_drawing",
    "image_pairs",
    "latent_map",
    "plot_history",
    "plot_roc",
    "save_figure",
    "score_histograms",
]

_NORMAL, _ANOMALY = "#4477aa", "#cc3311"
_LINES = ("#777777", "#ee7733", "#0077bb", "#009988", "#aa3377", "#222222")


def latent_map(
    codes: Mapping[str, NDArray[np.float64]], is_anomaly: ArrayLike, *, seed: int = 0
) -> Figure:
    """Show latent codes as maps side by side.

    Parameters
    ----------
    codes
        By title, codes ``(n, latent_dim)`` of the same rows. More than two dimensions are
        mapped with t-SNE.
    is_anomaly
        The truth about the rows, which only colours them.
    seed
        Of t-SNE.
    """
    figure, axes = _panels(len(codes), width=5.0, height=4.6)
    anomalous = np.asarray(is_anomaly, bool)
    for axis, (title, code) in zip(axes, codes.items(), strict=True):
        flat = code if code.shape[1] <= 2 else _tsne(code, seed)
        if flat.shape[1] == 1:
            flat = np.c_[flat, np.zeros(len(flat))]
        for chosen, colour, marker, label in (
            (~anomalous, _NORMAL, "o", "normal"),
            (anomalous, _ANOMALY, "x", "anomaly"),
        ):
            axis.scatter(
                *flat[chosen].T,
                s=16,
                c=colour,
                marker=marker,
                linewidths=1,
                alpha=0.75,
                label=label,
            )
        axis.set_title(title)
        axis.set_xticks([])
        axis.set_yticks([])
    axes[0].legend(loc="best", frameon=False)
    return figure


def score_histograms(
    scores: Mapping[str, NDArray[np.float64]],
    is_anomaly: ArrayLike,
    *,
    thresholds: Mapping[str, float] | None = None,
) -> Figure:
    """Show how anomaly scores of normal rows and of anomalies overlap.

    Parameters
    ----------
    scores
        By title, anomaly scores of the same rows; shown on a logarithmic axis.
    is_anomaly
        The truth about the rows.
    thresholds
        By title, the score above which a row is called an anomaly.
    """
    figure, axes = _panels(len(scores), width=4.2, height=3.2)
    anomalous = np.asarray(is_anomaly, bool)
    for axis, (title, values) in zip(axes, scores.items(), strict=True):
        positive = np.clip(values, np.min(values[values > 0], initial=1e-12), None)
        bins = np.geomspace(positive.min(), positive.max() * 1.0001, 40)
        axis.hist(positive[~anomalous], bins, color=_NORMAL, alpha=0.7, label="normal")
        axis.hist(positive[anomalous], bins, color=_ANOMALY, alpha=0.6, label="anomaly")
        if thresholds is not None:
            axis.axvline(thresholds[title], color="black", lw=1, ls="--", label="threshold")
        axis.set_xscale("log")
        axis.set_xlabel("anomaly score")
        axis.set_title(title)
    axes[0].set_ylabel("rows")
    axes[0].legend(frameon=False)
    return figure


def plot_history(
    history: Mapping[str, NDArray[np.float64]],
    *,
    best_epoch: NDArray[np.int64] | None = None,
) -> Figure:
    """Show curves of a training side by side.

    Parameters
    ----------
    history
        By name, ``(epochs, members)``, or one value for each epoch. Curves that are zero, as
        that of anomalies where there are none, are left out.
    best_epoch
        Of each member, the epoch whose state was kept; the first is 1.
    """
    curves = {name: values for name, values in history.items() if values.any()}
    figure, axes = _panels(len(curves), width=3.4, height=2.8)
    for axis, (name, values) in zip(axes, curves.items(), strict=True):
        members = values if values.ndim == 2 else values[:, np.newaxis]
        epochs = np.arange(1, len(members) + 1)
        for k, line in enumerate(members.T):
            colour = _LINES[k % len(_LINES)] if members.shape[1] > 1 else _NORMAL
            axis.plot(epochs, line, color=colour, lw=1.2)
            if best_epoch is not None and values.ndim == 2:
                axis.axvline(best_epoch[k], color=colour, lw=0.8, ls="--")
        axis.set_title(name.replace("_", " "))
        axis.set_xlabel("epoch")
    return figure


def plot_roc(
    runs: Mapping[str, Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]]],
) -> Figure:
    """Show mean ROC curves over several runs.

    Parameters
    ----------
    runs
        By name, pairs of truth (1 anomaly) and anomaly score.
    """
    figure, (axis,) = _panels(1, width=5.2, height=4.6)
    grid = np.linspace(0, 1, 501)
    for (name, pairs), colour in zip(runs.items(), _LINES, strict=False):
        curves, areas = [], []
        for truth, score in pairs:
            false_rate, true_rate, _ = roc_curve(truth, score)
            curves.append(np.interp(grid, false_rate, true_rate))
            areas.append(100 * roc_auc_score(truth, score))
        label = f"{name}: {np.mean(areas):.1f} ± {np.std(areas):.1f}"
        axis.plot(grid, np.mean(curves, 0), color=colour, lw=2, label=label)
    axis.set_xscale("symlog", linthresh=0.01)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1.005)
    axis.set_xticks([0, 0.01, 0.1, 1], ["0", "1%", "10%", "100%"])
    axis.set_xlabel("normal rows flagged as anomalies")
    axis.set_ylabel("anomalies found")
    axis.legend(title="AUROC (%)", frameon=False, loc="lower right")
    axis.grid(alpha=0.25)
    return figure


def image_pairs(
    pairs: Sequence[tuple[str, NDArray[np.uint8], NDArray[np.uint8]]], *, columns: int = 8
) -> Figure:
    """Show pairs of images side by side.

    Parameters
    ----------
    pairs
        Of each a title and two images ``(channels, height, width)``, bytes.
    columns
        Pairs in a row of the picture.
    """
    check_drawing()
    from matplotlib.figure import Figure

    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(1.7 * columns, 1.1 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes:
        axis.set_axis_off()
    for axis, (title, *images) in zip(axes, pairs, strict=False):
        height = images[0].shape[1]
        gap = np.full((images[0].shape[0], height, max(1, height // 16)), 255, np.uint8)
        joined = np.concatenate([images[0], gap, images[1]], 2).transpose(1, 2, 0)
        axis.imshow(joined[..., 0] if joined.shape[2] == 1 else joined, cmap="gray", vmin=0)
        axis.set_title(title, fontsize=7)
    return figure


def check_drawing() -> None:
    """Raise `MissingExtraError` unless pictures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "Drawing pictures") from error


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as a picture; the format follows the name."""
    figure.savefig(path, dpi=130, bbox_inches="tight")


def _panels(n: int, *, width: float, height: float) -> tuple[Figure, list[Any]]:
    check_drawing()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n, height), layout="constrained")
    axes = figure.subplots(1, n, squeeze=False)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def _tsne(codes: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, max(2.0, (len(codes) - 1) / 4))
    mapped: NDArray[np.float64] = TSNE(
        perplexity=perplexity, random_state=seed, init="pca"
    ).fit_transform(codes)
    return mapped
