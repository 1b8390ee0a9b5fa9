"""A model of a table that goes on learning from answers, from where its members are."""

from __future__ import annotations

import copy
import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import AnswerError, TableError
from aloof.feedback.answer import UNSURE, Key, Standing
from aloof.feedback.comparison import (
    FEWEST_HELD_OUT,
    Alerts,
    Comparison,
    compare_alerts,
    compare_held_out,
)
from aloof.labels import ANOMALY, NORMAL, UNLABELLED, with_gaps
from aloof.models import hold_out
from aloof.models.table import TableModel
from aloof.models.table.columns.reading import one_array, read_text
from aloof.models.table.drift import Profile
from aloof.models.table.files import Source
from aloof.models.table.labelling import read_label_column
from aloof.models.table.sampling import sample
from aloof.phrases import count
from aloof.training import ProgressCallback

__all__ = ["CONFIRMED_WEIGHT", "Refit", "held_out_by_name", "refit", "row_keys"]

# How often a row that was answered "normal" is seen, against once for others.
CONFIRMED_WEIGHT = 10
# So many answers it takes to hold some out, and this share of them is.
_ENOUGH_ANSWERS, _HELD_OUT = 20, 0.2
_MAX_ROWS = 1_000_000
_CALIBRATION = 0.2


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
    """

    model: TableModel
    comparison: Comparison
    n_anomalies: int
    n_normal: int
    n_held_out: int
    n_calibration: int
    n_elsewhere: int
    n_lost: int
    n_open: int
    seconds: float

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
                "table, and were not kept with the answers."
            )
        if self.n_open:
            said.append(
                f"{count(self.n_open, 'row')} taught nothing: reviewers are unsure or disagree."
            )
        return said + self.comparison.lines()


def row_keys(model: TableModel, table: pa.Table, source: str, first: int = 1) -> list[Key]:
    """Return how answers name the rows of a table.

    Parameters
    ----------
    model
        Whose id column names them, if there is one.
    table
        The rows.
    source
        The name of the file, where they are numbered.
    first
        The number of the first row.
    """
    if model.id is None:
        return [(source, str(first + place)) for place in range(table.num_rows)]
    if model.id not in table.column_names:
        raise TableError(f"There is no column {model.id!r}, which names the rows.")
    return [
        ("", name or "") for name in read_text(model.id, one_array(table[model.id])).to_pylist()
    ]


def held_out_by_name(key: Key) -> bool:
    """Say whether an answer about this row is held out; always the same for the same row."""
    digest = hashlib.sha256("\x00".join(key).encode()).digest()
    return int.from_bytes(digest[:8], "big") < _HELD_OUT * 2**64


def refit(
    model: TableModel,
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
        What to learn from, in place of the training table: a path, a `Source` or a frame; it
        may be learned from without any answers. None: the training table, if its file is
        still there.
    compare
        Rows to compare the rankings of both models on; None: those of `data`.
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
        raise TableError(
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
    rows = _Rows.read(model, data, max_rows)
    held = {
        key
        for key in sure
        if held_out_by_name(key) and (key in rows.places or standing[key].values is not None)
    }
    if len(sure) < _ENOUGH_ANSWERS or sum(sure[key] for key in held) < FEWEST_HELD_OUT:
        held = set()
    known = rows.joined(sure)
    new = copy.deepcopy(model.detector)
    new.set_params(confirmed_weight=confirmed_weight, verbose=verbose)
    # Labels as they were when the rows to calibrate with were chosen.
    train, calibration = hold_out(
        rows.labels, rows.share, rows.seed, things="rows", better=1000, error=TableError
    )
    labels = rows.labels.copy()
    for place, label in known.items():
        labels[place] = UNLABELLED if rows.keys[place] in held else label
    is_held = np.array([rows.keys[place] in held for place in range(len(labels))], bool)
    turned = calibration[(labels[calibration] == ANOMALY) | is_held[calibration]]
    calibration = np.setdiff1d(calibration, turned)
    train = np.setdiff1d(np.union1d(train, turned), np.flatnonzero(is_held))
    elsewhere = [
        key for key in sure if key not in rows.places and standing[key].values is not None
    ]
    encoded, more = rows.encoded(model), _kept(model, standing, elsewhere)
    taught = [i for i, key in enumerate(elsewhere) if key not in held]
    X = np.concatenate([encoded[train], more[taught]])
    y = np.concatenate([labels[train], [sure[elsewhere[i]] for i in taught]]).astype(np.int64)
    new.refit(X, with_gaps(y), max_epochs=max_epochs, on_epoch=on_epoch)
    rule = model.threshold
    if rule.fdr is None:
        new._set(rule, warn=False)
    if len(calibration):
        new.calibrate(encoded[calibration])
        if rule.fdr is not None:
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
            if value == label and key not in held and (key in rows.places or key in elsewhere)
        )
        for label in (ANOMALY, NORMAL)
    }
    confirmed = sum(rows.keys[place] in sure for place in calibration)
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
            "epochs": new.n_iter_ - model.detector.n_iter_,
        },
    }
    training.pop("calibrated", None)
    profile = model.profile
    if not rows.is_training:
        profile = Profile.of(model.encoder, rows.table.take(pa.array(train[train < rows.n])))
    fitted = replace(model, detector=new, training=training, profile=profile)
    comparison = Comparison(
        compare_held_out(
            held_labels,
            *(_scores(each, held_rows) for each in (model.detector, new)),
            *(_scores(each, encoded[calibration]) for each in (model.detector, new)),
        ),
        _compared(model, fitted, standing, rows, encoded, compare),
    )
    return Refit(
        fitted,
        comparison,
        n_answered[ANOMALY],
        n_answered[NORMAL] - confirmed,
        len(held),
        confirmed,
        len(elsewhere),
        len(sure) - len(known) - len(elsewhere),
        len(standing) - len(sure),
        time.monotonic() - started,
    )


@dataclass(frozen=True)
class _Rows:
    """The rows to learn from.

    Attributes
    ----------
    table
        All of them.
    keys, places
        How answers name each, and where each name is.
    labels
        1, 0 and -1, by the column of labels, without answers.
    name
        Of the file; None: a frame.
    is_training
        Whether they are those of the training.
    share, seed
        What part is held out to calibrate with.
    """

    table: pa.Table
    keys: Sequence[Key]
    places: Mapping[Key, int]
    labels: NDArray[np.int64]
    name: str | None
    is_training: bool
    share: float
    seed: int

    @property
    def n(self) -> int:
        """How many there are."""
        return int(self.table.num_rows)

    @classmethod
    def read(cls, model: TableModel, data: Any, max_rows: int) -> _Rows:
        """Read them, and find out what is known about them."""
        made = model.training.get("made") or {}
        options = made.get("options", {})
        given = data
        if data is None:
            given = made.get("data")
            if given is None or given == "-" or not _is_there(given):
                raise TableError(
                    "The training table is not at hand"
                    + (f": there is no {given}" if given not in (None, "-") else "")
                    + ". Name it, or another to learn from: data='train.csv', on the command "
                    "line aloof refit MODEL train.csv."
                )
        opened = model.read(given)
        n_rows, name = None, None
        if isinstance(opened, Source):
            name = opened.name
            drawn = sample(
                opened,
                options.get("max_rows", max_rows),
                model.training["seed"],
                keep=_labelled(model) if model.label in opened.names else None,
            )
            table, n_rows = drawn.table, drawn.n_rows
        else:
            table = opened
        labels = np.full(table.num_rows, UNLABELLED)
        if model.label is not None and model.label in table.column_names:
            labels = read_label_column(model.label, table[model.label], model.anomaly_value)
        source = os.path.basename(name or "")
        keys: Sequence[Key] = (
            row_keys(model, table, source)
            if model.id is not None or n_rows in (None, table.num_rows)
            else [("", "")] * table.num_rows  # of a sample nobody knows the numbers
        )
        return cls(
            table,
            keys,
            {key: place for place, key in enumerate(keys)},
            labels,
            name,
            data is None or (name is not None and name == made.get("data")),
            float(options.get("calibration", _CALIBRATION)),
            int(model.training["seed"]),
        )

    def joined(self, answers: Mapping[Key, int]) -> dict[int, int]:
        """Return what is answered about which places."""
        return {self.places[key]: label for key, label in answers.items() if key in self.places}

    def encoded(self, model: TableModel) -> NDArray[np.float32]:
        """Return the rows as the detector takes them."""
        return model.encode(self.table, warn=lambda words: None)


def _labelled(model: TableModel) -> Any:
    def keep(batch: pa.RecordBatch) -> NDArray[np.bool_]:
        label = str(model.label)
        labels = read_label_column(label, batch[label], model.anomaly_value)
        return np.equal(labels, ANOMALY)

    return keep


def _is_there(name: str) -> bool:
    return any(sign in name for sign in "*?[") or Path(name).exists()


def _kept(
    model: TableModel, standing: Mapping[Key, Standing], keys: Sequence[Key]
) -> NDArray[np.float32]:
    """Return rows that were kept with their answers, as the detector takes them."""
    if not keys:
        return np.empty((0, model.encoder.n_features), np.float32)
    rows = [standing[key].values or {} for key in keys]
    columns = {}
    for name in model.columns:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except pa.ArrowException:  # a number here, a text there
            columns[name] = pa.array([None if v is None else str(v) for v in values])
    accepting = model._accepting("fill")
    return accepting.encode(pa.table(columns), warn=lambda words: None)


def _scores(detector: Any, rows: NDArray[np.float32]) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = detector.anomaly_score(rows) if len(rows) else np.empty(0)
    return scores


def _compared(
    old: TableModel,
    new: TableModel,
    standing: Mapping[Key, Standing],
    rows: _Rows,
    encoded: NDArray[np.float32],
    data: Any,
) -> Alerts:
    """Compare the rankings of both, on other rows if there are some."""
    keys: Sequence[Key]
    if data is None:
        keys, features = rows.keys, encoded
    else:
        opened = old.read(data)
        name = os.path.basename(opened.name) if isinstance(opened, Source) else ""
        parts, keys = [], []
        for batch in old.batches(opened):
            table = pa.Table.from_batches([batch])
            keys = [*keys, *row_keys(old, table, name, len(keys) + 1)]
            parts.append(old.encode(table, warn=lambda words: None))
        features = np.concatenate(parts)
    names = [name for _, name in keys]
    answers = {key[1]: standing[key].label for key in keys if key in standing}
    before, after = (_scores(model.detector, features) for model in (old, new))
    return compare_alerts(names, answers, before, after, old.decide(before), new.decide(after))
