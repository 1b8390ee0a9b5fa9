"""Labels of images, from a table of file names."""

from __future__ import annotations

from pathlib import PurePosixPath

import pyarrow as pa

from aloof.cli.options import opened
from aloof.exceptions import TableError
from aloof.images import Collection
from aloof.tabular.labelling import check_column, check_labels, read_label_column

__all__ = ["read_image_labels"]

_USUAL_NAMES = ("label", "labels", "anomaly", "is_anomaly", "y", "class", "target")


def read_image_labels(
    path: str,
    images: Collection,
    id: str | None,
    label: str | None,
    anomaly_value: str | None,
    delimiter: str | None,
    encoding: str,
) -> dict[str, int]:
    """Return the label of each file that a table names.

    Parameters
    ----------
    path
        The table: CSV, TSV, Parquet or Arrow.
    images
        The files, to tell the column of names by.
    id, label
        The columns of names and of labels; None: the one that holds names of the files, and
        the other one, or the one that is called so.
    anomaly_value, delimiter, encoding
        As for tables.
    """
    table = opened(path, delimiter, encoding, None).read()
    for name, role in ((id, "file names"), (label, "labels")):
        if name is not None:
            check_column(name, table.column_names, role)
    id = _column_of_names(table, images, label, path) if id is None else id
    label = _column_of_labels(table, id, path) if label is None else label
    labels = read_label_column(label, table[label], anomaly_value)
    check_labels(label, table[label], labels, anomaly_value)
    names = [_plain(name) for name in table[id].cast(pa.string()).to_pylist()]
    return {
        name: int(value) for name, value in zip(names, labels, strict=True) if name is not None
    }


def _column_of_names(table: pa.Table, images: Collection, label: str | None, path: str) -> str:
    known = {*images.names, *(PurePosixPath(name).name for name in images.names)}
    found: dict[str, int] = {}
    for name in table.column_names:
        kind = table.schema.field(name).type
        if name != label and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            values = (_plain(value) for value in table[name].to_pylist())
            found[name] = sum(value in known for value in values)
    best: str | None = max(found, key=lambda name: found[name], default=None)
    if best is None or not found[best]:
        raise TableError(
            f"No column of {path} holds names of files in {images.path}, such as "
            f"{images.names[0]!r}. Say which one it is: --id COLUMN."
        )
    return best


def _column_of_labels(table: pa.Table, id: str, path: str) -> str:
    others = [name for name in table.column_names if name != id]
    if len(others) == 1:
        return str(others[0])
    usual = [name for name in others if name.lower() in _USUAL_NAMES]
    if len(usual) == 1:
        return str(usual[0])
    raise TableError(
        f"It is not clear which column of {path} holds the labels: {', '.join(others[:8])}. "
        "Say it: --label COLUMN."
    )


def _plain(name: str | None) -> str | None:
    return None if name is None else str(PurePosixPath(name.replace("\\", "/")))
