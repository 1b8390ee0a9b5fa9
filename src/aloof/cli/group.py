"""What all commands have in common: errors in one line, warnings in one line each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from aloof.exceptions import (
    AloofError,
    CalibrationWarning,
    ImageWarning,
    LabelWarning,
    TableWarning,
)

__all__ = ["Commands", "fail", "warner"]

_SHOWN = (CalibrationWarning, ImageWarning, LabelWarning, TableWarning)


class Commands(TyperGroup):
    """Commands that end with a reason in one line, and what to do, on standard error.

    The exit code is 0 when all went well, 1 after an error nobody thought of, 2 after bad usage
    or bad input, 130 after an interruption. With ``--debug``, anywhere on the line, the
    traceback is shown.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take ``--debug`` from wherever it stands."""
        before = args.index("--") if "--" in args else len(args)
        ctx.meta["debug"] = "--debug" in args[:before]
        args = [*(a for a in args[:before] if a != "--debug"), *args[before:]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; say in one line what was wrong."""
        try:
            with _warnings_in_one_line():
                return super().invoke(ctx)
        except AloofError as error:
            if ctx.meta["debug"]:
                raise
            fail(error)
        except KeyboardInterrupt:
            typer.echo("aloof: interrupted.", err=True)
            raise typer.Exit(130) from None


def fail(reason: object) -> NoReturn:
    """End the command because of bad input."""
    typer.echo(f"aloof: {' '.join(str(reason).split())}", err=True)
    raise typer.Exit(2)


def warner() -> Callable[[str], None]:
    """Return a function that warns of a table, once of each thing: for tables in batches."""
    said: set[str] = set()

    def warn(words: str) -> None:
        about = words.partition(":")[0]  # a column; numbers and examples follow
        if about not in said:
            said.add(about)
            warnings.warn(words, TableWarning, stacklevel=3)

    return warn


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show the warnings that are meant for users as lines, each once."""
    said: set[str] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning
        for category in _SHOWN:
            warnings.simplefilter("always", category)

        def show_line(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if not issubclass(category, _SHOWN):
                show(message, category, *rest, **more)
            elif str(message) not in said:
                said.add(str(message))
                typer.echo(f"warning: {message}", err=True)

        warnings.showwarning = show_line
        yield
