"""Arguments and options that several commands have, and how they reach a model."""

from __future__ import annotations

import functools
import getpass
import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

from aloof.cli.group import fail
from aloof.cli.progress import progress_bar
from aloof.models.kinds import options_of

if TYPE_CHECKING:
    from aloof.models import Model as AnyModel

__all__ = [
    "LABELLING",
    "READING",
    "Anomaly",
    "Data",
    "Delimiter",
    "Device",
    "Encoding",
    "FileFormat",
    "Header",
    "Json",
    "Labels",
    "MissingColumns",
    "Model",
    "Normal",
    "Reviewer",
    "Sheet",
    "Store",
    "also",
    "called",
    "extended",
    "given",
    "passed",
    "reviewer",
]

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder with the model.")]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Excel, Parquet, Arrow or lines of text (.txt): a file, a folder, a "
        "glob in quotes, a URL such as s3://bucket/new/, or - for CSV on standard input. For "
        "an image model: a folder, a zip archive or a file.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="The character between the values of a CSV file. Default: detected."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding of CSV and text files, such as latin-1. Default: detected (UTF-8, "
        "UTF-16, or else cp1252)."
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        help="Sheet of an Excel file: its name, or its number counted from 1. Default: 1."
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the file has a line of column names. If not, columns are called "
        "column_1, column_2 and so on.",
        show_default=False,
    ),
]
FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="[csv|tsv|excel|parquet|arrow|json|jsonl|txt]",
        help="File format. Default: taken from the file's ending.",
    ),
]
Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda, cuda:1, mps.")]
MissingColumns = Annotated[
    str,
    typer.Option(
        metavar="[refuse|fill]",
        help="What to do if a column of the training table is missing: refuse the table, or "
        "fill the column with missing values (with typical ones if it was never empty in "
        "training).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_Label = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column with the labels. Default: as in training."),
]
_AnomalyValue = Annotated[
    str | None,
    typer.Option(metavar="V", help="The label that means anomaly. Default: as in training."),
]
_Id = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Images only: the column of file names in --labels."),
]
Normal = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="Images only: the normal ones.")
]
Anomaly = Annotated[str | None, typer.Option(metavar="FOLDER", help="Images: the anomalies.")]
Labels = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Images only: a table of file names and labels."),
]
Reviewer = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who answers. Default: your name on this machine."),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="ALOOF_STORE",
        show_envvar=False,
        help="Where answers are kept: a file, or postgresql://... Default: beside the model.",
    ),
]

# How a file is read, and where labels come from.
READING = {
    "delimiter": Delimiter,
    "encoding": Encoding,
    "sheet": Sheet,
    "header": Header,
    "file_format": FileFormat,
}
LABELLING = {
    "label": _Label,
    "anomaly_value": _AnomalyValue,
    "normal": Normal,
    "anomaly": Anomaly,
    "labels": Labels,
    "id": _Id,
}

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")

# What every command deals with itself.
_OWN = {"model", "data", "device", "as_json"}
# Where a parameter of a command has another name than that of the model.
_NAMES = {
    "file_format": "format",
    "kind": "kinds",
    "date_format": "date_formats",
    "epochs": "max_epochs",
}


def also(*groups: Mapping[str, Any]) -> Callable[[_F], _F]:
    """Give a command options that it does nothing with but pass them on, by `called`.

    Parameters
    ----------
    groups
        Options by name, such as `READING`; each is None unless it is given.
    """
    options = {name: kind for group in groups for name, kind in group.items()}

    def add(command: _F) -> _F:
        @functools.wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            return command(*args, **{n: v for n, v in values.items() if n not in options})

        return cast(_F, extended(run, {name: (kind, None) for name, kind in options.items()}))

    return add


def extended(run: _F, options: Mapping[str, tuple[Any, Any]]) -> _F:
    """Give a function that wraps a command more options than the command has.

    Parameters
    ----------
    run
        The function; `functools.wraps` has been applied to it.
    options
        The annotation and the default of each, by name.
    """
    own = inspect.signature(run, eval_str=True)
    more = [
        inspect.Parameter(name, _KEYWORD, default=default, annotation=kind)
        for name, (kind, default) in options.items()
    ]
    parameters = [*own.parameters.values(), *more]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = run.__annotations__ | {p.name: p.annotation for p in more}
    return run


def reviewer(by: str | None) -> str:
    """Return who answers."""
    try:
        return by or getpass.getuser()
    except (ImportError, KeyError, OSError):  # as in a container
        fail("Say who answers: --by NAME.")


def given(context: typer.Context) -> list[str]:
    """Return the names of the parameters that stand on the command line."""
    return [_NAMES.get(name, name) for name in context.params if _is_given(context, name)]


def passed(
    context: typer.Context,
    what: str,
    *functions: Callable[..., Any],
    own: Collection[str] = (),
    instead: Mapping[str, str] | None = None,
    **more: Any,
) -> list[dict[str, Any]]:
    """Return the options of a command that each function takes; refuse what none takes.

    Parameters
    ----------
    context
        Of the command.
    what
        What the command is used with, in words: "images".
    functions
        Their keyword parameters are the options that apply.
    own
        Parameters that the command deals with itself, besides those that all commands do.
    instead
        What to do in place of an option that is refused, by its name.
    **more
        Values besides the options, such as ``progress``, or in place of them.
    """
    handled = _OWN | set(own)
    known = [options_of(function) - handled for function in functions]
    applies = handled.union(*known)
    for parameter in context.command.params:
        name = str(parameter.name)
        if _is_given(context, name) and _NAMES.get(name, name) not in applies:
            advice = (instead or {}).get(name, "")
            fail(f"{parameter.opts[0]} cannot be used with {what}. {advice}")
    values = {_NAMES.get(name, name): value for name, value in context.params.items()} | more
    return [{name: values[name] for name in names if name in values} for names in known]


def called(
    context: typer.Context,
    model: AnyModel,
    method: Callable[..., _T],
    data: str,
    *,
    own: Collection[str] = (),
    **more: Any,
) -> _T:
    """Call a method of a model with the data and the options of a command, under a bar.

    Parameters
    ----------
    context
        Of the command.
    model, method
        The model, and the method of it.
    data
        As the user wrote it.
    own, **more
        See `passed`.
    """
    with progress_bar("Scoring") as progress:
        more["progress"] = progress
        reading, options = passed(
            context, model.kind, model.read, method, own=own, instead=model.instead, **more
        )
        opened = model.read(data, **reading)
        if words := model.read_otherwise(opened):
            typer.echo(f"Read {data}: {words}.", err=True)
        return method(opened, **options)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
