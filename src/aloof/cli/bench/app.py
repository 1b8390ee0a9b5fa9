"""The experiments, gathered; each is imported when it is asked for."""

from __future__ import annotations

import typer

from aloof.cli.group import Gathered

__all__ = ["bench"]


class _Experiments(Gathered):
    modules = {  # noqa: RUF012 - of the whole paper, then in its order
        name: f"aloof.cli.bench.{name}"
        for name in (
            *("status", "next", "merge", "page"),
            *("odds", "figure1", "images", "planning", "text"),
            *("tables", "review", "vision"),
        )
    }


bench = typer.Typer(
    cls=_Experiments,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Rerun the paper's experiments and compare with other systems on the same splits.",
)


@bench.callback()
def _gathered() -> None:
    pass
