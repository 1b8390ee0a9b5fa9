"""What the records say of one system on one data set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from aloof.bench.records import Record, good
from aloof.bench.statistics import Moments, moments

__all__ = ["Cell", "gather"]

_C = TypeVar("_C", bound=Hashable)
_S = TypeVar("_S", bound=Hashable)


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


def gather(
    records: Iterable[Record],
    place: Callable[[Record], tuple[_C, _S, str]],
    *,
    seeds: int,
    conditions: Iterable[_C],
    systems: Sequence[_S],
    names: Sequence[str],
) -> Iterator[tuple[_C, dict[tuple[_S, str], Cell]]]:
    """Yield each condition with a cell for every system and data set, some without records.

    Parameters
    ----------
    records
        One for each case; those of anything else are left out.
    place
        Of a record: its condition, its system and its data set.
    seeds
        Those of records are below this number.
    conditions, systems, names
        What there is to be, in this order; `names` are those of data sets.
    """
    found: dict[tuple[_C, _S, str], list[Record]] = {}
    for record in records:
        if record["seed"] < seeds:
            found.setdefault(place(record), []).append(record)
    for condition in conditions:
        pairs = product(systems, names)
        yield condition, {pair: Cell(found.get((condition, *pair), [])) for pair in pairs}
