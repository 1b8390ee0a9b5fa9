"""What the records say of one system on one data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aloof.bench.records import Record, good
from aloof.bench.statistics import Moments, moments

__all__ = ["Cell"]


@dataclass(frozen=True, eq=False)
class Cell:
    """One system on one data set, under one condition.

    Attributes
    ----------
    records
        Of its seeds, good and bad.
    """

    records: Sequence[Record]

    def percent(self, measure: str) -> dict[int, float]:
        """Return a measure in percent, for each seed with a result."""
        return {record["seed"]: 100 * record[measure] for record in good(self.records)}

    def moments(self, measure: str) -> Moments:
        """Return the mean of a measure in percent, its spread, and how many."""
        return moments(self.percent(measure).values())

    @property
    def fit_seconds(self) -> float:
        """The mean over seeds; NaN without a result."""
        return moments(record["fit_seconds"] for record in good(self.records)).mean

    @property
    def failures(self) -> dict[int, str]:
        """Why there is no result, for seeds that have none."""
        bad = [record for record in self.records if record["status"] != "ok"]
        return {r["seed"]: str(r.get("message", r["status"])) for r in bad}

    @property
    def infeasible(self) -> bool:
        """Whether the data set has too few anomalies."""
        reasons = self.failures.values()
        every = len(reasons) == len(self.records) > 0
        return every and all(reason.startswith("infeasible") for reason in reasons)
