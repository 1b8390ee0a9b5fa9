"""The ``aloof`` command."""

from __future__ import annotations

import sys

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
    try:
        app()
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        print(
            f"aloof: {type(error).__name__}: {' '.join(str(error).split())}. This should not "
            "happen. Add --debug to see where.",
            file=sys.stderr,
        )
        sys.exit(1)
