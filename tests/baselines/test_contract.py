"""What every baseline owes: it learns, it is deterministic, it says what labels are for."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from aloof.baselines import BASELINES
from aloof.exceptions import LabelWarning

# `test_deep.py` has what holds for those that are for images alone, `test_in_context.py` what
# there is to say of those that are others' packages with others' weights.
NAMES = [
    name
    for name, factory in BASELINES.items()
    if not factory().images_only and name not in ("tabicl", "tabpfn")
]
REQUIRED = {
    "classifier",
    "devnet",
    "extra-trees",
    "gradient-boosting",
    "knn-contrast",
    "lightgbm",
    "prenet",
    "random-forest",
    "random-forest-balanced",
    "ss-dgm",
    "ss-dgm-m1-m2",
    "ss-dgm-m2",
    "tabpfn-v1",
    "xgbod",
}
OPTIONAL = {
    "deep-sad",
    "deep-sad-5",
    "deep-sad-no-pretraining",
    "ssad",
    "ssad-hybrid",
}
LABELLED = sorted(REQUIRED | OPTIONAL)
UNSUPERVISED = sorted(set(NAMES) - REQUIRED - OPTIONAL)
# These draw from large tables only, or not at all.
SEEDLESS = {
    "ecod",
    "gradient-boosting",
    "kde",
    "knn",
    "knn-contrast",
    "lightgbm",
    "oc-svm",
    "ssad",
}


@pytest.mark.parametrize("name", sorted(set(NAMES) - REQUIRED))
def test_it_finds_what_can_be_seen(name, fitted, visible):
    scores = fitted(name, "visible").anomaly_score(visible.X_test)
    assert roc_auc_score(visible.y_test, scores) > 0.7


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_the_hidden_cluster_cannot_be_seen_without_labels(name, fitted, hidden):
    scores = fitted(name, "hidden").anomaly_score(hidden.X_test)
    assert roc_auc_score(hidden.y_test, scores) < 0.6


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_learned_from(name, make, fitted, hidden):
    """Labels on a cluster at the other end of the same axis do much worse."""
    elsewhere = hidden.X.copy()
    elsewhere[hidden.y == 1, 0] *= -1.0
    right = fitted(name, "hidden").anomaly_score(hidden.X_test)
    wrong = make(name).fit(elsewhere, hidden.y).anomaly_score(hidden.X_test)
    right, wrong = (roc_auc_score(hidden.y_test, scores) for scores in (right, wrong))
    assert right > 0.7
    assert right > wrong + 0.25


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_labels_are_worth_having(name, make, fitted, hidden):
    with pytest.warns(LabelWarning, match="no labelled anomalies"):
        without = make(name).fit(hidden.X[hidden.y == 0])
    seeing, blind = (
        roc_auc_score(hidden.y_test, baseline.anomaly_score(hidden.X_test))
        for baseline in (fitted(name, "hidden"), without)
    )
    assert seeing > blind + 0.15


@pytest.mark.parametrize("name", BASELINES)
def test_uses_labels_says_the_truth(name):
    assert BASELINES[name]().uses_labels == (name in {*LABELLED, "tabicl", "tabpfn"})


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_labelled_anomalies_are_left_out_where_labels_are_not_used(name, make, fitted, visible):
    without = make(name).fit(visible.X[visible.y == 0])
    np.testing.assert_array_equal(
        fitted(name, "visible").anomaly_score(visible.X_test),
        without.anomaly_score(visible.X_test),
    )


@pytest.mark.parametrize("name", NAMES)
def test_one_seed_one_result(name, make, fitted, hidden):
    first = fitted(name, "hidden").anomaly_score(hidden.X_test)
    again = make(name).fit(hidden.X, hidden.y).anomaly_score(hidden.X_test)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("name", sorted(set(NAMES) - SEEDLESS))
def test_another_seed_another_result(name, make, fitted, hidden):
    first = fitted(name, "hidden").anomaly_score(hidden.X_test)
    other = make(name, 1).fit(hidden.X, hidden.y).anomaly_score(hidden.X_test)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("name", NAMES)
def test_a_score_is_a_float64_of_its_row(name, fitted, visible):
    """Rows may come in any order and, but for ECOD (see there), in any company."""
    baseline = fitted(name, "visible")
    rows = visible.X_test
    scores = baseline.anomaly_score(rows)
    assert scores.dtype == np.float64
    assert scores.shape == (len(rows),)
    assert np.isfinite(scores).all()
    order = np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_allclose(baseline.anomaly_score(rows[order]), scores[order], rtol=1e-9)
    backwards = rows[::-1]
    backwards.flags.writeable = False
    np.testing.assert_allclose(baseline.anomaly_score(backwards), scores[::-1], rtol=1e-9)
    alone = baseline.anomaly_score(rows[:3])
    if name == "ecod":
        assert not np.allclose(alone, scores[:3], rtol=1e-9)
    else:
        np.testing.assert_allclose(alone, scores[:3], rtol=1e-9)


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_labels_that_are_needed_are_asked_for(name, make, hidden):
    with pytest.raises(ValueError, match="learns from labelled anomalies"):
        make(name).fit(hidden.X, np.zeros(len(hidden.X)))


@pytest.mark.parametrize("name", BASELINES)
def test_constructors_only_store(name):
    baseline = BASELINES[name](random_state=3)
    parameters = baseline.get_params(deep=False)
    assert parameters["random_state"] == 3
    assert set(vars(baseline)) == set(parameters)
    assert all(
        parameter.kind is parameter.KEYWORD_ONLY
        for parameter in inspect.signature(type(baseline)).parameters.values()
    )
    copy = clone(baseline)
    assert copy.get_params().keys() == baseline.get_params().keys()
    with pytest.raises(NotFittedError):
        baseline.anomaly_score(np.zeros((2, 3)))


@pytest.mark.parametrize("name", BASELINES)
def test_every_parameter_is_described_once(name):
    doc = inspect.cleandoc(type(BASELINES[name]()).__doc__)
    section = doc.split("Parameters\n")[1].split("\n\n")[0]
    said = [word for line in re.findall(r"^\w.*$", section, re.M) for word in line.split(", ")]
    assert sorted(said) == sorted(BASELINES[name]().get_params(deep=False))


def test_hybrids_of_one_name_share_nothing():
    one, other = BASELINES["ssad-hybrid"](), BASELINES["ssad-hybrid"]()
    one.set_params(detector__nu=0.5)
    assert other.detector.nu == 0.1


@pytest.mark.parametrize("name", ["knn", "deep-sad", "random-forest"])
def test_bad_input_is_refused(name, make, fitted, hidden):
    broken = hidden.X.copy()
    broken[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        make(name).fit(broken, hidden.y)
    with pytest.raises(ValueError, match="features"):
        fitted(name, "hidden").anomaly_score(hidden.X[:, :4])
    with pytest.raises(ValueError, match="at least 2 rows not labelled as anomalies"):
        with pytest.warns(LabelWarning):
            make(name).fit(hidden.X[:3], [1, 1, 0])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("deep-sad", {"eta": 0.0, "pretrain_epochs": -1, "hidden": ()}),
        ("deep-svdd", {"nu": 0.0}),
        ("deep-svdd", {"objective": "soft"}),
        ("autoencoder", {"weight_decay": -1.0, "hidden": ()}),
        ("ssad", {"nu": 2.0, "kappa": -1.0, "anomaly_limit": 0.0, "max_rows": 1}),
        ("ss-dgm", {"anomaly_share": 1.0, "classifier_weight": -1.0}),
        ("ss-dgm-m2", {"classifier_weight": -1.0, "likelihood": "normal", "hidden": ()}),
        ("ss-dgm-m1-m2", {"pretrain_epochs": 0, "images": {}, "likelihood": 3}),
        ("knn", {"n_neighbors": 0}),
        ("deep-sad", {"eta": "x", "pretrain_epochs": "x", "hidden": 8, "max_epochs": None}),
        ("deep-svdd", {"nu": "x", "objective": 3, "images": "x", "pretrain_weight_decay": "x"}),
        ("ss-dgm", {"anomaly_share": "x", "classifier_weight": None, "pretrain_epochs": 0.5}),
        (
            "ssad",
            {
                "nu": "x",
                "normal_limit": 0,
                "kappa": "x",
                "max_rows": "x",
                "kernel_gamma": "auto",
            },
        ),
        ("oc-svm", {"nu": "x", "kernel_gamma": 0.0}),
        ("kde", {"bandwidths": (1.0, "x"), "max_search_rows": 4}),
        ("iforest", {"n_trees": "x", "n_rows_per_tree": 0}),
        ("knn", {"n_neighbors": "x"}),
        ("knn-contrast", {"n_neighbors": 0, "n_anomalies": "x"}),
        ("random-forest", {"n_trees": 1.5, "balanced": 1}),
        ("extra-trees", {"n_trees": 0, "balanced": "x"}),
        ("lightgbm", {"n_trees": 0, "learning_rate": -1.0, "balanced": None}),
        ("tabpfn-v1", {"weights": 3, "n_configurations": 0, "max_rows": 1}),
        ("tabicl", {"weights": 3, "max_rows": 1}),
        ("autoencoder", {"bias": "x", "milestones": (5, 5)}),
        ("deep-sad", {"milestones": (0,), "pretrain_milestones": 5}),
        ("adgan", {"penalty": -1.0, "n_starts": 0, "search_steps": -1, "code_rate": "x"}),
        ("adgan", {"generator_rate": -1.0, "n_starts": 1.5}),
        ("dadgt", {"images": {}, "depth": 12, "widen": 0, "normality": "x"}),
        ("dadgt", {"depth": 4, "widen": "x"}),
        ("dsebm", {"criterion": "error", "noise_scale": 0.0}),
        ("dsebm", {"criterion": None, "noise_scale": "x"}),
        ("dagmm", {"estimator_hidden": (), "n_components": 0, "dropout": 1.0}),
        ("dagmm", {"energy_weight": -1.0, "penalty_weight": None, "dropout": "x"}),
        ("inclusive-nrf", {"n_steps": 0, "step_size": 0.0, "momentum": 1.0, "sigma": -1.0}),
        ("inclusive-nrf", {"step_noise": "x", "revise_codes": 1, "confinement": None}),
        ("inclusive-nrf", {"n_convolutions": 0}),
    ],
)
def test_parameters_out_of_bounds_are_named(name, parameters, hidden):
    with pytest.raises(ValueError, match="must be") as caught:
        BASELINES[name](**parameters).fit(hidden.X, hidden.y)
    for parameter, value in parameters.items():
        line = (
            rf"The '{parameter}' parameter of \w+ must be [^;]+; got {re.escape(repr(value))}"
        )
        assert re.search(line, str(caught.value))
