"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from aloof.cli.group import fail
from aloof.tabular import Source, open_source
from aloof.tabular.formats import FormatName

__all__ = [
    "Data",
    "Delimiter",
    "Device",
    "Encoding",
    "FileFormat",
    "Json",
    "Model",
    "opened",
]

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of the model.")]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet, Arrow or lines of text (.txt): a file, a folder, a glob in "
        "quotes, or - for CSV on standard input.",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="What separates the values of a CSV file. Default: a comma.")
]
Encoding = Annotated[str, typer.Option(help="Of CSV and text files, such as latin-1.")]
FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="[csv|tsv|parquet|arrow|txt]",
        help="Default: what the ending of the file says.",
    ),
]
Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda, cuda:1, mps.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def opened(data: str, delimiter: str | None, encoding: str, file_format: str | None) -> Source:
    """Return the table that these options describe."""
    known = get_args(FormatName)
    if file_format is not None and file_format not in known:
        fail(f"--format must be one of {', '.join(known)}; got {file_format!r}.")
    chosen = cast(FormatName | None, file_format)
    return open_source(data, format=chosen, delimiter=delimiter, encoding=encoding)
