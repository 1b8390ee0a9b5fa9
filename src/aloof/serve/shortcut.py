"""Small requests for scores, from the bytes of a connection to those of the answer.

Of a single row, most of the time would go into tasks, coroutines and messages of ASGI. A
request that is small and has arrived whole needs none of them: it is read at once, and what
tells the answer writes it. Whatever is not as usual goes the long way.
"""

from __future__ import annotations

import json
import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aloof.exceptions import AloofError
from aloof.serve.answers import JSON
from aloof.serve.asking import content_of
from aloof.serve.bodies import Gone, Held
from aloof.serve.limits import Refused, failure, refused_by
from aloof.serve.ways import (
    INLINE,
    SAFE_HEADERS,
    TURNED_AWAY,
    TURNED_AWAY_HEADERS,
    Way,
    find_way,
)

if TYPE_CHECKING:
    from aloof.serve.app import Server

__all__ = ["Shortcut"]


def _head(status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    return first + b"".join(b"%s: %s\r\n" % header for header in headers)


_OK = _head(200, SAFE_HEADERS)
_FULL = _head(429, TURNED_AWAY_HEADERS)


class Shortcut:
    """Answers requests without ASGI, where it can.

    Parameters
    ----------
    server
        Whose requests they are.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def turns_away(self, cycle: Any) -> bool:
        """Refuse a request for scores where there is no room, whether or not it is complete.

        Parameters
        ----------
        cycle
            The request, as uvicorn has it.

        Returns
        -------
        Whether it was refused.
        """
        server = self._server
        if server.is_full:
            server.queue.hand_out()  # there may be room by now
        if not server.is_full or cycle.flow.write_paused:
            return False
        way = find_way(cycle.scope["path"])
        if way is None or cycle.scope["method"] == "HEAD":
            return False
        retry = b"retry-after: %s\r\n" % server.retry_after()
        _write(cycle, _FULL + retry, TURNED_AWAY)
        server.metrics.answered(way.route, 429, 0.0)
        return True

    def takes(self, cycle: Any) -> bool:
        """Begin to answer a request that has arrived whole.

        Returns
        -------
        Whether it will be answered; otherwise nothing has happened.
        """
        server, scope, size = self._server, cycle.scope, len(cycle.body)
        way = find_way(scope["path"])
        if way is None or way.infers or cycle.flow.write_paused:
            return False
        if size > min(INLINE, server.limits.body):
            return False
        headers = dict(scope["headers"])
        if b"content-encoding" in headers or cycle.waiting_for_100_continue:
            return False
        content = content_of(bytes(cycle.body), headers.get(b"content-type", b""))
        if content.kind != JSON:
            return False
        started = time.monotonic()
        held = Held(server.budget)
        try:
            server.access.check(scope["path"], headers)
            admitted = server.admit(way, scope, headers)
            held.take(size)
            try:
                rows = admitted.served.read(content, admitted.asked)
            except AloofError as error:
                raise refused_by(error) from error
            cycle.job = server.queue.submit(
                admitted.served,
                rows,
                partial(server.finish, admitted),
                admitted.deadline,
                partial(self._told, way, cycle, held, started, admitted.form),
            )
        except Refused as refused:
            held.give_back()
            if refused.close:
                return False
            self._refuse(way, cycle, refused, started)
        except Exception:  # which the long way will run into, and tell
            held.give_back()
            return False
        else:
            server.unanswered += 1
        return True

    def _told(
        self, way: Way, cycle: Any, held: Held, started: float, form: bytes, answer: Any
    ) -> None:
        """Write an answer, or why there is none."""
        server = self._server
        server.unanswered -= 1
        held.give_back()
        if isinstance(answer, bytes):
            head = b"%scontent-type: %s\r\ncontent-length: %d\r\n" % (_OK, form, len(answer))
            _write(cycle, head, answer)
            server.metrics.answered(way.route, 200, time.monotonic() - started)
        elif isinstance(answer, Gone):
            server.metrics.answered(way.route, 499, time.monotonic() - started)
        else:
            refused = answer if isinstance(answer, Refused) else failure()
            self._refuse(way, cycle, refused, started)

    def _refuse(self, way: Way, cycle: Any, refused: Refused, started: float) -> None:
        body = json.dumps({"error": refused.words}).encode()
        cycle.keep_alive = cycle.keep_alive and not refused.close
        _write(cycle, _head(refused.status, [*refused.head(len(body)), *SAFE_HEADERS]), body)
        self._server.metrics.answered(way.route, refused.status, time.monotonic() - started)


def _write(cycle: Any, head: bytes, body: bytes) -> None:
    """Write an answer, and leave the connection as uvicorn would."""
    if cycle.disconnected:
        return
    last = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
    cycle.transport.write(b"".join((head, last, body)))
    cycle.response_started = cycle.response_complete = True
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
