"""Our numbers and the paper's, side by side: what they are, and that they never mix."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from aloof.baselines import (
    BASELINES,
    UNFAIR_GRIDS,
    Autoencoder,
    InclusiveNRF,
    fit_unfairly,
)
from aloof.bench import Identity, run_study, specify, stored
from aloof.bench.images import ImageCase, ImageSpecification, make_images, plan_chunks
from aloof.bench.images.paper import image_paper_figure, image_paper_figures
from aloof.bench.images.plot import plot_images
from aloof.bench.images.settings import LENETS, PAPER_NETWORKS, image_setting
from aloof.bench.images.specification import deep_peers, settings_of
from aloof.bench.images.systems import configuration
from aloof.bench.images.tables import csv_lines, image_grids
from aloof.datasets import ImageDataset
from aloof.exceptions import ExperimentError
from aloof.problem import Problem

BOTH = ["ours", "paper"]


@pytest.fixture(scope="module")
def spots() -> ImageDataset:
    """Images of three classes: where a bright square lies."""
    rng = np.random.default_rng(0)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.repeat(np.arange(3), n)
        pixels = rng.integers(0, 60, (3 * n, 1, 28, 28)).astype(np.uint8)
        for k in range(3):
            pixels[labels == k, :, 8 * k : 8 * k + 8, 8 * k : 8 * k + 8] += 150
        return pixels, labels

    (train, train_labels), (test, test_labels) = drawn(30), drawn(10)
    return ImageDataset(
        "fashion-mnist", train, train_labels, test, test_labels, tuple("abc"), "made"
    )


@pytest.mark.parametrize(
    ("dataset", "method", "polluted", "rate", "beta_cubo", "interval"),
    [
        ("mnist", "dp", False, 1e-3, 0.005, 2),
        ("mnist", "vae", True, 1e-3, 0.005, 2),
        ("mnist", "mml", False, 5e-4, 0.005, 2),
        ("mnist", "mml", True, 2e-4, 0.02, 2),
        ("fashion-mnist", "mml", False, 1e-3, 0.005, 2),
        ("fashion-mnist", "mml", True, 1e-3, 0.25, 2),
        ("cifar10", "mml", True, 1e-3, 0.005, 2),
        ("cifar10", "dp", False, 1e-3, 0.005, 2),
        ("cats-vs-dogs", "dp", False, 1e-3, 0.005, 1),
        ("cats-vs-dogs", "mml", False, 5e-4, 0.005, 1),
    ],
)
def test_the_papers_numbers_are_those_of_its_appendix(
    dataset: str, method: Any, polluted: bool, rate: float, beta_cubo: float, interval: int
) -> None:
    found = image_setting(dataset, method, "paper", polluted=polluted)
    config, objective = found.config(), found.objective(method)
    assert (config.max_epochs, config.warmup_epochs, config.annealing_epochs) == (200, 50, 20)
    assert (config.batch_size, config.anomaly_interval) == (128, interval)
    assert config.freeze_decoder
    rates = [config.schedule.rate(epoch) for epoch in (0, 49, 50, 99, 100, 149, 150, 199)]
    assert rates == pytest.approx([rate, rate, *np.repeat([0.1, 0.01, 0.001], 2) * rate])
    assert (objective.beta_kl, objective.alpha, objective.gamma) == (0.005, 10.0, 1.0)
    assert objective.beta_cubo == beta_cubo
    assert (objective.n_samples, objective.reduction, objective.repulsion) == (1, "mean", "exp")


def test_other_epochs_keep_the_shares_of_the_phases() -> None:
    spec = ImageSpecification(max_epochs=20, setting=("paper",))
    found = spec.numbers_of("dp", "paper")
    assert (found.warmup_epochs, found.annealing_epochs) == (5, 2)
    assert found.milestones == (5, 10, 15)


def test_numbers_replace_those_of_a_setting_and_are_recorded() -> None:
    numbers = {"learning_rate": 0.01, "reduction": "sum", "milestones": [30], "beta_kl": 0.5}
    options = {"methods": ["dp"], "gamma_l": 0.05, "setting": BOTH, "numbers": numbers}
    changed = specify(ImageSpecification, options)
    plain = specify(ImageSpecification, {**options, "numbers": {}})
    for case in changed.cases(10)[::10]:
        config = Identity(configuration(changed, case)).record["config"]
        assert config["training"]["learning_rate"] == 0.01
        assert config["training"]["milestones"] == [30]
        assert config["training"]["lr_schedule"] == "step"
        assert config["objective"]["reduction"] == "sum"
        assert config["objective"]["beta_kl"] == 0.5
        assert not Identity(configuration(plain, case)).holds({"config": config})
    constant = specify(ImageSpecification, {"numbers": {"lr_schedule": "constant"}})
    assert constant.numbers_of("dp", "paper").config().schedule.rate(199) == 1e-3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"setting": "papers"}, "no setting 'papers'; did you mean 'paper'"),
        (
            {"numbers": {"learning_rate": -1}},
            r"numbers.learning_rate must be more than 0; got -1",
        ),
        ({"numbers": {"gamma": -0.5}}, r"numbers.gamma must be at least 0; got -0.5"),
        ({"numbers": {"n_samples": 0}}, r"numbers.n_samples must be at least 1; got 0"),
        ({"numbers": {"alpha": float("nan")}}, r"numbers.alpha must be a finite number"),
        ({"numbers": {"milestones": [50, 50]}}, r"numbers.milestones must be epochs from 1"),
        ({"numbers": {"reduction": "summ"}}, "no reduction 'summ'; did you mean 'sum'"),
        ({"max_rows": 1}, r"max_rows must be 'all' or a whole number from 2 on; got 1"),
        ({"seed": -1}, r"seed must be at least 0; got -1"),
        ({"gamma_p": 1.5}, r"gamma_p must be a share, from 0 to below 1; got 1.5"),
        ({"numbers": {"beta": 1}}, r"numbers.beta is unknown; did you mean 'beta_kl'"),
        ({"numbers": {"warmup_epochs": 61}}, r"warmup_epochs must be at most max_epochs, 60"),
        (
            {"numbers": {"milestones": [50], "lr_schedule": "cosine"}},
            r"numbers.milestones only apply to lr_schedule 'step'; got 'cosine'",
        ),
        ({"methods": ["cae"], "numbers": {"gamma": 2}}, "numbers only apply to our methods"),
        ({"methods": ["vae", "dp"], "variants": ["same-unfreeze"]}, "'vae' does not"),
        (
            {
                "methods": ["dp"],
                "variants": ["same-unfreeze"],
                "numbers": {"freeze_decoder": True},
            },
            "numbers.freeze_decoder: variants say what is frozen",
        ),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(options: Any, words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        specify(ImageSpecification, options)


def test_only_what_has_two_settings_is_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    class OwnNetworks(Autoencoder):
        checks: ClassVar[Any] = {"images": (lambda v: v is None, "None")}

    monkeypatch.setitem(BASELINES, "own", OwnNetworks)
    methods = ("vae", "dp", "deep-sad", "oc-svm", "kde-hybrid", "own")
    spec = ImageSpecification(methods=methods, gamma_l=(0.0, 0.1), setting=("ours", "paper"))
    found: dict[str, set[str]] = {}
    for case in spec.cases(10):
        found.setdefault(case.method, set()).add(case.setting)
    both = {"ours", "paper"}
    assert found == {
        **dict.fromkeys(("vae", "dp", "deep-sad", "kde-hybrid"), both),
        "oc-svm": {""},
        "own": {"paper"},
    }
    peer = configuration(spec, next(c for c in spec.cases(10) if c.method == "own"))["baseline"]
    assert peer.images is None
    assert peer.max_epochs == OwnNetworks().max_epochs, "as its authors published it"


def test_records_from_before_there_were_settings(spots: ImageDataset) -> None:
    options = {"methods": ["dp", "oc-svm"], "gamma_l": [0.0, 0.1]}
    study = make_images(specify(ImageSpecification, options), spots)
    for case in study.cases:
        record = asdict(case)
        del record["setting"]
        assert study.case_of(record) == case
        assert case.setting == ("ours" if case.method == "dp" else "")
        assert study.identity(case).describes(record)


def test_chunks_have_one_setting() -> None:
    methods = ("vae", "dp", "mml", "deep-sad", "cae", "kde-hybrid", "oc-svm")
    spec = ImageSpecification(methods=methods, setting=("ours", "paper"))
    cases = spec.cases(10)
    chunks = list(plan_chunks(cases, 5, 10_000))
    assert sorted(case for chunk in chunks for case in chunk) == sorted(cases)
    assert len(chunks) == 7, "two settings of three families, and a shallow peer"
    for chunk in chunks:
        assert len({case.setting for case in chunk}) == 1


def test_settings_stand_side_by_side(spots: ImageDataset, tmp_path: Path) -> None:
    options = {
        "methods": ["dp", "deep-sad", "oc-svm"],
        "setting": BOTH,
        "gamma_l": [0.0, 0.1],
        "members": 1,
        "max_epochs": 3,
        "baseline_epochs": 2,
    }
    study = make_images(specify(ImageSpecification, options), spots)
    records = run_study(study, tmp_path, device="cpu")
    assert Counter((r["method"], r["setting"]) for r in records) == {
        ("dp", "ours"): 3,
        ("dp", "paper"): 3,
        ("deep-sad", "ours"): 3,
        ("deep-sad", "paper"): 3,
        ("oc-svm", ""): 3,
    }
    assert stored(study, tmp_path) == records
    scores = {name: [r["auroc"] for r in records if r["setting"] == name] for name in BOTH}
    assert scores["ours"] != scores["paper"]
    auroc, _, tests = study.grids([{**r, "members": 2} for r in records])
    labels = [row[0] for row in auroc.rows]
    assert labels == [
        "oc-svm",
        "the paper's oc-svm",
        "dp (ours)",
        "dp (paper)",
        "the paper's dp",
        "deep-sad (ours)",
        "deep-sad (paper)",
        "the paper's deep-sad",
    ]
    assert [row[0] for row in tests.rows] == ["dp (ours)", "dp (paper)"]
    lines = list(study.summary(records))
    assert {(line["method"], line["setting"], line["n"]) for line in lines} == {
        (r["method"], r["setting"], 3) for r in records
    }
    assert {line["setting"] for line in csv_lines(records)} == {"", *BOTH}
    (axes,) = plot_images(records).axes
    assert {"dp (ours)", "dp (paper)"} <= {text.get_text() for text in axes.texts}


def test_the_t_test_compares_like_with_like() -> None:
    def record(method: str, setting: str, normal: int, auroc: float) -> dict[str, Any]:
        place = asdict(ImageCase("cifar10", method, normal, 9, 0.05, 0.0, 0, "", setting))
        return {**place, "auroc": auroc, "members": 1}

    records = [
        record(method, setting, normal, base + normal / 100 + (method == "dp") * normal / 1000)
        for method, setting, base in (
            ("dp", "ours", 0.8),
            ("deep-sad", "ours", 0.7),
            ("dp", "paper", 0.5),
            ("deep-sad", "paper", 0.6),
        )
        for normal in range(3)
    ]
    rows = {row[0]: row[1] for row in image_grids(records)[-1].rows}
    assert rows["dp (ours)"].startswith("+10.1")
    assert rows["dp (paper)"].startswith("-9.9")


def test_peers_are_those_of_their_authors() -> None:
    methods = ("cae", "kde-hybrid", "deep-svdd", "deep-sad", "deep-sad-ill", "classifier")
    spec = ImageSpecification(
        dataset="mnist", methods=methods, gamma_l=(0.0, 0.1), setting=("ours", "paper")
    )
    peers = {
        (case.method, case.setting): configuration(spec, case)["baseline"]
        for case in spec.cases(10)
    }
    for (method, setting), peer in peers.items():
        networks = LENETS if setting == "paper" else PAPER_NETWORKS
        assert peer.images == networks["mnist"], method
    sad = peers["deep-sad", "paper"]
    assert (sad.max_epochs, sad.learning_rate, sad.weight_decay) == (150, 1e-4, 5e-7)
    assert (sad.milestones, sad.batch_size) == ((50,), 128)
    assert (sad.pretrain_epochs, sad.pretrain_learning_rate) == (150, 1e-4)
    assert (sad.pretrain_milestones, sad.pretrain_weight_decay) == ((), 5e-4)
    assert peers["deep-sad-ill", "paper"].pretrain_epochs == 10
    assert sad.get_params() == peers["deep-svdd", "paper"].get_params()
    cae = peers["cae", "paper"]
    assert (cae.bias, cae.milestones, cae.weight_decay) == (False, (), 5e-4)
    assert cae.get_params() == peers["kde-hybrid", "paper"].get_params()
    assert peers["classifier", "paper"].milestones == (50,)
    assert peers["deep-sad", "ours"].milestones is None
    assert settings_of("kde", BOTH) == ("",)


def test_every_figure_of_the_paper_is_there_once() -> None:
    figures = list(image_paper_figures())
    places = Counter(figure[:-2] for figure in figures)
    assert max(places.values()) == 1
    # Columns times rows of each table, less the blanks; a VAE, Deep SVDD and one-class SVMs
    # stand once where two columns have them.
    assert Counter(figure.table for figure in figures) == {
        "complete": (8 + 1 + 6 * 4 + 1 + 4) + (8 + 6 * 4 + 1 + 4) + (8 + 1 + 6 * 4 + 1 + 4),
        "main": 2 * (3 + 1 + 6 * 4 + 1) + (3 + 6 * 4 + 1),
        "cats-vs-dogs": 8 + 3 * 4,
        "pollution": 15 * 5 * 3 - 2,
        "ensembles": 2 * 3 * 5 - 2,
        "ablation": 8,
        "ill-trained": 5,
    }
    for figure in figures:
        if figure.table not in ("main", "ablation", "pollution"):
            found = image_paper_figure(*figure[1:7])
            assert found == figure[-2:], figure


@pytest.mark.parametrize(
    ("place", "figure"),
    [
        (("mnist", "inclusive-nrf", 0.0, 0.0), (95.26, 3.0)),
        (("cats-vs-dogs", "dadgt", 0.0, 0.0), (88.8, None)),
        (("cifar10", "deep-sad", 0.2, 0.0, "", 5), (81.2, 7.5)),
        (("cifar10", "dp", 0.05, 0.0, "", 1), (77.3, 8.3)),
        (("cifar10", "vae", 0.0, 0.0, "", 1), (56.4, 6.5)),
        (("cifar10", "dp", 0.01, 0.0, "separate-freeze", 1), (49.2, 10.4)),
        (("mnist", "deep-sad", 0.05, 0.2), (86.6, 6.6)),
        (("mnist", "ssad", 0.05, 0.2), None),
        (("fashion-mnist", "kde-hybrid", 0.0, 0.2), (82.1, 9.8)),
        (("cifar10", "ssad-hybrid-unfair", 0.05, 0.1), (69.3, 8.5)),
        (("cifar10", "oc-svm-unfair", 0.0, 0.0), (62.0, 10.6)),
        (("cifar10", "ssad", 0.05, 0.0), (71.5, 8.1)),
    ],
)
def test_figures_of_the_paper(place: Any, figure: Any) -> None:
    assert image_paper_figure(*place) == figure


def test_what_authors_published_for_a_data_set_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Published(Autoencoder):
        published: ClassVar[Any] = {"mnist": {"images": {"filters": (3,)}, "max_epochs": 7}}

    monkeypatch.setitem(BASELINES, "theirs", Published)
    found = {}
    for dataset in ("mnist", "cifar10"):
        spec = ImageSpecification(
            dataset=dataset, methods=("theirs",), setting=("ours", "paper"), gamma_l=(0.0,)
        )
        for case in spec.cases(10):
            peer = configuration(spec, case)["baseline"]
            found[dataset, case.setting] = peer.images, peer.max_epochs
    assert found == {
        ("mnist", "ours"): (PAPER_NETWORKS["mnist"], 150),
        ("mnist", "paper"): ({"filters": (3,)}, 7),
        ("cifar10", "ours"): (PAPER_NETWORKS["cifar10"], 150),
        ("cifar10", "paper"): (None, Published().max_epochs),
    }


def test_peers_may_have_fewer_members(spots: ImageDataset) -> None:
    options = {"methods": ["dp", "deep-sad"], "gamma_l": 0.1, "members": 2}
    study = make_images(specify(ImageSpecification, {**options, "baseline_members": 1}), spots)
    members = {
        case.method: study.identity(case).record["config"].get("members")
        or study.identity(case).record["config"]["baseline"]["n_members"]
        for case in study.cases
    }
    assert members == {"dp": 2, "deep-sad": 1}


def test_unfair_systems_look_at_a_tenth_of_the_test_set(
    spots: ImageDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = {"kernel_gamma": (0.001, 0.05)}
    for name in UNFAIR_GRIDS:
        monkeypatch.setitem(UNFAIR_GRIDS, name, grid)
    seen = []

    def spy(name: str, X: Any, y: Any, X_peeked: Any, y_peeked: Any, **options: Any) -> Any:
        seen.append((name, X.shape, len(y_peeked), int(y_peeked.sum()), options["max_rows"]))
        return fit_unfairly(name, X, y, X_peeked, y_peeked, **options)

    monkeypatch.setattr("aloof.bench.images.shallow.fit_unfairly", spy)
    methods = ["oc-svm-unfair", "ssad-hybrid-unfair", "oc-svm", "ssad-hybrid"]
    options = {"methods": methods, "gamma_l": [0.0, 0.1], "members": 2, "baseline_epochs": 2}
    study = make_images(specify(ImageSpecification, options), spots)
    records = run_study(study, tmp_path, device="cpu")
    assert Counter((r["method"], r["setting"]) for r in records) == {
        ("oc-svm-unfair", ""): 3,
        ("oc-svm", ""): 3,
        ("ssad-hybrid-unfair", "ours"): 3,
        ("ssad-hybrid", "ours"): 3,
    }
    # 24 normal images, three labelled anomalies; three of thirty test images, two anomalies.
    assert Counter(seen) == {
        ("oc-svm", (24, 1, 28, 28), 3, 2, None): 3,
        ("ssad", (27, 32), 3, 2, None): 3,
    }
    assert {r["method"]: r["members"] for r in records} == {
        "oc-svm-unfair": 1,
        "oc-svm": 1,
        "ssad-hybrid-unfair": 1,
        "ssad-hybrid": 2,
    }
    by_method = {r["method"]: r["config"] for r in records}
    assert by_method["oc-svm-unfair"]["grid"] == {"kernel_gamma": [0.001, 0.05]}
    assert by_method["oc-svm-unfair"]["detector"]["max_rows"] is None
    assert by_method["oc-svm"]["detector"]["max_rows"] == 2000
    assert by_method["ssad-hybrid-unfair"]["baseline"] == by_method["ssad-hybrid"]["baseline"]
    notes = " ".join(study.grids(records)[0].notes)
    assert "Unfair: numbers chosen with the labels of a tenth of the test images" in notes
    assert "oc-svm, ssad-hybrid (ours): from at most 2,000 normal images" in notes
    assert "oc-svm-unfair, ssad-hybrid-unfair (ours): from all normal images" in notes


def test_an_unfair_random_field_chooses_its_epoch_by_a_tenth_of_the_test_set(
    spots: ImageDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Spied(InclusiveNRF):
        def fit_problems(self, data: Any, problems: Any, **options: Any) -> Any:
            assert np.array_equal(data[: len(spots.train)], spots.train)
            seen.extend((data.numpy(), problem) for problem in problems)
            return super().fit_problems(data, problems, **options)

    brief = partial(Spied, n_steps=1, max_epochs=2)
    monkeypatch.setitem(BASELINES, "inclusive-nrf", brief)
    methods = ["inclusive-nrf-unfair", "inclusive-nrf"]
    options = {"methods": methods, "gamma_l": [0.0], "members": 2, "baseline_epochs": 2}
    study = make_images(specify(ImageSpecification, options), spots)
    records = run_study(study, tmp_path, device="cpu")
    assert [record["status"] for record in records] == ["ok"] * 6
    assert [record["members"] for record in records] == [2] * 6
    chosen = [(data, own) for data, own in seen if len(own.validation_normal)]
    assert len(chosen) == len(seen) - len(chosen) == 3
    for normal, (data, problem) in enumerate(chosen):
        for rows, count in ((problem.validation_normal, 1), (problem.validation_anomaly, 2)):
            assert len(rows) == count
            assert np.array_equal(data[rows], spots.test[rows - len(spots.train)])
            labels = spots.test_labels[rows - len(spots.train)]
            assert ((labels == normal) == (count == 1)).all()
    notes = " ".join(study.grids(records)[0].notes)
    assert "inclusive-nrf-unfair: the epoch chosen with the labels of a tenth" in notes
    assert "Unfair: numbers" not in notes


@pytest.mark.parametrize(
    ("methods", "networks"),
    [(["ssad-hybrid-unfair"], 1), (["ssad-hybrid-unfair", "ssad-hybrid"], 2)],
)
def test_autoencoders_that_nobody_asks_are_not_trained(
    spots: ImageDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, methods, networks
) -> None:
    monkeypatch.setitem(UNFAIR_GRIDS, "ssad-hybrid", {"kernel_gamma": (0.05,)})
    seeds = []

    def spy(**options: Any) -> Problem:
        seeds.append(len(options["seeds"]))
        return Problem(**options)

    monkeypatch.setattr("aloof.bench.images.systems.Problem", spy)
    options = {"methods": methods, "gamma_l": [0.1], "members": 2, "baseline_epochs": 1}
    study = make_images(specify(ImageSpecification, options), spots)
    run_study(study, tmp_path, device="cpu")
    assert set(seeds) == {networks}


def test_what_cannot_be_drawn_is_said_before_anything_runs(spots: ImageDataset) -> None:
    with pytest.raises(
        ExperimentError, match=r"gamma_p = 0.9 needs 216 hidden anomalies .* classes have 56"
    ):
        make_images(specify(ImageSpecification, {"gamma_l": 0.1, "gamma_p": 0.9}), spots)


def test_changed_numbers_are_said_below_the_table(spots: ImageDataset) -> None:
    options = {"methods": ["dp"], "gamma_l": 0.1, "max_epochs": 7, "numbers": {"gamma": 3}}
    study = make_images(specify(ImageSpecification, options), spots)
    record = {**asdict(study.cases[0]), "auroc": 0.5, "members": 1}
    note = "Numbers of our methods in place of the setting's: max_epochs = 7, gamma = 3.0."
    assert note in study.grids([record])[0].notes


@pytest.mark.parametrize("name", sorted(deep_peers()))
def test_every_deep_peer_runs_in_both_settings(
    spots: ImageDataset, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = BASELINES[deep_peers()[name]]
    known = made().get_params(deep=False)
    brief = {key: 1 for key in ("n_steps", "n_starts", "search_steps") if key in known}
    monkeypatch.setitem(BASELINES, deep_peers()[name], partial(made, **brief))
    options = {"methods": [name], "gamma_l": [0.0, 0.1], "members": 1, "baseline_epochs": 1}
    study = make_images(specify(ImageSpecification, {**options, "setting": BOTH}), spots)
    settings = {case.setting for case in study.cases}
    assert settings in ({"ours", "paper"}, {"paper"})
    for case in study.cases:
        configuration(study.spec, case)["baseline"].set_params(precision="float32")
    # As published some train for hours: what is tried here is that they take our networks.
    if "ours" in settings:
        quick = make_images(specify(ImageSpecification, options), spots)
        records = run_study(quick, tmp_path, device="cpu")
        assert [record["status"] for record in records] == ["ok"] * 3


@pytest.mark.parametrize("dataset", list(PAPER_NETWORKS))
def test_what_is_published_are_parameters_that_there_are(dataset: str) -> None:
    for name in deep_peers():
        for setting in BOTH:
            spec = ImageSpecification(
                dataset=dataset, methods=(name,), setting=(setting,), gamma_l=(0.0, 0.1)
            )
            peer = configuration(spec, spec.cases(10)[0])["baseline"]
            peer.set_params(precision="float32")._check_parameters()
