"""What all commands have in common: imported when asked for, errors and warnings in a line."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from aloof.cli.wording import in_options
from aloof.exceptions import AloofError, AloofWarning, ImageWarning, once_of_each
from aloof.suggestion import did_you_mean

__all__ = ["Commands", "Gathered", "fail", "tell_skipped"]

_TOLD = 5  # skipped files that are named
# Click's, or the copy of it that newer versions of typer bring.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class Gathered(TyperGroup):
    """Commands that are imported when they run: those who ask for help need not wait.

    A module holds a function of the command's name. Help reads the docstring in its source.
    """

    modules: ClassVar[Mapping[str, str]] = {}
    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, in the order of `modules`, then those of groups."""
        return [*self.modules, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None: there is none of this name."""
        module = self.modules.get(cmd_name)
        if module is None:
            return super().get_command(ctx, cmd_name)
        if self._listing:
            return TyperCommand(cmd_name, help=_docstring(module, cmd_name))
        one = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        one.command(cmd_name)(getattr(import_module(module), cmd_name))
        return typer.main.get_command(one)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Suggest a command where none has this name."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"There is no command {args[0]!r}{did_you_mean(args[0], known)}")
        return super().resolve_command(ctx, args)


def _docstring(module: str, name: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    found = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    return ast.get_docstring(next(found)) or ""


class Commands(Gathered):
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
        with _usage_in_one_line():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; say in one line what was wrong."""
        try:
            with _warnings_in_one_line(), _usage_in_one_line():
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
    typer.echo(f"aloof: {in_options(' '.join(str(reason).split()))}", err=True)
    raise typer.Exit(2)


def tell_skipped(skipped: Sequence[tuple[str, str]]) -> None:
    """Name the first files that were left out, and how many more there are."""
    for name, reason in skipped[:_TOLD]:
        warnings.warn(f"skipped: {name} {reason}", ImageWarning, stacklevel=2)
    if len(skipped) > _TOLD:
        words = f"skipped: {len(skipped) - _TOLD:,} more files; --json lists them all"
        warnings.warn(words, ImageWarning, stacklevel=2)


@contextmanager
def _usage_in_one_line() -> Iterator[None]:
    """Say what is wrong with a command line, and where to read more."""
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # it shows the help
            raise
        said = str(error.format_message())  # type: ignore[attr-defined]
        end = "" if said.endswith((".", "?")) else "."
        context = getattr(error, "ctx", None)
        more = "" if context is None else f" See: {context.command_path} --help"
        fail(f"{said}{end}{more}")


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show the warnings that are meant for users as lines, each once."""

    def line(warning: AloofWarning) -> None:
        typer.echo(f"warning: {in_options(str(warning))}", err=True)

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
