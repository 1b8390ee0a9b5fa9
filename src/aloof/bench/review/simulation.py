"""One review: rows are asked about, answered by their true labels, and learned from."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from aloof.bench.review.forest import FeedbackForest
from aloof.bench.review.specification import FOREST, NEVER, RANDOM, ReviewSpecification
from aloof.bench.study import Outcome, Tell
from aloof.estimators import DualPriorVAE
from aloof.exceptions import LabelWarning
from aloof.feedback.asking import DEFAULT_WAY, Way, which_rows
from aloof.feedback.guide import POOL_SIZE, Guide
from aloof.metrics import average_precision, roc_auc

__all__ = ["Halves", "halve", "simulate"]


@dataclass(frozen=True)
class Halves:
    """A table in two halves, scaled by the first.

    Attributes
    ----------
    X, y
        The rows to review, and their true labels.
    X_test, y_test
        Those to measure with.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def halve(
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    *,
    max_rows: int,
    seed: int,
    max_share: float | None = None,
) -> Halves:
    """Draw rows, and divide them; both halves have the same share of anomalies."""
    rng = np.random.default_rng(np.random.SeedSequence([0x726576, seed]))
    if max_share is not None:
        normal, anomalies = (np.flatnonzero(y == label) for label in (0, 1))
        most = round(max_share / (1 - max_share) * len(normal))
        kept = np.sort(np.concatenate([normal, rng.permutation(anomalies)[:most]]))
        X, y = X[kept], y[kept]
    share = min(1.0, max_rows / len(y))
    parts: list[list[NDArray[np.int64]]] = [[], []]
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        rows = rows[: round(share * len(rows))]
        parts[0].append(rows[: len(rows) // 2])
        parts[1].append(rows[len(rows) // 2 :])
    one, two = (np.sort(np.concatenate(part)) for part in parts)
    mean, scale = X[one].mean(0), X[one].std(0)
    scale = np.where(scale > 0, scale, 1.0)
    return Halves((X[one] - mean) / scale, y[one], (X[two] - mean) / scale, y[two])


def simulate(
    halves: Halves,
    askers: Sequence[str],
    spec: ReviewSpecification,
    seed: int,
    device: str,
    tell: Tell,
) -> Iterator[Outcome]:
    """Yield what each asker found; all begin with the same detector, which has no labels."""
    first: DualPriorVAE | None = None
    seconds = 0.0
    for number, asker in enumerate(askers):
        tell(number, len(askers), "")
        if asker == FOREST:
            yield _with_forest(halves, spec, seed)
            continue
        if first is None:
            started = time.perf_counter()
            first = _fitted(_detector(spec, seed, device), halves.X)
            seconds = time.perf_counter() - started
        yield {"seconds_fit": seconds, **_with_refits(first, halves, asker, spec, seed)}
    tell(len(askers), len(askers), "")


def _detector(spec: ReviewSpecification, seed: int, device: str) -> DualPriorVAE:
    return DualPriorVAE(
        n_members=spec.members,
        max_epochs=spec.max_epochs,
        confirmed_weight=spec.confirmed_weight,
        random_state=seed,
        device=device,
    )


def _fitted(
    detector: DualPriorVAE, X: NDArray[np.float64], y: NDArray[np.float64] | None = None
) -> DualPriorVAE:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)  # the first fit has no labels
        return detector.fit(X, y)


def _with_refits(
    first: DualPriorVAE, halves: Halves, asker: str, spec: ReviewSpecification, seed: int
) -> Outcome:
    detector = copy.deepcopy(first)
    answers = np.full(len(halves.y), np.nan)
    rng = np.random.default_rng(np.random.SeedSequence([0x61736B, seed]))
    found: list[int] = []
    measured = [_measures(detector.anomaly_score(halves.X_test), halves)]
    times: list[float] = []
    more: Outcome = {}
    while len(found) < spec.questions:
        queue = _Queue(detector, halves.X, asker, seed, rng)
        for _ in range(spec.batch):
            row = queue.next(answers)
            answers[row] = halves.y[row]
            found.append((found[-1] if found else 0) + int(halves.y[row]))
        if asker != NEVER:
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LabelWarning)
                detector.refit(halves.X, answers)
            times.append(time.perf_counter() - started)
        measured.append(_measures(detector.anomaly_score(halves.X_test), halves))
        if asker == DEFAULT_WAY and len(found) == spec.compared_at:
            more = _compared(detector, halves, answers, times[-1])
    return {
        "found": found,
        "auroc": [part[0] for part in measured],
        "average_precision": [part[1] for part in measured],
        "n_anomalies": int(halves.y.sum()),
        "seconds_refit": float(np.mean(times)) if times else 0.0,
        **more,
    }


class _Queue:
    """Says which row to ask about next, between two refits, as the page would."""

    def __init__(
        self,
        detector: DualPriorVAE,
        X: NDArray[np.float64],
        asker: str,
        seed: int,
        rng: np.random.Generator,
    ) -> None:
        self._X, self._asker, self._rng = X, asker, rng
        self._scores = detector.anomaly_score(X)
        self._pool = np.argsort(-self._scores, kind="stable")[:POOL_SIZE]
        own = X[self._pool]
        self._members = -detector._scorer.member_scores(detector._reader(own), len(own))
        self._level = -float(detector.offset_)
        self._guide = Guide(own, X, seed=seed) if asker == DEFAULT_WAY else None

    def next(self, answers: NDArray[np.float64]) -> int:
        """Return the next row, by the answers so far."""
        if self._asker == RANDOM:
            return int(self._rng.choice(np.flatnonzero(np.isnan(answers))))
        way = cast(Way, "anomalous" if self._asker == NEVER else self._asker)
        scores, evidence = self._scores[self._pool], None
        if self._guide is not None:
            known = np.flatnonzero(~np.isnan(answers))
            labels = answers[known].astype(np.int64)
            evidence = self._guide.evidence(scores, self._X[known], labels)
        asked = which_rows(way, scores, self._members, self._level, evidence)
        rows = self._pool[asked.order]
        return int(rows[np.isnan(answers[rows])][0])


def _compared(
    detector: DualPriorVAE, halves: Halves, answers: NDArray[np.float64], seconds: float
) -> Outcome:
    """Compare a refit with a fresh fit that has the same labels."""
    started = time.perf_counter()
    fresh = _fitted(DualPriorVAE(**detector.get_params()), halves.X, answers)
    taken = time.perf_counter() - started
    outcome: Outcome = {"compared_refit_seconds": seconds, "compared_fresh_seconds": taken}
    for name, each in (("refit", detector), ("fresh", fresh)):
        auroc, precision = _measures(each.anomaly_score(halves.X_test), halves)
        outcome[f"compared_{name}_auroc"] = auroc
        outcome[f"compared_{name}_average_precision"] = precision
    return outcome


def _with_forest(halves: Halves, spec: ReviewSpecification, seed: int) -> Outcome:
    forest = FeedbackForest(halves.X, seed=seed)
    known = np.zeros(len(halves.y), bool)
    found: list[int] = []
    measured = [_measures(forest.anomaly_score(halves.X_test), halves)]
    while len(found) < spec.questions:
        scores = np.where(known, -np.inf, forest.anomaly_score(halves.X))
        row = int(scores.argmax())
        known[row] = True
        label = int(halves.y[row])
        forest.learn(halves.X[row], label)
        found.append((found[-1] if found else 0) + label)
        if len(found) % spec.batch == 0:
            measured.append(_measures(forest.anomaly_score(halves.X_test), halves))
    return {
        "found": found,
        "auroc": [part[0] for part in measured],
        "average_precision": [part[1] for part in measured],
        "n_anomalies": int(halves.y.sum()),
    }


def _measures(scores: NDArray[np.float64], halves: Halves) -> tuple[float, float]:
    y: Any = halves.y_test
    return float(roc_auc(y, scores)), float(average_precision(y, scores))
