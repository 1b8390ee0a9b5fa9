"""Tasks from files: a folder of tables, each with its labels and perhaps kinds of anomalies."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.bench.tabular.tasks import TableTask, digest
from aloof.datasets.keel import parse_keel
from aloof.datasets.numbers import Column, is_missing, to_numbers
from aloof.datasets.odds import parse_mat
from aloof.exceptions import DatasetError, ExperimentError
from aloof.labels import ANOMALY
from aloof.suggestion import closest

__all__ = ["LABELS", "Reading", "find_tables", "read_table"]

LABELS = ("label", "labels", "y", "anomaly", "is_anomaly", "outlier", "class", "target")
"""Names of columns that are taken as labels where none was given, in small letters."""

_ARRAYS, _KEEL = (".mat", ".npz"), ".dat"
_TRUE, _FALSE = ("1", "true", "yes"), ("0", "false", "no")


@dataclass(frozen=True)
class Reading:
    """What the columns of files mean.

    Attributes
    ----------
    label
        The column with the labels; empty: the one with a name of `LABELS`, in a file of KEEL
        the last. Files of arrays have rows ``X`` and labels ``y``.
    kind
        The column with the kinds of anomalies; empty: the labels are kinds if several values
        mean an anomaly, or there are none.
    anomaly_values
        Labels that mean an anomaly; all others are normal. Empty: 1, true or yes, in a file
        of KEEL the rarest class.
    ignore
        Columns to leave out.
    """

    label: str = ""
    kind: str = ""
    anomaly_values: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def find_tables(folder: Path) -> dict[str, Path]:
    """Return the tables in a folder by name.

    CSV, Parquet, Arrow and Excel files, .mat and .npz files of arrays, and KEEL's .dat files.

    Raises
    ------
    ExperimentError
        There is no such folder, it holds no table, or two of one name.
    """
    from aloof.models.table.formats import ENDINGS, ending_of

    if not folder.is_dir():
        reason = "is a file" if folder.exists() else "does not exist"
        raise ExperimentError(f"{folder} must be a folder of tables; it {reason}.")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        ending = path.suffix.lower()
        if ending not in (*_ARRAYS, _KEEL):
            ending = ending_of(path) or ""
        if path.name.startswith(".") or not path.is_file() or ending in ("", ".txt"):
            continue
        name = path.name[: path.name.lower().rindex(ending)]
        if name in found:
            raise ExperimentError(
                f"{folder} holds two tables called {name!r}: {found[name].name} and "
                f"{path.name}. Rename one of them."
            )
        found[name] = path
    if not found:
        endings = ", ".join(e for e in (*ENDINGS, *_ARRAYS, _KEEL) if e != ".txt")
        raise ExperimentError(f"{folder} holds no table. Known endings are {endings}.")
    return found


def read_table(name: str, path: Path, reading: Reading | None = None) -> TableTask:
    """Read a table as a task.

    Parameters
    ----------
    name
        Of the task.
    path
        The file.
    reading
        What its columns mean.

    Raises
    ------
    ExperimentError, DatasetError, TableError
        In one line, with the file and what to do.
    """
    reading = reading or Reading()
    sha256 = digest(reading, hashlib.sha256(path.read_bytes()).hexdigest())
    if path.suffix.lower() in _ARRAYS:
        X, y = _arrays(path)
        _check_both(y, path)
        numbers = to_numbers([(f"column {n}", c) for n, c in enumerate(X.T, 1)], str(path))
        return TableTask(name, numbers.X, y, sha256, None, numbers.notes)
    columns, keel = _columns(path)
    texts = dict(columns)
    label = _label(reading.label, texts, path, keel)
    y = _labels(_texts(texts[label]), label, reading.anomaly_values, path, keel)
    kinds = _texts(texts[label]) if len(reading.anomaly_values) > 1 else None
    if reading.kind:
        _check_column(reading.kind, texts, path, "--kind")
        kinds = _texts(texts[reading.kind])
    for ignored in reading.ignore:
        _check_column(ignored, texts, path, "--ignore")
    left = [c for c in columns if c[0] not in (label, reading.kind, *reading.ignore)]
    numbers = to_numbers(left, str(path))
    return TableTask(name, numbers.X, y, sha256, kinds, numbers.notes)


def _arrays(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    content = path.read_bytes()
    try:
        if path.suffix.lower() == ".mat":
            X, y = parse_mat(content, path, gaps=True)
        else:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                X, y = np.asarray(file["X"], np.float64), np.asarray(file["y"]).ravel()
    except DatasetError:
        raise
    except (KeyError, ValueError, OSError) as error:
        raise DatasetError(
            f"{path} must hold the rows as X and the labels (1 anomaly, 0 normal) as y, both "
            "as numbers."
        ) from error
    if X.ndim != 2 or len(X) != len(y) or not np.isin(y, (0, 1)).all():
        raise DatasetError(
            f"{path} must hold a matrix X and a label in y, 1 (anomaly) or 0 (normal), for "
            f"each of its rows; X has the shape {X.shape}, y {y.shape}."
        )
    return X, y.astype(np.int64)


def _columns(path: Path) -> tuple[list[Column], bool]:
    """Return the columns of a file, and whether the last is the class, as in KEEL."""
    if path.suffix.lower() == _KEEL:
        columns, classes = parse_keel(path.read_bytes(), str(path))
        return [*columns, ("class", classes)], True
    from aloof.models.table import open_source

    table = open_source(path).read()
    return [(name, _values(table[name])) for name in table.column_names], False


def _values(column: Any) -> NDArray[np.str_] | NDArray[np.float64]:
    """Return a column of Arrow as numbers, or as texts where it is something else."""
    import pyarrow as pa

    of = column.type
    if pa.types.is_boolean(of) or pa.types.is_integer(of) or pa.types.is_floating(of):
        return np.array([np.nan if v is None else v for v in column.to_pylist()], np.float64)
    return np.array(["" if v is None else str(v) for v in column.to_pylist()], np.str_)


def _texts(values: NDArray[np.str_] | NDArray[np.float64]) -> NDArray[np.str_]:
    """Return values as texts, with one spelling for numbers."""
    return np.array([_plain(str(value)) for value in values.tolist()], np.str_)


def _plain(text: str) -> str:
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else text


def _label(given: str, columns: Mapping[str, object], path: Path, keel: bool) -> str:
    if given:
        _check_column(given, columns, path, "--label")
        return given
    if keel:
        return list(columns)[-1]
    found = [name for name in columns if name.lower() in LABELS]
    if len(found) == 1:
        return found[0]
    said = f"has {len(found)} that may be it" if found else "has none that is called so"
    raise ExperimentError(
        f"Which column of {path} has the labels? It {said}: {_listed(found or list(columns))}. "
        "Name it with --label."
    )


def _check_column(name: str, columns: Mapping[str, object], path: Path, option: str) -> None:
    if name not in columns:
        raise ExperimentError(
            f"{path} has no column {name!r} ({option}){closest(name, columns)}. It has "
            f"{_listed(list(columns))}."
        )


def _labels(
    texts: NDArray[np.str_],
    label: str,
    anomaly_values: Sequence[str],
    path: Path,
    keel: bool,
) -> NDArray[np.int64]:
    where = f"The column {label!r} of {path}"
    gaps = np.flatnonzero(is_missing(texts))
    if len(gaps):
        raise ExperimentError(
            f"{where} has no label in {len(gaps)} rows, the first of them row {gaps[0] + 1}. "
            "Results can only be measured where every row has one."
        )
    values, counts = np.unique(texts, return_counts=True)
    if anomaly_values:
        wanted = [_plain(value) for value in anomaly_values]
        anomalous = np.isin(texts, wanted)
        if not anomalous.any():
            raise ExperimentError(
                f"{where} never holds {_listed(wanted)} (--anomaly-value). It holds "
                f"{_listed(values.tolist())}."
            )
    elif {str(value).lower() for value in values} <= {*_TRUE, *_FALSE}:
        anomalous = np.isin(np.char.lower(texts), _TRUE)
    elif keel and len(values) > 1:
        anomalous = texts == values[counts.argmin()]
    else:
        raise ExperimentError(
            f"{where} holds {_listed(values.tolist())}, and should hold 1 for anomalies and 0 "
            "for normal rows. Say which of its values mean an anomaly with --anomaly-value."
        )
    y = anomalous.astype(np.int64)
    _check_both(y, path)
    return y


def _check_both(y: NDArray[np.int64], path: Path) -> None:
    n_anomalies = int((y == ANOMALY).sum())
    if not 0 < n_anomalies < len(y):
        what = "an anomaly" if n_anomalies else "normal"
        raise ExperimentError(
            f"Every row of {path} is {what}: there is nothing to tell apart. Take it out of "
            "the folder, or choose others with --tasks."
        )


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(repr(str(name)[:40]) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
