"""Who may see the page: by a token in the address, as a user in a file, or through a proxy."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from aloof.exceptions import AnswerError
from aloof.web.tokens import digest_of, owner_of, read_tokens

__all__ = ["Access", "read_users"]


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
        known = dict(self.users)
        if self.token is not None:
            known[digest_of(self.token)] = ""
        return owner_of(given, known)

    def proof(self, given: str) -> str:
        """Return what a page must send along to show that it was loaded from here."""
        return hmac.new(self._secret, given.encode(), hashlib.sha256).hexdigest()

    def proves(self, given: str, proof: str | None) -> bool:
        """Say whether a request comes from the page itself."""
        return proof is not None and hmac.compare_digest(
            self.proof(given).encode(), proof.encode()
        )


def read_users(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a file of users: in each line a name, white space, and a token of their own.

    Returns
    -------
    Names by the digest of their token; the tokens themselves are not kept.
    """
    return read_tokens(path, AnswerError)
