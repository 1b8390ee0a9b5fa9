"""The experiments, gathered."""

from __future__ import annotations

import typer

from aloof.cli.bench.figure1 import figure1
from aloof.cli.bench.images import images
from aloof.cli.bench.odds import odds
from aloof.cli.bench.planning import planning
from aloof.cli.bench.text import text

__all__ = ["bench"]

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Run the paper's experiments and compare with other systems on the same splits.",
)
for command in (odds, figure1, images, planning, text):
    bench.command()(command)
