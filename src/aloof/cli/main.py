"""The ``aloof`` command."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> None:
    """Run the command line; where its packages are missing, say how to get them."""
    try:
        from aloof.cli.app import app
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("rich", "typer"):
            raise
        sys.exit(
            f"The aloof command needs {package}, which is not installed. "
            "Install it with: pip install 'aloof[cli]'"
        )
    code: object = 0
    try:
        app()
    except SystemExit as error:
        code = error.code
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        print(
            f"aloof: {type(error).__name__}: {' '.join(str(error).split())}. This should not "
            "happen. Add --debug to see where.",
            file=sys.stderr,
        )
        code = 1
    _leave(code if isinstance(code, int) else int(code is not None))


def _leave(code: int) -> NoReturn:
    """End the process without waiting for threads.

    Arrow may still be reading ahead in one; where it asks a Python that is ending for a file,
    the whole process aborts.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # whoever read it is gone
            pass
    os._exit(code)
