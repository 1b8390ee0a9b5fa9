"""From anomaly scores to decisions: conformal p-values, false discovery rates, thresholds."""

from aloof.calibration.conformal import (
    count_p_values,
    discoveries,
    p_values,
    rows_needed,
    smallest_p,
)
from aloof.calibration.decision import Decision
from aloof.calibration.evidence import Evidence
from aloof.calibration.probability import ProbabilityCurve
from aloof.calibration.threshold import Rule, Threshold

__all__ = [
    "Decision",
    "Evidence",
    "ProbabilityCurve",
    "Rule",
    "Threshold",
    "count_p_values",
    "discoveries",
    "p_values",
    "rows_needed",
    "smallest_p",
]
