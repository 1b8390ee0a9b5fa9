"""The data sets aloof knows: where each lives and what must be in its file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from aloof.exceptions import DatasetError

__all__ = ["ODDS", "Dataset", "PublicFile", "find_dataset", "list_datasets"]


@dataclass(frozen=True, kw_only=True)
class PublicFile:
    """One file of a data set.

    Attributes
    ----------
    name
        Of the data set.
    file
        Path of the file inside the cache folder or ``ALOOF_DATA``.
    home
        The page that describes it.
    urls
        Direct addresses of the file, tried in this order; none: it has no public home.
    sha256
        Of every file known to hold it, the public one first.
    making
        How to make the file, where it has no public home.
    """

    name: str
    file: str
    home: str
    urls: tuple[str, ...]
    sha256: tuple[str, ...]
    making: str | None = None

    @property
    def origin(self) -> str:
        """How to come by the file, in words."""
        return f"it is linked from {self.home}" if self.making is None else self.making


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One data set of the ODDS library (Outlier Detection DataSets, Rayana 2016).

    Attributes
    ----------
    name
        As in the paper.
    home
        The page that describes it, with a link to the file.
    urls
        Direct addresses of the file, tried in this order.
    n_rows, n_columns, n_anomalies
        What the file holds.
    sha256
        Of every file known to hold it, the public one first.
    """

    name: str
    home: str
    urls: tuple[str, ...]
    n_rows: int
    n_columns: int
    n_anomalies: int
    sha256: tuple[str, ...]

    @property
    def file(self) -> str:
        """Path of the file inside the cache folder or ``ALOOF_DATA``."""
        return f"odds/{self.name}.mat"

    @property
    def origin(self) -> str:
        """How to come by the file, in words."""
        return f"it is linked from {self.home}"


# The pages of the ODDS library link to these Dropbox files; PyOD's history holds copies.
_LIBRARY = "https://odds.cs.stonybrook.edu"
_FILES = "https://www.dropbox.com/s"
_COPIES = "https://raw.githubusercontent.com/yzhao062/pyod"

ODDS: Mapping[str, Dataset] = {
    entry.name: entry
    for entry in (
        Dataset(
            name="arrhythmia",
            home=f"{_LIBRARY}/arrhythmia-dataset/",
            urls=(
                f"{_FILES}/lmlwuspn1sey48r/arrhythmia.mat?dl=1",
                f"{_COPIES}/1938f1c58ba7948359b098ab358b7ee920825282/data/arrhythmia.mat",
            ),
            n_rows=452,
            n_columns=274,
            n_anomalies=66,
            sha256=("e4d47e499591ae31e5d7f0cd983367092353eac240f48e14c9b36457edb3460d",),
        ),
        Dataset(
            name="cardio",
            home=f"{_LIBRARY}/cardiotocogrpahy-dataset/",  # the page's own spelling
            urls=(
                f"{_FILES}/galg3ihvxklf0qi/cardio.mat?dl=1",
                f"{_COPIES}/71246f49518da607e0b879ac0d7446fdac3d8d3c"
                "/examples/example_data/cardio.mat",
            ),
            n_rows=1831,
            n_columns=21,
            n_anomalies=176,
            sha256=("5e568b6a73711012c481fa6cc984ab9c68e9a4fa44d6aeb3b43efa381c3f695b",),
        ),
        Dataset(
            name="satellite",
            home=f"{_LIBRARY}/satellite-dataset/",
            urls=(
                f"{_FILES}/dpzxp8jyr9h93k5/satellite.mat?dl=1",
                f"{_COPIES}/b247c08568cbc8147f3fe873a925c4deff89b8b9"
                "/notebooks/data/satellite.mat",
            ),
            n_rows=6435,
            n_columns=36,
            n_anomalies=2036,
            sha256=("6feac3112b9c14e1c3e60afc437f2f3d29dc1000119c9f950c628078778d6aa0",),
        ),
        Dataset(
            name="satimage-2",
            home=f"{_LIBRARY}/satimage-2-dataset/",
            urls=(
                f"{_FILES}/hckgvu9m6fs441p/satimage-2.mat?dl=1",
                f"{_COPIES}/ef6d5e8dc828615f498286c1d6a22cbd02fd4cd2"
                "/notebooks/data/satimage-2.mat",
            ),
            n_rows=5803,
            n_columns=36,
            n_anomalies=71,
            sha256=("95c37a07cea2cb201f6900d14f521510e10b6b2f0074c06ac46d3157440ec67b",),
        ),
        Dataset(
            name="shuttle",
            home=f"{_LIBRARY}/shuttle-dataset/",
            urls=(
                f"{_FILES}/mk8ozgisimfn3dw/shuttle.mat?dl=1",
                f"{_COPIES}/b247c08568cbc8147f3fe873a925c4deff89b8b9"
                "/notebooks/data/shuttle.mat",
            ),
            n_rows=49097,
            n_columns=9,
            n_anomalies=3511,
            sha256=("b6e396c92354d5dcf5036901e36dc58e2913f2d1a5e138c35a2bedf9c69db899",),
        ),
        Dataset(
            name="thyroid",
            home=f"{_LIBRARY}/thyroid-disease-dataset/",
            urls=(
                f"{_FILES}/bih0e15a0fukftb/thyroid.mat?dl=1",
                f"{_COPIES}/ef6d5e8dc828615f498286c1d6a22cbd02fd4cd2"
                "/notebooks/data/thyroid.mat",
            ),
            n_rows=3772,
            n_columns=6,
            n_anomalies=93,
            sha256=(
                "49155d7861b977e90808faf68343ff67a67f63090c2744d514dbb67ac68e7e33",
                # saved again from the arrays: the file of the results in this project
                "d95a1767fdf95330c46547de558f148433f8c840deb6d61ed9af3a080db5d88f",
            ),
        ),
    )
}


def list_datasets() -> tuple[Dataset, ...]:
    """Return every data set there is, by name."""
    return tuple(ODDS[name] for name in sorted(ODDS))


def find_dataset(name: str) -> Dataset:
    """Return the data set called `name`; where there is none, suggest the nearest name.

    Examples
    --------
    >>> find_dataset("cardio").n_anomalies
    176
    >>> find_dataset("satelite")
    Traceback (most recent call last):
    aloof.exceptions.DatasetError: There is no data set 'satelite'; did you mean 'satellite'?...
    """
    if name in ODDS:
        return ODDS[name]
    nearest = difflib.get_close_matches(str(name).lower(), ODDS, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    raise DatasetError(
        f"There is no data set {name!r}{hint} Known are {', '.join(sorted(ODDS))}."
    )
