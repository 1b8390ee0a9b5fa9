"""A report: one HTML file that opens offline, in any browser. What all of them share."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from aloof._version import __version__
from aloof.exceptions import MissingExtraError, TableError
from aloof.io import check_file, write_file
from aloof.models import Model, how_to_make
from aloof.models.page_facts import cautions, key_figures
from aloof.persistence import versions
from aloof.report import sections
from aloof.report.findings import Findings
from aloof.report.inline import check_report_drawing

__all__ = ["check_report", "write_page"]

_REASON = re.compile(r"`(.+?)`(:? .*)", re.DOTALL)


def check_report(path: str | os.PathLike[str], *, force: bool = False, top: int = 1) -> None:
    """Raise what keeps a report from being written, before any work is done.

    Parameters
    ----------
    path
        The file to be.
    force
        Whether to replace an existing file.
    top
        How many to list.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1; got {top}.")
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("jinja2", "report", "Writing a report") from error
    check_report_drawing()
    check_file(Path(path), TableError, force=force, example="report.html")


def write_page(
    path: str | os.PathLike[str],
    model: Model,
    found: Findings,
    *,
    title: str,
    call: Mapping[str, Any],
    template: str = "page.html",
    styles: Sequence[str] = (),
    tiles: Sequence[dict[str, str]] = (),
    notes: Sequence[tuple[str, str]] = (),
    libraries: Mapping[str, str] | None = None,
    **parts: Any,
) -> None:
    """Write a page about what a model found; it appears whole under its name, or not at all.

    Parameters
    ----------
    path
        The file to be; see `check_report`.
    model
        What found it.
    found
        What was found.
    title
        The heading.
    call
        How the report is made again, from `aloof.models.made_by`.
    template, styles
        Files of this package that show more than all pages do.
    tiles, notes
        Key figures and cautions besides those of all pages.
    libraries
        Versions besides those that all models depend on.
    **parts
        What the template shows besides.
    """
    source: str | None = call["data"]
    named = {"-": "Standard input", None: "Data in memory"}.get(source, source)
    quality, known = sections.quality(found), versions() | dict(libraries or {})
    today = datetime.datetime.now(datetime.UTC).date()
    page = _template(template, *styles).render(
        title=title,
        subtitle=f"{named}, scored by a {model.title}, {today}",
        version=__version__,
        things=found.things,
        one=found.one,
        tiles=[*key_figures(found, quality), *tiles],
        warnings=[*cautions(model, found, source), *notes],
        scores=sections.scores(found),
        quality=quality,
        calibration=sections.calibration(found),
        facts=model.facts(),
        again="\n".join(how_to_make(model.training, model.threshold, report=call)),
        versions=", ".join(f"{name} {text}" for name, text in known.items()),
        **parts,
    )
    _write(Path(path), page)


def _template(name: str, *styles: str) -> Any:
    """Return a template of this package with its style sheets, the common one first."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    def reason(words: str) -> Markup:
        """Set the name of the column apart, which reasons begin with in backquotes."""
        match = _REASON.fullmatch(words)
        if match is None:
            return escape(words)
        return Markup("<code>{}</code>{}").format(*match.groups())

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


def _write(target: Path, page: str) -> None:
    """Put a whole page in place, or nothing."""
    write_file(target, page, TableError)
