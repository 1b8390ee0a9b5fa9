"""Tables against NumPy and SciPy, on records made by hand."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, astuple
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import ttest_rel

from aloof.bench import specify
from aloof.bench.odds import Case, OddsSpecification, System
from aloof.bench.odds.plot import plot_results
from aloof.bench.odds.summary import Block, summarise
from aloof.bench.odds.tables import csv_lines, make_grids
from aloof.bench.tables import to_csv, to_markdown, to_rich

RNG = np.random.default_rng(0)
VALUES = {
    (method, name): np.clip(level + 0.01 * RNG.normal(size=(2, 4)), 0, 1)
    for (method, level) in (("dp", 0.95), ("vae", 0.90), ("knn", 0.92), ("ecod", 0.8))
    for name in ("cardio", "thyroid")
}
VALUES["ecod", "thyroid"] += 0.18  # the best peer differs between the sets


def make(**options: Any) -> OddsSpecification:
    base = {
        "datasets": ["cardio", "thyroid"],
        "methods": ["dp", "vae", "knn", "ecod"],
        "seeds": 4,
        "paper": "main",
    }
    return specify(OddsSpecification, {**base, **options})


def make_records(spec: OddsSpecification, skip: Any = ()) -> list[dict[str, Any]]:
    records = []
    for gamma_l, gamma_p in spec.conditions:
        for system in spec.systems:
            for name in spec.datasets:
                for seed in range(spec.seeds):
                    if (system.method, name, seed) in skip:
                        continue
                    parts = (system.method, system.setting, system.variant)
                    case = Case(name, *parts, gamma_l, gamma_p, seed, system.scaling)
                    auroc, precision = VALUES[system.method, name][:, seed] - gamma_p
                    figures = {"auroc": auroc, "average_precision": precision}
                    record = {"status": "ok", "fit_seconds": 2.0, **figures}
                    records.append({**asdict(case), **record})
    return records


@pytest.fixture
def spec() -> OddsSpecification:
    return make()


@pytest.fixture
def block(spec: OddsSpecification) -> Block:
    return summarise(spec, make_records(spec))[0]


def lines(spec: OddsSpecification, blocks: Any) -> dict[tuple[str, str, str], dict[str, str]]:
    rows = csv.DictReader(io.StringIO(to_csv(csv_lines(blocks))))
    return {(row["source"], row["method"], row["dataset"]): row for row in rows}


def test_figures_are_numpys(spec: OddsSpecification, block: Block) -> None:
    text = to_markdown(make_grids([block]), title="T")
    rows = lines(spec, [block])
    for (method, name), (auroc, precision) in VALUES.items():
        row = rows["aloof", method, name]
        assert float(row["auroc_mean"]) == pytest.approx(100 * np.mean(auroc), abs=1e-4)
        std = 100 * np.std(auroc, ddof=1)
        assert float(row["auroc_std"]) == pytest.approx(std, abs=1e-4)
        assert float(row["auroc_sem"]) == pytest.approx(std / 2, abs=1e-4)  # of four seeds
        expected = 100 * np.mean(precision)
        assert float(row["average_precision_mean"]) == pytest.approx(expected, abs=1e-4)
        assert f"{100 * np.mean(auroc):.1f} ± {std:.1f}" in text
        assert f"{100 * np.mean(precision):.1f} ± {100 * np.std(precision, ddof=1):.1f}" in text
    mean = 100 * np.mean([VALUES["dp", name][0].mean() for name in spec.datasets])
    assert block.overall(System("dp", "ours"), "auroc") == pytest.approx(mean)
    assert f"{mean:.1f}** |" in text


def test_the_best_peer_and_the_test_against_it(spec: OddsSpecification, block: Block) -> None:
    (best,) = block.best_peer.values()
    assert {name: s.method for name, s in best.items()} == {
        "cardio": "knn",
        "thyroid": "ecod",
    }
    for system, name in block.cells:
        test = block.ahead(system, name)
        if not system.ours:
            assert test is None
            continue
        ours = VALUES[system.method, name][0]
        theirs = VALUES[best[name].method, name][0]
        assert test is not None
        assert test.p_value == pytest.approx(ttest_rel(ours, theirs).pvalue)
        assert test.difference == pytest.approx(100 * np.mean(ours - theirs))
        assert test.n == 4
    row = lines(spec, [block])["aloof", "vae", "thyroid"]
    assert row["best_peer"] == "ecod"
    assert float(row["difference"]) < 0


def test_settings_and_scalings_are_never_mixed() -> None:
    """What has another setting or scaling is no peer, and not in the way of a best."""
    spec = make(
        datasets=["cardio"],
        methods=["dp", "deep-sad", "knn", "oc-svm-unfair"],
        setting=["ours", "paper"],
        scaling=["standard", "unit"],
    )
    levels = {
        System("dp", "ours"): 0.90,
        System("dp", "paper"): 0.91,
        System("dp", "ours", scaling="unit"): 0.92,
        System("dp", "paper", scaling="unit"): 0.97,
        System("deep-sad", "ours"): 0.80,
        System("deep-sad", "paper"): 0.95,
        System("deep-sad", "ours", scaling="unit"): 0.93,
        System("deep-sad", "paper", scaling="unit"): 0.81,
        System("knn"): 0.85,
        System("knn", scaling="unit"): 0.94,
        System("oc-svm-unfair"): 0.99,
        System("oc-svm-unfair", scaling="unit"): 0.99,
    }
    assert set(levels) == set(spec.systems)
    records = [
        {
            **asdict(Case("cardio", *astuple(s)[:3], 0.01, 0.0, seed, s.scaling)),
            "status": "ok",
            "fit_seconds": 1.0,
            "auroc": level + 0.002 * seed,
            "average_precision": 0.5,
        }
        for s, level in levels.items()
        for seed in range(4)
    ]
    for record in records:
        if record["scaling"] == "standard":
            del record["scaling"]  # as in older records
    (block,) = summarise(spec, records)
    assert block.kinds == (
        ("ours", "standard"),
        ("ours", "unit"),
        ("paper", "standard"),
        ("paper", "unit"),
    )
    assert {kind: best["cardio"].label for kind, best in block.best_peer.items()} == {
        ("ours", "standard"): "knn",
        ("ours", "unit"): "knn (unit)",
        ("paper", "standard"): "deep-sad (paper)",
        ("paper", "unit"): "knn (unit)",
    }
    ahead = block.ahead(System("dp", "paper"), "cardio")
    assert ahead is not None
    assert ahead.difference == pytest.approx(-4.0)
    figures, _, comparisons, *_ = make_grids([block])
    shown = {row[0]: row for row in figures.rows}
    bold = {figures.rows[row][0] for row, column in figures.bold if column == 1}
    assert bold == {"dp (ours)", "deep-sad (paper)", "knn (unit)", "dp (paper, unit)"}
    assert shown["best peer of each set (ours)"][1] == "85.3 knn"
    assert shown["best peer of each set (paper, unit)"][1] == "94.3 knn (unit)"
    assert [row[0] for row in comparisons.rows] == [
        "against (ours)",
        "dp (ours)",
        "against (ours, unit)",
        "dp (ours, unit)",
        "against (paper)",
        "dp (paper)",
        "against (paper, unit)",
        "dp (paper, unit)",
    ]
    lines = list(csv_lines([block]))
    assert {line["scaling"] for line in lines} == {"standard", "unit"}
    assert any("the best of each is bold" in note for note in figures.notes)
    assert "| the paper's oc-svm | 98.5 ± 0.3 |" in to_markdown([figures], title="T")


def test_equal_results_have_no_p_value(spec: OddsSpecification) -> None:
    records = make_records(spec)
    for record in records:
        record["auroc"] = 0.9
    (block,) = summarise(spec, records)
    tests = [block.ahead(*place) for place in block.cells if place[0].ours]
    assert [(test.difference, test.p_value) for test in tests if test] == [(0.0, None)] * 4
    assert "+0.0 |" in to_markdown(make_grids([block]), title="T")


def test_what_was_not_run_is_empty_and_not_in_a_mean(spec: OddsSpecification) -> None:
    gone = [("dp", "cardio", seed) for seed in range(4)] + [("knn", "cardio", 2)]
    (block,) = summarise(spec, make_records(spec, skip=gone))
    text = to_markdown(make_grids([block]), title="T")
    thyroid = VALUES["dp", "thyroid"][0]
    cell = f"{100 * thyroid.mean():.1f} ± {100 * thyroid.std(ddof=1):.1f}"
    assert f"| dp (ours) |  | {cell} |  |" in text.replace("**", "")
    assert "(3 of 4 seeds)" in text
    (best,) = block.best_peer.values()
    assert best["cardio"].method == "ecod"  # knn lacks a seed
    assert lines(spec, [block])["aloof", "dp", "cardio"]["auroc_mean"] == ""


def test_a_system_without_any_result_is_named_below() -> None:
    spec = make(methods=["dp", "knn", "ecod"])
    gone = [("knn", name, seed) for name in spec.datasets for seed in range(4)]
    text = to_markdown(make_grids(summarise(spec, make_records(spec, skip=gone))), title="T")
    assert "| knn |" not in text
    assert "- Without any result here: knn." in text


def test_the_committee_is_compared_with_peers_in_our_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no setting of its own."""
    for name in ("cardio", "thyroid"):
        monkeypatch.setitem(VALUES, ("committee", name), VALUES["dp", name] + 0.01)
    spec = make(methods=["committee", "dp", "knn", "ecod"], setting=["ours", "paper"])
    (block,) = summarise(spec, make_records(spec))
    (committee,) = [system for system in block.rows if system.method == "committee"]
    peer = block.best_peer["ours", "standard"]["cardio"]
    expected = 100 * (VALUES["committee", "cardio"] - VALUES[peer.method, "cardio"])[0].mean()
    found = block.ahead(committee, "cardio")
    assert found is not None
    assert found.difference == pytest.approx(expected)
    assert lines(spec, [block])["aloof", "committee", "cardio"]["best_peer"] == peer.label
    (grid,) = [grid for grid in make_grids([block]) if "ahead" in grid.title]
    assert [row[0] for row in grid.rows].count("committee") == 1


def test_the_papers_figures_are_marked_and_only_where_they_hold(
    spec: OddsSpecification, block: Block
) -> None:
    text = to_markdown(make_grids([block]), title="T")
    assert "| the paper's dp | 99.1 ± 0.4 | 99.9 ± 0.04 | 99.5 |" in text
    assert "the paper's vae | 95.5 ± 0.8 | 86.9 ± 3.7 |" in text
    assert "the paper's knn" not in text
    assert lines(spec, [block])["paper", "dp", "cardio"]["auroc_mean"] == "99.1"
    other = make(gamma_l=0.05)
    blocks = summarise(other, make_records(other))
    assert "paper" not in to_markdown(make_grids(blocks), title="T")


def test_the_ablation_stands_beside_the_papers() -> None:
    spec = make(
        methods=["dp"],
        paper="ablation",
        variants=[{"name": "same-freeze-5"}, {"name": "same-freeze-1"}],
    )
    blocks = summarise(spec, make_records(spec))
    text = to_markdown(make_grids(blocks), title="T")
    assert "| the paper's dp (same-freeze-5) | 99.1 ± 0.4 |  |  |" in text
    assert "| the paper's dp (same-freeze-1) | 97.8 ± 1.1 |  |  |" in text


def test_what_pollution_costs() -> None:
    spec = make(gamma_p=[0.0, 0.05])
    blocks = summarise(spec, make_records(spec))
    grid = make_grids(blocks)[-1]
    assert "changed by pollution" in grid.title
    assert grid.rows[0] == ("dp (ours)", "-5.0", "-5.0", "-5.0")


def test_terminal_and_picture_show_every_system(spec: OddsSpecification, block: Block) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    for grid in make_grids([block]):
        console.print(to_rich(grid))
    shown = console.export_text()
    figure = plot_results([block])
    assert [axis.get_title() for axis in figure.axes] == ["cardio", "thyroid"]
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    for system in spec.systems:
        assert system.label in shown
        assert system.label in labels


def test_markdown_is_well_formed(spec: OddsSpecification, block: Block) -> None:
    text = to_markdown(make_grids([block]), title="T", footer="Made by hand.")
    assert text.startswith("# T\n\n## AUROC (%)")
    assert text.endswith("Made by hand.\n")
    for part in text.split("\n\n"):
        rows = [line for line in part.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1
