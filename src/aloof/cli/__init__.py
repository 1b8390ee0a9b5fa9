"""The command line: one file for each sub-command."""

from aloof.cli.main import main

__all__ = ["main"]
