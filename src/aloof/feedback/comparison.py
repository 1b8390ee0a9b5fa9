"""An old model and a new one side by side: on labels neither learned from, and in the ranking.

Whether the new one is worse is decided on rows that were answered and held out of the refit,
against the rows held out to calibrate with: the difference of the two areas under the ROC
curve, with an interval from a paired bootstrap. It is worse where the whole interval is below
zero. Answers are given to rows that the old model put first, which favours the old one: a
verdict of "worse" is cautious, one of "better" is not made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.feedback.answer import UNSURE
from aloof.labels import ANOMALY, NORMAL
from aloof.metrics import average_precision, roc_auc

__all__ = [
    "ENOUGH_ANSWERS",
    "FEWEST_HELD_OUT",
    "Alerts",
    "Comparison",
    "HeldOut",
    "Move",
    "compare_alerts",
    "compare_held_out",
]

_RESAMPLES, _SEED = 400, 0
# So many answers it takes to hold some out, and so many anomalies among these to say anything.
ENOUGH_ANSWERS, FEWEST_HELD_OUT = 20, 2
_TOP = 50


@dataclass(frozen=True)
class HeldOut:
    """How both do on labels that neither learned from.

    Attributes
    ----------
    n_anomalies, n_normal
        How many rows were answered so and held out.
    n_calibration
        How many rows held out to calibrate with count as normal besides.
    old_auroc, new_auroc, old_ap, new_ap
        Area under the ROC curve, and average precision.
    low, high
        95 % interval of the difference of the former, new less old.
    """

    n_anomalies: int
    n_normal: int
    n_calibration: int
    old_auroc: float
    new_auroc: float
    old_ap: float
    new_ap: float
    low: float
    high: float

    @property
    def is_worse(self) -> bool:
        """Whether the new one is worse, and chance is no explanation."""
        return self.high < 0


@dataclass(frozen=True)
class Move:
    """A row whose place in the ranking changed.

    Attributes
    ----------
    name
        Its id, or its number.
    old_rank, new_rank
        1 is the most anomalous.
    answer
        1, 0, or -1: nobody knows.
    """

    name: str
    old_rank: int
    new_rank: int
    answer: int


@dataclass(frozen=True)
class Alerts:
    """What becomes of the rows that the old model flags.

    Attributes
    ----------
    n_rows
        How many rows were compared.
    n_old, n_new
        How many rows each flags.
    n_open
        Flagged by the old one, and nobody has answered.
    n_open_stay
        Those of them that the new one flags too.
    n_fresh
        Flagged by the new one only.
    n_confirmed, n_confirmed_stay
        Of the rows that were answered "anomaly": how many the old and the new one flag.
    n_false, n_false_stay
        The same of those that were answered "normal".
    rises, falls
        Rows that moved farthest up into the first places, and down out of them.
    """

    n_rows: int
    n_old: int
    n_new: int
    n_open: int
    n_open_stay: int
    n_fresh: int
    n_confirmed: int
    n_confirmed_stay: int
    n_false: int
    n_false_stay: int
    rises: tuple[Move, ...]
    falls: tuple[Move, ...]


@dataclass(frozen=True)
class Comparison:
    """Old and new side by side.

    Attributes
    ----------
    held_out
        On labels that neither learned from; None: there are too few.
    alerts
        In the ranking; None: no rows were compared.
    """

    held_out: HeldOut | None
    alerts: Alerts | None

    @property
    def is_worse(self) -> bool:
        """Whether the new one is worse than the old one."""
        return self.held_out is not None and self.held_out.is_worse

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**asdict(self), "is_worse": self.is_worse}

    def lines(self) -> list[str]:
        """Say it in words."""
        said = []
        if (held := self.held_out) is None:
            said.append(
                "Too few answers to hold some out: nobody can say yet whether the new version "
                f"is better or worse. That takes {ENOUGH_ANSWERS} answers, and "
                f"{FEWEST_HELD_OUT} anomalies in the fifth that is held out. Until then, judge "
                "by the rows that rise and fall."
            )
        else:
            verdict = "The refit is worse" if self.is_worse else "Held-out answers"
            said.append(
                f"{verdict}: AUROC {held.old_auroc:.3f} before, {held.new_auroc:.3f} now "
                f"(difference {held.low:+.3f} to {held.high:+.3f}), average precision "
                f"{held.old_ap:.3f} before, {held.new_ap:.3f} now; {held.n_anomalies} "
                f"anomalies and {held.n_normal} normal rows that were answered and not learned "
                f"from, against {held.n_calibration:,} others."
            )
            if held.low <= 0 <= held.high and held.low < held.high:
                said.append(
                    f"Chance explains that difference: with {held.n_anomalies} held-out "
                    f"anomalies, less than about {(held.high - held.low) / 2:.3f} either way "
                    "cannot be told from none."
                )
        if (alerts := self.alerts) is not None:
            said.append(
                f"Of {alerts.n_rows:,} rows {alerts.n_old:,} were flagged and {alerts.n_new:,} "
                f"are now: {alerts.n_open_stay:,} of {alerts.n_open:,} open alerts stay, "
                f"{alerts.n_fresh:,} are new; {alerts.n_false - alerts.n_false_stay:,} of "
                f"{alerts.n_false:,} false alarms vanish, {alerts.n_confirmed_stay:,} rows "
                f"confirmed as anomalies are flagged ({alerts.n_confirmed:,} were)."
            )
        return said


def compare_held_out(
    labels: NDArray[np.int64],
    old: NDArray[np.float64],
    new: NDArray[np.float64],
    old_calibration: NDArray[np.float64],
    new_calibration: NDArray[np.float64],
) -> HeldOut | None:
    """Compare scores of rows with known labels, and of rows taken as normal.

    Parameters
    ----------
    labels
        1 and 0 of the held-out answers.
    old, new
        Their anomaly scores.
    old_calibration, new_calibration
        Anomaly scores of the same calibration rows by both.
    """
    n_anomalies, n_normal = int((labels == ANOMALY).sum()), int((labels == NORMAL).sum())
    if n_anomalies < FEWEST_HELD_OUT or n_normal + len(old_calibration) < FEWEST_HELD_OUT:
        return None
    y = np.concatenate([labels, np.zeros(len(old_calibration), np.int64)])
    pair = (np.concatenate([old, old_calibration]), np.concatenate([new, new_calibration]))
    anomalies, others = np.flatnonzero(y == ANOMALY), np.flatnonzero(y == NORMAL)
    # Which share of the normal rows each anomaly is above: resampled without sorting again.
    above = [_above(scores[anomalies], scores[others]) for scores in pair]
    difference = above[1] - above[0]
    rng = np.random.default_rng(_SEED)
    resampled = []
    for _ in range(_RESAMPLES):
        rows = rng.integers(len(anomalies), size=len(anomalies))
        columns = np.bincount(rng.integers(len(others), size=len(others)), None, len(others))
        resampled.append(float((difference[rows] @ columns).mean() / len(others)))
    low, high = np.quantile(resampled, [0.025, 0.975])
    return HeldOut(
        n_anomalies=n_anomalies,
        n_normal=n_normal,
        n_calibration=len(old_calibration),
        old_auroc=roc_auc(y, pair[0]),
        new_auroc=roc_auc(y, pair[1]),
        old_ap=average_precision(y, pair[0]),
        new_ap=average_precision(y, pair[1]),
        low=float(low),
        high=float(high),
    )


def _above(anomalies: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    one, two = anomalies[:, None], others[None, :]
    wins: NDArray[np.float64] = (one > two) + 0.5 * (one == two)
    return wins


def compare_alerts(
    names: Sequence[str],
    answers: Mapping[str, int],
    old: NDArray[np.float64],
    new: NDArray[np.float64],
    old_flags: NDArray[np.bool_],
    new_flags: NDArray[np.bool_],
    *,
    top: int = 10,
) -> Alerts:
    """Compare two rankings of the same rows.

    Parameters
    ----------
    names
        Of the rows.
    answers
        What is known of some of them: 1, 0 or -1.
    old, new, old_flags, new_flags
        Anomaly scores and decisions of both.
    top
        How many moves to name in each direction.
    """
    known = np.array([answers.get(name, UNSURE) for name in names], np.int64)
    before, after = (_ranks(scores) for scores in (old, new))
    open_ = old_flags & (known == UNSURE)
    first = min(_TOP, len(names))
    # On a log scale: from 500 to 5 is as far as from 50 to 0.5.
    moved = np.log(after) - np.log(before)

    def moves(direction: int, ranks: NDArray[np.int64]) -> tuple[Move, ...]:
        candidates = np.flatnonzero((ranks <= first) & (direction * moved > 0))
        chosen = candidates[np.argsort(-np.abs(moved[candidates]), kind="stable")][:top]
        return tuple(
            Move(names[i], int(before[i]), int(after[i]), int(known[i])) for i in chosen
        )

    counts = {}
    for word, label in (("confirmed", ANOMALY), ("false", NORMAL)):
        counts[f"n_{word}"] = int((old_flags & (known == label)).sum())
        stays = new_flags & (known == label)
        if label == NORMAL:
            stays &= old_flags
        counts[f"n_{word}_stay"] = int(stays.sum())
    return Alerts(
        n_rows=len(names),
        n_old=int(old_flags.sum()),
        n_new=int(new_flags.sum()),
        n_open=int(open_.sum()),
        n_open_stay=int((open_ & new_flags).sum()),
        n_fresh=int((new_flags & ~old_flags).sum()),
        **counts,
        rises=moves(-1, after),
        falls=moves(1, before),
    )


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = 1 + np.arange(len(scores))
    return ranks
