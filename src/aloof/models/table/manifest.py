"""What the manifest says of a table."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from aloof.exceptions import TableError
from aloof.io.sections import Count, Section, Text
from aloof.models.manifest import Training
from aloof.written.decoding import check_encoding

__all__ = ["FileReading", "TableManifest", "TableTraining"]


def _encoding(name: str) -> str:
    try:
        check_encoding(name)
    except TableError as error:
        raise ValueError(str(error)) from None
    return name


class TableTraining(Training):
    """What the model of a table was made from."""

    n_rows: Count
    n_used: Count


class FileReading(Section):
    """What was said about how to read the training file."""

    delimiter: Annotated[Text, Field(min_length=1, max_length=1)] | None = None
    encoding: Annotated[Text, AfterValidator(_encoding)] | None = None
    sheet: Text | None = None
    header: bool | None = None


class TableManifest(Section):
    """What a `TableModel` has beside its detector."""

    encoder: dict[str, Any]  # checks its own state
    label: Text | None
    id: Text | None
    drop: list[Text]
    anomaly_value: Text | None
    training: TableTraining
    reading: FileReading = FileReading()
    profile: dict[str, Any] | None = None  # checks its own state; older models have none
