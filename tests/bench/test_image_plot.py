"""The picture of the image experiments."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from aloof.bench.images.plot import plot_images


def record(method: str, auroc: float, **changes: Any) -> dict[str, Any]:
    own = {"dataset": "cifar10", "method": method, "variant": "", "auroc": auroc}
    return {**own, "setting": "", "gamma_l": 0.01, "gamma_p": 0.0, **changes}


def test_lines_are_means_and_their_names_do_not_overlap() -> None:
    systems = ["dp", "mml", "deep-sad", "ssad", "classifier", *map(str, range(12))]
    records = [record("vae", 0.5, gamma_l=0.0)]
    for number, method in enumerate(systems):
        for gamma_l in (0.01, 0.1):
            for problem in (-0.1, 0.1):
                auroc = 0.7 + 0.001 * number + gamma_l + problem
                records.append(record(method, auroc, gamma_l=gamma_l))
    figure = plot_images(records)
    (axes,) = figure.axes
    drawn = [np.round(line.get_ydata(), 6).tolist() for line in axes.lines]
    assert [50, 71, 80] in drawn, "DP-VAE begins as a VAE"
    assert [71.4, 80.4] in drawn, "a classifier does not"
    names = {text.get_text(): text.get_window_extent() for text in axes.texts}
    assert set(names) == {"vae", *systems}
    boxes = sorted((names[name] for name in systems), key=lambda box: box.y0)
    assert all(a.y1 <= b.y0 + 1 for a, b in pairwise(boxes))
    assert boxes[0].y1 > axes.get_window_extent().y0, "none falls below"


def test_hidden_anomalies_are_the_axis_where_only_they_vary() -> None:
    records = [record("dp", 0.8 - g, gamma_p=g) for g in (0.0, 0.1)]
    (axes,) = plot_images(records).axes
    assert "hidden" in axes.get_xlabel()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "0.1"]
    unlabelled = [record("kde", 0.6, gamma_l=0.0, gamma_p=g) for g in (0.0, 0.1)]
    (axes,) = plot_images([*records, *unlabelled]).axes
    assert "hidden" in axes.get_xlabel(), "also beside a method without labels"
    records = [{**r, "gamma_l": r["gamma_l"] and 0.05} for r in [*unlabelled, *records]]
    (axes,) = plot_images(records).axes
    drawn = [line.get_ydata().tolist() for line in axes.lines]
    assert [79.1, 75.2] in drawn, "the paper's, with five percent of labels"
    records = [r for r in records if r["method"] == "dp"]
    records.append(record("dp", 0.9, gamma_l=0.2))
    (axes,) = plot_images(records).axes
    assert "labelled" in axes.get_xlabel()
    assert [80, 90] in [line.get_ydata().tolist() for line in axes.lines]


def test_a_system_that_stopped_early_is_named_at_its_end() -> None:
    records = [record("dp", 0.7, gamma_l=g) for g in (0.0, 0.01, 0.1)]
    records += [record("ssad", 0.9, gamma_l=g) for g in (0.0, 0.01)]
    (axes,) = plot_images(records).axes
    names = {text.get_text(): text.get_position() for text in axes.texts}
    assert names["ssad"] == pytest.approx((2.12, 90))


def test_one_ratio_has_a_dot_for_each_variant() -> None:
    records = [record("dp", 0.7), record("dp", 0.6, variant="separate-freeze")]
    (axes,) = plot_images(records).axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        "dp",
        "dp (separate-freeze)",
    ]
    diamonds = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert sorted(diamonds) == [50.0, 74.5], "the paper's"
