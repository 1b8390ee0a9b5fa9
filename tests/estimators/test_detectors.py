from __future__ import annotations

import os
import pickle
import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from aloof import VAE, DualPriorVAE, MaxMinDualPriorVAE, MaxMinVAE
from aloof.exceptions import DeviceError, LabelError, LabelWarning

DETECTORS = [VAE, MaxMinVAE, DualPriorVAE, MaxMinDualPriorVAE]
LABELLED = DETECTORS[1:]


def short(detector: type, **changes: Any) -> Any:
    settings: dict[str, Any] = {
        "n_members": 3,
        "hidden": (16,),
        "latent_dim": 4,
        "max_epochs": 12,
        "random_state": 0,
    }
    if detector is not VAE:
        settings["warmup_epochs"] = 4
    return detector(**{**settings, **changes})


def rows(n: int = 150, n_anomaly: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6)) + 0.2 * rng.normal(size=(n, 6))
    X = np.r_[normal, 2 * rng.normal(size=(n_anomaly, 6))]
    return 5 + 3 * X, np.r_[np.zeros(n), np.ones(n_anomaly)]


@pytest.mark.parametrize("detector", DETECTORS)
def test_two_fits_with_one_seed_are_bit_identical(detector: type) -> None:
    X, y = rows()
    first, second = (short(detector).fit(X, y) for _ in range(2))
    assert np.array_equal(first.score_samples(X), second.score_samples(X))
    other = short(detector, random_state=1).fit(X, y)
    assert not np.array_equal(first.score_samples(X), other.score_samples(X))


@pytest.mark.parametrize("detector", DETECTORS)
def test_score_of_a_row_depends_on_that_row_alone(detector: type) -> None:
    X, y = rows(n=2500)
    model = short(detector, max_epochs=5).fit(X[::5], y[::5])
    scores = model.score_samples(X)
    order = np.random.default_rng(0).permutation(len(X))
    assert np.array_equal(model.score_samples(X), scores)
    assert np.array_equal(model.score_samples(X[order]), scores[order])
    for size in (1, 7, 100, 1024, 1025):
        assert np.array_equal(model.score_samples(X[:size]), scores[:size])
    assert scores.dtype == np.float64
    assert len(np.unique(scores)) > 2000


@pytest.mark.parametrize("width", [33, 37])
def test_odd_widths_do_not_break_order_invariance(width: int) -> None:
    """Matrix products of such sizes round a row differently at another place."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1024, width))
    model = short(VAE, hidden=(100, 37), latent_dim=5, max_epochs=2).fit(X)
    scores = model.score_samples(X)
    for shift in (1, 5, 17, 500):
        assert np.array_equal(
            np.roll(model.score_samples(np.roll(X, shift, 0)), -shift), scores
        )


def test_members_are_those_of_the_seeds_and_the_score_is_their_mean() -> None:
    from dataclasses import replace

    from aloof.estimators._problems import problems_of
    from aloof.scoring import Scorer
    from aloof.vae import train

    X, y = rows()
    model = short(DualPriorVAE, direction_penalty=False, aggregate_prior=0, random_state=7).fit(
        X, y
    )
    assert len(set(model.member_seeds_)) == 3
    prepared = torch.from_numpy(model.scaling_.transform(X).astype(np.float32))
    (problem,) = problems_of(model, y.astype(np.int64), None, 7)
    alone = []
    for seed in model.member_seeds_:
        one = replace(problem, seeds=[seed])
        result = train(
            [prepared],
            [one],
            model._architecture(),
            model._config(problem),
            device=model.device_,
        )[0]
        scorer = Scorer(
            result.ensemble, one.objective, device=model.device_, dtype=torch.float64
        )
        alone.append(scorer.score(lambda s: model.scaling_.transform(X[s]), len(X)))
    np.testing.assert_allclose(model.score_samples(X), np.mean(alone, 0), rtol=1e-3)
    assert np.std(alone, 0).min() > 0


@pytest.mark.parametrize(("penalised", "alpha"), [(False, 5.0), (True, 5.0), (True, -5.0)])
def test_score_is_the_weighted_bound(penalised: bool, alpha: float) -> None:
    """An independent computation of the score with the members' own tensors."""
    X, y = rows()
    settings = {
        "beta_kl": 0.3,
        "direction_penalty": penalised,
        "alpha": alpha,
        "aggregate_prior": 0,
    }
    model = short(DualPriorVAE, n_members=1, **settings).fit(X, y)
    state = {k: v[0].double() for k, v in model._ensemble.state().items()}
    x = torch.from_numpy((X - X[y == 0].mean(0)) / X[y == 0].std(0))
    hidden = torch.nn.functional.leaky_relu(
        x @ state["encoder.body.0.weight"].T + state["encoder.body.0.bias"], 0.1
    )
    mean, log_var = (
        hidden @ state["encoder.head.weight"].T + state["encoder.head.bias"]
    ).chunk(2, -1)
    back = torch.nn.functional.leaky_relu(
        mean @ state["decoder.body.0.weight"].T + state["decoder.body.0.bias"], 0.1
    )
    back = back @ state["decoder.head.weight"].T + state["decoder.head.bias"]
    kl = 0.5 * (mean**2 + log_var.exp() - log_var - 1).sum(1)
    bound = (-((x - back) ** 2).mean(1) - 0.3 * kl).numpy()
    along = np.sign(alpha) * (mean.sum(1) / mean.shape[1] ** 0.5).numpy()
    normal = y == 0
    beyond = np.maximum(0, along - along[normal].mean()) / along[normal].std()
    expected = bound - penalised * bound[normal].std() * beyond
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-4, atol=1e-6)
    assert penalised == (not np.allclose(bound, expected))


def test_there_is_no_direction_where_no_anomaly_was_taught() -> None:
    X, y = rows()
    for settings, labels in (({}, 0 * y), ({"separate_encoder": True}, y), ({"alpha": 0.0}, y)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LabelWarning)
            one, other = (
                short(DualPriorVAE, direction_penalty=penalised, **settings).fit(X, labels)
                for penalised in (True, False)
            )
        assert np.array_equal(one.score_samples(X), other.score_samples(X))


@pytest.mark.parametrize("seed", [0, 1])
def test_labelled_anomalies_help(seed: int) -> None:
    """Anomalies along a direction in which normal rows vary, too: labels tell them apart."""
    rng = np.random.default_rng(seed)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(2 * n, 8))
        X[n:, 0] += 2.5
        return X, np.r_[np.zeros(n), np.ones(n)]

    X, y = draw(400)
    keep = np.r_[np.arange(400), 400 + np.arange(8)]
    X_test, y_test = draw(400)

    def auroc(detector: type, **options: Any) -> float:
        model = detector(max_epochs=40, random_state=seed, n_members=3, **options)
        return float(roc_auc_score(y_test, model.fit(X[keep], y[keep]).anomaly_score(X_test)))

    plain = auroc(VAE)
    for detector in LABELLED:
        got = auroc(detector, warmup_epochs=15)
        print(got, plain)
        assert got > plain + 0.06, detector


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_other_likelihoods_learn(likelihood: Any) -> None:
    rng = np.random.default_rng(0)
    base = (rng.random((400, 1)) < 0.5) ^ (rng.random((400, 6)) < 0.05)
    X = base.astype(float)
    odd = X.copy()
    odd[:, ::2] = 1 - odd[:, ::2]
    standardize = likelihood != "bernoulli"
    model = VAE(
        likelihood=likelihood,
        standardize=standardize,
        n_members=2,
        max_epochs=60,
        random_state=0,
    ).fit(X)
    truth = np.r_[np.zeros(400), np.ones(400)]
    assert roc_auc_score(truth, model.anomaly_score(np.r_[X, odd])) > 0.95


@pytest.mark.parametrize("detector", DETECTORS)
def test_signs_thresholds_and_names(detector: type) -> None:
    X, y = rows()
    model = short(detector, contamination=0.1).fit(X, y)
    scores = model.score_samples(X)
    assert np.array_equal(model.anomaly_score(X), -scores)
    assert np.array_equal(model.decision_function(X), scores - model.offset_)
    assert np.array_equal(model.predict(X), np.where(scores < model.offset_, -1, 1))
    assert (model.predict(X)[y == 0] == -1).mean() == pytest.approx(0.1)
    assert np.array_equal(model.training_scores_, -scores)
    assert np.array_equal(
        short(detector, contamination=0.1).fit_predict(X, y), model.predict(X)
    )
    assert model.latent(X).shape == (3, len(X), 4)
    assert model.history_["loss"].shape == (12, 3)
    assert model.n_iter_ == 12


def test_latent_codes_of_anomalies_move_to_their_prior() -> None:
    X, y = rows(n_anomaly=12)
    model = DualPriorVAE(n_members=2, max_epochs=120, random_state=0, alpha=5.0).fit(X, y)
    codes = model.latent(X)
    assert codes[:, y == 1].mean() > 2.0
    assert abs(codes[:, y == 0].mean()) < 0.5


def test_pyod_view() -> None:
    X, y = rows()
    model = short(DualPriorVAE, contamination=0.1).fit(X, y)
    view = model.as_pyod()
    assert np.array_equal(view.decision_scores_, model.anomaly_score(X))
    assert np.array_equal(view.decision_function(X), model.anomaly_score(X))
    assert np.array_equal(view.predict(X), (model.predict(X) == -1).astype(int))
    assert np.array_equal(view.labels_, view.predict(X))
    assert np.array_equal(view.labels_, (view.decision_scores_ > view.threshold_).astype(int))


def test_frames_keep_their_names() -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = short(DualPriorVAE).fit(frame, y)
    assert list(model.feature_names_in_) == list("abcdef")
    assert np.array_equal(
        model.score_samples(frame), short(DualPriorVAE).fit(X, y).score_samples(X)
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("fedcba")])


def test_works_in_a_pipeline_and_pickles() -> None:
    X, y = rows()
    model = make_pipeline(RobustScaler(), short(DualPriorVAE)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.score_samples(X), model.score_samples(X))
    assert clone(model).get_params()["dualpriorvae__n_members"] == 3


def test_random_state_may_be_a_generator_or_nothing() -> None:
    X, _ = rows()
    first, second = (
        short(VAE, random_state=np.random.RandomState(3)).fit(X).score_samples(X) for _ in "ab"
    )
    assert np.array_equal(first, second)
    free, other = (short(VAE, random_state=None).fit(X).score_samples(X) for _ in "ab")
    assert not np.array_equal(free, other)


def test_early_stopping_holds_rows_out() -> None:
    X, y = rows(n=300, n_anomaly=20)
    model = short(DualPriorVAE, max_epochs=300, patience=5, learning_rate=0.02).fit(X, y)
    assert model.n_iter_ < 300
    assert (model.best_epoch_ <= model.n_iter_ - 1).any()
    assert model.history_["validation"].shape == (model.n_iter_, 3)


def test_vae_leaves_labelled_anomalies_out() -> None:
    X, y = rows()
    with_labels = short(VAE).fit(X, y)
    without = short(VAE).fit(X[y == 0])
    assert np.array_equal(with_labels.score_samples(X), without.score_samples(X))


@pytest.mark.parametrize("detector", LABELLED)
def test_without_labelled_anomalies_it_is_a_plain_vae_and_says_so(detector: type) -> None:
    X, _ = rows()
    with pytest.warns(LabelWarning, match="plain VAE"):
        model = short(detector).fit(X)
    assert np.array_equal(model.score_samples(X), short(VAE).fit(X).score_samples(X))


@pytest.mark.parametrize("detector", LABELLED)
def test_anomalies_that_would_never_be_used_are_announced(detector: type) -> None:
    X, y = rows()
    with pytest.warns(LabelWarning, match="not used"):
        short(detector, max_epochs=4, warmup_epochs=4).fit(X, y)


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize(
    ("n", "n_anomaly"), [(2, 1), (5, 1), (40, 1), (130, 1), (20, 60)], ids=str
)
def test_few_rows_and_few_anomalies(detector: type, n: int, n_anomaly: int) -> None:
    X, y = rows(n=n, n_anomaly=n_anomaly)
    model = short(detector)
    if n_anomaly > n:
        with pytest.warns(LabelWarning, match="the opposite of what you want"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.score_samples(X[y == 1])).all()


def test_constant_columns_one_column_and_far_away_rows() -> None:
    X, y = rows()
    X[:, 2] = 7.0
    X[:, 3] = 1e9
    model = short(DualPriorVAE).fit(X, y)
    far = np.full((3, 6), 1e300) * [[1], [-1], [0.5]]
    with np.errstate(all="raise"):
        scores = model.anomaly_score(np.r_[X, far])
    assert np.isfinite(scores).all()
    assert scores[-3:].min() > scores[:-3].max()
    one = short(VAE).fit(X[:, :1])
    assert np.isfinite(one.score_samples(X[:, :1])).all()


BAD_X: list[tuple[Any, str]] = [
    ([[1.0, np.nan], [2.0, 3.0]], "contains NaN"),
    ([[1.0, np.inf], [2.0, 3.0]], "contains infinity"),
    ([["a", "b"], ["c", "d"]], "could not convert string to float"),
    ([[1.0, 2.0]], r"minimum of 2 is required"),
    ([1.0, 2.0, 3.0], "Expected 2D array"),
    (np.zeros((4, 2, 2)), "dim 3"),
    (np.zeros((0, 2)), "0 sample"),
    (np.zeros((4, 0)), r"0 feature\(s\)"),
]


@pytest.mark.parametrize(("X", "message"), BAD_X, ids=[message for _, message in BAD_X])
def test_rows_that_cannot_be_used(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        short(VAE).fit(X)


@pytest.mark.parametrize(
    "value",
    [np.nan, "Oslo", np.datetime64("2026-01-31"), np.timedelta64(3, "s"), pd.Period("2026-01")],
    ids=str,
)
def test_a_table_is_sent_to_what_takes_tables(value: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"amount": [1.0, 2.0, 3.0], "other": [value] * 3})
    with pytest.raises((TypeError, ValueError)) as error:
        short(VAE).fit(frame)
    assert "use aloof.TableDetector or aloof.fit" in error.value.__notes__[0]
    with pytest.raises(ValueError, match="Expected 2D array") as error:
        short(VAE).fit([1.0, 2.0, 3.0])
    assert not hasattr(error.value, "__notes__")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_huge_value_is_named() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[3, 1] = -1e300
    with pytest.raises(ValueError, match=r"such as -1e\+300 in row 3. Remove them"):
        short(VAE).fit(X)
    X[3, 1] = 1e39
    with pytest.raises(ValueError, match=r"such as 1e\+39 in row 3. Set standardize=True"):
        short(VAE, standardize=False).fit(X)


def test_wrong_number_of_columns() -> None:
    X, _ = rows()
    model = short(VAE).fit(X)
    with pytest.raises(ValueError, match="X has 5 features, but VAE is expecting 6"):
        model.score_samples(X[:, :5])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, -1] * 78, "Deep SAD"),
        ([1] * 156, "Every row"),
        ([0] * 10, "one label for each row"),
        (["bad"] * 156, "strings"),
    ],
)
def test_labels_that_cannot_be_used(y: Any, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        short(DualPriorVAE).fit(rows()[0], y)


def test_a_single_normal_row_is_not_enough() -> None:
    X, _ = rows(n=3, n_anomaly=1)
    with (
        pytest.raises(ValueError, match="at least 2 rows not labelled"),
        pytest.warns(LabelWarning, match="the opposite of what you want"),
    ):
        short(DualPriorVAE).fit(X, [0, 1, 1, 1])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_missing_device() -> None:
    with pytest.raises(DeviceError, match="device='auto'"):
        short(VAE, device="cuda").fit(rows()[0])
    with pytest.raises(DeviceError, match="must be 'auto'"):
        short(VAE, device="gpu").fit(rows()[0])


def test_all_bad_parameters_are_named_at_once() -> None:
    bad = DualPriorVAE(
        hidden=(0,),
        latent_dim=0,
        n_members=1.5,
        beta_kl=-1,
        likelihood="poisson",  # type: ignore[arg-type]
        contamination=0.7,
        gamma="big",
        freeze_decoder=1,
        patience=0,  # type: ignore[arg-type]
    )
    with pytest.raises(ValueError, match="latent_dim") as error:
        bad.fit(rows()[0])
    for name in (
        "hidden",
        "n_members",
        "beta_kl",
        "likelihood",
        "contamination",
        "gamma",
        "freeze_decoder",
        "patience",
    ):
        assert f"The '{name}' parameter of DualPriorVAE must be" in str(error.value)
    with pytest.raises(ValueError, match="both an encoder and a decoder"):
        VAE(encoder=lambda shape, latent_dim: torch.nn.Identity()).fit(rows()[0])


def test_a_failed_fit_writes_nothing(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="NaN"):
        short(VAE, checkpoint=tmp_path / "c").fit([[np.nan, 1.0], [0.0, 1.0]])
    assert os.listdir(tmp_path) == []


def test_verbose_shows_progress(capsys: pytest.CaptureFixture[str]) -> None:
    short(VAE, verbose=True).fit(rows()[0])
    assert "12/12" in capsys.readouterr().err
    short(VAE).fit(rows()[0])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("n_detectors", [1, 2])
def test_a_failed_fit_leaves_the_fitted_detector_as_it_was(
    n_detectors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aloof import fit_many
    from aloof.vae import fitting

    X, y = rows()
    models = [short(DualPriorVAE, random_state=k).fit(X, y) for k in range(n_detectors)]
    before = [model.score_samples(X) for model in models]

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "Run", interrupted)
    for other in (100 * X + 5, X[:, :3]):
        fit = partial(models[0].fit, other, y)
        if n_detectors > 1:
            fit = partial(fit_many, models, [(other, y)] * n_detectors)
        with pytest.raises(KeyboardInterrupt):
            fit()
        with pytest.raises(LabelError):
            models[0].fit(other, [1, -1] * 78)
        for model, scores in zip(models, before, strict=True):
            assert np.array_equal(model.score_samples(X), scores)


def test_checkpoint_needs_a_seed_and_is_removed_at_the_end(tmp_path: Any) -> None:
    X, y = rows()
    with pytest.raises(ValueError, match="needs an int as random_state"):
        short(DualPriorVAE, random_state=None, checkpoint=tmp_path / "c").fit(X, y)
    short(DualPriorVAE, checkpoint=tmp_path / "deep" / "c").fit(X, y)
    assert os.listdir(tmp_path / "deep") == []


def test_a_killed_run_of_many_fits_repeats_no_finished_stack(
    tmp_path: Any,
) -> None:
    from aloof import fit_many
    from aloof.training import EpochReport

    X, y = rows()

    def make() -> list[Any]:
        return [short(DualPriorVAE), short(DualPriorVAE, hidden=(8,)), short(MaxMinVAE)]

    whole = make()
    fit_many(whole, [(X, y)] * 3)
    seen: list[int] = []

    def kill(report: EpochReport) -> None:
        seen.append(report.epoch)
        if report.epoch == 23:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_many(make(), [(X, y)] * 3, checkpoint=tmp_path / "run", on_epoch=kill)
    assert seen == list(range(1, 24))
    resumed, seen = make(), []
    fit_many(
        resumed,
        [(X, y)] * 3,
        checkpoint=tmp_path / "run",
        on_epoch=lambda report: seen.append(report.epoch),
    )
    # A shared warm-up, two stacks that begin from it, and one that had got three epochs far.
    assert seen == [4, 12, 20, *range(24, 33)]
    assert os.listdir(tmp_path) == []
    for one, other in zip(resumed, whole, strict=True):
        assert np.array_equal(one.score_samples(X), other.score_samples(X))


def test_bernoulli_needs_data_between_zero_and_one() -> None:
    X, _ = rows()
    for settings in ({"standardize": True}, {"standardize": False}):
        with pytest.raises(ValueError, match=r"needs X in \[0, 1\]"):
            short(VAE, likelihood="bernoulli", **settings).fit(X)


def test_data_that_is_not_standardised_is_not_changed() -> None:
    rng = np.random.default_rng(0)
    X = 5e6 + rng.normal(size=(60, 3))
    model = short(VAE, standardize=False).fit(X)
    assert np.array_equal(model.scaling_.transform(X), X)


def test_warnings_point_to_the_caller() -> None:
    X, _ = rows()
    with pytest.warns(LabelWarning) as caught:
        short(DualPriorVAE).fit(X)
    assert caught[0].filename == __file__


def test_without_anomalies_schedules_are_those_of_the_vae() -> None:
    X, _ = rows()
    for settings in ({"lr_schedule": "cosine"}, {"patience": 3}):
        with pytest.warns(LabelWarning, match="plain VAE"):
            model = short(DualPriorVAE, **settings).fit(X)
        plain = short(VAE, **settings).fit(X)
        assert np.array_equal(model.score_samples(X), plain.score_samples(X))


def test_threads_may_share_a_detector() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from torch import nn

    class Encoder(nn.Module):
        def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
            super().__init__()
            self.lstm = nn.LSTM(1, 2 * latent_dim, batch_first=True)

        def forward(self, x: torch.Tensor) -> Any:
            return self.lstm(x.unsqueeze(-1))[0][:, -1].chunk(2, -1)

    X, _ = rows(n=60)
    models = [
        short(
            VAE,
            random_state=k,
            max_epochs=2,
            hidden=VAE.hidden,
            encoder=Encoder,
            decoder=lambda shape, latent_dim: nn.Linear(latent_dim, shape[0]),
        ).fit(X)
        for k in range(2)
    ]
    expected = [model.score_samples(X) for model in models]
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(models[k % 2].score_samples, X) for k in range(16)]
    for k, future in enumerate(futures):
        assert np.array_equal(future.result(), expected[k % 2])


def test_pickles_are_small() -> None:
    X, y = rows()
    model = short(DualPriorVAE, hidden=(128, 64)).fit(X, y)
    weights = sum(value.numel() * 4 for value in model._ensemble.state().values())
    assert len(pickle.dumps(model)) < 2 * weights + 20_000


@pytest.mark.parametrize(
    ("n", "epochs", "annealing", "warmup"),
    [(100, 150, 20, 50), (128 * 60, 100, 13, 33), (128 * 1000, 15, 2, 5)],
)
def test_large_data_is_passed_over_less_often(
    n: int, epochs: int, annealing: int, warmup: int
) -> None:
    from aloof.vae import VAEProblem

    problem = VAEProblem(normal=np.arange(n), anomaly=np.arange(3), seeds=[1])
    config = DualPriorVAE()._config(problem)
    assert (config.max_epochs, config.annealing_epochs, config.warmup_epochs) == (
        epochs,
        annealing,
        warmup,
    )
    own = DualPriorVAE(max_epochs=9, annealing_epochs=4, warmup_epochs=1)._config(problem)
    assert (own.max_epochs, own.annealing_epochs, own.warmup_epochs) == (9, 4, 1)
