"""The ODDS library: MATLAB files with rows ``X`` and labels ``y``."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from aloof.datasets.files import DataFile
from aloof.datasets.registry import Dataset, register
from aloof.exceptions import DatasetError

__all__ = ["PublicTable", "Table", "parse_mat"]

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


@dataclass(frozen=True, kw_only=True)
class PublicTable(Dataset):
    """One public table in a MATLAB file.

    Attributes
    ----------
    n_rows, n_columns, n_anomalies
        What the file holds.
    """

    n_rows: int
    n_columns: int
    n_anomalies: int

    @property
    def content(self) -> str:
        """What the file holds, in a few words."""
        return f"{_described(self._size)} ({self.n_anomalies / self.n_rows:.1%})"

    def load(self) -> Table:
        """Read the rows and labels, and check how many there are."""
        (file,) = self.fetch()
        X, y = parse_mat(file.content, file.path)
        if len(X) != len(y):
            raise DatasetError(f"{file.path} has {len(X)} rows in X but {len(y)} labels in y.")
        found = (*X.shape, int(y.sum()))
        if found != self._size:
            raise DatasetError(
                f"{file.path} is not {self.name}: it holds {_described(found)}, but should "
                f"hold {_described(self._size)}."
            )
        if not file.known:
            _logger.warning(
                "%s is not a known file of %s (SHA-256 %s); its size and labels are right, its "
                "values were not checked",
                file.path,
                self.name,
                file.sha256,
            )
        return Table(self.name, X, y, file.path, file.sha256, file.known)

    def check(self) -> None:
        """Make sure that the file is there and holds what it should."""
        self.load()

    @property
    def _size(self) -> tuple[int, int, int]:
        return self.n_rows, self.n_columns, self.n_anomalies


def parse_mat(
    content: bytes, path: Path, *, gaps: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Read the rows ``X`` and the labels ``y`` of a MATLAB file.

    Parameters
    ----------
    content
        Of the file.
    path
        The file, for errors.
    gaps
        Whether values may be missing.
    """
    try:
        variables = loadmat(io.BytesIO(content), variable_names=["X", "y"])
    except NotImplementedError as error:
        raise DatasetError(
            f"{path} is a MATLAB 7.3 (HDF5) file; aloof reads the older format. In MATLAB, "
            "load it and write it again with: save(file, 'X', 'y', '-v7')"
        ) from error
    except Exception as error:  # a damaged file can make the reader fail in any way
        raise DatasetError(
            f"Cannot read {path} as a MATLAB file ({error}). It is damaged, or something "
            "else. Download it again."
        ) from error
    missing = [key for key in ("X", "y") if key not in variables]
    if missing:
        raise DatasetError(
            f"{path} has no variable {' and no '.join(missing)}. It must hold the rows as X "
            "and the labels (1 anomaly, 0 normal) as y."
        )
    return _rows(variables["X"], path, gaps), _labels(variables["y"], path)


def _rows(X: Any, path: Path, gaps: bool) -> NDArray[np.float64]:
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DatasetError(
            f"X in {path} must be a matrix of numbers; it has shape {X.shape} and type "
            f"{X.dtype}."
        )
    rows = np.ascontiguousarray(X, np.float64)
    if not gaps and not np.isfinite(rows).all():
        raise DatasetError(f"X in {path} has missing or infinite values.")
    return rows


def _labels(y: Any, path: Path) -> NDArray[np.int64]:
    y = np.asarray(y)
    if y.ndim == 0 or y.size != max(y.shape) or y.dtype.kind not in "biuf":
        raise DatasetError(
            f"y in {path} must be one row or column of numbers; it has shape {y.shape} and "
            f"type {y.dtype}."
        )
    if not np.isin(y, (0, 1)).all():
        raise DatasetError(f"y in {path} must hold only 1 (anomaly) and 0 (normal).")
    return np.asarray(y.ravel(), np.int64)


def _described(size: tuple[int, ...]) -> str:
    n_rows, n_columns, n_anomalies = size
    return f"{n_rows} rows x {n_columns} columns with {n_anomalies} anomalies"


def _add(
    name: str,
    *,
    page: str,
    shared: str,
    copy: str,
    sha256: tuple[str, ...],
    size: int | None,
    holds: tuple[int, int, int],
    task: str,
) -> None:
    """Add a set of the library: its page links to a Dropbox file, PyOD's history has a copy."""
    urls = (
        f"https://www.dropbox.com/s/{shared}/{name}.mat?dl=1",
        f"https://raw.githubusercontent.com/yzhao062/pyod/{copy}/{name}.mat",
    )
    register(
        PublicTable(
            name=name,
            title=name.capitalize(),
            home=f"https://odds.cs.stonybrook.edu/{page}/",
            files=(DataFile(path=f"odds/{name}.mat", sha256=sha256, urls=urls, size=size),),
            task=task,
            citation="Rayana, ODDS library, Stony Brook University, 2016",
            n_rows=holds[0],
            n_columns=holds[1],
            n_anomalies=holds[2],
        )
    )


_add(
    "arrhythmia",
    page="arrhythmia-dataset",
    shared="lmlwuspn1sey48r",
    copy="1938f1c58ba7948359b098ab358b7ee920825282/data",
    sha256=("e4d47e499591ae31e5d7f0cd983367092353eac240f48e14c9b36457edb3460d",),
    size=105_540,
    holds=(452, 274, 66),
    task="patients of the eight smallest classes (3, 4, 5, 7, 8, 9, 14, 15) are "
    "anomalies, all others are normal",
)
_add(
    "cardio",
    page="cardiotocogrpahy-dataset",  # the page's own spelling
    shared="galg3ihvxklf0qi",
    copy="71246f49518da607e0b879ac0d7446fdac3d8d3c/examples/example_data",
    sha256=("5e568b6a73711012c481fa6cc984ab9c68e9a4fa44d6aeb3b43efa381c3f695b",),
    size=68_318,
    holds=(1831, 21, 176),
    task="pathologic cardiotocograms are anomalies, normal ones are normal; suspect ones "
    "are left out",
)
_add(
    "satellite",
    page="satellite-dataset",
    shared="dpzxp8jyr9h93k5",
    copy="b247c08568cbc8147f3fe873a925c4deff89b8b9/notebooks/data",
    sha256=("6feac3112b9c14e1c3e60afc437f2f3d29dc1000119c9f950c628078778d6aa0",),
    size=144_833,
    holds=(6435, 36, 2036),
    task="the three smallest classes of soil (2, 4, 5) are anomalies, all others are normal",
)
_add(
    "satimage-2",
    page="satimage-2-dataset",
    shared="hckgvu9m6fs441p",
    copy="ef6d5e8dc828615f498286c1d6a22cbd02fd4cd2/notebooks/data",
    sha256=("95c37a07cea2cb201f6900d14f521510e10b6b2f0074c06ac46d3157440ec67b",),
    size=181_220,
    holds=(5803, 36, 71),
    task="71 rows drawn from class 2 are anomalies, all other classes of soil are normal",
)
_add(
    "shuttle",
    page="shuttle-dataset",
    shared="mk8ozgisimfn3dw",
    copy="b247c08568cbc8147f3fe873a925c4deff89b8b9/notebooks/data",
    sha256=("b6e396c92354d5dcf5036901e36dc58e2913f2d1a5e138c35a2bedf9c69db899",),
    size=345_184,
    holds=(49097, 9, 3511),
    task="classes 2, 3, 5, 6 and 7 are anomalies, class 1 is normal; class 4 is left out",
)
_add(
    "thyroid",
    page="thyroid-disease-dataset",
    shared="bih0e15a0fukftb",
    copy="ef6d5e8dc828615f498286c1d6a22cbd02fd4cd2/notebooks/data",
    sha256=(
        "49155d7861b977e90808faf68343ff67a67f63090c2744d514dbb67ac68e7e33",
        # saved again from the arrays: the file of the results in this project
        "d95a1767fdf95330c46547de558f148433f8c840deb6d61ed9af3a080db5d88f",
    ),
    size=None,
    holds=(3772, 6, 93),
    task="hyperfunction of the thyroid is an anomaly, normal and subnormal function are normal",
)
