"""Evidence: a normal row has more than t with probability exp(-t), whatever the unit."""

from __future__ import annotations

import numpy as np
import pytest

from aloof.calibration import Evidence

N = 4000


def scores(n: int = N, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(size=n)


@pytest.mark.parametrize("t", [0.5, 1.0, 2.0, 3.0, 4.0])
def test_a_normal_row_has_more_than_t_with_probability_exp_minus_t(t: float) -> None:
    found = Evidence.fit(scores())(scores(seed=1))
    expected = np.exp(-t)
    assert (found > t).mean() == pytest.approx(expected, abs=4 * np.sqrt(2 * expected / N))


def test_the_unit_of_the_scores_does_not_matter() -> None:
    own, others = scores(), scores(seed=1)
    np.testing.assert_allclose(
        Evidence.fit(own)(others), Evidence.fit(1000 * own + 7)(1000 * others + 7), rtol=1e-9
    )


def test_it_never_falls_and_has_no_jumps() -> None:
    own = scores(200)
    found = Evidence.fit(own)
    line = np.linspace(own.min() - 1, 2 * own.max(), 100_001)
    steps = np.diff(found(line))
    assert steps.min() >= 0
    assert steps.max() < 0.1
    assert found(own.min() - 1e9) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("share", [0.6, 1.0])
def test_rows_with_the_same_score_as_most_have_nothing_to_say(share: float) -> None:
    # As trees that find no row like a labelled anomaly: all shares are zero, or nearly all.
    own = np.zeros(1000)
    own[round(share * 1000) :] = -1.0
    found = Evidence.fit(own)(np.zeros(1))
    assert found == pytest.approx(-np.log(share / 2))


@pytest.mark.parametrize("resolution", [0.005, 0.1])
def test_where_no_row_differs_the_resolution_says_how_far_is_far(resolution: float) -> None:
    found = Evidence.fit(np.zeros(200), resolution=resolution)
    differences = np.diff(found([0.0, 0.1, 0.2, 1.0]))
    np.testing.assert_allclose(differences, np.array([0.1, 0.1, 0.8]) / resolution)


def test_rounding_is_no_evidence() -> None:
    for level in (0.0, 1.0, -3e4):
        found = Evidence.fit(np.full(200, level))
        near = level + 1e-8 * max(abs(level), 1.0)
        assert found(near) - found(level) < 0.02


def test_the_resolution_does_not_matter_where_rows_differ() -> None:
    own, others = scores(), scores(seed=1)
    np.testing.assert_array_equal(
        Evidence.fit(own)(others), Evidence.fit(own, resolution=0.005)(others)
    )


@pytest.mark.parametrize("share", [0.9, 0.94, 0.951, 0.97])
def test_a_normal_row_has_its_evidence_where_most_have_the_same_score(share: float) -> None:
    """As trees that find nothing in most rows: what they find in the others means as much."""

    def drawn(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return np.where(rng.random(N) < share, 0.0, rng.exponential(size=N))

    found = Evidence.fit(drawn(0))(drawn(1))
    for t in (4.0, 5.0):
        expected = np.exp(-t)
        assert (found > t).mean() == pytest.approx(expected, abs=4 * np.sqrt(2 * expected / N))
    assert found.min() == pytest.approx(-np.log(share / 2 + 1 - share), abs=0.05)
