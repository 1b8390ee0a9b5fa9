"""Tokens that open something: kept as digests, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from aloof.exceptions import AloofError

__all__ = ["digest_of", "owner_of", "read_tokens"]

_FEWEST_CHARACTERS = 16


def digest_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def owner_of(given: str, known: Mapping[str, str]) -> str | None:
    """Return whose token it is; None: nobody's. All are compared, each in constant time.

    Parameters
    ----------
    given
        The token.
    known
        Names by the digest of their token.

    Examples
    --------
    >>> owner_of("open sesame", {digest_of("open sesame"): "ali"})
    'ali'
    """
    digest, found = digest_of(given), None
    for other, name in known.items():
        if hmac.compare_digest(digest, other):
            found = name
    return found


def read_tokens(path: str | os.PathLike[str], error: type[AloofError]) -> dict[str, str]:
    """Read a file of tokens: in each line a name, white space, and a token of their own.

    Parameters
    ----------
    path
        The file. Empty lines and those that begin with # are skipped.
    error
        What to raise where it cannot be used.

    Returns
    -------
    Names by the digest of their token; the tokens themselves are not kept.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"{os.fspath(path)} cannot be read: {problem}.") from problem
    known: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, token = line.strip().rpartition(" ")
        name, token = name.strip(), token.strip()
        if not name or len(token) < _FEWEST_CHARACTERS:
            raise error(
                f"{os.fspath(path)}, line {number}: write a name, a space, and a token of at "
                f"least {_FEWEST_CHARACTERS} characters."
            )
        if digest_of(token) in known or name in known.values():
            raise error(f"{os.fspath(path)}, line {number}: it is there twice.")
        known[digest_of(token)] = name
    if not known:
        raise error(f"{os.fspath(path)} names nobody. Write a name, a space, and a token.")
    return known
