"""Connections that do not get on: closed in time, and never more than there is room for.

uvicorn waits for ever for the head of a request, of any size, from any number of clients.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from aloof.exceptions import MissingExtraError
from aloof.serve.limits import Limits

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingExtraError("httptools", "serve", "The server") from error

__all__ = ["protocol"]

_LONGEST_HEAD = 64 * 1024


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with these limits."""

    class Patient(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _head = 0  # bytes of the head of a request that is not complete

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.abort()
            else:
                self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._disarm()
                return
            self._head += len(data)
            if self._head > _LONGEST_HEAD + limits.body:
                self.transport.abort()
            elif self.cycle is None and self._head > _LONGEST_HEAD:
                self.transport.abort()
            elif self._timer is None:
                self._arm()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.transport.is_closing():  # once the client has read the answer
                self._timer = self.loop.call_later(limits.send_seconds, self.transport.abort)

        def timeout_keep_alive_handler(self) -> None:
            if self.transport.get_write_buffer_size():
                self.transport.abort()  # the client does not read its answer
            else:
                super().timeout_keep_alive_handler()

        def _arm(self) -> None:
            self._timer = self.loop.call_later(limits.header_seconds, self.transport.abort)

        def _disarm(self) -> None:
            self._head = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return cast(type[asyncio.Protocol], Patient)
