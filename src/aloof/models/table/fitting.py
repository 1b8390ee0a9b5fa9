"""From a table to a model, in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.estimators import DETECTORS
from aloof.exceptions import TableError, TableWarning, warn_caller
from aloof.labels import ANOMALY, UNLABELLED
from aloof.models import check_choices, distil_detector, fit_detector, hold_out, made_by
from aloof.models.table.dialects import Wishes
from aloof.models.table.dialects.layouts import as_layout, check_layout
from aloof.models.table.drift import Profile
from aloof.models.table.encoder import TableEncoder
from aloof.models.table.files import Source, column_names, open_source
from aloof.models.table.formats import FormatName
from aloof.models.table.frames import to_table
from aloof.models.table.labelling import (
    check_column,
    check_labels,
    check_share,
    read_label_column,
)
from aloof.models.table.locating import locating_errors
from aloof.models.table.model import TableModel
from aloof.models.table.sampling import Sample, sample
from aloof.models.table.words import short
from aloof.text import DEFAULT_EMBEDDER, schedule

__all__ = ["fit"]

# What was said about the training file also holds for others.
_REMEMBERED = ("delimiter", "encoding", "sheet", "header")
# So many rows are enough to know how values are spread.
_PROFILED = 200_000
# With fewer labelled anomalies, a column that goes with them may do so by chance.
_FEWEST_LABELS = 5
_REFUSED = {"standardize": "the table is already scaled"}


_METHOD = "committee"  # unless told


def fit(
    frame: Any | str | os.PathLike[str] | Source,
    *,
    label: str | None = None,
    method: str | None = None,
    id: str | None = None,
    drop: Sequence[str] = (),
    anomaly_value: str | None = None,
    kinds: Mapping[str, str] | None = None,
    text: str | Sequence[str] = (),
    embedder: str = DEFAULT_EMBEDDER,
    members: int = 5,
    max_epochs: int | None = None,
    fast: bool = False,
    calibration: float = 0.2,
    seed: int = 0,
    max_rows: int = 1_000_000,
    decimal: str | Mapping[str, str] | None = None,
    thousands: str | Mapping[str, str] | None = None,
    day_first: bool | None = None,
    date_formats: Mapping[str, str] | None = None,
    format: FormatName | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header: bool | None = None,
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
        "committee" (`Committee`), "dp" (`DualPriorVAE`), "mml" (`MaxMinVAE`), "mml-dp"
        (`MaxMinDualPriorVAE`) or "vae". None: "committee".
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
    max_epochs
        Passes over the data; None: as many as its size asks for.
    fast
        Whether to distil the detector to a single network that ranks rows nearly as it does
        (see `aloof.Committee.distil`). It cannot be refitted.
    calibration
        Share of the rows not labelled as anomalies that are held out to calibrate with, at
        most 10,000 rows; 0: none.
    seed
        One seed, one model.
    max_rows
        Where a file has more rows, that many are drawn at random, with all labelled anomalies.
    decimal, thousands
        The signs in numbers that are text, such as ``decimal=","`` and ``thousands="."`` for
        1.234,56; for some columns ``decimal={"amount": ","}``. None: found out from the values,
        and an error asks where these leave a choice.
    day_first
        Whether 03/04/2024 is in April (True) or in March (False); None: found out likewise.
    date_formats
        How dates and times are written in a column, such as ``{"booked": "%d/%m/%y %H:%M"}``.
    format, delimiter, encoding, sheet, header
        How to read a file; see `open_source`.
    checkpoint
        File to keep the state of the fit in; the same call continues a killed one.
    verbose
        Show a progress bar.
    **parameters
        Parameters of the detector, such as ``beta_kl``; see `aloof.VAE`. Where there are
        labelled anomalies and all that varies is text, what is not given of how long to train
        is from `aloof.text.schedule`.
    """
    if isinstance(frame, str | os.PathLike):
        frame = open_source(
            frame,
            format=format,
            delimiter=delimiter,
            encoding=encoding,
            sheet=sheet,
            header=header,
        )
    elif any(option is not None for option in (format, delimiter, encoding, sheet, header)):
        raise TableError(
            "format, delimiter, encoding, sheet and header describe a file, but this is not "
            "one."
        )
    if not isinstance(frame, Source):
        frame = to_table(frame)
    if max_epochs is not None:
        parameters["max_epochs"] = max_epochs
    named = method or _METHOD
    check_choices(named, calibration, parameters, refused=_REFUSED, error=TableError)
    chosen = {
        "label": label,
        "method": method,
        "id": id,
        "drop": tuple(drop),
        "anomaly_value": anomaly_value,
        "kinds": kinds or None,
        "text": (text,) if isinstance(text, str) else tuple(text),
        "embedder": embedder,
        "members": members,
        "fast": fast,
        "calibration": calibration,
        "seed": seed,
        "max_rows": max_rows,
        "decimal": decimal,
        "thousands": thousands,
        "day_first": day_first,
        "date_formats": date_formats or None,
        **(frame.options if isinstance(frame, Source) else {}),
    }
    source = isinstance(frame, Source)
    written = frame.written if isinstance(frame, Source) else None
    made = made_by(fit, written, chosen, parameters)
    if anomaly_value is not None and label is None:
        raise TableError(
            "An anomaly value needs the column it is in: label='fraud' (--label fraud)."
        )
    names = column_names(frame)
    texts = (text,) if isinstance(text, str) else tuple(text)
    if isinstance(frame, Source):
        texts = texts or frame.texts
    roles = [("drop", drop), ("text", texts)]
    listed = [(each, role) for role, columns in roles for each in columns]
    for name, role in [(label, "labels"), (id, "id"), *listed]:
        if name is not None:
            check_column(name, names, role)
    wanted = [name for name in names if name not in {id, *drop} - {label}]
    wishes = Wishes(decimal, thousands, day_first, _layouts(date_formats or {}))
    with locating_errors(frame):
        rows = _gathered(frame, wanted, label, anomaly_value, max_rows, seed)
        table, labels = rows.table, np.full(rows.table.num_rows, UNLABELLED)
        if label is not None:
            labels = read_label_column(label, table[label], anomaly_value)
    if label is not None:
        check_labels(label, table[label], labels, anomaly_value)
        check_share(labels)
        table = table.drop_columns(label)
    train, held_out = hold_out(
        labels, calibration, seed, things="rows", better=1000, error=TableError
    )
    with locating_errors(frame):
        encoder = TableEncoder.fit(
            table.take(train),
            labels[train],
            kinds={**dict(kinds or {}), **dict.fromkeys(texts, "text")},
            embedder=embedder,
            wishes=wishes,
            whole=table,
        )
    if isinstance(frame, Source):
        encoder = _located(encoder, frame)
    if embedder != DEFAULT_EMBEDDER and not any(c.reads_text for c in encoder.columns):
        raise TableError(
            f"The embedder {embedder!r} has nothing to read: no column is text. Name one: "
            "text='review' (--text review)."
        )
    remarks = [*encoder.warnings, *_like_labels(table, labels)]
    for words in remarks:
        warn_caller(words, TableWarning)
    method = method or _METHOD
    if method != "vae" and (labels == ANOMALY).any() and _only_text(encoder):
        parameters |= _long(int((labels[train] != ANOMALY).sum()), parameters)
    detector = DETECTORS[method](
        n_members=members, standardize=False, random_state=seed, verbose=verbose, **parameters
    )

    def encoded(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return _encoded(encoder, table, rows)

    counts, more = fit_detector(
        detector,
        encoded,
        labels,
        train,
        held_out,
        things="rows",
        calibrates=calibration > 0,
        checkpoint=checkpoint,
    )
    made_fast = {}
    if fast:
        detector, loss = distil_detector(detector, encoded, labels, train, held_out)
        made_fast = {"fast": {"method": method, "members": members, **loss}}
    normal = train[labels[train] != ANOMALY]
    training = {
        "source": frame.name if isinstance(frame, Source) else None,
        "n_rows": rows.n_rows,
        "n_used": len(labels),
        **counts,
        "seed": seed,
        "warnings": [*remarks, *more],
        "made": made,
        **made_fast,
    }
    if source and frame.understood:
        training["understood"] = frame.understood
    return TableModel(
        detector=detector,
        training=training,
        encoder=encoder,
        label=label,
        id=id,
        drop=tuple(drop),
        anomaly_value=anomaly_value,
        reading={name: frame.options[name] for name in _REMEMBERED if name in frame.options}
        if source
        else {},
        profile=Profile.of(encoder, table.take(_some(normal))),
    )


def _located(encoder: TableEncoder, source: Source) -> TableEncoder:
    """Return an encoder whose warnings say where in the file values are."""
    said = {
        str(misread): misread.words(source.lines_of(misread.column, misread.examples))
        for misread in encoder.misread
    }
    return replace(
        encoder, warnings=tuple(said.get(words, words) for words in encoder.warnings)
    )


def _like_labels(table: pa.Table, labels: NDArray[np.int64]) -> list[str]:
    """Say which columns say what the labels say: other labels, which give them away."""
    anomalous, said = labels == ANOMALY, []
    if anomalous.sum() < _FEWEST_LABELS:
        return []
    for name in table.column_names:
        parts = [
            pc.unique(table[name].filter(pa.array(mask)).slice(0, _PROFILED))
            for mask in (anomalous, ~anomalous)
        ]
        if [len(part) for part in parts] == [1, 1] and not parts[0].equals(parts[1]):
            bad, good = (short(str(part[0].as_py())) for part in parts)
            said.append(
                f"Column {name!r} is {bad!r} in all rows labelled as anomalies and {good!r} in "
                f"all others: if it is another label, leave it out with --drop {name}."
            )
    return said


def _some(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rows, or if they are many some of them, evenly spaced."""
    n = min(len(rows), _PROFILED)
    return rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)]


def _layouts(given: Mapping[str, str]) -> dict[str, str]:
    layouts = {name: as_layout(text) for name, text in given.items()}
    for name, layout in layouts.items():
        try:
            check_layout(layout)
        except ValueError as error:
            raise TableError(f"The date format of column {name!r}: {error}.") from None
    return layouts


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


def _only_text(encoder: TableEncoder) -> bool:
    return {column.reads_text for column in encoder.columns if column.varies} == {True}


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
