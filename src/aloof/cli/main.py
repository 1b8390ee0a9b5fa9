"""The ``aloof`` command."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from aloof.processors import be_considerate

__all__ = ["command", "main"]


def command() -> NoReturn:
    """Run the command line and end the process without waiting for threads.

    Arrow may still be reading ahead in one; where it asks a Python that is ending for a file,
    the whole process aborts.
    """
    code: object = 0
    try:
        main()
    except SystemExit as error:
        code = error.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # whoever read it is gone
            pass
    os._exit(code if isinstance(code, int) else int(code is not None))


def main() -> None:
    """Run the command line; where its packages are missing, say how to get them."""
    be_considerate()
    try:
        from aloof.cli.app import app

        app()
    except Exception as error:
        package = (getattr(error, "name", None) or "").partition(".")[0]
        if isinstance(error, ImportError) and package in ("rich", "typer"):
            sys.exit(
                f"The aloof command needs {package}, which is not installed. "
                "Install it with: pip install 'aloof[cli]'"
            )
        if "--debug" in sys.argv:
            raise
        print(f"aloof: {_explained(error)}", file=sys.stderr)
        sys.exit(1)


def _explained(error: Exception) -> str:
    """Return what went wrong, and what to do about it."""
    words = " ".join(str(error).split())
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which need not be imported here
        return (
            "The GPU ran out of memory. nvidia-smi shows what else is using it. Fewer or "
            f"smaller networks need less; --device cpu needs no GPU memory. {words}"
        )
    if isinstance(error, MemoryError) or "can't allocate memory" in words:  # also torch's
        return f"There is not enough memory. Add --debug to see what for. {words}".strip()
    return (
        f"{type(error).__name__}: {words}. This is a bug in aloof. "
        "Add --debug to see where it happened."
    )
