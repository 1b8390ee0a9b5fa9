"""Small requests that come whole are answered without ASGI, and nobody can tell."""

from __future__ import annotations

import gc
import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from serve_rows import Held, in_types

from aloof.serve.app import Server
from aloof.serve.garbage import set_aside, setting_aside
from aloof.serve.limits import Limits
from aloof.serve.shortcut import Shortcut


def post(body: bytes, *headers: str, path: str = "/score", version: str = "1.1") -> bytes:
    lines = [f"POST {path} HTTP/{version}", "Host: localhost", f"Content-Length: {len(body)}"]
    lines += ["Content-Type: application/json", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def connect(client: Any) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", client.port), timeout=30)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def answers(connection: socket.socket, n: int) -> list[tuple[int, dict[str, str], Any]]:
    """Return status, headers and content of the next answers."""
    read, found = b"", []
    while len(found) < n:
        part = connection.recv(65536)
        if not part:
            break
        read += part
        while match := re.match(rb"HTTP/1.1 (\d+) [^\r]*\r\n(.*?)\r\n\r\n", read, re.DOTALL):
            pairs = (line.split(": ", 1) for line in match[2].decode().split("\r\n"))
            headers = {name.lower(): value for name, value in pairs}
            end = match.end() + int(headers["content-length"])
            if len(read) < end:
                break
            found.append((int(match[1]), headers, json.loads(read[match.end() : end])))
            read = read[end:]
    return found


@pytest.fixture
def long_way(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests for scores that went by ASGI."""
    seen: list[str] = []
    usual = Server._scored

    async def watched(self: Server, way: Any, *rest: Any) -> Any:
        seen.append(way.route)
        return await usual(self, way, *rest)

    monkeypatch.setattr(Server, "_scored", watched)
    return seen


def test_both_ways_give_the_same_answers(
    made: Path, new: pa.Table, serving: Callable[..., Any], long_way: list[str]
) -> None:
    record = in_types(new)[0]
    good = json.dumps([record]).encode()
    cases = [
        (good, "/score"),
        (good, "/score?reasons=2"),
        (good, "/models/model/score"),
        (good, "/models/none/score"),
        (good, "/score?nonsense=1"),
        (b"no JSON", "/score"),
        (b"[]", "/score"),
        (json.dumps([{"amount": 1}]).encode(), "/score"),
    ]
    with serving(made / "model") as client, connect(client) as own:
        for body, path in cases:
            request = post(body, path=path)
            long_way.clear()
            own.sendall(request)
            ((status, headers, short),) = answers(own, 1)
            assert not long_way
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Shortcut, "takes", lambda self, cycle: False)
                own.sendall(request)
                ((again, other, long),) = answers(own, 1)
            assert long_way
            assert (status, headers, short) == (again, other, long)
        assert client.metric("aloof_errors_total") == 0
        assert client.metric("aloof_body_bytes") == 0
        assert client.server.unanswered == 0


def test_what_is_not_as_usual_goes_the_long_way(
    made: Path, new: pa.Table, serving: Callable[..., Any], long_way: list[str]
) -> None:
    body = json.dumps([in_types(new)[0]]).encode()
    with serving(made / "model") as client, connect(client) as own:
        own.sendall(post(body, "Expect: 100-continue"))
        # The answer may come in the same packet: read no byte of it here.
        went_on = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert own.recv(len(went_on), socket.MSG_WAITALL) == went_on
        assert answers(own, 1)[0][0] == 200
        assert len(long_way) == 1
        own.sendall(post(body * 2000))
        assert answers(own, 1)[0][0] == 400
        assert len(long_way) == 2
        own.sendall(post(body, version="1.0"))
        ((status, headers, _),) = answers(own, 1)
        assert (status, headers["connection"]) == (200, "close")
        assert own.recv(10) == b""


def test_requests_behind_one_another_are_answered_in_order(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    records = in_types(new)[:20]
    with serving(made / "model", limits=Limits(requests=4)) as client, connect(client) as own:
        expected = client.score(records)[1]["results"]
        own.sendall(b"".join(post(json.dumps([record]).encode()) for record in records))
        found = answers(own, 20)
        assert [said["results"][0] for _, _, said in found] == expected


def test_a_full_server_refuses_from_the_head_and_goes_on(
    made: Path, new: pa.Table, serving: Callable[..., Any], long_way: list[str]
) -> None:
    request = post(json.dumps([in_types(new)[0]]).encode())
    with serving(made / "model", limits=Limits(requests=1)) as client:
        held, first, second = Held(client), connect(client), connect(client)
        first.sendall(request)
        assert held.began.wait(30)
        waits = set()
        second.sendall(request * 1500)  # behind one another, too
        for status, headers, said in answers(second, 1500):
            assert (status, said["error"][:17]) == (429, "Too many requests")
            assert headers["cache-control"] == "no-store"
            waits.add(headers["retry-after"])
        assert len(waits) > 1
        head = request.split(b"\r\n\r\n")[0] + b"\r\n\r\n"
        second.sendall(head)
        assert answers(second, 1)[0][0] == 429, "before there is a body"
        second.sendall(request[len(head) :])
        held.let_go()
        assert answers(first, 1)[0][0] == 200
        second.sendall(request)
        assert answers(second, 1)[0][0] == 200
        assert not long_way
        first.close()
        second.close()


def test_who_goes_away_leaves_its_place(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    request = post(json.dumps([in_types(new)[0]]).encode())
    with serving(made / "model") as client:
        held = Held(client)
        for _ in range(3):
            with connect(client) as own:
                own.sendall(request)
                assert held.began.wait(30)
                while not client.server.unanswered:
                    time.sleep(0.01)
        until = time.monotonic() + 20
        while client.server.unanswered:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert client.server.budget.used == 0
        held.let_go()
        assert client.score([in_types(new)[0]])[0] == 200
        gone = client.metric('aloof_requests_total{route="/score",status="499"}')
        assert gone == 3
        assert client.metric("aloof_rows_total") <= 2, "nobody waits for the others"


def test_what_was_replaced_is_let_go_of() -> None:
    class Node:
        alive = 0

        def __init__(self) -> None:
            self.own = self
            Node.alive += 1

        def __del__(self) -> None:
            Node.alive -= 1

    before = gc.get_threshold()
    node = Node()
    with setting_aside():
        assert gc.get_freeze_count() > 0
        del node
        gc.collect()
        assert Node.alive == 1, "it was set aside"
        set_aside()
        assert Node.alive == 0
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before
