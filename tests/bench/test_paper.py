"""The paper's cells: which there are, what fills them, what is left and how long it takes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aloof.bench.paper.cells import PEER, TABLES, Cell, paper_cells
from aloof.bench.paper.experiments import Experiment, read_experiments
from aloof.bench.paper.filling import Filling, fill
from aloof.bench.paper.queue import choose, find_least
from aloof.bench.paper.results import Entry, Results, Timing, read_results
from aloof.bench.paper.speeds import Speeds
from aloof.bench.paper.status import Status, look
from aloof.bench.paper.work import bundles, find_work
from aloof.exceptions import AloofWarning, ExperimentError

CIFAR = """
dataset = "cifar10"
methods = ["vae", "dp", "deep-svdd", "deep-sad", "oc-svm"]
gamma_l = [0.0, 0.01]
"""


def cell(table: str, row: str, dataset: str, condition: str = "", setting: str = PEER) -> Cell:
    (found,) = (
        c
        for c in paper_cells()
        if (c.table, c.row, c.dataset, c.condition, c.setting)
        == (table, row, dataset, condition, setting)
    )
    return found


DP = cell("images", "DP-VAE", "cifar10", "0.01", "ours")
SAD = cell("images", "deep-sad", "cifar10", "0.01")


def add(results: Results, cell: Cell, source: int, values: list[float], **more: Any) -> None:
    """Add records that can fill a cell, one for each value."""
    for want in cell.sources[source].wants:
        for number, value in enumerate(values):
            record = {"auroc": value / 100, "members": 5, **more}
            record.setdefault("member_auroc", [value / 100] * record["members"])
            outdated = record.pop("outdated", False)
            results.add(cell.kind, want, (number,), Entry(record, outdated))


def test_every_cell_of_the_paper_is_there_once() -> None:
    """Counted by hand: the columns of each table times its rows, without what is printed twice.

    Without labels, columns of one system stand once: the VAE of both methods, Deep SVDD of
    Deep SAD, the one-class SVM of SSAD.
    """
    cells = paper_cells()
    places = {name: {c.place for c in cells if c.table == name} for name in TABLES}
    labelled = 4 * 6  # SSAD, its hybrid, Deep SAD, classifier, MML-VAE, DP-VAE
    unlabelled = 4  # one-class SVM, its hybrid, Deep SVDD, VAE
    nrf = 2  # on two of three sets
    assert len(places["images"]) == 3 * (labelled + unlabelled) + nrf
    more = 5 + 4  # forests, KDE and their hybrids, CAE; SS-DGM with labels
    assert len(places["images-complete"]) == 3 * (labelled + unlabelled + more) + nrf
    assert len(places["ensembles"]) == 5 * 6 - 2
    assert len(places["cats-vs-dogs"]) == 5 * 3 + 6 - 1
    assert len(places["pollution"]) == 3 * 5 * 15 - 2  # the two that the paper lost
    assert len(places["odds"]) == 6 * 7
    assert len(places["odds-complete"]) == 6 * 13
    assert len(places["ablation"]) == 3 * 5
    assert len(places["ablation-complete"]) == 3 * 8
    assert len(places["ill-trained"]) == 5
    assert len(places["text"]) == 2 * 3
    assert [len(places[name]) for name in ("planning", "figure1", "cubo")] == [2, 1, 1]
    assert max(Counter((c.place, c.setting) for c in cells).values()) == 1


def test_cells_of_ours_are_there_in_each_setting_and_peers_as_published_first() -> None:
    settings = {c.setting for c in paper_cells() if c.row == "DP-VAE" and c.kind == "images"}
    assert settings == {"ours", "paper"}
    settings = {c.setting for c in paper_cells() if c.row == "DP-VAE" and c.kind == "odds"}
    assert settings == {"ours", "paper", "paper, unit"}
    assert [s.label for s in SAD.sources] == ["deep-sad (paper)", "deep-sad (ours)", "deep-sad"]
    tuned = cell("odds", "oc-svm", "cardio")
    assert tuned.sources[0].label.startswith("oc-svm-unfair (paper")
    plain = [s.label for s in tuned.sources if "unfair" not in s.label]
    assert plain == [s.label for s in tuned.sources[len(plain) :]]
    assert cell("images", "inclusive-nrf", "mnist", "0").mean == 95.2
    assert cell("images-complete", "inclusive-nrf", "mnist", "0").mean == 95.26
    assert cell("cats-vs-dogs", "dadgt", "cats-vs-dogs", "0").mean == 88.8
    assert cell("text", "MML-VAE", "imdb", "positive normal", "paper").std == 5.0
    assert cell("ablation", "same, freeze, 1", "cifar10", "", "ours").mean == 72.3


def test_a_cell_is_filled_by_the_preferred_source_that_has_enough() -> None:
    results = Results()
    assert fill(SAD, results) == Filling(SAD, None, "missing", (), (), 0)
    add(results, SAD, 1, [70.0] * 10)  # ours
    add(results, SAD, 0, [60.0] * 9)  # as published, one problem too few
    found = fill(SAD, results)
    assert (found.state, found.n, found.source) == ("filled", 10, SAD.sources[1])
    assert found.difference == pytest.approx(70.0 - 72.6)
    add(results, SAD, 0, [60.0] * 10)
    assert fill(SAD, results).source == SAD.sources[0]
    assert fill(DP, results).state == "missing"  # ours has no other source


def test_older_revisions_and_too_few_problems_are_said() -> None:
    results = Results()
    add(results, DP, 0, [70.0] * 9)
    assert fill(DP, results).state == "partial"
    add(results, DP, 0, [80.0] * 10, outdated=True)
    older = fill(DP, results)
    assert (older.state, older.n) == ("older", 10)
    assert older.moments.mean == pytest.approx(71.0)  # the nine stay, the tenth is older
    add(results, DP, 0, [70.0] * 10, finished="2026-01-01")
    assert fill(DP, results).state == "filled"


def test_the_error_of_a_difference_has_both_spreads() -> None:
    results = Results()
    add(results, DP, 0, [70.0, 80.0] * 5)
    found = fill(DP, results)
    spread = (10 * 25 / 9) ** 0.5
    assert found.error == pytest.approx((spread**2 / 10 + 8.4**2 / 90) ** 0.5)
    alone = cell("cats-vs-dogs", "DP-VAE", "cats-vs-dogs", "0.01", "ours")
    add(results, alone, 0, [60.0, 70.0])
    assert fill(alone, results).difference == pytest.approx(1.0)
    assert fill(alone, results).error is None  # the paper has no spread there


def test_one_model_is_the_mean_of_the_models_of_an_ensemble() -> None:
    results = Results()
    one = cell("ensembles", "DP-VAE, K = 1", "cifar10", "0.01", "ours")
    five = cell("ensembles", "DP-VAE, K = 5", "cifar10", "0.01", "ours")
    assert one.sources == five.sources
    models = {"member_auroc": [0.5, 0.6, 0.7, 0.8, 0.9]}
    add(results, one, 0, [90.0] * 10, **models)
    assert fill(one, results).moments.mean == pytest.approx(70.0)
    assert fill(five, results).moments.mean == pytest.approx(90.0)
    add(results, one, 0, [90.0] * 10, members=1, finished="2026-01-01")
    assert fill(one, results).moments.mean == pytest.approx(90.0)
    assert fill(five, results).state == "missing"  # nobody trained five


def test_a_mean_over_directions_needs_both() -> None:
    results = Results()
    both = cell("text", "MML-VAE", "imdb", "mean", "ours")
    first, second = both.sources[0].wants
    for run in range(5):
        results.add("text", first, (run,), Entry({"auroc": 0.6}, outdated=False))
    assert fill(both, results).state == "partial"
    for run in range(5):
        results.add("text", second, (run,), Entry({"auroc": 0.7}, outdated=False))
    found = fill(both, results)
    assert (found.state, found.n, len(found.values)) == ("filled", 5, 10)
    assert found.moments.mean == pytest.approx(65.0)


@pytest.fixture
def experiments(tmp_path: Path) -> Callable[..., tuple[Experiment, ...]]:
    """Experiments from the text of their files, by name."""

    def make(**texts: str) -> tuple[Experiment, ...]:
        folder = tmp_path / "experiments"
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name.replace('_', '-')}.toml").write_text(text)
        return read_experiments(folder)

    return make


Make = Callable[..., tuple[Experiment, ...]]


def work_of(results: Results, files: tuple[Experiment, ...], *cells: Cell) -> Any:
    return find_work([fill(c, results) for c in cells], results, files)


def test_a_missing_cell_has_a_command(experiments: Make) -> None:
    files = experiments(images_cifar10=CIFAR)
    results = Results()
    works, uncovered = work_of(results, files, DP, SAD)
    assert uncovered == []
    assert [(w.reason, len(w.cases), w.want[1]) for w in works] == [
        ("missing", 10, "dp"),
        ("missing", 10, "deep-sad"),
    ]
    path = files[0].path
    (ours, peers) = (bundle.command for bundle in bundles(works))
    assert ours == f"aloof bench images --experiment {path} --methods dp --gamma-l 0.01"
    assert peers.endswith("--methods deep-sad --gamma-l 0.01")

    for case in works[0].cases:
        place = files[0].kind.replicate(case)
        results.add("images", works[0].want, place, Entry({"auroc": 0.7, "members": 5}, False))
    works, _ = work_of(results, files, DP, SAD)
    assert [work.want[1] for work in works] == ["deep-sad"]


def test_what_is_older_is_made_again_and_only_that(experiments: Make) -> None:
    files = experiments(images_cifar10=CIFAR)
    results = Results()
    (first, *_), _ = work_of(results, files, DP)
    for number, case in enumerate(first.cases):
        entry = Entry({"auroc": 0.7, "members": 5}, outdated=number < 4)
        results.add("images", first.want, files[0].kind.replicate(case), entry)
    (again,), _ = work_of(results, files, DP)
    assert (again.reason, again.cases) == ("again", first.cases[:4])


def test_a_setting_that_no_file_names_is_asked_for_beside_it(experiments: Make) -> None:
    files = experiments(images_cifar10=CIFAR)
    paper = cell("images", "DP-VAE", "cifar10", "0.01", "paper")
    (work,), _ = work_of(Results(), files, paper)
    (bundle,) = bundles([work])
    assert bundle.command.endswith("--methods dp --gamma-l 0.01 --setting paper")
    assert {case["setting"] for case in work.cases} == {"paper"}
    # A peer is run as published as soon as a file says so, and then once more.
    results = Results()
    add(results, SAD, 1, [70.0] * 10)
    assert work_of(results, files, SAD) == ([], [])
    files = experiments(images_published='setting = "paper"\n' + CIFAR)
    (better,), _ = work_of(results, files, SAD)
    assert (better.reason, better.experiment.name) == ("published", "images-published")


def test_more_problems_come_after_everything_else(experiments: Make) -> None:
    files = experiments(images_cifar10=CIFAR, images_90_cifar10=CIFAR + "problems = 90\n")
    results = Results()
    (missing, more), _ = work_of(results, files, DP)
    assert missing.experiment.name == "images-cifar10"  # the smaller one will do
    assert (more.reason, len(more.cases)) == ("more", 80)
    for case in missing.cases:
        place = files[0].kind.replicate(case)
        results.add("images", missing.want, place, Entry({"auroc": 0.7, "members": 5}, False))
    works, _ = work_of(results, files, DP, SAD)
    assert [(w.reason, w.want[1], len(w.cases)) for w in works] == [
        ("missing", "deep-sad", 10),
        ("more", "deep-sad", 80),
        ("more", "dp", 80),
    ]
    assert works[1].experiment.name == "images-90-cifar10"


def test_cells_that_no_experiment_has_are_named(experiments: Make) -> None:
    files = experiments(images_cifar10=CIFAR)
    mnist = cell("images", "DP-VAE", "mnist", "0.01", "ours")
    assert work_of(Results(), files, mnist) == ([], [mnist])


def timing(experiment: Experiment, want: Any, seconds: float, **record: Any) -> Timing:
    record = {"device": "NVIDIA H200", "stacked": 30, "members": 5, "n_normal": 4000, **record}
    return Timing(experiment, want, seconds, record)


def test_estimates_come_from_the_nearest_records(experiments: Make) -> None:
    (file,) = experiments(images_cifar10='setting = ["ours", "paper"]\n' + CIFAR)
    dp = ("cifar10", "dp", 0.01, 0.0, "", "ours")
    sad = ("cifar10", "deep-sad", 0.01, 0.0, "", "ours")
    results = Results()
    assert Speeds(results, "gpu").estimate(file, dp, 3).how == "guessed"
    config = {"training": {"max_epochs": 15}}
    for seconds in (2.0, 4.0, 100.0):  # the median counts
        results.timings.append(timing(file, dp, seconds, config=config))
    speeds = Speeds(results, "gpu")
    same = speeds.estimate(file, dp, 30)
    assert (same.seconds, same.how) == (pytest.approx(30 * 4.0), "measured")
    few = speeds.estimate(file, dp, 1)  # a stack of five is less than it could be
    assert few.seconds == pytest.approx(4.0 * (1 + 8 / 5) / (1 + 8 / 150))
    other = speeds.estimate(file, ("cifar10", "dp", 0.01, 0.0, "", "paper"), 30)
    n_epochs = file.kind.epochs(
        file.spec, file.cases["cifar10", "dp", 0.01, 0.0, "", "paper"][0]
    )
    assert n_epochs == 200
    assert other.how == "estimated"
    assert other.seconds == pytest.approx(same.seconds * 200 / 15)
    assert speeds.estimate(file, sad, 30).how == "estimated"
    on_cpu = Speeds(results, "cpu").estimate(file, dp, 30)
    assert on_cpu.how == "guessed"
    assert on_cpu.seconds > 10 * same.seconds
    assert (same + other).how == "estimated"


SETS = 'setting = ["paper"]\ngamma_l = [0.0]\nbaseline_members = 1\n'


def test_networks_take_as_long_as_they_multiply(experiments: Make) -> None:
    small, large = experiments(
        images_mnist=SETS + 'dataset = "mnist"\nmethods = ["inclusive-nrf"]\n',
        images_cifar10=SETS + 'dataset = "cifar10"\nmethods = ["inclusive-nrf", "dsebm"]\n',
    )[::-1]
    digits, photos, energy = (
        (name, method, 0.0, 0.0, "", "paper")
        for name, method in (
            ("mnist", "inclusive-nrf"),
            ("cifar10", "inclusive-nrf"),
            ("cifar10", "dsebm"),
        )
    )
    results = Results()
    results.timings.append(timing(small, digits, 600.0, device="cpu", members=1, stacked=1))
    sizes = [
        file.kind.multiplications(file.spec, file.cases[want][0])
        for file, want in ((small, digits), (large, photos), (large, energy))
    ]
    assert sizes[1] > 100 * sizes[0], "convolutions of CIFAR-10, and a perceptron"
    for want, size in ((photos, sizes[1]), (energy, sizes[2])):
        found = Speeds(results, "cpu").estimate(large, want, 1)
        assert found.how == "estimated"  # from another family, if need be
        assert found.seconds == pytest.approx(600 * size / sizes[0])


def test_what_needs_no_gpu_is_timed_on_a_cpu(experiments: Make) -> None:
    (file,) = experiments(images_cifar10=CIFAR)
    svm = ("cifar10", "oc-svm", 0.0, 0.0, "", "")
    results = Results(timings=[timing(file, svm, 3.0, device="cpu", members=1)])
    found = Speeds(results, "gpu").estimate(file, svm, 2)
    assert (found.seconds, found.how) == (pytest.approx(6.0), "measured")
    tuned = ("cifar10", "oc-svm-unfair", 0.0, 0.0, "", "")
    more = Speeds(results, "gpu").estimate(file, tuned, 2)
    assert (more.seconds / found.seconds, more.how) == (pytest.approx(50), "estimated")
    # A hybrid trains its network once, and tries 50 detectors on its codes.
    for method, seconds in (("cae", 2.0), ("oc-svm-hybrid", 2.5)):
        want = ("cifar10", method, 0.0, 0.0, "", "ours")
        results.timings.append(timing(file, want, seconds))
    hybrid = ("cifar10", "oc-svm-hybrid-unfair", 0.0, 0.0, "", "ours")
    tuned_hybrid = Speeds(results, "gpu").estimate(file, hybrid, 30)
    assert tuned_hybrid.seconds == pytest.approx(30 * (2.0 + 50 * 0.5))


def status(files: tuple[Experiment, ...], device: Any, *cells: Cell, each: float) -> Status:
    """What is missing, where every case takes so many seconds on a GPU and on a CPU."""
    results = Results()
    works, uncovered = work_of(results, files, *cells)
    for work, place in ((w, p) for w in works for p in ("NVIDIA H200", "cpu")):
        results.timings.append(timing(work.experiment, work.want, each, device=place))
    return Status(results, files, (), tuple(works), tuple(uncovered), Speeds(results, device))


SVM = cell("images", "oc-svm", "cifar10", "0")


def chosen(found: Status, seconds: float, **more: Any) -> dict[str, int]:
    tasks = choose(found, seconds, **more)
    return {w.want[1]: len(w.cases) for task in tasks for w in task.bundle.works}


def test_as_much_is_chosen_as_fits_and_the_most_important_first(experiments: Make) -> None:
    files = experiments(images_cifar10=CIFAR)
    found = status(files, "gpu", SAD, DP, SVM, each=10.0)
    assert chosen(found, 1e6) == {"dp": 10, "deep-sad": 10}  # the SVM is for other machines
    needed = 1.1 * 10 * 10.0 * (1 + 8 / 50) / (1 + 8 / 150)
    assert chosen(found, 20 + needed + 1) == {"dp": 10}
    part = chosen(found, 20 + 1.6 * needed)
    assert part["dp"] == 10
    assert 0 < part["deep-sad"] < 10
    assert chosen(found, 20) == {}
    least = find_least(found)
    assert least is not None
    work, one = least.work, 10 * (1 + 8 / 5) / (1 + 8 / 150)
    assert least.estimate.seconds == pytest.approx(one)
    assert least.seconds == pytest.approx(20 + 1.1 * one)
    assert sum(chosen(found, least.seconds + 1e-6).values()) == least.n_cases == 1
    assert chosen(found, least.seconds - 1e-6) == {}
    assert chosen(found, 1e6, kinds=["odds"]) == {}
    place = files[0].kind.replicate(work.cases[0])
    tried = {(files[0].name, work.want, place)}
    assert chosen(found, 1e6, tried=tried)[work.want[1]] == 9


def test_without_a_gpu_small_things_come_first(experiments: Make) -> None:
    files = experiments(images_cifar10=CIFAR)
    found = status(files, "cpu", SAD, DP, SVM, each=10.0)
    assert chosen(found, 20 + 1.1 * 60) == {"oc-svm": 6}
    assert chosen(found, 20 + 1.1 * 160) == {"oc-svm": 10, "dp": 6}
    assert chosen(found, 20 + 1.1 * 200) == {"oc-svm": 10, "dp": 10}


def test_what_one_network_serves_is_run_as_a_whole_or_not(experiments: Make) -> None:
    files = experiments(planning='methods = "dp"\nseeds = 1\n')
    found = status(files, "cpu", cell("planning", "DP-VAE", "", "", "ours"), each=10.0)
    least = find_least(found)
    assert least is not None
    assert least.n_cases == 100  # worlds
    tasks = choose(found, least.seconds + 1e-6)
    assert [len(work.cases) for task in tasks for work in task.bundle.works] == [100]
    assert choose(found, least.seconds - 1e-6) == []


def image_record(**change: Any) -> dict[str, Any]:
    case = {"dataset": "cifar10", "method": "dp", "normal": 0, "anomaly": 1, "gamma_l": 0.01}
    case |= {"gamma_p": 0.0, "seed": 0, "variant": "", "setting": "ours"}
    made = {"status": "ok", "auroc": 0.7, "members": 5, "member_auroc": [0.7] * 5}
    return {**case, **made, "revision": 2, **change}


def write(folder: Path, *records: dict[str, Any], end: str = "\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "records.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records) + end)
    return path


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"dataset": "mnist"}, "holds 1 record of another experiment than"),
        ({"revision": 99}, "holds 1 record from a newer version of aloof"),
        ({"sampler": "VAE"}, None),
    ],
)
def test_records_that_fill_nothing_are_said(
    experiments: Make, tmp_path: Path, change: dict[str, Any], problem: str | None
) -> None:
    files = experiments(images_cifar10=CIFAR)
    good = image_record(normal=3)
    path = write(tmp_path / "results" / "images-cifar10", good, image_record(**change))
    before = path.read_bytes()
    results = read_results(tmp_path / "results", files)
    want = DP.sources[0].wants[0]
    if problem is None:
        assert results.problems == []
        assert len(results.of("images", want)) == 2
    else:
        (said,) = results.problems
        assert problem in said
        assert str(path) in said
        assert len(results.of("images", want)) == 1
    assert path.read_bytes() == before


def test_a_folder_of_another_kind_of_study_is_a_problem(
    experiments: Make, tmp_path: Path
) -> None:
    files = experiments(images_cifar10=CIFAR)
    write(tmp_path / "images-cifar10", {"sampler": "VAE", "world": 0, "collision": 0.1})
    (said,) = read_results(tmp_path, files).problems
    assert "is not a record of this experiment: it lacks dataset, method" in said


def test_half_a_record_is_left_out_with_a_warning(experiments: Make, tmp_path: Path) -> None:
    files = experiments(images_cifar10=CIFAR)
    half = json.dumps(image_record(normal=4))[:40]
    write(tmp_path / "images-cifar10", image_record(), end="\n" + half)
    with pytest.warns(AloofWarning, match="is cut off"):
        results = read_results(tmp_path, files)
    assert len(results.of("images", DP.sources[0].wants[0])) == 1


def test_errors_and_other_configurations_fill_nothing(
    experiments: Make, tmp_path: Path
) -> None:
    files = experiments(images_cifar10=CIFAR)
    case = next(c for c in files[0].cases[DP.sources[0].wants[0]])
    config = files[0].kind.identity(files[0].spec, case).record["config"]  # type: ignore[union-attr]
    longer = {**config, "training": {**config["training"], "max_epochs": 3}}
    write(
        tmp_path / "images-cifar10",
        image_record(config=config),
        image_record(config=longer, normal=1),
        image_record(status="error", normal=2),
        image_record(config=config, normal=3, revision=1),
    )
    results = read_results(tmp_path, files)
    entries = results.of("images", DP.sources[0].wants[0])
    assert [(e.record["normal"], e.outdated) for e in entries.values()] == [
        (0, False),
        (3, True),
    ]
    (note,) = results.notes
    assert "holds 1 record with another configuration" in note


def test_networks_of_every_seed_fill_a_cell(experiments: Make, tmp_path: Path) -> None:
    """The configuration of a planning record names its seed."""
    files = experiments(planning='methods = "dp"\nseeds = 2\nn_worlds = 2')
    (file,) = files
    records = []
    for case in file.kind.cases(file.spec):
        config = file.kind.identity(file.spec, case).record["config"]  # type: ignore[union-attr]
        records.append({**case, "collision": 0.1, "config": config})
    write(tmp_path / "planning", *records)
    results = read_results(tmp_path, files)
    assert results.notes == results.problems == []
    assert len(results.of("planning", ("DP-VAE", "ours"))) == 4


def test_the_folders_that_are_not_there(experiments: Make, tmp_path: Path) -> None:
    experiments(images_cifar10=CIFAR)
    found = look(tmp_path / "nothing", tmp_path / "experiments")
    assert {filling.state for filling in found.fillings} == {"missing"}
    with pytest.raises(ExperimentError, match="There are no experiments in"):
        look(tmp_path, tmp_path / "nothing")
    with pytest.raises(ExperimentError, match="no table 'image'; did you mean 'images'"):
        look(tmp_path, tmp_path / "experiments", tables=["image"])
