"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

__all__ = ["in_options"]

_VALUE = r"(?:\{[^{}]*\}|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|[-\w.]+)"
_BRACKETS = r" \((?P<brackets>--[^()]+(?:\([^()]*\)[^()]*)*)\)"
_BOTH = re.compile(rf"\b\w+={_VALUE}(?:{_BRACKETS}|, on the command line (?P<behind>--\S+))")
_NAME = re.compile(r"\b(\w+) \(--([\w-]+)\)")


def in_options(message: str) -> str:
    """Return a message that names the option where it names a parameter of Python as well.

    Messages of the library name both, the option behind the parameter.

    Examples
    --------
    >>> in_options("Replace it with force=True (--force), or not.")
    'Replace it with --force, or not.'
    >>> in_options("Keep it with kinds={'code': 'category'} (--kind code=category).")
    'Keep it with --kind code=category.'
    >>> in_options("Leave it out: drop=['net (EUR)'] (--drop 'net (EUR)').")
    "Leave it out: --drop 'net (EUR)'."
    >>> in_options("Say label='fraud', on the command line --label fraud.")
    'Say --label fraud.'
    >>> in_options("Leave out day_first (--day-first).")
    'Leave out --day-first.'
    """
    message = _BOTH.sub(lambda found: found["brackets"] or found["behind"], message)
    return _NAME.sub(_option, message)


def _option(found: re.Match[str]) -> str:
    """Return the option alone where the word before it is its name in Python."""
    same = found[1].replace("_", "-") == found[2]
    return f"--{found[2]}" if same else found[0]
