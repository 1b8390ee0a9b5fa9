"""From data of any kind to a model, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aloof.exceptions import TableError
from aloof.models.kinds import KINDS, kind_for, options_of

if TYPE_CHECKING:
    from aloof.models.images import ImageModel
    from aloof.models.table import TableModel

__all__ = ["fit"]

_SEPARATELY = (
    "Put the labels into the frame, or pass them separately: "
    "aloof.TableDetector().fit(frame, labels)."
)


def fit(data: Any = None, labels: Any = None, **options: Any) -> TableModel | ImageModel:
    """Learn what is normal in a table or in images.

    Parameters
    ----------
    data
        A table: a frame of any flavour, the path of a file (CSV, TSV, Excel, Parquet, Arrow,
        text), a folder of them, a glob, "-" for CSV on standard input. Or images: a folder, a
        zip archive, an array ``(n, channels, height, width)``; None if ``normal`` is given.
    labels
        Of images alone: a label for each, or a table of file names and labels. The labels of a
        table are one of its columns, ``label``.
    **options
        For a table, the options of `aloof.models.table.fit`: ``label``, ``id``, ``drop``,
        ``kinds``, ``text``, ``decimal``, ``day_first``, ... For images, those of
        `aloof.models.images.fit_images`: ``normal``, ``anomaly``, ``size``, ... For
        both: ``method``, ``members``, ``calibration``, ``seed``, ``checkpoint``, ``verbose``
        and parameters of the detector, such as ``max_epochs``.
    """
    label = options.get("label")
    if label is not None and not isinstance(label, str):
        raise TableError(
            f"label must be the name of a column; got a {type(label).__name__}. {_SEPARATELY}"
        )
    if labels is not None:
        options["labels"] = labels
    given = [name for name, value in options.items() if value is not None]
    kind = kind_for(data, given)
    known = options_of(kind.fit)
    others = {name for other in KINDS for name in options_of(other.fit)} - known
    if wrong := sorted(others & set(given)):
        advice = f" {_SEPARATELY}" if wrong[0] == "labels" else ""
        raise kind.model.error(f"{wrong[0]!r} cannot be used with {kind.model.kind}.{advice}")
    passed = {name: value for name, value in options.items() if name not in others}
    model: TableModel | ImageModel = kind.fit(data, **passed)  # type: ignore[assignment]
    return model
