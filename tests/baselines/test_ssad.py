"""SSAD: the solver against scipy and the optimality conditions, the method against OC-SVM."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

from aloof.baselines import SSAD
from aloof.baselines import ssad as module
from aloof.baselines.kernel import KernelLines
from aloof.baselines.quadratic_program import solve
from aloof.exceptions import LabelWarning


def program(seed: int, n_normal: int = 14, n_anomalies: int = 4, nu: float = 0.25):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_normal + n_anomalies, 3))
    rows[n_normal:, 0] += 1.0
    is_anomaly = np.arange(len(rows)) >= n_normal
    limits = np.where(is_anomaly, 0.6, 1.0 / (nu * n_normal))
    return rbf_kernel(rows, gamma=0.3), is_anomaly, limits


@pytest.mark.parametrize("kappa", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_solver_agrees_with_scipy(seed, kappa):
    kernel, is_anomaly, limits = program(seed)
    ours = solve(kernel, is_anomaly, limits, kappa, tolerance=1e-9)
    theirs = minimize(
        lambda beta: 0.5 * beta @ kernel @ beta,
        ours.coefficients * 0 + 1.0 / len(kernel),
        jac=lambda beta: kernel @ beta,
        method="SLSQP",
        bounds=[(-c, 0.0) if a else (0.0, c) for a, c in zip(is_anomaly, limits, strict=True)],
        constraints=[
            {"type": "eq", "fun": lambda beta: beta.sum() - 1.0},
            {"type": "ineq", "fun": lambda beta: -beta[is_anomaly].sum() - kappa},
        ],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert theirs.success
    objective = 0.5 * ours.coefficients @ kernel @ ours.coefficients
    assert objective <= theirs.fun + 1e-9
    np.testing.assert_allclose(ours.coefficients, theirs.x, atol=1e-4)


@pytest.mark.parametrize("kappa", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_solution_is_optimal(seed, kappa):
    """Feasible, and slack in a constraint and a price on it exclude each other."""
    kernel, is_anomaly, limits = program(seed, n_normal=60, n_anomalies=8)
    solution = solve(kernel, is_anomaly, limits, kappa, tolerance=1e-9)
    beta = solution.coefficients
    alpha = np.abs(beta)
    mass = alpha[is_anomaly].sum()
    assert beta.sum() == pytest.approx(1.0)
    assert (beta[is_anomaly] <= 0).all()
    assert (beta[~is_anomaly] >= 0).all()
    assert (alpha <= limits + 1e-12).all()
    assert mass >= kappa - 1e-9
    assert solution.margin >= 0
    assert solution.margin * (mass - kappa) == pytest.approx(0.0, abs=1e-7)
    f = kernel @ beta
    # How far a row is on the good side of its boundary.
    room = np.where(is_anomaly, solution.rho - solution.margin - f, f - solution.rho)
    assert (room[alpha == 0] >= -1e-7).all()
    assert (room[alpha >= limits] <= 1e-7).all()
    free = (alpha > 0) & (alpha < limits)
    np.testing.assert_allclose(room[free], 0.0, atol=1e-7)


def test_solver_needs_a_feasible_program():
    kernel, is_anomaly, limits = program(0)
    with pytest.raises(ValueError, match=r"anomalies add up to 2.4, less than kappa = 3"):
        solve(kernel, is_anomaly, limits, kappa=3.0)
    with pytest.raises(ValueError, match="normal rows"):
        solve(kernel, is_anomaly, limits * 0.2, kappa=0.1)


def test_solver_stops_after_max_steps():
    kernel, is_anomaly, limits = program(0)
    stopped = solve(kernel, is_anomaly, limits, 0.5, max_steps=1)
    done = solve(kernel, is_anomaly, limits, 0.5)
    assert stopped.n_steps == 1 < done.n_steps
    assert stopped.violation > done.violation


@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_without_labels_it_is_the_one_class_svm(nu, visible):
    normal = visible.X[visible.y == 0]
    with pytest.warns(LabelWarning, match="one-class SVM"):
        ours = SSAD(nu=nu).fit(normal)
    theirs = OneClassSVM(nu=nu, gamma="scale", tol=1e-8)
    theirs.random_state = 0  # or it would draw from NumPy's global generator
    theirs.fit(normal)
    # libsvm's coefficients add up to nu n, ours to 1.
    np.testing.assert_allclose(
        ours.anomaly_score(visible.X_test),
        -theirs.decision_function(visible.X_test) / (nu * len(normal)),
        atol=1e-4,
    )


def test_anomalies_are_put_outside(hidden):
    """Without their labels these anomalies are among the most normal rows there are."""
    with pytest.warns(LabelWarning):
        blind = SSAD().fit(hidden.X[hidden.y == 0])
    seeing = SSAD().fit(hidden.X, hidden.y)
    anomalies = hidden.X[hidden.y == 1]
    assert (blind.anomaly_score(anomalies) < 0).mean() > 0.9
    assert (seeing.anomaly_score(anomalies) >= -1e-6).all()


def test_rows_labelled_normal_count_as_unlabelled(hidden):
    unlabelled = np.where(hidden.y == 1, 1, -1)
    unlabelled[0] = 0
    np.testing.assert_array_equal(
        SSAD().fit(hidden.X, hidden.y).coefficients_,
        SSAD().fit(hidden.X, unlabelled).coefficients_,
    )


def test_large_tables_are_thinned(hidden):
    thinned = SSAD(max_rows=100, random_state=0).fit(hidden.X, hidden.y)
    assert len(thinned.coefficients_) == 100 + hidden.y.sum()
    other = SSAD(max_rows=100, random_state=1).fit(hidden.X, hidden.y)
    assert not np.array_equal(
        thinned.anomaly_score(hidden.X_test), other.anomaly_score(hidden.X_test)
    )


def test_lines_of_a_kernel_are_its_rows(monkeypatch):
    """Also where only two of them are kept, and so most are made again."""
    rows = np.random.default_rng(0).normal(size=(9, 4))
    whole = rbf_kernel(rows, gamma=0.3)
    weights = np.where(np.arange(9) % 2, 0.0, np.arange(9) - 3.0)
    for size in (10**6, 0):
        monkeypatch.setattr("aloof.baselines.kernel._BYTES", size)
        lines = KernelLines(rows, 0.3)
        assert len(lines) == 9
        for index in (4, 1, 4, 8, 0, 4):
            np.testing.assert_allclose(lines[index], whole[index], atol=1e-14)
        np.testing.assert_allclose(lines @ weights, whole @ weights, atol=1e-13)
        np.testing.assert_array_equal(lines.diagonal(), whole.diagonal())


def test_many_rows_are_learned_line_by_line_to_the_same(monkeypatch, hidden):
    whole = SSAD().fit(hidden.X, hidden.y)
    monkeypatch.setattr(module, "MOST_AT_ONCE", 10)
    lines = SSAD().fit(hidden.X, hidden.y)
    np.testing.assert_allclose(lines.coefficients_, whole.coefficients_, atol=1e-9)


def test_the_price_of_a_normal_row_is_given_or_follows_from_nu(hidden):
    n = (hidden.y == 0).sum()
    same = SSAD(nu=None, normal_limit=1 / (0.1 * n)).fit(hidden.X, hidden.y)
    np.testing.assert_allclose(
        same.coefficients_, SSAD(nu=0.1).fit(hidden.X, hidden.y).coefficients_
    )
    hard = SSAD(nu=None, normal_limit=1.0).fit(hidden.X, hidden.y)
    outside = hard.anomaly_score(hidden.X[hidden.y == 0]) > 1e-3
    assert outside.mean() < 0.01 < (same.anomaly_score(hidden.X[hidden.y == 0]) > 1e-3).mean()
    for both in ({"nu": None}, {"normal_limit": 1.0}):
        with pytest.raises(ValueError, match="one of nu and normal_limit"):
            SSAD(**both).fit(hidden.X, hidden.y)
