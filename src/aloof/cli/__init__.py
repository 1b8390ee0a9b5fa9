"""The command line: one file for each sub-command."""

from aloof.cli.main import command, main

__all__ = ["command", "main"]
