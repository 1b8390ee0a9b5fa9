"""What is refused: too much, too slow, malformed, or by somebody who may not ask."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from serve_rows import Held, in_types

from aloof.exceptions import ServingError
from aloof.serve.access import Access
from aloof.serve.arrow import ARROW_STREAM, write_arrow
from aloof.serve.limits import Limits, Refused

JSON = "application/json"


def tiny(**limits: Any) -> Limits:
    return Limits(**{"body": 4000, "unpacked": 20_000, "rows": 20, **limits})


def test_too_much_of_anything(made: Path, new: pa.Table, serving: Callable[..., Any]) -> None:
    record = in_types(new)[0]
    with serving(made / "model", limits=tiny(columns=12, text=50)) as client:
        for body, kind, words in (
            (json.dumps([record] * 21), JSON, "20 rows"),
            (b"x" * 5000, JSON, "4,000 bytes"),
            (json.dumps([record | {f"c{i}": 1 for i in range(20)}]), JSON, "12 columns"),
            (json.dumps([record | {"city": "x" * 51}]), JSON, "50 characters"),
            ("a," * 30 + "\n" + "1," * 30, "text/csv", "12 columns"),
            (write_arrow(pa.table({"city": ["x" * 51]})), ARROW_STREAM, "50 characters"),
            (write_arrow(pa.table({f"c{i}": [1] for i in range(13)})), ARROW_STREAM, "12 col"),
            (write_arrow(pa.table({"city": pa.nulls(10**6)})), ARROW_STREAM, "20 rows"),
        ):
            status, found = client.ask("POST", "/score", body, kind)
            assert status == 413, (words, found)
            assert words in found["error"]
        bomb = gzip.compress(b" " * 10**6)
        assert len(bomb) < 4000
        status, found = client.ask("POST", "/score", bomb, JSON, Content_Encoding="gzip")
        assert (status, found["error"]) == (
            413,
            "A body may have at most 20,000 bytes decompressed.",
        )
        # Nothing of all that is kept.
        assert client.server.budget.used == 0
        assert client.score([record])[0] == 200


def test_a_stream_of_bytes_without_a_length_ends(
    made: Path, serving: Callable[..., Any]
) -> None:
    with (
        serving(made / "model", limits=tiny()) as client,
        socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection,
    ):
        head = b"POST /score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        connection.sendall(head + b"Content-Type: application/json\r\n\r\n")
        for _ in range(10):
            connection.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def compressed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_malformed_bodies(made: Path, new: pa.Table, serving: Callable[..., Any]) -> None:
    arrow = write_arrow(new.slice(0, 5).combine_chunks())
    with serving(made / "model") as client:
        for body, kind, wanted in (
            (b"", JSON, 400),
            (b"{", JSON, 400),
            (b"\xff\xfe", JSON, 400),
            (b"[" * 10**5, JSON, 400),
            (b'{"rows": ' * 5000, JSON, 400),
            (b"[" + b"9" * 5000 + b"]", JSON, 400),
            (b"[]", JSON, 422),
            (b"{}", JSON, 422),
            (b"[1]", JSON, 422),
            (b'{"rows": [{}]}', JSON, 422),
            (b'{"rows": [], "columns": {}}', JSON, 422),
            (b'{"columns": {"city": "Oslo"}}', JSON, 422),
            (b'{"columns": {"city": [1], "code": []}}', JSON, 422),
            (arrow[:100], ARROW_STREAM, 400),
            (arrow[:-200], ARROW_STREAM, 400),
            (b"ARROW1\0\0" + arrow[:50], ARROW_STREAM, 400),
            (write_arrow(pa.table({"city": [[1]]})), ARROW_STREAM, 422),
            (compressed(pa.table({"city": ["x" * 1000]})), ARROW_STREAM, 415),
            (b"\0\1\2", "text/csv", 422),
            (b"", "text/csv", 422),
            (b"<a/>", "application/xml", 415),
            (b"Oslo\nBern\n", "text/plain", 415),
            (b"{}", "", 415),
        ):
            status, found = client.ask("POST", "/score", body, kind)
            assert status == wanted, (body[:40], found)
            assert "Traceback" not in found["error"]
        record = in_types(new)[0]
        for value in ([1], {"a": 1}, "\ud800"):
            status, found = client.score([record | {"city": value}])
            assert status == 422, found
        assert client.ask("POST", "/score", b"x", JSON, Content_Encoding="br")[0] == 415
        assert client.ask("POST", "/score", b"x", JSON, Content_Encoding="gzip")[0] == 400
        assert client.score([record], Accept="image/png")[0] == 406
        assert client.get("/score")[0] == 405
        assert client.last.getheader("Allow") == "POST"
        assert client.get("/nothing")[0] == 404
        assert client.score([record], "/models/modle/score")[0] == 404
        assert client.metric("aloof_errors_total") == 0


def test_arrow_with_any_byte_changed_is_no_danger(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    arrow = write_arrow(new.slice(0, 3).combine_chunks())
    rng = np.random.default_rng(0)
    with serving(made / "model") as client:
        statuses = set()
        for _ in range(300):
            body = bytearray(arrow)
            for place in rng.integers(0, len(body), rng.integers(1, 4)):
                body[place] = rng.integers(256)
            statuses.add(client.ask("POST", "/score", bytes(body), ARROW_STREAM)[0])
        assert statuses <= {200, 400, 413, 415, 422}
        assert {200, 400} <= statuses
        assert client.metric("aloof_errors_total") == 0


def test_a_full_queue_refuses_at_once_and_loses_nothing(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    records = in_types(new)
    limits = Limits(queue=10, rows=10)
    with serving(made / "model", limits=limits) as client:
        held, kind, answers = Held(client), type(client), []

        def ask(n: int) -> None:
            own = kind(client.port, client.server)
            answers.append(own.score(records[:n])[0])
            own.close()

        threads = [threading.Thread(target=ask, args=(2,)) for _ in range(6)]
        threads[0].start()
        assert held.began.wait(30)
        for thread in threads[1:]:
            thread.start()
        while client.server.queue.rows < 10:
            time.sleep(0.01)
        begin = time.monotonic()
        waits = set()
        for _ in range(20):
            status, found = client.score(records[:1])
            assert status == 429, found
            waits.add(int(client.last.getheader("Retry-After")))
        assert time.monotonic() - begin < 5
        assert min(waits) >= 1
        assert len(waits) > 1, "they would all come back at once"
        assert client.metric("aloof_queue_rows") == 10
        held.let_go()
        for thread in threads:
            thread.join()
        assert answers == [200] * 6
        assert client.metric('aloof_refused_total{status="429"}') == 20


def test_too_many_requests_are_refused_before_they_are_read(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    record = in_types(new)[0]
    with serving(made / "model", limits=Limits(requests=2)) as client:
        head = b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
        slow = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(5)]
        for connection in slow:  # they take nobody's place
            connection.sendall(head)
        held, kind, answers = Held(client), type(client), []

        def ask() -> None:
            own = kind(client.port, client.server)
            answers.append(own.score([record])[0])
            own.close()

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        while client.server.unanswered < 2:
            time.sleep(0.01)
        assert client.ask("POST", "/score", b"no JSON", JSON)[0] == 429
        held.let_go()
        for thread in [*threads]:
            thread.join()
        assert answers == [200, 200]
        assert client.score([record])[0] == 200
        for connection in slow:
            connection.close()


def test_deadlines_of_clients(made: Path, new: pa.Table, serving: Callable[..., Any]) -> None:
    record = in_types(new)[0]
    with serving(made / "model") as client:
        assert client.score([record], X_Timeout_Ms="20000")[0] == 200
        assert client.score([record], X_Timeout_Ms="soon")[0] == 422
        held = Held(client)
        begin = time.monotonic()
        status, _ = client.score([record], X_Timeout_Ms="100")
        assert status == 429
        assert 0.1 <= time.monotonic() - begin < 5
        # Who is too late by the time that it is their turn is not scored.
        status, _ = client.score([record], X_Timeout_Ms="50")
        assert status == 429
        before = client.metric("aloof_rows_total")
        held.let_go()
        assert client.score([record])[0] == 200
        assert client.metric("aloof_rows_total") <= before + 2


def test_a_clock_that_jumps_changes_nothing(
    made: Path, new: pa.Table, serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    record, real = in_types(new)[0], time.time
    with serving(made / "model", watch_seconds=0.02) as client:
        for years in (-20, 20):
            monkeypatch.setattr(time, "time", lambda y=years: real() + y * 3e7)
            assert client.score([record], X_Timeout_Ms="5000")[0] == 200
            assert client.get("/readyz")[0] == 200
        assert client.metric("aloof_errors_total") == 0


def test_slow_clients_hold_nothing(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    limits = Limits(header_seconds=0.3, body_seconds=0.3)
    head = b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with serving(made / "model", limits=limits) as client:
        slow = [socket.create_connection(("127.0.0.1", client.port), 10) for _ in range(30)]
        for place, connection in enumerate(slow):
            if place % 3 == 1:
                connection.sendall(head)
            elif place % 3 == 2:
                connection.sendall(head + b"Content-Length: 100\r\n\r\n[")
        assert client.score(in_types(new)[:1])[0] == 200
        for place, connection in enumerate(slow):
            try:
                said = connection.recv(1000)
            except ConnectionError:
                said = b""
            assert said.startswith(b"HTTP/1.1 408") if place % 3 == 2 else not said
            connection.close()
        assert client.server.budget.used == 0
        assert client.score(in_types(new)[:1])[0] == 200


def _send_on(connection: socket.socket) -> None:
    for _ in range(200):
        connection.sendall(b"x" * 65536)
        time.sleep(0.005)


def test_connections_and_heads_are_bounded(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    with serving(made / "model", limits=Limits(connections=3)) as client:
        assert client.get("/healthz")[0] == 200
        others = [socket.create_connection(("127.0.0.1", client.port), 10) for _ in range(4)]
        others[2].settimeout(10)
        assert others[3].recv(10) == b""
        others[0].sendall(b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 10)
        with pytest.raises(OSError, match=r"reset|pipe"):
            _send_on(others[0])
        for connection in others:
            connection.close()
        assert client.score(in_types(new)[:1])[0] == 200


def test_who_may_ask(made: Path, new: pa.Table, serving: Callable[..., Any]) -> None:
    with pytest.raises(ServingError, match=r"needs tokens.*--tokens"):
        Access("0.0.0.0")
    record = in_types(new)[0]
    with serving(made / "model") as client:
        assert client.score([record])[0] == 200
        assert client.score([record], Host="evil.example")[0] == 421
        assert client.score([record], Origin="http://evil.example")[0] == 403
        assert client.score([record], Sec_Fetch_Site="cross-site")[0] == 403


def test_tokens(made: Path, new: pa.Table, serving: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text("# who may ask\neve 0123456789abcdef\nbatch job fedcba9876543210\n")
    record = in_types(new)[0]
    Access("0.0.0.0", file)
    with serving(made / "model", tokens=file) as client:
        for headers in (
            {},
            {"Authorization": "Bearer 0123456789abcdeF"},
            {"Authorization": "Basic 0123456789abcdef"},
            {"Authorization": "Bearer"},
        ):
            for path in ("/score", "/v2/models/model/infer"):
                status, _ = client.score([record], path, **headers)
                assert status == 401
                assert client.last.getheader("WWW-Authenticate") == "Bearer"
            for path in ("/metrics", "/model", "/openapi.json", "/v2"):
                assert client.get(path, **headers)[0] == 401
        assert client.get("/healthz")[0] == 200
        assert client.get("/readyz") == (200, {"ready": True})
        own = {"Authorization": "Bearer fedcba9876543210"}
        assert client.score([record], **own)[0] == 200
        assert client.get("/readyz", **own)[1]["models"][0]["name"] == "model"
        # A file that was changed counts from the next look on; a damaged one does not.
        file.write_text("eve 00000000000000000\n")
        client.server._read_tokens()
        assert client.score([record], **own)[0] == 401
        file.write_text("eve short\n")
        client.server._read_tokens()
        assert client.score([record], Authorization="Bearer 00000000000000000")[0] == 200


def test_a_refusal_is_the_same_for_any_error() -> None:
    waits = {Refused(429, "later", retry=10).retry for _ in range(200)}
    assert min(waits) >= 1  # type: ignore[type-var]
    assert 10 < max(waits) <= 22  # type: ignore[operator, type-var]


def test_lengths_that_lie(made: Path, serving: Callable[..., Any]) -> None:
    """Arrow whose flat buffers point anywhere is refused, whatever they say of lengths."""
    good = write_arrow(pa.table({"city": ["Oslo"]}))
    with serving(made / "model") as client:
        for place in range(0, 64, 4):
            for value in (0, 1, 2**31 - 1, 2**32 - 1):
                body = good[:place] + struct.pack("<I", value) + good[place + 4 :]
                status, _ = client.ask("POST", "/score", body, ARROW_STREAM)
                assert status in (200, 400, 415, 422)
