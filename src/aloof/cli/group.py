"""What all commands have in common: errors in one line, warnings in one line each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from aloof.exceptions import AloofError, AloofWarning, ImageWarning, once_of_each

__all__ = ["Commands", "fail", "tell_skipped"]

_TOLD = 5  # skipped files that are named


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


def tell_skipped(skipped: Sequence[tuple[str, str]]) -> None:
    """Name the first files that were left out, and how many more there are."""
    for name, reason in skipped[:_TOLD]:
        warnings.warn(f"skipped: {name} {reason}", ImageWarning, stacklevel=2)
    if len(skipped) > _TOLD:
        words = f"skipped: {len(skipped) - _TOLD:,} more files; --json names them all"
        warnings.warn(words, ImageWarning, stacklevel=2)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show the warnings that are meant for users as lines, each once."""

    def line(warning: AloofWarning) -> None:
        typer.echo(f"warning: {warning}", err=True)

    with warnings.catch_warnings():
        show, say = warnings.showwarning, once_of_each(line)
        warnings.simplefilter("always", AloofWarning)

        def show_line(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if isinstance(message, AloofWarning):
                say(message)
            else:
                show(message, category, *rest, **more)

        warnings.showwarning = show_line
        yield
