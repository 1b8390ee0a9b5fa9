"""Reading the files of the ODDS library: MATLAB's, with rows ``X`` and labels ``y``."""

from __future__ import annotations

import hashlib
import io
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from aloof.datasets.files import dataset_path, read_bytes
from aloof.datasets.registry import Dataset, find_dataset
from aloof.exceptions import DatasetError

__all__ = ["Table", "fetch", "load_odds"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with their true labels.

    Attributes
    ----------
    name
        Of the data set.
    X
        Rows ``(n, n_features)``, float64.
    y
        1 anomaly, 0 normal, int64.
    path
        The file.
    sha256
        Of the file.
    known
        Whether this is a file whose SHA-256 aloof knows. A file in ``ALOOF_DATA`` need not
        be: then only its size and its labels were checked.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    path: Path
    sha256: str
    known: bool


def fetch(name: str) -> Path:
    """Make sure that the file of a data set is there and can be read.

    Parameters
    ----------
    name
        See `list_datasets`.

    Returns
    -------
    Where it is; see `dataset_path`.
    """
    return load_odds(name).path


def load_odds(name: str) -> Table:
    """Load a data set of the ODDS library; download it if need be.

    Parameters
    ----------
    name
        See `list_datasets`.

    Returns
    -------
    Its rows, labels and SHA-256.

    Raises
    ------
    DatasetError
        A name that does not exist, a file that cannot be had, or one that does not hold
        what it should.
    """
    entry = find_dataset(name)
    content = read_bytes(entry)
    path = dataset_path(name)
    X, y = _parse(content, path)
    _check(entry, X, y, path)
    digest = hashlib.sha256(content).hexdigest()
    known = digest in entry.sha256
    if not known:
        _logger.warning(
            "%s is not a known file of %s (SHA-256 %s); its size and labels are right, its "
            "values were not checked",
            path,
            name,
            digest,
        )
    return Table(name, X, y, path, digest, known)


def _parse(content: bytes, path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    try:
        variables = loadmat(io.BytesIO(content), variable_names=["X", "y"])
    except NotImplementedError as error:
        raise DatasetError(
            f"{path} is a MATLAB 7.3 (HDF5) file; aloof reads the older format. In MATLAB, "
            "load it and write it again with: save(file, 'X', 'y', '-v7')"
        ) from error
    except Exception as error:  # a damaged file can make the reader fail in any way
        raise DatasetError(
            f"{path} cannot be read as a MATLAB file ({error}). It is damaged or something "
            "else; get it again."
        ) from error
    missing = [key for key in ("X", "y") if key not in variables]
    if missing:
        raise DatasetError(
            f"{path} has no variable {' and no '.join(missing)}. It must hold the rows as X "
            "and the labels (1 anomaly, 0 normal) as y."
        )
    return _rows(variables["X"], path), _labels(variables["y"], path)


def _rows(X: Any, path: Path) -> NDArray[np.float64]:
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DatasetError(
            f"X in {path} must be a matrix of numbers; its shape is {X.shape} and its type "
            f"{X.dtype}."
        )
    rows = np.ascontiguousarray(X, np.float64)
    if not np.isfinite(rows).all():
        raise DatasetError(f"X in {path} holds values that are missing or infinite.")
    return rows


def _labels(y: Any, path: Path) -> NDArray[np.int64]:
    y = np.asarray(y)
    if y.ndim == 0 or y.size != max(y.shape) or y.dtype.kind not in "biuf":
        raise DatasetError(
            f"y in {path} must be one row or column of numbers; its shape is {y.shape} and "
            f"its type {y.dtype}."
        )
    if not np.isin(y, (0, 1)).all():
        raise DatasetError(f"y in {path} must hold 1 (anomaly) and 0 (normal) only.")
    return np.asarray(y.ravel(), np.int64)


def _check(entry: Dataset, X: NDArray[np.float64], y: NDArray[np.int64], path: Path) -> None:
    if len(X) != len(y):
        raise DatasetError(
            f"{path} has {len(X)} rows in X and {len(y)} labels in y; these must be equal."
        )
    found = (*X.shape, int(y.sum()))
    expected = (entry.n_rows, entry.n_columns, entry.n_anomalies)
    if found != expected:
        raise DatasetError(
            f"{path} is not {entry.name}: it holds {_described(found)}, where there should be "
            f"{_described(expected)}."
        )


def _described(size: tuple[int, ...]) -> str:
    n_rows, n_columns, n_anomalies = size
    return f"{n_rows} rows x {n_columns} columns with {n_anomalies} anomalies"
