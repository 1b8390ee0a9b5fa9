"""From scores to p-values, decisions and probabilities, in a graph."""

from __future__ import annotations

import numpy as np

from aloof.calibration import Decision, ProbabilityCurve
from aloof.export.functions import Knots, arsinh
from aloof.export.graph import DOUBLE, Value
from aloof.lite.format import SAME

__all__ = ["flag", "p_value", "probability"]


def p_value(decision: Decision, scores: Value) -> Value:
    """Return the p-value of each score."""
    assert decision.calibration is not None
    n = len(decision.calibration)
    below = Knots(scores.graph, decision.calibration).below(_barely(scores), equal=False)
    return (n + 1.0 - below.to(DOUBLE)) / (n + 1.0)


def flag(decision: Decision, scores: Value, p_values: Value | None) -> Value:
    """Return which rows are anomalies; by a false discovery rate, of those given together."""
    if decision.threshold.fdr is None:
        return _barely(scores) > decision.least
    assert p_values is not None
    g = scores.graph
    n = p_values.do("Shape", dtype=np.int64)
    ordered = g.smallest(p_values, n)
    count = g.node(
        "Range",
        [g.number(1, np.int64), n.squeeze(0) + 1, g.number(1, np.int64)],
        dtype=np.int64,
    )
    adjusted = ordered * (n.to(DOUBLE) / count.to(DOUBLE))
    discovered = g.where(adjusted <= decision.threshold.fdr, ordered, -1.0)
    limit = g.concat([discovered, g.constant(np.array([-1.0]))], 0).max(0)
    return p_values <= limit


def probability(curve: ProbabilityCurve, scores: Value) -> Value:
    """Return the probability of an anomaly for each score."""
    x = arsinh((scores - curve.middle) / curve.spread)
    return (x * curve.slope + curve.intercept).do("Sigmoid")


def _barely(scores: Value) -> Value:
    """Return scores a hair lower: one that a calibration row has is then not above it.

    Scores are not the same to the last bit everywhere, and calibration rows are scored again.
    """
    return scores - scores.do("Abs") * SAME
