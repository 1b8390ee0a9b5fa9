"""The experiments, gathered; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["bench"]


class _Experiments(TyperGroup):
    """Commands whose modules have their names: other commands need not wait for them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, in the order of the paper."""
        return ["odds", "figure1", "images", "planning", "text"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None: there is none of this name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        one = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        one.command(cmd_name)(getattr(import_module(f"aloof.cli.bench.{cmd_name}"), cmd_name))
        return typer.main.get_command(one)


bench = typer.Typer(
    cls=_Experiments,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Run the paper's experiments and compare with other systems on the same splits.",
)


@bench.callback()
def _gathered() -> None:
    pass
