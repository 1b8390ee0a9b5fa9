"""The data sets there are: one record each, of whatever kind."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypeVar, overload

from aloof.datasets.files import DataFile, LocalFile, obtain
from aloof.exceptions import DatasetError
from aloof.suggestion import did_you_mean

__all__ = ["DATASETS", "Dataset", "find_dataset", "list_datasets", "load_dataset", "register"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dataset(ABC):
    """One data set: what it is, where its files come from, and how they are read.

    A kind of data sets is a subclass, with what its files hold as more fields.

    Attributes
    ----------
    name
        As on the command line.
    title
        As in a text.
    home
        The page that describes it.
    files
        In the order they are read.
    task
        What is normal, and what is an anomaly.
    making
        How to make the files, where they have no public home.
    citation
        Whom to cite.
    licence
        If it is known.
    """

    name: str
    title: str
    home: str
    files: tuple[DataFile, ...]
    task: str
    making: str | None = None
    citation: str | None = None
    licence: str | None = None

    @abstractmethod
    def load(self) -> Any:
        """Read the files, downloaded if need be, and check what they hold."""

    @property
    def content(self) -> str:
        """What the files hold, in a few words."""
        return ""

    @property
    def path(self) -> Path:
        """Where the files are looked for: the only one, or the folder of them."""
        first = self.files[0].local
        return first if len(self.files) == 1 else first.parent

    @property
    def present(self) -> bool:
        """Whether all files are on this machine."""
        return all(file.local.is_file() for file in self.files)

    def fetch(self) -> list[LocalFile]:
        """Return the files, downloaded if need be."""
        origin = self.making or f"it is linked from {self.home}"
        return [obtain(file, self.name, origin) for file in self.files]

    def check(self) -> None:
        """Make sure that the files are there and known; some kinds look inside."""
        self.fetch()

    def describe(self) -> dict[str, Any]:
        """Return what there is to say, as JSON can hold it."""
        fields = {
            entry.name: getattr(self, entry.name)
            for entry in dataclasses.fields(self)
            if entry.name != "files"
        }
        sizes = [file.size for file in self.files]
        return {
            **fields,
            "path": str(self.path),
            "present": self.present,
            "urls": [url for file in self.files for url in file.urls],
            "sha256": [digest for file in self.files for digest in file.sha256],
            **({} if None in sizes else {"size": sizes}),
        }


DATASETS: dict[str, Dataset] = {}

_D = TypeVar("_D", bound=Dataset)


def register(dataset: _D) -> _D:
    """Make a data set known, in the place of one of the same name, and return it."""
    if not isinstance(dataset, Dataset):
        raise TypeError(f"A data set must be an instance of Dataset; got {dataset!r}.")
    if not dataset.name or not dataset.files:
        raise ValueError(f"A data set needs a name and files; got {dataset!r}.")
    DATASETS[dataset.name] = dataset
    return dataset


@overload
def list_datasets() -> tuple[Dataset, ...]: ...
@overload
def list_datasets(kind: type[_D]) -> tuple[_D, ...]: ...


def list_datasets(kind: Any = Dataset) -> tuple[Any, ...]:
    """Return every data set by name, or those of one kind."""
    return tuple(entry for _, entry in sorted(DATASETS.items()) if isinstance(entry, kind))


@overload
def find_dataset(name: str) -> Dataset: ...
@overload
def find_dataset(name: str, kind: type[_D]) -> _D: ...


def find_dataset(name: str, kind: Any = Dataset) -> Any:
    """Return the data set called `name`, or raise and suggest the nearest of its kind.

    Examples
    --------
    >>> find_dataset("cardio").title
    'Cardio'
    >>> find_dataset("satelite")
    Traceback (most recent call last):
    aloof.exceptions.DatasetError: There is no data set 'satelite'; did you mean 'satellite'?...
    """
    known = {entry.name: entry for entry in list_datasets(kind)}
    if name not in known:
        raise DatasetError(f"There is no data set {name!r}{did_you_mean(name, known)}")
    return known[name]


def load_dataset(name: str) -> Any:
    """Return the data of a data set: for instance a `Table`, or `ImageDataset`."""
    return find_dataset(name).load()
