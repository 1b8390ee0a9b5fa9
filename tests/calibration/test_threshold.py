from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from aloof.calibration import Decision, Threshold, p_values

RULES: list[tuple[dict[str, Any], str]] = [
    ({"share": 0.01}, "1 % of normal rows"),
    ({"budget": "50/10000"}, "50 alerts in 10,000 rows"),
    ({"fdr": 0.05}, "a false discovery rate of 5 %"),
    ({"value": -1.5}, "anomaly scores above -1.5"),
]


def flag(rule: Threshold, scores: Any, calibration: Any) -> np.ndarray:
    return Decision(rule, rule.level(calibration), np.asarray(calibration)).flag(scores)


@pytest.mark.parametrize(("state", "words"), RULES)
def test_words_and_state(state: dict[str, Any], words: str) -> None:
    threshold = Threshold(**state)
    assert str(threshold) == words
    assert threshold.as_dict() == state
    assert Threshold.from_dict(threshold.as_dict()) == threshold
    assert threshold.rule == next(iter(state))
    with pytest.raises(FrozenInstanceError):
        threshold.share = 0.5  # type: ignore[misc]


def test_numbers_of_all_kinds_are_taken() -> None:
    assert Threshold(share=np.float32(0.25)).as_dict() == {"share": 0.25}
    assert type(Threshold(value=np.int64(3)).value) is float
    assert Threshold(budget=" 50 / 10,000 ") == Threshold(budget="50/10_000")
    assert Threshold(budget="50/10,000").rate == 0.005


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "exactly one rule .*; got none"),
    ({"share": 0.1, "fdr": 0.1}, "got share and fdr"),
    ({"share": 0.0}, "share must be between 0 and 1"),
    ({"share": 1}, "share must be between 0 and 1"),
    ({"fdr": 5}, "fdr must be between 0 and 1, such as 0.05; got 5.0"),
    ({"fdr": "5%"}, "fdr must be a number; got '5%'"),
    ({"share": True}, "share must be a number"),
    ({"value": float("nan")}, "value must be finite"),
    ({"budget": "50"}, "alerts/rows"),
    ({"budget": "a/b"}, "alerts/rows"),
    ({"budget": "50/50"}, "fewer alerts than rows"),
    ({"budget": "0/50"}, "alerts/rows"),
    ({"budget": ",/_"}, "alerts/rows"),
    ({"budget": 0.01}, r"such as '50/10000'; got 0\.01"),
]


@pytest.mark.parametrize(("state", "message"), BAD, ids=str)
def test_bad_rules_are_refused(state: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Threshold(**state)
    with pytest.raises(ValueError, match=message):
        Threshold.from_dict(state)


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="got contamination"):
        Threshold.from_dict({"contamination": 0.1})


@pytest.mark.parametrize("rate", [0.01, 0.07, 0.2, 0.5])
@pytest.mark.parametrize("n", [99, 100, 101, 1234])
def test_levels_flag_where_the_p_value_is_small(rate: float, n: int) -> None:
    """A fixed level and the p-values are two ways to say the same."""
    rng = np.random.default_rng(0)
    calibration = np.sort(rng.normal(size=n))
    scores = np.r_[rng.normal(size=500), calibration, 9.0]
    flagged = flag(Threshold(share=rate), scores, calibration)
    p = p_values(calibration, scores)
    assert np.array_equal(flagged, p <= rate * (1 + 1e-9))
    assert np.array_equal(flagged, scores > Threshold(share=rate).level(calibration))


def test_every_place_of_a_hundred_can_be_had() -> None:
    """In floating point 0.29 x 100 is a little less than 29."""
    for k in range(1, 100):
        level = Threshold(share=k / 100).level(np.arange(99.0))
        assert level == 99 - k


@pytest.mark.parametrize(
    "rule", [{"share": 0.03}, {"budget": "3/100"}, {"budget": "300/10000"}], ids=str
)
def test_shares_hold_on_fresh_normal_rows(rule: dict[str, Any]) -> None:
    """Over calibration sets, exactly floor(0.03 x 201) / 201 of new rows pass."""
    shares = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        calibration = np.sort(rng.gamma(2.0, size=200))
        shares.append(flag(Threshold(**rule), rng.gamma(2.0, size=500), calibration).mean())
    error = np.std(shares) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - 6 / 201) < 4 * error


def test_without_held_out_rows_it_is_a_share_of_the_rows_themselves() -> None:
    scores = np.random.default_rng(0).normal(size=200)
    level = Threshold(share=0.1).level(scores, held_out=False)
    assert (scores > level).sum() == 20
    assert level == -np.percentile(-scores, 10)


def test_values_ask_nobody() -> None:
    assert Threshold(value=2.0).level([]) == 2.0
    assert flag(Threshold(value=2.0), [1.0, 2.0, 3.0], []).tolist() == [False, False, True]
    assert Threshold(value=2.0).shortage(0) is None


def test_false_discovery_rate_is_decided_over_the_rows_together() -> None:
    rng = np.random.default_rng(0)
    calibration = np.sort(rng.normal(size=1000))
    scores = np.r_[rng.normal(size=200), 3 + rng.normal(size=60)]
    rule = Threshold(fdr=0.1)
    flagged = flag(rule, scores, calibration)
    p = p_values(calibration, scores)
    assert np.array_equal(flagged, false_discovery_control(p) <= 0.1)
    # A row that is found among many anomalies is not found among normal rows only.
    edge = np.flatnonzero(flagged)[p[flagged].argmax()]
    assert not flag(rule, np.r_[scores[:200], scores[edge]], calibration)[-1]
    # No discovery lies below the level.
    assert scores[flagged].min() > rule.level(calibration)
    assert not flag(rule, scores[:5] - 9, calibration).any()


@pytest.mark.parametrize(
    ("rule", "needed", "message"),
    [
        ({"share": 0.01}, 99, "98 calibration rows are too few for 1 % .* at least 99 rows"),
        ({"budget": "5/10000"}, 1999, "1,998 calibration rows .* at least 1,999 rows"),
        ({"fdr": 0.05}, 199, "only if 10% .* 199 rows if one row in 10 .*1,999 if"),
    ],
    ids=str,
)
def test_too_few_rows_are_named_with_how_many_it_takes(
    rule: dict[str, Any], needed: int, message: str
) -> None:
    import re

    threshold = Threshold(**rule)
    assert threshold.shortage(needed) is None
    words = threshold.shortage(needed - 1)
    assert words is not None
    assert re.search(message, words)


def test_few_rows_are_spoken_of_as_they_are() -> None:
    rule = Threshold(share=0.01)
    assert rule.expectation(1).startswith("fewer than 1 of 1 ")
    assert rule.expectation(149).startswith("about 1 of 149 ")
    assert (rule.shortage(1) or "").startswith("1 calibration row is too few for 1 %")


def test_a_rate_that_no_row_can_reach() -> None:
    words = Threshold(fdr=0.05).shortage(10)
    assert words is not None
    assert "no row can ever be flagged" in words
    assert not flag(Threshold(fdr=0.05), np.full(9, 1e9), np.arange(10.0)).any()
