"""How much a request may ask for, and how a request is refused that asks for more."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from aloof.exceptions import AloofError

__all__ = ["Limits", "Refused", "failure", "refused_by"]

_MIB = 2**20
# An option of a method and of a command, as messages have them: "header=False (--no-header)".
_OPTION = re.compile(r"\b(\w+)='?(\w+)'? \(--[\w-]+(?: \w+)?\)")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server takes. Everything that a client can make grow has its limit here.

    Attributes
    ----------
    body
        Bytes of a request, as they are sent.
    unpacked
        Bytes of it once it is decompressed.
    memory
        Bytes of all requests that are being read or decoded.
    rows, columns
        Of one request; of images, how many.
    text
        Characters of one value.
    pixels
        Of one image.
    requests
        Requests that have arrived and are not answered yet. More are refused at once, before
        they are read: reading many small ones takes longer than scoring them.
    queue
        Rows that wait for their scores, of all requests. More are refused at once.
    batch
        Rows that are scored together, of however many requests.
    header_seconds, body_seconds
        How long a client may take to send the head of a request, and then its body.
    idle_seconds
        How long a connection without a request is kept.
    send_seconds
        How long a client may take to read its answer.
    request_seconds
        How long a request may take from its arrival, unless it says less itself.
    connections
        How many may be open; above, new ones are closed.
    """

    body: int = 16 * _MIB
    unpacked: int = 64 * _MIB
    memory: int = 256 * _MIB
    rows: int = 10_000
    columns: int = 10_000
    text: int = 100_000
    pixels: int = 25_000_000
    requests: int = 256
    queue: int = 20_000
    batch: int = 2048
    header_seconds: float = 10.0
    body_seconds: float = 20.0
    idle_seconds: float = 30.0
    send_seconds: float = 20.0
    request_seconds: float = 30.0
    connections: int = 4000

    def check_rows(self, n: int) -> None:
        """Refuse a request with too many rows, or with none."""
        if not n:
            raise Refused(422, "There are no rows to score.")
        if n > self.rows:
            raise Refused(
                413,
                f"At most {self.rows:,} rows can be scored at once. Send fewer, or score "
                "large tables with aloof score.",
            )

    def check_columns(self, n: int) -> None:
        """Refuse a table with too many columns."""
        if n > self.columns:
            raise Refused(413, f"A table may have at most {self.columns:,} columns.")

    def check_text(self, longest: int) -> None:
        """Refuse text that is too long."""
        if longest > self.text:
            raise Refused(413, f"A value may have at most {self.text:,} characters.")


class Refused(Exception):
    """A request that is answered with a reason.

    Parameters
    ----------
    status
        Of the answer.
    words
        The reason, and what to do.
    retry
        In how many seconds it is worth another try; None: as it is, never. What the client is
        told is up to twice that, at random, so that clients do not all come back at once.
    close
        Whether the connection is of no use any more.
    headers
        More of them.
    """

    def __init__(
        self,
        status: int,
        words: str,
        *,
        retry: float | None = None,
        close: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(words)
        self.status, self.words, self.close = status, words, close
        self.headers = headers or {}
        self.retry = None if retry is None else 1 + secrets.randbelow(2 + int(2 * retry))

    def head(self, length: int) -> list[tuple[bytes, bytes]]:
        """Return the headers of the answer, whose body has so many bytes."""
        found = [(b"content-type", b"application/json"), (b"content-length", b"%d" % length)]
        if self.retry is not None:
            found.append((b"retry-after", b"%d" % self.retry))
        return found + [(k.encode(), v.encode()) for k, v in self.headers.items()]


def refused_by(error: AloofError) -> Refused:
    """Return how a request is refused that a model cannot score."""
    words = " ".join(str(error).split())
    return Refused(422, _OPTION.sub(lambda m: f"?{m[1]}={m[2].lower()}", words))


def failure() -> Refused:
    """Return how a request is answered that led to an error nobody expected."""
    return Refused(500, "Something went wrong. The server's log says where.", close=True)
