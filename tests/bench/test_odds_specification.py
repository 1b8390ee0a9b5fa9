"""Experiments are read from TOML, and what is wrong with one is said in full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from aloof.bench import Identity, read_options, specify
from aloof.bench.methods import peers
from aloof.bench.odds import Case, OddsSpecification, OddsStudy
from aloof.bench.odds.paper import paper_figures
from aloof.bench.odds.settings import (
    PAPER,
    build,
    build_peer,
    has_setting,
    parameters,
    peer_parameters,
)
from aloof.bench.variants import MLP, Network
from aloof.exceptions import AloofError, ExperimentError
from aloof.networks.dense import Dense

FILES = sorted((Path(__file__).parents[2] / "experiments").glob("odds-*.toml"))
SETS = ("arrhythmia", "cardio", "satellite", "satimage-2", "shuttle", "thyroid")


def make(options: dict[str, Any] | None = None, file: Path | None = None) -> OddsSpecification:
    return specify(OddsSpecification, options, file=file)


def test_there_are_files() -> None:
    assert {path.stem for path in FILES} == {
        "odds-main",
        "odds-complete",
        "odds-ablation",
        "odds-ensemble",
        "odds-pollution",
        "odds-gamma-05",
        "odds-paper",
        "odds-readings",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_valid(path: Path) -> None:
    assert make(file=path).seeds == 10


def test_the_ablation_has_the_papers_eight_variants() -> None:
    experiment = make(file=next(path for path in FILES if path.stem == "odds-ablation"))
    assert len(experiment.variants) == 8
    assert len(experiment.systems) == 2 * 8
    for variant in experiment.variants:
        encoder, decoder, n_members = variant.name.split("-")
        assert variant.parameters == {
            "separate_encoder": encoder == "separate",
            "freeze_decoder": decoder == "freeze",
            "n_members": int(n_members),
        }
        assert set(paper_figures("ablation", variant.name)) == {"cardio", "satellite"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metods": ["dp"]}, "metods is unknown; did you mean 'methods'"),
        ({"methods": ["deep-sda"]}, "no method 'deep-sda'; did you mean 'deep-sad'"),
        ({"datasets": "cardoi"}, "no data set 'cardoi'; did you mean 'cardio'"),
        ({"setting": ["papper"]}, "no setting 'papper'; did you mean 'paper'"),
        ({"setting": "default"}, "no setting 'default'"),
        ({"settings": ["paper"]}, "settings is unknown; did you mean 'setting'"),
        ({"scaling": "units"}, "no scaling 'units'; did you mean 'unit'"),
        ({"scaling": []}, "scaling must be one or more"),
        ({"paper": "man"}, "no table of the paper 'man'; did you mean 'main'"),
        ({"seeds": 0}, "seeds must be at least 1; got 0"),
        ({"seeds": True}, "seeds must be a whole number; got True"),
        ({"gamma_l": 1.0}, "gamma_l must be a share"),
        ({"gamma_p": [0.1, "x"]}, "gamma_p must be a number; got 'x'"),
        ({"methods": []}, "methods must be one or more"),
        ({"variants": [{"nam": "x"}]}, "variants.0.nam is unknown; did you mean 'name'"),
        ({"variants": [{}]}, "variants.0.name is missing"),
        ({"variants": ["a"]}, "variants must be a mapping; got 'a'"),
        ({"title": 3}, "title must be text; got 3"),
        ({"variants": [{"name": "a"}, {"name": "a"}]}, "Two variants are called 'a'"),
        (
            {"methods": "dp", "variants": [{"name": "a", "parameters": {"alhpa": 1}}]},
            "'dp' has no parameter 'alhpa'; did you mean 'alpha'",
        ),
        (
            {"methods": "dp", "variants": [{"name": "a", "parameters": {"n_members": 0}}]},
            "'n_members' parameter of DualPriorVAE must be an int >= 1",
        ),
        (
            {"methods": "vae", "variants": [{"name": "a", "parameters": {"n_samples": 2}}]},
            "'vae' has no parameter 'n_samples'",
        ),
        (
            {"methods": "dp", "variants": [{"name": "a", "parameters": {"encoder": "MLP"}}]},
            "'encoder' parameter of DualPriorVAE must be a function",
        ),
        (
            {"variants": [{"name": "a", "network": {"normalize": True}}]},
            "variants.0.network.normalize is unknown; did you mean 'normalise'",
        ),
        (
            {"variants": [{"name": "a", "methods": ["deep-sda"]}]},
            "no method 'deep-sda'; did you mean 'deep-sad'",
        ),
        (
            {
                "methods": "deep-sad",
                "variants": [{"name": "a", "methods": "deep-sad", "parameters": {"eat": 2}}],
            },
            "'deep-sad' has no parameter 'eat'; did you mean 'eta'",
        ),
        (
            {
                "methods": "deep-sad",
                "variants": [{"name": "a", "methods": "deep-sad", "parameters": {"eta": 0}}],
            },
            "'eta' parameter of DeepSAD must be a number > 0; got 0",
        ),
        (
            {
                "methods": "deep-sad",
                "variants": [{"name": "a", "methods": "deep-sad", "network": {"bias": True}}],
            },
            "the variant 'a' has a network, which only our methods take; 'deep-sad' is a peer",
        ),
        (  # which does not run, but is named
            {
                "methods": "dp",
                "variants": [{"name": "a", "methods": "deep-sad", "parameters": {"eat": 2}}],
            },
            "'deep-sad' has no parameter 'eat'; did you mean 'eta'",
        ),
        (  # which the command chooses
            {"methods": "dp", "variants": [{"name": "a", "parameters": {"device": "cpu"}}]},
            "'dp' has no parameter 'device'",
        ),
    ],
)
def test_mistakes_are_named(options: dict, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        make(options)
    assert message in str(caught.value)


def test_all_mistakes_at_once() -> None:
    with pytest.raises(ExperimentError) as caught:
        make({"sedes": 1, "methods": "dpp", "gamma_l": -1})
    for word in ("sedes is unknown", "'dpp'", "gamma_l"):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_and_the_key_are_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("seeds = 0\nsedes = 2\n")
    with pytest.raises(ExperimentError) as caught:
        make({"gamma_l": 2.0}, file=path)
    text = str(caught.value)
    assert f"{path}: seeds must be at least 1; got 0." in text
    assert f"{path}: sedes is unknown; did you mean 'seeds'?" in text
    assert f"{path}: gamma_l" not in text, "that was given on the command line"
    assert make({"seeds": 3, "sedes": None}, file=FILES[0]).seeds == 3


def test_a_specification_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        make().seeds = 3  # type: ignore[misc]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="No such file"):
        read_options(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("seeds = = 3")
    with pytest.raises(ExperimentError, match="not valid TOML"):
        read_options(tmp_path / "bad.toml")


def test_groups_of_methods() -> None:
    every = make({"methods": "all"})
    assert every.methods[:4] == ("vae", "mml", "dp", "mml-dp")
    assert "deep-sad" in every.methods
    assert make({"methods": ["peers", "ours"]}).methods[-4:] == every.methods[:4]


def test_shallow_peers_have_neither_setting_nor_variant() -> None:
    experiment = make(
        {
            "methods": ["dp", "knn"],
            "setting": ["ours", "paper"],
            "variants": [{"name": "K = 1", "parameters": {"n_members": 1}}],
        }
    )
    labels = [system.label for system in experiment.systems]
    assert labels == ["dp (ours, K = 1)", "dp (paper, K = 1)", "knn"]


def test_a_method_that_no_variant_names_runs_as_it_is() -> None:
    experiment = make(
        {
            "methods": ["vae", "dp", "deep-sad", "knn"],
            "setting": "paper",
            "variants": [
                {"name": "slow", "methods": "deep-sad", "parameters": {"learning_rate": 1e-5}},
                {"name": "K = 1", "methods": "dp", "parameters": {"n_members": 1}},
            ],
        }
    )
    labels = [system.label for system in experiment.systems]
    assert labels == ["vae (paper)", "dp (paper, K = 1)", "deep-sad (paper, slow)", "knn"]
    study = OddsStudy(experiment, {}, {}, {}, ())
    own = study.estimator(Case("cardio", "deep-sad", "paper", "slow", 0.01, 0.0, 0))
    assert (own.learning_rate, own.max_epochs) == (1e-5, 150)
    with pytest.raises(LookupError, match="'deep-sad' has no variant 'slwo'"):
        study.estimator(Case("cardio", "deep-sad", "paper", "slwo", 0.01, 0.0, 0))


def test_a_variant_without_a_name_is_not_of_peers() -> None:
    variants = [{"name": "", "parameters": {"n_members": 1}}]
    options = {"methods": ["dp", "knn"], "variants": variants}
    study = OddsStudy(make(options), {}, {}, {}, ())
    assert study.estimator(Case("cardio", "dp", "ours", "", 0.01, 0.0, 0)).n_members == 1
    study.estimator(Case("cardio", "knn", "", "", 0.01, 0.0, 0))  # has no such parameter


def test_rows_say_which_setting_variant_and_scaling() -> None:
    experiment = make(
        {
            "methods": ["mml", "vae", "deep-sad", "oc-svm-unfair", "ssad-hybrid-unfair"],
            "setting": "paper",
            "scaling": ["standard", "unit"],
            "variants": [
                {"name": ""},
                {"name": "S = 2", "methods": "mml", "parameters": {"n_samples": 2}},
            ],
        }
    )
    assert [system.label for system in experiment.systems] == [
        "mml (paper)",
        "mml (paper, unit)",
        "mml (paper, S = 2)",
        "mml (paper, S = 2, unit)",
        "vae (paper)",
        "vae (paper, unit)",
        "deep-sad (paper)",
        "deep-sad (paper, unit)",
        "oc-svm-unfair",
        "oc-svm-unfair (unit)",
        "ssad-hybrid-unfair (paper)",
        "ssad-hybrid-unfair (paper, unit)",
    ]


def test_our_setting_is_the_estimators_own() -> None:
    for method in ("vae", "mml", "dp", "mml-dp"):
        detector = build(method, "ours", "cardio", seed=3)
        assert detector.get_params() == type(detector)(random_state=3).get_params()


def test_the_papers_networks_follow_what_is_changed() -> None:
    """Factories are equal where options are, so that seeds stack, and stand in records."""
    one, other = (build("dp", "paper", "cardio", seed=seed) for seed in (0, 1))
    assert (one.encoder, one.decoder) == (other.encoder, other.decoder)
    assert hash(one.encoder) == hash(other.encoder)
    assert Identity(one).record["config"]["encoder"] == {
        "part": "encoder",
        "hidden": [32, 16],
        "learn_variance": False,
        "slope": 0.01,
        "normalise": True,
        "bias": False,
        "residual": False,
    }
    assert not Identity(one).holds(Identity(build("dp", "paper", "thyroid", seed=0)).record)
    wide = build("dp", "paper", "cardio", seed=0, overrides={"hidden": [9], "latent_dim": 2})
    learned = build("vae", "paper", "cardio", seed=0, overrides={"likelihood": "gaussian"})
    with torch.random.fork_rng():
        encoder = wide.encoder((21,), 2)
        decoder = learned.decoder((21,), 8)
    assert encoder.body[0].linear.weight.shape == (9, 21)
    assert isinstance(encoder.body[0], Dense)
    assert len(decoder(torch.zeros(3, 8))) == 2
    plain = build("dp", "paper", "cardio", seed=0, network=Network())
    assert plain.encoder is plain.decoder is None
    biased = build("dp", "ours", "cardio", seed=0, network=Network(normalise=True))
    assert biased.encoder == MLP("encoder", (128, 64), normalise=True)


def test_rows_in_0_to_1_are_left_there() -> None:
    for setting in ("ours", "paper"):
        assert build("dp", setting, "cardio", seed=0).standardize is None
        assert build("dp", setting, "cardio", seed=0, scaling="unit").standardize is False


def test_peers_as_their_authors_published_them() -> None:
    assert peer_parameters("deep-sad", "ours", "cardio") == {}
    assert not has_setting("devnet")  # its defaults are its authors'
    for name in SETS:
        found = peer_parameters("deep-sad", "paper", name)
        assert found["hidden"] == PAPER[name].layers
        assert (found["learning_rate"], found["milestones"]) == (1e-4, (50,))
        assert (found["max_epochs"], found["weight_decay"]) == (150, 5e-7)
        assert (found["pretrain_epochs"], found["pretrain_milestones"]) == (150, ())
        assert (found["pretrain_learning_rate"], found["pretrain_weight_decay"]) == (1e-4, 5e-4)
    assert peer_parameters("autoencoder", "paper", "cardio")["weight_decay"] == 5e-4
    assert peer_parameters("ssad", "", "cardio") == {"max_rows": None}
    for method in peers():
        for setting in ("ours", "paper") if has_setting(method) else ("",):
            made = build_peer(method, setting, "thyroid", seed=4)
            assert made.random_state == 4
            if setting == "paper":
                assert made.hidden == (32, 16, 4)
    assert build_peer("ssad-hybrid", "ours", "cardio", seed=0).detector.max_rows is None
    unfair = build_peer("oc-svm-hybrid-unfair", "paper", "arrhythmia", seed=0, device="cpu")
    assert unfair.parameters["hidden"] == (128, 64, 32)
    assert unfair.parameters["device"] == "cpu"


def test_the_papers_hyper_parameters() -> None:
    """The appendix: networks, learning rates, and the two that differ between tables."""
    layers = {name: (128, 64, 32) if name == "arrhythmia" else (32, 16, 8) for name in SETS}
    layers["thyroid"] = (32, 16, 4)
    alphas = dict(zip(SETS, (2, 5, 5, 10, 5, 10), strict=True))
    for name in SETS:
        dp, mml = build("dp", "paper", name, seed=0), build("mml", "paper", name, seed=0)
        both = build("mml-dp", "paper", name, seed=0)
        assert (*dp.hidden, dp.latent_dim) == layers[name]
        assert dp.alpha == both.alpha == alphas[name]
        assert dp.beta_kl == mml.beta_cubo == both.beta_cubo
        assert dp.beta_kl == (0.5 if name == "arrhythmia" else 0.05)
        assert (mml.repulsion, mml.lr_schedule, mml.warmup_epochs) == ("exp", "constant", 50)
        assert (dp.max_epochs, dp.n_members, dp.batch_size, dp.gamma) == (150, 5, 128, 1)
    assert build("dp", "paper", "satimage-2", seed=0).learning_rate == 5e-4
    assert build("mml", "paper", "satimage-2", seed=0).learning_rate == 1e-3
    assert build("vae", "paper", "thyroid", seed=0).learning_rate == 1e-4
    with pytest.raises(AloofError, match="no hyper-parameters for 'wine'"):
        parameters("dp", "paper", "wine")


def test_the_papers_tables() -> None:
    """Its own means over the six sets, worked out by hand, catch a slip in a column."""
    for table, name, total in (
        ("main", "oc-svm", 575.2),
        ("main", "ssad", 579.1),
        ("main", "mml", 576.3),
        ("complete", "mml", 576.4),
        ("complete", "dp", 574.7),
        ("complete", "mml-dp", 577.8),
        ("complete", "deep-sad", 559.3),
        ("complete", "classifier", 502.4),
        ("complete", "vae", 543.4),
        ("complete", "ss-dgm", 443.7),
    ):
        figures = paper_figures(table, name)
        assert tuple(figures) == SETS
        assert sum(mean for mean, _ in figures.values()) == pytest.approx(total)
    assert paper_figures("main", "deep-svdd") == {}
    assert paper_figures("complete", "xgbod") == {}
