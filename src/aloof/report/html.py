"""A report about a table: one HTML file that opens offline, in any browser."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa

from aloof._version import __version__
from aloof.exceptions import MissingExtraError, TableError
from aloof.io import write_file
from aloof.report import reasons, sections
from aloof.report.facts import METHODS, cautions, key_figures, model_facts, reproduce
from aloof.report.inline import check_report_drawing
from aloof.report.phrases import count
from aloof.report.survey import survey
from aloof.tabular import Source, TableModel, open_source, to_table

__all__ = ["check_report", "template", "write_page", "write_report"]

_ROWS = 16_384
_REASON = re.compile(r"`(.+?)` (.*)", re.DOTALL)


def write_report(
    model: TableModel,
    frame: Any,
    path: str | os.PathLike[str],
    *,
    top: int = 20,
    force: bool = False,
    title: str = "Anomaly report",
    seed: int = 0,
    on_rows: Callable[[int], None] | None = None,
) -> None:
    """Write what a model finds in a table into one HTML file.

    The file holds its pictures and loads nothing from elsewhere. Rows are read as a stream:
    all of them are scored and counted, and of a large table some are drawn at random for the
    map and for the shares of the columns. It appears whole under its name, or not at all.

    Parameters
    ----------
    model
        The model.
    frame
        A frame of any flavour, the path of a file (see `open_source`), or a `Source`. If it
        has the column of labels, the report compares with them.
    path
        The file to be.
    top
        How many of the most anomalous rows to list.
    force
        Whether a file that is there may be replaced.
    title
        The heading.
    seed
        Decides which rows are drawn.
    on_rows
        Called with the number of rows that were scored, as it goes.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1; got {top}.")
    check_report(path, force=force)
    source = open_source(frame) if isinstance(frame, str | os.PathLike) else frame
    name = source.name if isinstance(source, Source) else None
    found = survey(model, _batches(source), top=top, seed=seed, on_rows=on_rows)
    quality = sections.quality(found)
    method = METHODS[model.detector.method]
    members = count(len(model.detector.member_seeds_), "member")
    today = datetime.datetime.now(datetime.UTC).date()
    page = template("report.html").render(
        title=title,
        subtitle=f"{name or 'A table in memory'}, scored by a {method} with {members}, {today}",
        version=__version__,
        tiles=key_figures(model, found, quality),
        warnings=cautions(model, found, name),
        top=reasons.top_rows(model, found, top),
        columns=reasons.columns(model, found),
        scores=sections.scores(model, found),
        quality=quality,
        calibration=sections.calibration(model, found),
        map=sections.latent_plane(model, found, top),
        model=model_facts(model),
        reproduce=reproduce(model, name, top),
    )
    write_page(Path(path), page)


def check_report(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise what keeps a report from being written, before any work is done.

    Parameters
    ----------
    path
        The file to be.
    force
        Whether a file that is there may be replaced.
    """
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("jinja2", "report", "Writing a report") from error
    check_report_drawing()
    target = Path(path)
    if target.is_dir():
        raise TableError(f"{target} is a folder. Name a file, such as report.html.")
    if target.exists() and not force:
        raise TableError(
            f"{target} exists. Choose another name, or replace it with force (on the command "
            "line --force)."
        )
    if not target.parent.is_dir():
        raise TableError(f"{target} cannot be written: there is no folder {target.parent}.")


def _batches(frame: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(frame, Source):
        yield from frame.batches(rows=_ROWS)
        return
    table = to_table(frame)
    if not table.num_rows:
        raise TableError("The table has no rows to report on.")
    yield from table.combine_chunks().to_batches(max_chunksize=_ROWS)


def template(name: str, *styles: str) -> Any:
    """Return a template of this package with its style sheets, the common one first."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    def reason(words: str) -> Markup:
        """Set the name of the column apart, which reasons begin with in backquotes."""
        match = _REASON.fullmatch(words)
        if match is None:
            return escape(words)
        return Markup("<code>{}</code> {}").format(*match.groups())

    folder = resources.files("aloof.report") / "templates"

    def read(file: str) -> str:
        return (folder / file).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["reason"] = reason
    # The style sheet and the pictures are ours; everything else is escaped.
    environment.filters["picture"] = Markup
    environment.globals["css"] = Markup("\n".join(map(read, ("report.css", *styles))))
    return environment.get_template(name)


def write_page(target: Path, page: str) -> None:
    """Put a whole page in place, or nothing."""
    write_file(target, page, TableError)
