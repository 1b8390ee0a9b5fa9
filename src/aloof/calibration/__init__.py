"""From anomaly scores to decisions: conformal p-values, false discovery rates, thresholds."""

from aloof.calibration.conformal import (
    count_p_values,
    false_discovery_level,
    false_discovery_level_from_counts,
    p_values,
    rows_needed,
    smallest_p,
)
from aloof.calibration.threshold import Rule, Threshold

__all__ = [
    "Rule",
    "Threshold",
    "count_p_values",
    "false_discovery_level",
    "false_discovery_level_from_counts",
    "p_values",
    "rows_needed",
    "smallest_p",
]
