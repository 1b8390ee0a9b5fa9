"""The study: its options, its cases, running it, and what its tables say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aloof.bench import run_study, specify, stored, write_tables
from aloof.bench.study import Where
from aloof.bench.tabular import Case, Condition, System, TablesSpecification, TablesStudy
from aloof.bench.tabular.summary import summarise
from aloof.bench.tabular.tables import make_grids, summary_lines, task_grids
from aloof.bench.trials import measure
from aloof.estimators import DETECTORS
from aloof.exceptions import ExperimentError

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


@pytest.mark.parametrize(
    "path", sorted(EXPERIMENTS.glob("tables-*.toml")), ids=lambda p: p.stem
)
def test_the_experiments_are_right(path: Path) -> None:
    spec = specify(TablesSpecification, file=path)
    assert spec.systems
    assert {condition.protocol for condition in spec.conditions} == {"known", "novel", "hidden"}


def test_the_development_experiment_is_the_whole_grid() -> None:
    spec = specify(TablesSpecification, file=EXPERIMENTS / "tables-development.toml")
    assert len(spec.chosen) >= 40
    assert set(DETECTORS) <= {system.method for system in spec.systems}
    assert len(spec.conditions) == 3 + 3 + 9
    assert Condition("hidden", 5, 0.02) in spec.conditions
    assert spec.reference == System("dp")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protocols": "unknown"}, "no protocol 'unknown'; did you mean 'known'"),
        ({"labels": 1.5}, "a whole number of labelled anomalies; got 1.5"),
        ({"labels": []}, "one or more"),
        ({"hidden": 0}, "hidden must be more than 0"),
        ({"tasks": "wdcb"}, "no task 'wdcb'; did you mean 'wdbc'"),
        ({"label": "y"}, "are about files: name their folder"),
        ({"against": "knn"}, "no system to compare with 'knn'"),
        ({"methods": "dpp"}, "no method 'dpp'"),
        ({"folder": "nowhere"}, "it does not exist"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        specify(TablesSpecification, options)


def test_a_wrong_task_of_a_folder_is_named(folder: Path) -> None:
    with pytest.raises(ExperimentError, match="no task 'pump'; did you mean 'pumps'"):
        specify(TablesSpecification, {"folder": str(folder), "tasks": "pump"})


def test_any_detector_is_one_of_ours(
    study: Callable[..., TablesStudy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is added to DETECTORS runs by its name, in a group of its own."""

    class Centre:
        def __init__(self, random_state=None, device="auto"):
            self.random_state, self.device = random_state, device

        @classmethod
        def _get_param_names(cls):
            return ["device", "random_state"]

        def get_params(self, deep=True):
            return {"random_state": self.random_state, "device": self.device}

        def fit(self, X, y):
            self.centre = X[y == 0].mean(0)

        def anomaly_score(self, X):
            return np.square(X - self.centre).sum(1)

    monkeypatch.setitem(DETECTORS, "centre", Centre)
    what = study(methods=["centre", "dp"], protocols="known", variants=[])
    groups = what.groups(what.cases, Where(torch.device("cpu"), Path()))
    for group in groups:
        if group.cases[0].method == "centre":
            (outcome,) = group.prepare()(lambda *_: None)
            assert outcome["status"] == "ok"
            assert outcome["auroc"] > 0.9
            assert "model_bytes" not in outcome
            break
    else:
        pytest.fail("no group of its own")


def test_seeds_of_a_task_are_one_stack(study: Callable[..., TablesStudy]) -> None:
    what = study(methods=["vae", "dp", "shallow"], tasks="pumps")
    cpu = list(what.groups(what.cases, Where(torch.device("cpu"), Path())))
    ours = [group for group in cpu if group.cases[0].system.ours]
    assert len(ours) == 3  # one for each protocol
    assert all({case.method for case in group.cases} == {"vae", "dp"} for group in ours)
    assert all(len(group.cases) == 4 for group in ours)
    assert all(len(group.cases) == 1 for group in cpu if not group.cases[0].system.ours)
    gpu = list(what.groups(what.cases, Where(torch.device("cuda"), Path())))
    assert [len(group.cases) for group in gpu if group.cases[0].system.ours] == [12]
    assert len({group.label for group in gpu}) == len(gpu)


def test_one_stack_of_unlike_conditions_is_as_good_as_many(
    study: Callable[..., TablesStudy],
) -> None:
    what = study(methods="dp", tasks="pumps", seeds=1)
    (together,) = what.groups(what.cases, Where(torch.device("meta"), Path()))
    assert len(together.cases) == 3
    alone = list(what.groups(what.cases, Where(torch.device("cpu"), Path())))
    both = measure([what.trial(case, device="cpu") for case in together.cases], lambda *_: None)
    for outcome, group in zip(both, alone, strict=True):
        (single,) = group.prepare()(lambda *_: None)
        assert outcome["stacked"] == 3
        assert single["stacked"] == 1
        assert outcome["auroc"] == pytest.approx(single["auroc"], abs=0.02)


def test_a_trial_sees_the_rows_of_its_split_standardised(
    study: Callable[..., TablesStudy],
) -> None:
    what = study(protocols="novel", methods="shallow", tasks="pumps")
    case = what.cases[0]
    trial, split = what.trial(case), what.splits[case.place]
    assert trial.X.mean(0) == pytest.approx(0, abs=1e-9)
    assert trial.X.std(0) == pytest.approx(1)
    assert trial.y.sum() == 5
    task = what.tasks["pumps"]
    assert trial.y_test.tolist() == task.y[split.test].tolist()
    facts = what.identity(case).facts
    assert facts["labelled_kind"] == "leak"
    assert facts["n_labelled"] == 5


def test_a_run_continues_and_its_tables_have_everything(
    study: Callable[..., TablesStudy], tmp_path: Path
) -> None:
    what, out = study(), tmp_path / "out"
    records = run_study(what, out, device="cpu")
    assert len(records) == len(what.cases) == 3 * 2 * 2 * 2
    one = next(r for r in records if r["status"] == "ok" and r["method"] == "dp")
    assert [*one][:7] == [
        *("task", "method", "variant", "protocol", "labels", "hidden", "seed"),
    ]
    for field in ("auroc", "average_precision", "fit_seconds", "score_seconds"):
        assert np.isfinite(one[field])
    assert one["model_bytes"] > 1000
    again: list[Any] = []
    run_study(what, out, device="cpu", on_event=again.append)
    assert again[0].n_cases == 0
    assert len(stored(what, out)) == len(records)
    write_tables(what, records, out)
    text = (out / "table.md").read_text()
    what.draw(records, out)
    assert (out / "plot.png").read_bytes().startswith(b"\x89PNG")
    for words in ("known, 5 labels", "novel, 5 labels", "hidden 10 %, 5 labels"):
        assert words in text
    assert "Points ahead of dp (short)" in text
    assert "| pumps |" in (out / "details.md").read_text()
    assert (out / "summary.csv").read_text().startswith("protocol,labels,hidden,method")


def test_what_a_table_lacks_is_in_the_records(study: Callable[..., TablesStudy]) -> None:
    what = study(labels=[5, 0.3])
    lacking = [case for case in what.cases if what.infeasible(case)]
    known = [case for case in lacking if case.protocol == "known"]
    assert {(case.task, case.labels) for case in known} == {("valves", 0.3)}
    novel = {case.place for case in lacking if case.protocol == "novel"}
    assert all("a kind must have" in what.reasons[place] for place in novel)
    assert ("valves", Condition("novel", 5), 0) in novel
    with pytest.raises(ExperimentError, match=r"None of this can run. pumps: gamma_l"):
        study(labels=0.9, protocols="known")


def record(task: str, method: str, seed: int, auroc: float, **more: Any) -> dict[str, Any]:
    case = {"task": task, "method": method, "variant": "", "protocol": "known"}
    condition = {"labels": 5.0, "hidden": 0.0, "seed": seed, "status": "ok"}
    figures = {"auroc": auroc, "average_precision": auroc / 2, "fit_seconds": 2.0}
    return {**case, **condition, **figures, **more}


def failed(task: str, method: str, seed: int, message: str) -> dict[str, Any]:
    case = {k: v for k, v in record(task, method, seed, 0.0).items() if k != "auroc"}
    return {**case, "status": "error", "message": message}


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch) -> TablesSpecification:
    return specify(
        TablesSpecification,
        {
            "tasks": ["wdbc", "pima", "sonar"],
            "methods": ["dp", "mml", "knn", "ecod"],
            "protocols": "known",
            "labels": 5,
            "seeds": 2,
        },
    )


FIGURES = {
    "wdbc": {"dp": (0.9, 0.8), "mml": (0.8, 0.8), "knn": (0.7, 0.7)},
    "pima": {"dp": (0.6, 0.6), "mml": (0.7, 0.7), "knn": (0.5, 0.7)},
    "sonar": {"dp": (0.5, 0.5), "mml": (0.5, 0.5)},
}


def records_of() -> list[dict[str, Any]]:
    return [
        record(task, method, seed, auroc)
        for task, by_method in FIGURES.items()
        for method, values in by_method.items()
        for seed, auroc in enumerate(values)
    ]


def test_only_tasks_that_all_have_are_averaged(spec: TablesSpecification) -> None:
    (block,) = summarise(spec, [*records_of(), failed("sonar", "knn", 0, "ValueError: no")])
    dp, mml, knn = (System(name) for name in ("dp", "mml", "knn"))
    assert block.shown == (dp, mml, knn)  # ecod has no result, and is in nobody's way
    assert block.common == ("wdbc", "pima")
    assert block.lacking(knn) == ["sonar"]
    assert block.mean(dp, "auroc") == pytest.approx(72.5)
    assert block.mean(mml, "auroc") == pytest.approx(75.0)
    assert block.mean(knn, "average_precision") == pytest.approx(32.5)
    assert np.isnan(block.mean(System("ecod"), "auroc"))
    assert block.ranks == {dp: 1.75, mml: 1.5, knn: 2.75}  # dp and knn are equal on pima
    assert block.wins == {dp: 1, mml: 1, knn: 0}
    ahead = block.ahead(mml, "auroc")
    assert (ahead.difference, ahead.n) == (pytest.approx(2.5), 2)  # -5 and +10
    assert ahead.sem == pytest.approx(7.5)
    assert block.ahead(dp, "auroc").n == 0


def test_tables_say_how_many_tasks_and_what_failed(spec: TablesSpecification) -> None:
    records = [*records_of(), failed("sonar", "knn", 0, "ValueError: no")]
    blocks = summarise(spec, records)
    means, differences, ranks, costs = make_grids(blocks, {})
    rows = dict((row[0], row[1]) for row in means.rows)
    assert rows == {
        "dp": "72.5 / 36.2",
        "mml": "75.0 / 37.5",
        "knn": "65.0 / 32.5",
        "tasks": "2 of 3",
    }
    assert means.bold == {(1, 1)}
    assert any("knn lacks sonar, left out for all" in note for note in means.notes)
    assert ("mml", "+2.5 ± 7.5 / +1.2 ± 3.8") in differences.rows
    assert ("knn", "2.75 / 0") in ranks.rows
    assert ("dp", "2.00", "", "", "") in costs.rows
    assert any("knn on sonar: ValueError: no" in note for note in costs.notes)
    assert "Not run, or on few tasks: ecod." in costs.notes
    lines = {line["method"]: line for line in summary_lines(blocks)}
    assert lines["mml"]["auroc_difference"] == "2.5000"
    assert lines["mml"]["tasks"] == 2


def test_a_system_that_has_run_little_is_in_nobodys_way(spec: TablesSpecification) -> None:
    """Neither its few tasks nor its few seeds empty the table of the others."""
    more = record("wdbc", "ecod", 0, 0.99)
    (block,) = blocks = summarise(spec, [*records_of(), more])
    assert System("ecod") not in block.shown
    assert block.seeds == {0, 1}
    assert block.common == ("wdbc", "pima")
    means, *_ = make_grids(blocks, {})
    assert [row[0] for row in means.rows] == ["dp", "mml", "knn", "tasks"]
    said = "known, 5 labels: without systems that have run on few tasks: ecod (1 task)."
    assert said in means.notes


def test_means_are_over_the_seeds_that_all_have(spec: TablesSpecification) -> None:
    records = [r for r in records_of() if r["method"] != "knn" or r["seed"] == 0]
    (block,) = blocks = summarise(spec, records)
    assert block.seeds == {0}
    assert block.common == ("wdbc", "pima")
    assert block.mean(System("dp"), "auroc") == pytest.approx(75.0)
    means, *_ = make_grids(blocks, {})
    assert "known, 5 labels: over 1 seed, which all have." in means.notes


def test_the_overview_is_of_conditions_that_all_have() -> None:
    options = {"tasks": "wdbc", "methods": ["dp", "knn"], "seeds": 1, "protocols": "known"}
    spec = specify(TablesSpecification, {**options, "labels": [0.05, 5]})
    records = [record("wdbc", "dp", 0, 0.5, labels=0.05)]
    records += [record("wdbc", m, 0, a, labels=5.0) for m, a in (("dp", 0.7), ("knn", 0.6))]
    overview, *_ = make_grids(summarise(spec, records), {})
    assert [row[:2] for row in overview.rows] == [("dp", "70.0 / 35.0"), ("knn", "60.0 / 30.0")]
    assert "all of these have run under (known, 5 labels)" in overview.notes[0]


def test_a_protocol_that_not_all_have_run_keeps_its_own_figures() -> None:
    options = {"tasks": "wdbc", "methods": ["dp", "knn"], "seeds": 1, "labels": [0.05, 5]}
    spec = specify(TablesSpecification, {**options, "protocols": ["known", "novel"]})
    records = [
        record("wdbc", method, 0, auroc, protocol=protocol, labels=labels)
        for labels in (0.05, 5.0)
        for method, protocol, auroc in (
            ("dp", "known", 0.7),
            ("knn", "known", 0.6),
            ("dp", "novel", 0.5),
        )
    ]
    overview, *_ = make_grids(summarise(spec, records), {})
    assert [row[1:3] for row in overview.rows] == [
        ("70.0 / 35.0", "50.0 / 25.0"),
        ("60.0 / 30.0", ""),
    ]


def test_every_task_has_its_row_and_its_best(spec: TablesSpecification) -> None:
    auroc, precision = task_grids(summarise(spec, records_of()))
    assert [row[0] for row in auroc.rows] == ["wdbc", "pima", "sonar"]
    assert auroc.header == ("%", "dp", "mml", "knn")
    assert auroc.rows[0][1:] == ("85.0 ± 7.1", "80.0 ± 0.0", "70.0 ± 0.0")
    assert auroc.bold == {(0, 1), (1, 2), (2, 1), (2, 2)}
    assert precision.rows[2][3] == ""


def test_infeasible_seeds_do_not_make_a_task_incomplete(spec: TablesSpecification) -> None:
    records = [r for r in records_of() if r["task"] == "wdbc" and r["seed"] == 0]
    for method in ("dp", "mml", "knn", "ecod"):
        why = failed("wdbc", method, 1, "infeasible: too few")
        records.append({**why, "status": "infeasible"})
        for seed in (0, 1):
            why = failed("pima", method, seed, "infeasible: too few")
            records.append({**why, "status": "infeasible"})
    (block,) = summarise(spec, records)
    assert block.feasible == ("wdbc", "sonar")
    assert block.common == ("wdbc",)
    grids = make_grids([block], {})
    assert any("wdbc, pima have too few anomalies" in note for note in grids[-1].notes)


def test_a_case_is_what_identifies_a_record() -> None:
    case = Case("wdbc", "dp", "", "hidden", 5, 0.1, 1)
    assert case == Case("wdbc", "dp", "", "hidden", 5.0, 0.1, 1)
    assert case.condition == Condition("hidden", 5.0, 0.1)


def test_many_conditions_have_a_table_for_each_protocol() -> None:
    options = {"tasks": "wdbc", "methods": ["dp", "knn"], "seeds": 1}
    spec = specify(TablesSpecification, {**options, "labels": [0.05, 5], "hidden": [0.02, 0.1]})
    records = [
        record("wdbc", method, 0, auroc, protocol=c.protocol, labels=c.labels, hidden=c.hidden)
        for c in spec.conditions
        for method, auroc in (("dp", 0.5 + c.hidden + c.labels / 100), ("knn", 0.4))
    ]
    blocks = summarise(spec, records)
    overview, *others = make_grids(blocks, {})
    assert overview.header == ("AUROC / average precision", "known", "novel", "hidden", "rank")
    # The mean of the conditions of a protocol: hidden has two shares, each with two amounts.
    assert overview.rows[0] == ("dp", "52.5 / 26.3", "52.5 / 26.3", "58.5 / 29.3", "1.00")
    assert [grid.title for grid in others if grid.title.startswith("Points")] == [
        f"Points ahead of dp, {protocol}" for protocol in ("known", "novel", "hidden")
    ]


def test_variants_change_what_our_methods_are_shown(study: Callable[..., TablesStudy]) -> None:
    unit = {"name": "unit", "columns": "unit", "parameters": {"standardize": False}}
    bins = {"name": "bins", "columns": "bins", "network": {"residual": True}}
    variants = [{"name": ""}, unit, bins, {"name": "mixed", "mixed": 6}]
    made = study(methods=["dp", "shallow"], variants=variants, tasks="pumps", labels=5)
    place = made.cases[0].place
    cases = {c.variant: c for c in made.cases if c.method == "dp" and c.place == place}
    found = {name: made.trial(case) for name, case in cases.items()}
    plain, peer = found[""], next(c for c in made.cases if c.method == "shallow")
    assert np.array_equal(made.trial(peer).X, plain.X)
    assert (found["unit"].X.min(), found["unit"].X.max()) == (0, 1)
    assert found["bins"].X.shape[1] == 8 * plain.X.shape[1]
    assert found["mixed"].y.sum() == plain.y.sum() + 6
    assert np.array_equal(found["mixed"].X[: len(plain.X)], plain.X)
    kinds = {name: made.identity(case).record.get("columns") for name, case in cases.items()}
    assert kinds == {"": None, "unit": "unit", "bins": "bins", "mixed": "standard"}
    (outcome,) = measure([found["bins"]], lambda *_: None)
    assert outcome["status"] == "ok"


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ({"name": "", "mixed": 3}, "needs a name"),
        ({"name": "a", "network": {"residual": True, "normalise": True}}, "no normalisation"),
        ({"name": "a", "columns": "logs"}, "columns"),
    ],
)
def test_wrong_variants_are_named(variant: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        specify(TablesSpecification, {"methods": "dp", "variants": [variant]})
