"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

__all__ = ["in_options"]

_VALUE = r"(?:\{[^{}]*\}|'[^']*'|\"[^\"]*\"|[\w.]+)"
_BOTH = re.compile(
    rf"\b\w+={_VALUE}(?: \((?P<brackets>--[^()]+)\)|, on the command line (?P<behind>--\S+))"
)


def in_options(message: str) -> str:
    """Return a message that names the option where it names a parameter of Python as well.

    Messages of the library name both, the option behind the parameter.

    Examples
    --------
    >>> in_options("Replace it with force=True (--force), or not.")
    'Replace it with --force, or not.'
    >>> in_options("Keep it with kinds={'code': 'category'} (--kind code=category).")
    'Keep it with --kind code=category.'
    >>> in_options("Say label='fraud', on the command line --label fraud.")
    'Say --label fraud.'
    """
    return _BOTH.sub(lambda found: found["brackets"] or found["behind"], message)
