"""Connections: closed in time, and never more than there is room for.

uvicorn waits for ever for the head of a request, of any size, from any number of clients.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from aloof.exceptions import MissingExtraError
from aloof.serve.bodies import Gone
from aloof.serve.limits import Limits
from aloof.serve.shortcut import Shortcut

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingExtraError("httptools", "serve", "The server") from error

__all__ = ["protocol"]

_LONGEST_HEAD = 64 * 1024


def protocol(limits: Limits, shortcut: Shortcut) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with these limits, and a shortcut for requests for scores."""

    class Patient(HttpToolsProtocol):
        _is_reading = _is_refused = False
        _begun: tuple[Any, Any] | None = None  # a request that may take the shortcut
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
            if (job := getattr(self.cycle, "job", None)) is not None:
                job.end(Gone())

        def data_received(self, data: bytes) -> None:
            self._is_reading, self._is_refused = True, False
            super().data_received(data)
            self._is_reading = False
            if self._begun is not None:
                (cycle, app), self._begun = self._begun, None
                self._disarm()
                if cycle.more_body or not shortcut.takes(cycle):
                    super()._start_asgi_task(cycle, app)
                return
            if self._is_refused:
                self._disarm()
                return
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

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            if not self._is_reading:  # it came behind another one
                super()._start_asgi_task(cycle, app)
            elif shortcut.turns_away(cycle):
                self._is_refused = True
            else:  # what follows may be all of it
                self._begun = (cycle, app)

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
