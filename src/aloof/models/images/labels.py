"""Labels of images: from the folders they are in, from a table of names, or as an array."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloof.exceptions import ImageError, LabelError, TableError
from aloof.imagery import without_page
from aloof.labels import ANOMALY, NORMAL, UNLABELLED, read_labels
from aloof.models.images.reading import ImageSet
from aloof.phrases import count

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ImageLabels", "LabelOptions", "check_share"]

_COMMON_NAMES = ("label", "labels", "anomaly", "is_anomaly", "y", "class", "target")
# What people call folders of normal images, and of anomalies.
_GOOD_NAMES = frozenset("good normal normals ok pass passed healthy".split())
_BAD_NAMES = frozenset(
    "bad anomaly anomalies anomalous defect defects defective fail failed faulty ng".split()
)
_Path = str | os.PathLike[str]


class LabelOptions(TypedDict, total=False):
    """The parameters of `ImageLabels`."""

    normal: Any
    anomaly: Any
    labels: _Path | Mapping[str, int] | ArrayLike | None
    id: str | None
    label: str | None
    anomaly_value: str | None
    delimiter: str | None
    encoding: str | None


@dataclass(frozen=True, kw_only=True)
class ImageLabels:
    """Where the labels of images come from.

    Attributes
    ----------
    normal, anomaly
        Folders of normal images and of anomalies, as they are called inside the folder or
        archive of all images, or outside.
    labels
        A table of file names and labels (CSV, TSV, Parquet or Arrow); or 1 anomaly, 0 normal,
        -1 unlabelled, for names of files, with their folders or without; or a label for each
        image, in their order.
    id, label
        The columns of names and of labels in the table; None: the one that holds names of the
        files, and the other one, or the one that is called so.
    anomaly_value, delimiter, encoding
        As for tables.
    """

    normal: Any = None
    anomaly: Any = None
    labels: _Path | Mapping[str, int] | ArrayLike | None = None
    id: str | None = None
    label: str | None = None
    anomaly_value: str | None = None
    delimiter: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.labels is not None and (self.normal is not None or self.anomaly is not None):
            raise ImageError(
                "Give either labels, or the folders of normal images and anomalies."
            )
        if not isinstance(self.labels, str | os.PathLike):
            about = ("id", "label", "anomaly_value", "delimiter", "encoding")
            for name in about:
                if getattr(self, name) is not None:
                    raise ImageError(
                        f"--{name.replace('_', '-')} needs --labels FILE when used with "
                        "images: it describes a table of labels."
                    )

    @property
    def given(self) -> bool:
        """Whether there are labels at all."""
        return any(each is not None for each in (self.normal, self.anomaly, self.labels))

    def opened(self, names: Sequence[str]) -> ImageLabels:
        """Return the same with the table read, given the names of the files.

        So what is wrong with it is known before the images are read.
        """
        if not isinstance(self.labels, str | os.PathLike):
            return self
        return ImageLabels(labels=self._read(os.fspath(self.labels), names))

    def of(self, found: ImageSet) -> tuple[NDArray[np.int64], list[str]]:
        """Return 1, 0 and -1 for each image, and what is odd about the labels."""
        labels = self.opened(found.names).labels
        if isinstance(labels, Mapping):
            return _by_name(found, labels)
        if labels is not None:
            assert not isinstance(labels, os.PathLike)  # it was opened
            return read_labels(labels, len(found)), []
        y = np.full(len(found), UNLABELLED)
        for folder, label in ((self.normal, NORMAL), (self.anomaly, ANOMALY)):
            if folder is not None:
                inside = _inside(found, folder)
                if (y[inside] != UNLABELLED).any():
                    raise _in_both(self.normal, self.anomaly)
                y[inside] = label
        return y, []

    def check_folders(self) -> None:
        """Raise where the two folders are the same, or look as if they were swapped."""
        folders = self.normal, self.anomaly
        if not all(isinstance(folder, str | os.PathLike) for folder in folders):
            return
        normal, anomaly = (Path(folder).resolve() for folder in folders)
        if normal.is_relative_to(anomaly) or anomaly.is_relative_to(normal):
            raise _in_both(self.normal, self.anomaly)
        if normal.stem.lower() in _BAD_NAMES and anomaly.stem.lower() in _GOOD_NAMES:
            raise ImageError(
                f"You gave {os.fspath(self.normal)!r} as the normal images and "
                f"{os.fspath(self.anomaly)!r} as the anomalies. Swap them; or, if the names "
                "mean something else, give a table of labels."
            )

    def _read(self, path: str, files: Sequence[str]) -> dict[str, int]:
        import pyarrow as pa

        from aloof.models.table.files import open_source
        from aloof.models.table.labelling import check_column, check_labels, read_label_column

        source = open_source(path, delimiter=self.delimiter, encoding=self.encoding)
        table = source.read()
        for name, role in ((self.id, "file names"), (self.label, "labels")):
            if name is not None:
                check_column(name, table.column_names, role)
        id = self.id or _column_of_names(table, files, self.label, path)
        label = self.label or _column_of_labels(table, id, path)
        labels = read_label_column(label, table[label], self.anomaly_value)
        check_labels(label, table[label], labels, self.anomaly_value)
        names = [_plain(name) for name in table[id].cast(pa.string()).to_pylist()]
        return {
            name: int(value)
            for name, value in zip(names, labels, strict=True)
            if name is not None
        }


def check_share(labels: NDArray[np.int64]) -> None:
    """Raise where so many images are labelled as anomalies that it must be a mistake."""
    n_anomalies = int((labels == ANOMALY).sum())
    if 2 * n_anomalies > len(labels):
        raise LabelError(
            f"{n_anomalies:,} of {len(labels):,} images are labelled as anomalies. Most "
            "images must be normal to learn what normal is. If the labels or the two folders "
            "are swapped, swap them back; otherwise use fewer anomalies."
        )


def _in_both(normal: _Path, anomaly: _Path) -> ImageError:
    return ImageError(
        f"Some images in {os.fspath(anomaly)!r}, given as anomalies, are also in "
        f"{os.fspath(normal)!r}, given as normal images. Give two folders that share no image."
    )


def _column_of_names(
    table: pa.Table, files: Sequence[str], label: str | None, path: str
) -> str:
    import pyarrow as pa

    whole = {*files, *map(without_page, files)}
    known = {*whole, *(PurePosixPath(name).name for name in whole)}
    hits: dict[str, int] = {}
    for name in table.column_names:
        kind = table.schema.field(name).type
        if name != label and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            values = (_plain(value) for value in table[name].to_pylist())
            hits[name] = sum(value in known for value in values)
    best: str | None = max(hits, key=lambda name: hits[name], default=None)
    if best is None or not hits[best]:
        raise TableError(
            f"No column of {path} holds image names such as {files[0]!r}. Name the column: "
            "--id COLUMN."
        )
    return best


def _column_of_labels(table: pa.Table, id: str, path: str) -> str:
    others = [name for name in table.column_names if name != id]
    if len(others) == 1:
        return str(others[0])
    if not others:
        raise TableError(
            f"{path} has no column of labels beside {id!r}. Add one: 1 for anomalies, 0 for "
            "normal images."
        )
    likely = [name for name in others if name.lower() in _COMMON_NAMES]
    if len(likely) == 1:
        return str(likely[0])
    raise TableError(
        f"{path} has several columns that could hold the labels: {', '.join(others[:8])}. "
        "Name the right one: --label COLUMN."
    )


def _plain(name: str | None) -> str | None:
    return None if name is None else str(PurePosixPath(name.replace("\\", "/")))


def _inside(found: ImageSet, folder: _Path) -> NDArray[np.bool_]:
    """Return which files are in a folder, as it is called inside their own or outside."""
    if not found.paths:
        raise ImageError("Images in memory are in no folder. Give one label for each.")
    names, root = found.names, found.paths[0]
    given = PurePosixPath(Path(folder).as_posix())
    outside = PurePosixPath(os.path.relpath(folder, root).replace(os.sep, "/"))
    for inside in (given, outside):
        chosen = np.array([PurePosixPath(name).is_relative_to(inside) for name in names])
        if chosen.any() and inside != PurePosixPath("."):
            return chosen
    known = sorted({PurePosixPath(name).parts[0] for name in names if "/" in name})
    there = f" It has {', '.join(known[:10])}." if known else " It has no folders."
    raise ImageError(f"{root} has no images in a folder {os.fspath(folder)!r}.{there}")


def _by_name(found: ImageSet, labels: Mapping[str, int]) -> tuple[NDArray[np.int64], list[str]]:
    if unknown := sorted({*labels.values()} - {ANOMALY, NORMAL, UNLABELLED}):
        raise LabelError(
            f"Labels are 1 (anomaly), 0 (normal) or -1 (unlabelled); got {unknown[0]!r}."
        )
    bases = Counter(PurePosixPath(name).name for name in {*map(without_page, found.names)})
    y = np.full(len(found), UNLABELLED)
    used = set()
    for place, name in enumerate(found.names):
        file = without_page(name)  # all pages have the label of a file
        base = PurePosixPath(file).name
        candidates = (name, PurePosixPath(name).name, file, base)
        key = next((each for each in candidates if each in labels), None)
        if key is None:
            continue
        if "/" in name and "/" not in key and bases[base] > 1:
            raise ImageError(
                f"Several images are called {base!r}. Include the folder in their labels, as "
                f"in {name!r}."
            )
        y[place] = labels[key]
        used.add(key)
    if not used:
        first = next(iter(labels), None)
        raise ImageError(
            f"No label matches an image: labels have names such as {first!r}, images have "
            f"names such as {found.names[0]!r}."
        )
    skipped = {each.name for each in found.skipped}
    lost = [name for name in labels if name not in used | skipped]
    if not lost:
        return y, []
    return y, [f"{count(len(lost), 'label')} for files that do not exist, such as {lost[0]!r}."]
