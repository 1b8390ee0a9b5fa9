"""A model that goes on learning from answers, from where its members are."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import AnswerError
from aloof.feedback.answer import UNSURE, Key, Standing
from aloof.feedback.comparison import (
    ENOUGH_ANSWERS,
    FEWEST_HELD_OUT,
    Alerts,
    Comparison,
    compare_alerts,
    compare_held_out,
)
from aloof.feedback.material import features_and_keys, gather
from aloof.labels import ANOMALY, NORMAL, UNLABELLED, with_gaps
from aloof.models import hold_out
from aloof.models.images import ImageModel
from aloof.models.images.learning import refit_patches
from aloof.models.table import TableModel
from aloof.phrases import count
from aloof.training import ProgressCallback

__all__ = ["CONFIRMED_WEIGHT", "Refit", "Refittable", "held_out_by_name", "refit"]

Refittable = TableModel | ImageModel

# How often a row that was answered "normal" is seen, against once for others.
CONFIRMED_WEIGHT = 10
_HELD_OUT = 0.2  # of the answers, where there are enough
_MAX_ROWS = 1_000_000


@dataclass(frozen=True)
class Refit:
    """What a refit made.

    Attributes
    ----------
    model
        The new model; nothing was written yet.
    comparison
        With the old one.
    n_anomalies, n_normal
        How many answers were learned from.
    n_held_out
        How many answers were held out to compare with.
    n_calibration
        How many answered "normal" are among the rows to calibrate with.
    n_elsewhere
        Answers about rows that are not in the data, learned from what was kept of them.
    n_lost
        Answers about rows that are neither there nor kept.
    n_open
        Rows where reviewers are unsure or disagree.
    seconds
        How long it took.
    called
        What one of the lost answers calls its row, and what the rows are called, in words.
    """

    model: Refittable
    comparison: Comparison
    n_anomalies: int
    n_normal: int
    n_held_out: int
    n_calibration: int
    n_elsewhere: int
    n_lost: int
    n_open: int
    seconds: float
    called: str = ""

    def lines(self) -> list[str]:
        """Say what was learned from."""
        said = [
            f"Learned from {count(self.n_anomalies, 'row')} answered as anomalies and "
            f"{self.n_normal:,} answered as normal, in {self.seconds:.1f} s."
        ]
        if self.n_calibration:
            said.append(
                f"{self.n_calibration:,} answered as normal are rows to calibrate with."
            )
        if self.n_elsewhere:
            said.append(
                f"{count(self.n_elsewhere, 'answer')} about rows that are not in the table "
                "were learned from what was kept of them."
            )
        if self.n_lost:
            said.append(
                f"{count(self.n_lost, 'answer')} taught nothing: the rows are not in the "
                f"table, and were not kept with the answers. {self.called}".rstrip()
            )
        if self.n_open:
            said.append(
                f"{count(self.n_open, 'row')} taught nothing: reviewers are unsure or disagree."
            )
        return said + self.comparison.lines()


def held_out_by_name(key: Key) -> bool:
    """Say whether an answer about this row is held out; always the same for the same row."""
    digest = hashlib.sha256("\x00".join(key).encode()).digest()
    return int.from_bytes(digest[:8], "big") < _HELD_OUT * 2**64


def refit(
    model: Refittable,
    standing: Mapping[Key, Standing],
    data: Any = None,
    *,
    compare: Any = None,
    max_epochs: int | None = None,
    confirmed_weight: int = CONFIRMED_WEIGHT,
    max_rows: int = _MAX_ROWS,
    verbose: bool = False,
    on_epoch: ProgressCallback | None = None,
) -> Refit:
    """Go on learning, with answers.

    The columns are read as before. Rows that were held out to calibrate with stay so, but for
    those that turned out to be anomalies.

    Parameters
    ----------
    model
        It is left as it is.
    standing
        How the answers stand; see `AnswerStore.standings`.
    data
        What to learn from, in place of the training table or images: a path, a `Source`, a
        frame or an array; it may be learned from without any answers. None: what the model
        was fitted to, if it is still there.
    compare
        Rows or images to compare the rankings of both models on; None: those of `data`.
        Answers about images that are not in `data` are learned from where these have them.
    max_epochs
        Passes over the rows; None: 15 in 100 of those of a fit.
    confirmed_weight
        How often a row answered "normal" is seen, against once for others.
    max_rows
        Where a file has more rows, that many are drawn at random.
    verbose
        Show a progress bar.
    on_epoch
        Called after each epoch, in place of a bar.
    """
    started = time.monotonic()
    if model.training.get("fast"):
        raise model.error(
            "This model was distilled to one network (--fast), which cannot learn from "
            "answers. Fit it again without --fast, and refit that."
        )
    detector_labels = {key: each.label for key, each in standing.items()}
    sure = {key: label for key, label in detector_labels.items() if label != UNSURE}
    if not sure and data is None:
        raise AnswerError(
            "There are no answers to learn from: label some rows first, or name other data to "
            "learn from."
        )
    if isinstance(model, ImageModel) and model.learns_patches:
        if confirmed_weight != CONFIRMED_WEIGHT:
            raise model.error(
                "A model of patches sees every normal image equally often. Leave out "
                "confirmed_weight (--confirmed-weight)."
            )
    rows = gather(model, data, max_rows)
    others = None if compare is None else features_and_keys(model, compare)
    known_elsewhere, more = rows.elsewhere(model, standing, others)
    elsewhere = [key for key in known_elsewhere if key in sure]
    more = more[[place for place, key in enumerate(known_elsewhere) if key in sure]]
    there = rows.names.union(elsewhere)
    held = {key for key in sure if held_out_by_name(key) and key in there}
    lost = [key for key in sure if key not in there]
    called = _called(lost, rows.keys)
    if data is None and sure and len(lost) == len(sure):
        raise AnswerError(
            f"Nothing to learn: none of {count(len(sure), 'answer')} is about {model.things} "
            f"that the model was fitted to. {called} Answer by the names in the data. "
            f"{rows.remedy}"
        )
    if len(sure) < ENOUGH_ANSWERS or sum(sure[key] for key in held) < FEWEST_HELD_OUT:
        held = set()
    known = rows.joined(sure)
    # Labels as they were when the rows to calibrate with were chosen.
    train, calibration = hold_out(
        rows.labels,
        rows.share,
        rows.seed,
        things=model.things,
        better=1000 if isinstance(model, TableModel) else 200,
        error=model.error,
    )
    labels = rows.labels.copy()
    for place, label in known.items():
        labels[place] = UNLABELLED if rows.keys[place] in held else label
    is_held = np.array([rows.keys[place] in held for place in range(len(labels))], bool)
    turned = calibration[(labels[calibration] == ANOMALY) | is_held[calibration]]
    calibration = np.setdiff1d(calibration, turned)
    train = np.setdiff1d(np.union1d(train, turned), np.flatnonzero(is_held))
    encoded = rows.features
    taught = [i for i, key in enumerate(elsewhere) if key not in held]
    X = np.concatenate([encoded[train], more[taught]])
    y = np.concatenate([labels[train], [sure[elsewhere[i]] for i in taught]]).astype(np.int64)
    rule = model.threshold
    changed: dict[str, Any] = {}
    if isinstance(model, ImageModel) and model.learns_patches:
        places = {int(place): number for number, place in enumerate(train)}
        masks = {
            places[place]: mask
            for place, mask in rows.masks(model).items()
            if place in places and labels[place] == ANOMALY
        }
        new, changed["view"] = refit_patches(
            model, X, y, encoded[calibration], masks, max_epochs, verbose=verbose
        )
        n_epochs = new.n_iter_
        if rule.fdr is None:
            new._set(rule, warn=False)
    else:
        new = copy.deepcopy(model.detector)
        new.set_params(confirmed_weight=confirmed_weight, verbose=verbose)
        new.refit(X, with_gaps(y), max_epochs=max_epochs, on_epoch=on_epoch)
        n_epochs = new.n_iter_ - model.detector.n_iter_
        if rule.fdr is None:
            new._set(rule, warn=False)
        if len(calibration):
            new.calibrate(encoded[calibration])
    if len(calibration) and rule.fdr is not None:
        new.set_threshold(fdr=rule.fdr)
    answered = [place for place in known if rows.keys[place] in held]
    held_rows = np.concatenate(
        [encoded[answered], more[[i for i, key in enumerate(elsewhere) if key in held]]]
    )
    held_labels = np.array(
        [known[place] for place in answered] + [sure[key] for key in elsewhere if key in held],
        np.int64,
    )
    n_answered = {
        label: sum(
            1
            for key, value in sure.items()
            if value == label and key not in held and key in there
        )
        for label in (ANOMALY, NORMAL)
    }
    confirmed = len({rows.keys[place] for place in calibration}.intersection(sure))
    training = {
        **model.training,
        "n_anomalies": int((y == ANOMALY).sum()),
        "n_labelled_normal": int((y == NORMAL).sum()),
        "n_unlabelled": int((y == UNLABELLED).sum()) + len(calibration),
        "n_training": int((y != ANOMALY).sum()),
        "n_calibration": len(calibration),
        "refit": {
            "data": rows.name,
            "n_anomalies": n_answered[ANOMALY],
            "n_normal": n_answered[NORMAL],
            "n_held_out": len(held),
            "confirmed_weight": confirmed_weight,
            "epochs": n_epochs,
        },
    }
    training.pop("calibrated", None)
    profile = model.profile
    if not rows.is_training:
        profile = rows.profile(model, train)
    changed |= {"detector": new, "training": training, "profile": profile}
    fitted = replace(model, **changed)
    comparison = Comparison(
        compare_held_out(
            held_labels,
            *(_scores(each, held_rows) for each in (model, fitted)),
            *(_scores(each, encoded[calibration]) for each in (model, fitted)),
        ),
        _compared(
            model, fitted, standing, *((encoded, rows.keys) if others is None else others)
        ),
    )
    return Refit(
        fitted,
        comparison,
        n_answered[ANOMALY],
        n_answered[NORMAL] - confirmed,
        len(held),
        confirmed,
        len(elsewhere),
        len(lost),
        len(standing) - len(sure),
        time.monotonic() - started,
        called,
    )


def _called(lost: Sequence[Key], keys: Sequence[Key]) -> str:
    """Say what an answer calls a row that is not there, and what the rows are called."""
    if not lost or not keys:
        return ""
    theirs, ours = ("/".join(filter(None, key)) for key in (lost[0], keys[0]))
    return f"An answer is about {theirs!r}, but names there are like {ours!r}."


def _scores(model: Refittable, rows: NDArray[Any]) -> NDArray[np.float64]:
    if not len(rows):
        return np.empty(0)
    if isinstance(model, ImageModel) and model.learns_patches:
        return model.anomaly_score(rows)
    return model.detector.anomaly_score(rows)


def _compared(
    old: Refittable,
    new: Refittable,
    standing: Mapping[Key, Standing],
    features: NDArray[Any],
    keys: Sequence[Key],
) -> Alerts:
    """Compare the rankings of both."""
    names = [name for _, name in keys]
    answers = {key[1]: standing[key].label for key in keys if key in standing}
    before, after = (_scores(model, features) for model in (old, new))
    return compare_alerts(names, answers, before, after, old.decide(before), new.decide(after))
