"""How many rows are called anomalies: one rule out of four."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import floor, isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from aloof.calibration.conformal import rows_needed, smallest_p

__all__ = ["Rule", "Threshold"]

Rule = Literal["share", "budget", "fdr", "value"]

_BUDGET = re.compile(r"\s*([\d,_]+)\s*/\s*([\d,_]+)\s*")
_EXAMPLES = "share=0.01, budget='50/10000', fdr=0.05 or value=1.5"

# A false discovery rate that needs one anomaly in less than this many rows is not of use.
_RAREST = 10


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A rule that says which rows are anomalies. Exactly one field is set.

    Attributes
    ----------
    share
        Share of normal rows that may be called anomalies, between 0 and 1.
    budget
        Alerts among all rows that are scored, as ``"alerts/rows"``.
    fdr
        Share of normal rows among those called anomalies (false discovery rate), between 0
        and 1. Decided over the rows that are scored together.
    value
        Rows with an anomaly score above it are anomalies.

    Examples
    --------
    >>> rule = Threshold(budget="50/10000")
    >>> rule.rule, rule.rate
    ('budget', 0.005)
    >>> print(rule)
    50 alerts in 10,000 rows
    """

    share: float | None = None
    budget: str | None = None
    fdr: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            raise ValueError(f"A threshold takes exactly one rule ({_EXAMPLES}); got {got}.")
        name = given[0]
        if name == "budget":
            alerts, rows = _budget(self.budget)
            object.__setattr__(self, "budget", f"{alerts}/{rows}")
            return
        number = getattr(self, name)
        if isinstance(number, bool) or not isinstance(number, Real):
            raise ValueError(f"The threshold's {name} must be a number; got {number!r}.")
        number = float(number)
        if not isfinite(number) or (name != "value" and not 0 < number < 1):
            bounds = "finite" if name == "value" else "between 0 and 1, such as 0.05"
            raise ValueError(f"The threshold's {name} must be {bounds}; got {number!r}.")
        object.__setattr__(self, name, number)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Threshold:
        """Return the rule that `as_dict` described."""
        unknown = set(state) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(
                f"A threshold takes one rule ({_EXAMPLES}); got {', '.join(sorted(unknown))}."
            )
        return cls(**state)

    def as_dict(self) -> dict[str, float | str]:
        """Return the rule as JSON can hold it, such as ``{"share": 0.01}``."""
        return {self.rule: getattr(self, self.rule)}

    @property
    def rule(self) -> Rule:
        """Return which of the rules it is."""
        names: tuple[Rule, ...] = ("share", "budget", "fdr", "value")
        return next(name for name in names if getattr(self, name) is not None)

    @property
    def rate(self) -> float | None:
        """Return the rule's number as a share of rows; None for a value."""
        if self.budget is not None:
            alerts, rows = _budget(self.budget)
            return alerts / rows
        return self.share if self.share is not None else self.fdr

    def level(self, scores: ArrayLike, *, held_out: bool = True) -> float:
        """Return the anomaly score above which a row is an anomaly.

        A false discovery rate has no such level before the rows are known. For it this is
        the level that a row has to pass at least: no row below it is ever a discovery.

        Parameters
        ----------
        scores
            Anomaly scores of rows that are not labelled as anomalies.
        held_out
            Whether those rows were held out of the training. Then a new normal row passes
            the level with a probability of at most the rate, and of 1 / (n + 1) where the
            rate is smaller than that. Otherwise that share of the rows themselves passes.
        """
        if self.value is not None:
            return self.value
        assert self.rate is not None
        scores = np.sort(np.asarray(scores, np.float64))
        if not held_out:
            return -float(np.percentile(-scores, 100.0 * self.rate))
        # A hair more, so that 0.07 of 100 places is 7 of them.
        place = max(1, floor(self.rate * (len(scores) + 1) * (1 + 1e-12)))
        return float(scores[-place])

    def shortage(self, n: int, *, kind: str = "calibration") -> str | None:
        """Say what is wrong with `n` rows of a kind for this rule; None: they are enough."""
        if self.rate is None:
            return None
        if self.fdr is None:
            needed = rows_needed(self.rate)
            if n >= needed:
                return None
            return (
                f"{_are(n, kind)} too few for {self}: the smallest share of normal rows "
                f"they can flag is {smallest_p(n):.2%}. You need at least {needed:,} rows."
            )
        few, many = (rows_needed(self.fdr, anomalies=1 / k) for k in (_RAREST, 100))
        if n >= few:
            return None
        least = smallest_p(n) / self.fdr
        reach = (
            "no row can ever be flagged"
            if least > 1
            else f"rows can be flagged only if {least:.0%} of the rows scored together are"
        )
        return (
            f"{_are(n, kind)} too few for {self}: {reach}. You need {few:,} rows if one "
            f"row in {_RAREST} is an anomaly, {many:,} if it is one in 100."
        )

    def expectation(self, n: int, *, things: str = "rows") -> str:
        """Say what to expect of `n` rows; nothing where the rule does not say it.

        Examples
        --------
        >>> Threshold(budget="50/10000").expectation(8000)
        'about 40 of 8,000 normal rows; real anomalies come on top'
        """
        if self.rate is None or self.fdr is not None:
            return ""
        about = round(self.rate * n)
        many = f"about {about:,}" if about else "fewer than 1"
        return f"{many} of {n:,} normal {things}; real anomalies come on top"

    def __str__(self) -> str:
        if self.budget is not None:
            alerts, rows = _budget(self.budget)
            return f"{alerts:,} alerts in {rows:,} rows"
        if self.share is not None:
            return f"{_percent(self.share)} of normal rows"
        if self.fdr is not None:
            return f"a false discovery rate of {_percent(self.fdr)}"
        return f"anomaly scores above {self.value:.6g}"


def _budget(text: object) -> tuple[int, int]:
    match = _BUDGET.fullmatch(text) if isinstance(text, str) else None
    parts = [re.sub("[,_]", "", part) for part in match.groups()] if match else []
    if len(parts) == 2 and all(parts):
        alerts, rows = map(int, parts)
        if 0 < alerts < rows:
            return alerts, rows
    raise ValueError(
        "The threshold's budget must be alerts/rows, with fewer alerts than rows, such as "
        f"'50/10000'; got {text!r}."
    )


def _are(n: int, kind: str) -> str:
    return f"{n:,} {kind} {'row is' if n == 1 else 'rows are'}"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
