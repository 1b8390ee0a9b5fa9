"""Who may see the page: by a token in the address, as a user in a file, or through a proxy."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aloof.exceptions import AnswerError

__all__ = ["Access", "read_users"]

_FEWEST_CHARACTERS = 16


@dataclass(frozen=True)
class Access:
    """Decides who somebody is; nothing of it is ever logged.

    Attributes
    ----------
    token
        Opens the page to whoever has it; they say who they are. None: nobody gets in by it.
    users
        Names by the digest of their own token.
    header
        Of a reverse proxy that has asked for a password: it names the user. Only to be set
        where nobody but the proxy can reach the page.
    """

    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    header: str | None = None
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def opens(self, given: str | None) -> bool:
        """Say whether a token is one of those that open the page."""
        return given is not None and self._owner(given) is not None

    def name_of(self, given: str | None) -> str:
        """Return whose token it is; nothing: everybody's."""
        return "" if given is None else self._owner(given) or ""

    def _owner(self, given: str) -> str | None:
        """Compare with all tokens, each in constant time."""
        digest, found = _digest(given), None
        known = dict(self.users)
        if self.token is not None:
            known[_digest(self.token)] = ""
        for other, name in known.items():
            if hmac.compare_digest(digest, other):
                found = name
        return found

    def proof(self, given: str) -> str:
        """Return what a page must send along to show that it was loaded from here."""
        return hmac.new(self._secret, given.encode(), hashlib.sha256).hexdigest()

    def proves(self, given: str, proof: str | None) -> bool:
        """Say whether a request comes from the page itself."""
        return proof is not None and hmac.compare_digest(
            self.proof(given).encode(), proof.encode()
        )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_users(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a file of users: in each line a name, white space, and a token of their own.

    Returns
    -------
    Names by the digest of their token; the tokens themselves are not kept.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise AnswerError(f"{os.fspath(path)} cannot be read: {error}.") from error
    users: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, token = line.strip().rpartition(" ")
        name, token = name.strip(), token.strip()
        if not name or len(token) < _FEWEST_CHARACTERS:
            raise AnswerError(
                f"{os.fspath(path)}, line {number}: write a name, a space, and a token of at "
                f"least {_FEWEST_CHARACTERS} characters."
            )
        if _digest(token) in users or name in users.values():
            raise AnswerError(f"{os.fspath(path)}, line {number}: it is there twice.")
        users[_digest(token)] = name
    if not users:
        raise AnswerError(f"{os.fspath(path)} names no users.")
    return users
