"""The body of a request as bytes: so many, in so much time, or not at all."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from aloof.serve.limits import Limits, Refused

__all__ = ["Budget", "Gone", "Held", "linger", "read_body", "unpacked"]

_Receive = Callable[[], Awaitable[Mapping[str, Any]]]

_LINGER_BYTES, _LINGER_SECONDS = 2**24, 2.0


class Gone(Exception):
    """The client has closed the connection: nobody waits for an answer."""


class Budget:
    """Memory that all requests share; it is taken as bytes arrive, not as they are promised."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.used = 0

    def take(self, n: int) -> None:
        """Take some bytes; refuse where there are none left."""
        if self.used + n > self._limit:
            raise Refused(
                429,
                "The server is reading as many bytes as it can. Try again later.",
                retry=1,
                close=True,
            )
        self.used += n

    def give(self, n: int) -> None:
        """Give them back."""
        self.used -= n


class Held:
    """Bytes of one request, all of which are given back at the end."""

    __slots__ = ("_budget", "_held")

    def __init__(self, budget: Budget) -> None:
        self._budget, self._held = budget, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Give all of them back."""
        self._budget.give(self._held)
        self._held = 0

    def take(self, n: int) -> None:
        """Take some bytes; see `Budget.take`."""
        self._budget.take(n)
        self._held += n


async def read_body(
    headers: Mapping[bytes, bytes],
    receive: _Receive,
    limits: Limits,
    held: Held,
) -> bytes:
    """Return the body of a request.

    Parameters
    ----------
    headers
        Of the request, in lower case.
    receive
        As ASGI has it.
    limits
        How long and how large it may be.
    held
        Takes the bytes as they arrive.
    """
    promised = headers.get(b"content-length")
    if promised is not None and (not promised.isdigit() or int(promised) > limits.body):
        raise _too_large(limits)
    # Of small requests, uvicorn has all before it calls: they need no timer.
    if getattr(getattr(receive, "__self__", None), "more_body", True) is False:
        return await _gather(receive, limits, held)
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _gather(receive, limits, held)
    except TimeoutError:
        raise Refused(
            408,
            f"The request did not arrive within {limits.body_seconds:g} seconds.",
            close=True,
        ) from None


async def _gather(receive: _Receive, limits: Limits, held: Held) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limits.body:
            raise _too_large(limits)
        held.take(len(chunk))
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limits: Limits) -> Refused:
    return Refused(
        413,
        f"A request may have at most {limits.body:,} bytes. Send fewer rows at once.",
        close=True,
    )


async def linger(receive: _Receive) -> None:
    """Read on for a moment after a refusal: a client that is still sending can then see why."""
    seen = 0
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while seen < _LINGER_BYTES:
                message = await receive()
                seen += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def unpacked(content: bytes, coding: str, limits: Limits) -> bytes:
    """Return content without the compression that a Content-Encoding header names."""
    if coding in ("", "identity"):
        return content
    if coding not in ("gzip", "x-gzip"):
        raise Refused(415, "A body may be compressed by gzip, or not at all.")
    pieces: list[bytes] = []
    left, rest = limits.unpacked, content
    while rest:  # a gzip file may have several parts
        packed = zlib.decompressobj(31)
        try:
            pieces.append(packed.decompress(rest, left + 1))
        except zlib.error as error:
            raise Refused(400, "The body is not compressed by gzip.") from error
        left -= len(pieces[-1])
        if left < 0:
            raise Refused(
                413, f"A body may have at most {limits.unpacked:,} bytes decompressed."
            )
        if not packed.eof:
            raise Refused(400, "The compressed body is cut off.")
        rest = packed.unused_data
    return b"".join(pieces)
