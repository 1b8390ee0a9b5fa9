"""Who may ask: whoever has a token, or this machine alone where there are none."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import lru_cache

from aloof.exceptions import ServingError
from aloof.serve.limits import Refused
from aloof.web.hosts import ANYWHERE, host_of, is_this_machine
from aloof.web.tokens import owner_of, read_tokens

__all__ = ["Access"]

_OPEN = frozenset({"/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"})


class Access:
    """Decides who gets in. Nothing of a token is kept but its digest.

    Parameters
    ----------
    host
        Where the server listens.
    tokens
        A file with a name and a token in each line; None: whoever reaches it gets in, and
        only this machine may reach it.
    names
        Names that the server is asked for under, besides those of this machine.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        tokens: str | os.PathLike[str] | None = None,
        names: Collection[str] = (),
    ) -> None:
        if tokens is None and not is_this_machine(host):
            raise ServingError(
                f"Others can reach {host}, so the server needs tokens: write a file with a "
                "name, a space and a token in each line, and name it with tokens=... "
                "(--tokens FILE)."
            )
        self._path = tokens
        self._names = {name.lower() for name in names} | {host.lower()} - {*ANYWHERE}
        self._known: Mapping[str, str] = {}
        self._is_known = lru_cache(64)(self._check_host)
        self.read_again()

    def _check_host(self, header: bytes) -> bool:
        host = host_of(header.decode("latin-1"))
        return host in self._names or is_this_machine(host)

    @property
    def has_tokens(self) -> bool:
        """Whether a token is needed."""
        return self._path is not None

    def read_again(self) -> None:
        """Read the file of tokens, which may have changed."""
        if self._path is not None:
            self._known = read_tokens(self._path, ServingError)

    def who(self, headers: Mapping[bytes, bytes]) -> str | None:
        """Return whose token a request has; None: nobody's."""
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        return owner_of(token.strip(), self._known) if kind.lower() == "bearer" else None

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request of somebody who may not ask."""
        if path in _OPEN:
            return
        if self.has_tokens:
            if self.who(headers) is None:
                raise Refused(
                    401,
                    "Send a token: Authorization: Bearer TOKEN.",
                    headers={"www-authenticate": "Bearer"},
                )
            return
        # Without tokens, pages in a browser on this machine are the ones to keep out.
        if not self._is_known(headers.get(b"host", b"")):
            raise Refused(421, "The server is not asked for under this name.")
        site = headers.get(b"sec-fetch-site", b"none")
        if site not in (b"none", b"same-origin") or b"origin" in headers:
            raise Refused(403, "The request comes from a page of somebody else.")
