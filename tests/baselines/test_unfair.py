"""Tuning with test labels: available, marked, and better for it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import ParameterGrid

from aloof.baselines import (
    BASELINES,
    UNFAIR,
    UNFAIR_GRIDS,
    Hybrid,
    fit_unfairly,
    peeked_rows,
)
from aloof.baselines import kernel as kernels
from aloof.bench.methods import make_peer, resolve_methods
from aloof.bench.odds import System


def test_the_draw_is_a_tenth_of_each_class():
    y = np.repeat([0, 1], [200, 33])
    rows = peeked_rows(y, random_state=0)
    assert (y[rows] == 0).sum() == 20
    assert (y[rows] == 1).sum() == 3
    assert len(set(rows)) == 23
    assert not np.array_equal(rows, peeked_rows(y, random_state=1))
    few = peeked_rows(np.array([0] * 20 + [1]), random_state=0)
    assert 20 in few


def test_kernels_of_shared_distances_are_the_same_to_the_bit():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 50, 7))
    with kernels.shared_distances():
        for rows in (one, two, one):
            for gamma in (0.01, 1.0):
                found = kernels.whole_kernel(rows, gamma)
                assert np.array_equal(found, rbf_kernel(rows, gamma=gamma))
    assert np.array_equal(kernels.whole_kernel(two, 0.1), rbf_kernel(two, gamma=0.1))


@pytest.mark.parametrize("name", ["oc-svm", "ssad"])
def test_distances_are_measured_once_for_all_widths(name, visible, monkeypatch):
    measured = []

    def counted(rows, **options):
        measured.append(len(rows))
        return euclidean_distances(rows, **options)

    monkeypatch.setattr(kernels, "euclidean_distances", counted)
    fit_unfairly(name, visible.X, visible.y, visible.X_test, visible.y_test, random_state=0)
    assert len(measured) == 1


@pytest.mark.parametrize("name", sorted(UNFAIR_GRIDS))
def test_the_best_setting_on_the_peeked_rows_is_taken(name, make, visible):
    """Peeking at all rows, no setting of the grid may do better than the one taken."""
    parameters = {"max_epochs": 10} if name.endswith("hybrid") else {}
    tuned = fit_unfairly(
        name, visible.X, visible.y, visible.X_test, visible.y_test, random_state=0, **parameters
    )
    best = roc_auc_score(visible.y_test, tuned.anomaly_score(visible.X_test))
    shallow = tuned.detectors_.detectors[0] if isinstance(tuned, Hybrid) else tuned
    assert shallow.kernel_gamma in UNFAIR_GRIDS[name]["kernel_gamma"]
    X, X_test = visible.X, visible.X_test
    if isinstance(tuned, Hybrid):
        X, X_test = (tuned.detectors_.features(rows)[0] for rows in (X, X_test))
    for point in ParameterGrid(UNFAIR_GRIDS[name]):
        other = type(shallow)(**point).fit(X, visible.y)
        assert roc_auc_score(visible.y_test, other.anomaly_score(X_test)) <= best + 1e-12


def test_the_grids_are_the_published_ones():
    widths = [2**-7, 2**-6, 2**-5, 2**-4, 2**-3, 2**-2, 2**-1, 1, 2, 4]
    for name, grid in UNFAIR_GRIDS.items():
        assert list(grid["kernel_gamma"]) == widths
        if name.startswith("oc-svm"):
            assert list(grid["nu"]) == [0.01, 0.05, 0.1, 0.2, 0.5]
        else:
            assert (grid["nu"], grid["normal_limit"]) == ((None,), (1.0,))
            assert grid["kappa"] == grid["anomaly_limit"] == (1.0,)


def test_parameters_reach_the_baseline_and_its_parts(visible):
    options = {"max_epochs": 3, "hidden": (4, 2), "detector__max_rows": 50}
    system = UNFAIR["ssad-hybrid-unfair"](random_state=0, parameters=options)
    system.peek(visible.X_test, visible.y_test).fit(visible.X, visible.y)
    assert system.baseline_.fitted_.encode(visible.X[:3]).shape == (1, 3, 2)
    assert system.baseline_.detectors_.detectors[0].max_rows == 50
    made = make_peer("ssad-hybrid-unfair", seed=3, device="cpu", max_epochs=3)
    assert (made.random_state, made.parameters) == (3, {"device": "cpu", "max_epochs": 3})
    assert make_peer("oc-svm-unfair", seed=3, device="cpu").parameters == {}


def test_other_baselines_are_not_tuned(visible):
    with pytest.raises(ValueError, match="no unfair tuning of 'knn'"):
        fit_unfairly("knn", visible.X, visible.y, visible.X_test, visible.y_test)


def test_an_unfair_baseline_must_peek_first(visible):
    system = UNFAIR["oc-svm-unfair"](random_state=0)
    with pytest.raises(ValueError, match="call peek first"):
        system.fit(visible.X, visible.y)
    system.peek(visible.X_test, visible.y_test).fit(visible.X, visible.y)
    assert roc_auc_score(visible.y_test, system.anomaly_score(visible.X_test)) > 0.7


def test_no_group_of_methods_has_unfair_ones_and_none_is_a_peer_to_beat():
    assert not set(UNFAIR) & set(BASELINES)
    assert not set(resolve_methods(["all"])) & set(UNFAIR)
    assert resolve_methods(["ssad-unfair"]) == ("ssad-unfair",)
    assert System("ssad-unfair").unfair
    assert not System("ssad").unfair
