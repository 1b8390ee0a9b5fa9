"""From a table to a model, in one call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.estimators import (
    VAE,
    Detector,
    DualPriorVAE,
    MaxMinDualPriorVAE,
    MaxMinVAE,
    fit_many,
)
from aloof.exceptions import CalibrationWarning, TableError, TableWarning
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.tabular.columns import Kind
from aloof.tabular.encoder import TableEncoder
from aloof.tabular.files import Source, open_source
from aloof.tabular.frames import to_table
from aloof.tabular.labelling import check_column, check_labels, read_label_column
from aloof.tabular.model import TableModel
from aloof.tabular.sampling import Sample, sample
from aloof.text import DEFAULT_EMBEDDER, schedule
from aloof.training import Stream, derive

__all__ = ["MOST_CALIBRATION_ROWS", "MethodName", "fit"]

MethodName = Literal["dp", "mml", "mml-dp", "vae"]

# More calibration rows than this no decision needs, and training rows are worth more.
MOST_CALIBRATION_ROWS = 10_000

_DETECTORS: dict[str, type[Detector]] = {
    "dp": DualPriorVAE,
    "mml": MaxMinVAE,
    "mml-dp": MaxMinDualPriorVAE,
    "vae": VAE,
}
_OURS = {
    "n_members": "it is called members here",
    "random_state": "it is called seed here",
    "standardize": "the table is scaled already",
    "encoder": "the model of a table has networks of its own",
    "decoder": "the model of a table has networks of its own",
}


def fit(
    frame: Any | str | os.PathLike[str] | Source,
    *,
    label: str | None = None,
    method: MethodName = "dp",
    id: str | None = None,
    drop: Sequence[str] = (),
    anomaly_value: str | None = None,
    kinds: Mapping[str, Kind] | None = None,
    text: str | Sequence[str] = (),
    embedder: str = DEFAULT_EMBEDDER,
    members: int = 5,
    calibration: float = 0.2,
    seed: int = 0,
    max_rows: int = 1_000_000,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    **parameters: Any,
) -> TableModel:
    """Learn what is normal in a table.

    Parameters
    ----------
    frame
        A frame of any flavour, the path of a file (see `open_source`), or a `Source`.
    label
        The column of labels: 1, true or yes for anomalies, 0, false or no for normal rows,
        empty for those nobody looked at. None: there is none.
    method
        "dp" (`DualPriorVAE`), "mml" (`MaxMinVAE`), "mml-dp" (`MaxMinDualPriorVAE`) or "vae".
    id
        The column that names the rows. It is not learned from, and kept in results.
    drop
        Columns not to learn from.
    anomaly_value
        The label of anomalies where it is another; every other value is normal then.
    kinds
        "number", "category", "boolean", "timestamp" or "text" for columns where the values do
        not say it. Also keeps columns that would be left out: ids and free text.
    text
        Columns of free text, the same as ``kinds={name: "text"}``.
    embedder
        What makes vectors of text: "all-minilm-l6-v2", "hashing", or a sentence-transformers
        model; see `aloof.text.load_embedder`.
    members
        Size of the ensemble.
    calibration
        Share of the rows not labelled as anomalies that are held out to calibrate with, at
        most 10,000 rows; 0: none.
    seed
        One seed, one model.
    max_rows
        Where a file has more rows, that many are drawn at random, with all labelled anomalies.
    checkpoint
        File to keep the state of the fit in; the same call continues a killed one.
    verbose
        Show a progress bar.
    **parameters
        Parameters of the detector, such as ``max_epochs``; see `aloof.VAE`. Where there are
        labelled anomalies and all that varies is text, what is not given of how long to train
        is from `aloof.text.schedule`.
    """
    if isinstance(frame, str | os.PathLike):
        frame = open_source(frame)
    if not isinstance(frame, Source):
        frame = to_table(frame)
    if method not in _DETECTORS:
        raise TableError(f"The method must be one of {', '.join(_DETECTORS)}; got {method!r}.")
    if taken := sorted(set(parameters) & set(_OURS)):
        raise TableError(f"{taken[0]!r} cannot be given: {_OURS[taken[0]]}.")
    if anomaly_value is not None and label is None:
        raise TableError("An anomaly_value needs a label: the column that it is in.")
    if not 0 <= calibration < 1:
        raise TableError(
            f"The share of calibration rows must be at least 0 and below 1; got {calibration}."
        )
    names = frame.names if isinstance(frame, Source) else frame.column_names
    texts = (text,) if isinstance(text, str) else tuple(text)
    if isinstance(frame, Source):
        texts = texts or frame.texts
    roles = [("drop", drop), ("text", texts)]
    listed = [(each, role) for role, columns in roles for each in columns]
    for name, role in [(label, "labels"), (id, "id"), *listed]:
        if name is not None:
            check_column(name, names, role)
    wanted = [name for name in names if name not in {id, *drop} - {label}]
    rows = _gathered(frame, wanted, label, anomaly_value, max_rows, seed)
    table, labels = rows.table, np.full(rows.table.num_rows, UNLABELLED)
    if label is not None:
        labels = read_label_column(label, table[label], anomaly_value)
        check_labels(label, table[label], labels, anomaly_value)
        table = table.drop_columns(label)
    train, held_out = _split(labels, calibration, seed)
    encoder = TableEncoder.fit(
        table.take(train),
        labels[train],
        kinds={**dict(kinds or {}), **dict.fromkeys(texts, "text")},
        embedder=embedder,
    )
    remarks = list(encoder.warnings)
    for words in remarks:
        warnings.warn(words, TableWarning, stacklevel=2)
    if method != "vae" and (labels == ANOMALY).any() and _only_text(encoder):
        parameters |= _long(int((labels[train] != ANOMALY).sum()), parameters)
    detector = _DETECTORS[method](
        n_members=members, standardize=False, random_state=seed, verbose=verbose, **parameters
    )
    # To a detector, NaN means unlabelled without doubt; -1 and 1 alone could be a mistake.
    y = np.where(labels == UNLABELLED, np.nan, labels)[train]
    X = _encoded(encoder, table, train)
    # Not the detector's own fit: that would keep the checkpoint's name in the model.
    fit_many([detector], [(X, y)], checkpoint=None if checkpoint is None else str(checkpoint))
    if len(held_out):
        detector.calibrate(_encoded(encoder, table, held_out))
        remarks += filter(None, [detector.threshold_.shortage(len(held_out))])
    elif calibration:
        remarks.append("There are too few rows to hold some out: there are no p-values.")
        warnings.warn(remarks[-1], CalibrationWarning, stacklevel=2)
    training = {
        "source": frame.name if isinstance(frame, Source) else None,
        "n_rows": rows.n_rows,
        "n_used": len(labels),
        "n_anomalies": int((labels == ANOMALY).sum()),
        "n_labelled_normal": int((labels == NORMAL).sum()),
        "n_unlabelled": int((labels == UNLABELLED).sum()),
        "n_training": int((labels[train] != ANOMALY).sum()),
        "n_calibration": len(held_out),
        "seed": seed,
        "warnings": remarks,
    }
    return TableModel(encoder, detector, label, id, tuple(drop), anomaly_value, training)


def _gathered(
    frame: Source | pa.Table,
    columns: Sequence[str],
    label: str | None,
    anomaly_value: str | None,
    max_rows: int,
    seed: int,
) -> Sample:
    """Return the rows to learn from: all, or a sample with all labelled anomalies."""
    if isinstance(frame, pa.Table):
        return Sample(frame.select(list(columns)), frame.num_rows, 0)

    def keep(batch: pa.RecordBatch) -> NDArray[np.bool_]:
        labels = read_label_column(str(label), batch[label], anomaly_value)
        return np.equal(labels, ANOMALY)

    return sample(frame, max_rows, seed, keep=keep if label else None, columns=columns)


def _split(
    labels: NDArray[np.int64], calibration: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to train on and those to calibrate with, never labelled anomalies."""
    usual = np.flatnonzero(labels != ANOMALY)
    if len(usual) < 2:
        raise TableError(
            f"The table has {len(usual)} rows that are not labelled as anomalies, and it takes "
            "at least 2, better 1,000, to learn what is normal. Add normal or unlabelled rows."
        )
    n_held = min(round(calibration * len(usual)), MOST_CALIBRATION_ROWS, len(usual) - 2)
    rng = np.random.default_rng(derive(seed, Stream.SPLIT))
    held_out = np.sort(rng.choice(usual, n_held, replace=False))
    return np.setdiff1d(np.arange(len(labels)), held_out), held_out


def _only_text(encoder: TableEncoder) -> bool:
    return {column.kind for column in encoder.columns if column.varies} == {"text"}


def _long(n_documents: int, given: Mapping[str, Any]) -> dict[str, int]:
    """Return how long to learn from documents, unless the user has said when labels join."""
    size, epochs = given.get("batch_size", 128), given.get("max_epochs")
    numbers = [size] if epochs is None else [size, epochs]
    right = all(isinstance(number, Integral) and int(number) >= 1 for number in numbers)
    if given.get("warmup_epochs") is not None or not right:  # the detector says what is wrong
        return {}
    long = schedule(n_documents, batch_size=size, max_epochs=epochs)
    return {name: value for name, value in long.items() if given.get(name) is None}


def _encoded(
    encoder: TableEncoder, table: pa.Table, rows: NDArray[np.int64]
) -> NDArray[np.float32]:
    return encoder.transform(table.take(rows), warn=lambda words: None)  # said by the encoder
