"""One rule for every table: mean, sample standard deviation, how many, and one paired test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from aloof.bench.records import Record, grouped
from aloof.bench.tables import Line

__all__ = ["NOTE", "Moments", "Paired", "moments", "paired", "summary_lines", "with_mean"]

NOTE = "± is the sample standard deviation (n - 1); the standard error of a mean is ± / √n."


@dataclass(frozen=True)
class Moments:
    """Values in short.

    Attributes
    ----------
    mean
        NaN where there is no value.
    std
        The sample standard deviation (n - 1); NaN for fewer than two values.
    n
        How many values.
    """

    mean: float
    std: float
    n: int

    @property
    def sem(self) -> float:
        """The standard error of the mean."""
        return self.std / float(np.sqrt(self.n)) if self.n else float("nan")

    @property
    def text(self) -> str:
        """Mean and standard deviation as a cell of a table; empty without a value."""
        if not self.n:
            return ""
        return f"{self.mean:.1f}" + (f" ± {self.std:.1f}" if self.n > 1 else "")

    def columns(self, measure: str) -> dict[str, str]:
        """Return mean, standard deviation and standard error as columns of a CSV file."""
        figures = {"mean": self.mean, "std": self.std, "sem": self.sem}
        return {f"{measure}_{k}": "" if np.isnan(v) else f"{v:.4f}" for k, v in figures.items()}


@dataclass(frozen=True)
class Paired:
    """Two systems on the same tasks.

    Attributes
    ----------
    difference
        Mean of the first less the second; NaN where they have nothing in common.
    p_value
        Of the paired t-test, two-sided; None with fewer than two tasks, or where all
        differences are equal.
    n
        Tasks that both have.
    sem
        The standard error of the difference; NaN with fewer than two tasks.
    """

    difference: float
    p_value: float | None
    n: int
    sem: float = float("nan")

    @property
    def text(self) -> str:
        """The difference as a cell of a table, with its p-value; empty without one."""
        if not self.n:
            return ""
        return f"{self.difference:+.1f}" + (
            "" if self.p_value is None else f" (p = {self.p_value:.2g})"
        )


def moments(values: Iterable[float]) -> Moments:
    """Return mean, sample standard deviation and how many.

    Examples
    --------
    >>> moments([1.0, 3.0])
    Moments(mean=2.0, std=1.4142135623730951, n=2)
    """
    data = np.fromiter(values, np.float64)
    mean = float(data.mean()) if len(data) else float("nan")
    std = float(data.std(ddof=1)) if len(data) > 1 else float("nan")
    return Moments(mean, std, len(data))


def summary_lines(
    records: Iterable[Record], by: Sequence[str], measures: Mapping[str, float]
) -> Iterator[Line]:
    """Yield a line for each group of records: how many, and the moments of each measure.

    Parameters
    ----------
    records
        A measure that one lacks is left out.
    by
        The fields that make a group.
    measures
        Their names, and what to multiply them by: 100 for percent.
    """
    for key, own in grouped(records, *by).items():
        line: dict[str, Any] = {**dict(zip(by, key, strict=True)), "n": len(own)}
        for measure, scale in measures.items():
            found = moments(scale * r[measure] for r in own if measure in r)
            line |= found.columns(measure)
        yield line


def with_mean(groups: Sequence[Sequence[float]]) -> tuple[str, ...]:
    """Return a cell for each group of values, and one of the mean of their means.

    The last one is empty where a group is: means of different groups do not compare.

    Examples
    --------
    >>> with_mean([[1.0, 2.0], [3.0]]), with_mean([[1.0], []])
    (('1.5 ± 0.7', '3.0', '2.2'), ('1.0', '', ''))
    """
    found = [moments(group) for group in groups]
    whole = all(each.n for each in found)
    mean = f"{np.mean([each.mean for each in found]):.1f}" if whole else ""
    return (*(each.text for each in found), mean)


def paired(ours: Mapping[Any, float], theirs: Mapping[Any, float]) -> Paired:
    """Compare two systems on the tasks that both have.

    Parameters
    ----------
    ours, theirs
        A figure for each task.
    """
    common = [task for task in ours if task in theirs]
    a, b = (np.array([some[task] for task in common], np.float64) for some in (ours, theirs))
    if not common:
        return Paired(float("nan"), None, 0)
    differences = a - b
    p_value = None
    # Of equal differences the test statistic is infinite or undefined.
    if len(common) > 1 and np.ptp(differences) >= 1e-12 * max(1.0, float(np.abs(a).max())):
        p_value = float(ttest_rel(a, b).pvalue)
    found = moments(differences)
    return Paired(found.mean, p_value, found.n, found.sem)
