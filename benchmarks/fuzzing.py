"""Strange requests, many of them: no error of the server's own, and memory that stays.

    python benchmarks/fuzzing.py [--requests 100000] [--schemathesis 100] [--out FILE]

Starts `aloof serve` with a small model of a table and sends requests that are made by changing
good ones at random (seeded): bytes of Arrow, JSON, CSV and of the Open Inference Protocol; and
some that are made to hurt: 10^6 columns, JSON nested 10^5 deep, gzip bombs, NaN and numbers
with thousands of digits, headers that lie. Counts the answers, and looks for 5xx, tracebacks
and growth of memory. If Schemathesis is installed, its checks run as well, so many examples
for each operation. At the end, a server with 100 file descriptors gets 200 connections.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from serving import Connection, aloof_server, capacity, connected, post, stream

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
CONNECTIONS = 32
NASTY = [None, True, 0, -1, 1e308, -1e308, 10**400, 2**63, "", "x" * 5000, "\x00", "ü", "NaN"]
NASTY += ["1e999", "-inf", "2024-02-30", "99999-01-01", [], {}, [[1]], {"a": 1}, float("nan")]


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    day = np.datetime64("2024-01-01T08:00:00")
    return pa.table(
        {
            "id": [f"r{i}" for i in range(n)],
            "amount": rng.normal(50, 5, n),
            "weight": pa.array(rng.normal(0, 1, n), mask=rng.random(n) < 0.1),
            "city": rng.choice(["Oslo", "Bern", "Rome"], n),
            "open": rng.random(n) < 0.5,
            "when": [str(day + s).replace("T", " ") for s in rng.integers(0, 9_000_000, n)],
        }
    )


class Strange:
    """Makes requests."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        rows = table(50, 3)
        self.rows = rows.to_pylist()
        self.arrow = [stream(rows.slice(i, 5).combine_chunks()) for i in range(0, 50, 5)]
        names = ",".join(rows.column_names)
        lines = [",".join(map(str, row.values())) for row in self.rows]
        self.csv = (names + "\n" + "\n".join(lines)).encode()
        self.hurtful = self._hurtful()

    def _hurtful(self) -> list[bytes]:
        wide = {f"c{i}": 1 for i in range(10**6)}
        many = json.dumps([wide]).encode()
        bomb = gzip.compress(b"0" * 10**8)
        packed = "Content-Encoding: gzip"
        fields = pa.table({f"c{i}": pa.array([1]) for i in range(20_000)})
        return [
            post("/score", many, JSON),
            post("/score", gzip.compress(many), JSON, packed),
            post("/score", ("a," * 10**6 + "\n" + "1," * 10**6).encode(), "text/csv"),
            post("/score", stream(fields), ARROW),
            post("/score", stream(pa.table({"city": pa.nulls(10**7)})), ARROW),
            post("/score", b"[" * 10**5, JSON),
            post("/score", b'{"rows":' * 10**5, JSON),
            post("/score", b'[{"amount":' + b"9" * 10**5 + b"}]", JSON),
            post("/score", bomb, JSON, packed),
            post("/score", bomb, "text/csv", packed),
            post("/score", bomb, ARROW, packed),
            post("/score", gzip.compress(b"[]")[:-4], JSON, packed),
            post("/score", b" " * 17 * 2**20, JSON),
            post("/v2/models/model/infer", b'{"inputs":' + b"[" * 10**5, JSON),
            post("/score?" + "a=1&" * 5000, b"[]", JSON),
            post("/score", b"[]", "x" * 5000),
            b"GET / HTTP/1.1\r\n\r\n",
            b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            b"POST /score HTTP/9.9\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        ]

    def __call__(self) -> bytes:
        """Return the next one."""
        draw = self.rng.random()
        if draw < 0.0005:
            return self.hurtful[self.rng.integers(len(self.hurtful))]
        if draw < 0.35:
            return post("/score", self._records(), JSON)
        if draw < 0.6:
            return post("/score", self._flipped(self.arrow[self.rng.integers(10)]), ARROW)
        if draw < 0.75:
            return post("/score?reasons=2", self._flipped(self.csv), "text/csv")
        if draw < 0.9:
            body = json.dumps({"inputs": self._inputs()}).encode()
            return post("/v2/models/model/infer", self._sometimes(body), JSON)
        return post("/score", self._sometimes(self._records()), JSON, self._header())

    def _records(self) -> bytes:
        records = [
            dict(self.rows[i]) for i in self.rng.integers(0, 50, self.rng.integers(1, 30))
        ]
        for _ in range(self.rng.integers(0, 4)):
            record = records[self.rng.integers(len(records))]
            name = [*record, "new"][self.rng.integers(len(record) + 1)]
            record[name] = NASTY[self.rng.integers(len(NASTY))]
            if self.rng.random() < 0.1:
                del record[name]
        form = self.rng.random()
        value: Any = records if form < 0.5 else {"rows": records}
        if form > 0.9:
            value = {"columns": {name: [r.get(name) for r in records] for name in records[0]}}
        return json.dumps(value).encode()

    def _inputs(self) -> list[dict[str, Any]]:
        n = int(self.rng.integers(1, 4))
        found = []
        for name in self.rows[0]:
            data = [row[name] for row in self.rows[:n]]
            number = name in ("amount", "weight")
            data = data if number else [str(value) for value in data]
            tensor = {"name": name, "shape": [n], "datatype": "FP64" if number else "BYTES"}
            if self.rng.random() < 0.1:
                key = ["name", "shape", "datatype", "data"][self.rng.integers(4)]
                tensor[key] = NASTY[self.rng.integers(len(NASTY))]
            found.append({"data": data, **tensor})
        return found

    def _sometimes(self, body: bytes) -> bytes:
        return self._flipped(body) if self.rng.random() < 0.5 else body

    def _flipped(self, body: bytes) -> bytes:
        changed = bytearray(body)
        for place in self.rng.integers(0, len(changed), self.rng.integers(0, 6)):
            changed[place] = self.rng.integers(256)
        if self.rng.random() < 0.05:
            changed = changed[: self.rng.integers(len(changed))]
        return bytes(changed)

    def _header(self) -> str:
        headers = [
            "Accept: text/html",
            "Accept: application/vnd.apache.arrow.stream",
            "Content-Encoding: gzip",
            "Content-Encoding: br",
            "X-Timeout-Ms: x",
            "Inference-Header-Content-Length: 5",
            "Authorization: Bearer x",
            "X: \xff",
        ]
        return headers[self.rng.integers(len(headers))]


async def shower(port: int, n: int, make: Strange, look: Callable[[], None]) -> dict[str, Any]:
    statuses: Counter[int] = Counter()
    bad: list[str] = []
    closed: list[str] = []
    left = n

    async def ask() -> None:
        nonlocal left
        loop = asyncio.get_running_loop()
        connection: Connection | None = None
        while left > 0:
            left -= 1
            if left % 5000 == 0:
                look()
            if connection is None or connection.lost:
                (connection,) = await connected(port, 1)
            over = loop.create_future()
            request = make()
            connection.send(
                request, lambda s, b, f=over: None if f.done() else f.set_result((s, b))
            )
            try:
                status, body = await asyncio.wait_for(over, 60)
            except TimeoutError:
                bad.append(f"no answer to {request[:200]!r}")
                connection = None
                continue
            statuses[status] += 1
            if not status:
                closed.append(repr(request[:100]))
            if status >= 500 or b"Traceback" in body or b'File "' in body:
                bad.append(f"{status} {body[:200]!r}")
            # Of a request that was cut off the rest may be on its way.
            if status in (0, 400, 408, 413, 429):
                connection.transport.abort()
                connection = None

    await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    return {
        "statuses": {str(k): v for k, v in sorted(statuses.items())},
        "bad": bad[:20],
        "closed_without_an_answer": closed[:20],
    }


# Which tensors go together is more than the description of the protocol can say.
SETTINGS = """
[[operations]]
include-path = "/v2/models/{name}/infer"
[operations.checks]
positive_data_acceptance.enabled = false
"""


def schemathesis(port: int, examples: int) -> dict[str, Any]:
    """Run all checks of Schemathesis."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "schemathesis.toml"
        file.write_text(SETTINGS)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(file), "run"),
                f"http://127.0.0.1:{port}/openapi.json",
                *("--max-examples", str(examples), "--suppress-health-check", "all"),
            ],
            capture_output=True,
            text=True,
        )
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    start = next((k for k, line in enumerate(lines) if " SUMMARY " in line), 0)
    return {"exit_code": done.returncode, "output": lines[start:]}


def few_descriptors(model: Path) -> dict[str, Any]:
    """Open more connections than the server has file descriptors; then ask as usual."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))  # a child inherits it
    try:
        server = aloof_server(model)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    row = table(1, 9).to_pylist()
    with server:
        opened = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
        time.sleep(2)
        for connection in opened:
            connection.close()
        time.sleep(2)
        ask = post("/score", json.dumps(row).encode(), JSON)
        found = asyncio.run(
            capacity(server.port, [ask], lambda *_: True, seconds=1, connections=4)
        )
        alive = server.process.poll() is None
    return {"alive": alive, "statuses": {str(k): v for k, v in found.statuses.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--schemathesis", type=int, default=50, help="examples; 0: do without")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    import aloof

    with tempfile.TemporaryDirectory() as name:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = aloof.fit(table(600, 0), id="id", members=2, max_epochs=3, hidden=(16,))
        model.save(Path(name) / "model")
        with aloof_server(Path(name) / "model") as server:
            memory: list[float] = []
            begin = time.perf_counter()
            found: dict[str, Any] = {"requests": given.requests, "seed": given.seed}
            found |= asyncio.run(
                shower(
                    server.port,
                    given.requests,
                    Strange(given.seed),
                    lambda: memory.append(round(server.megabytes(), 1)),
                )
            )
            found["seconds"] = round(time.perf_counter() - begin, 1)
            found["megabytes"] = memory
            if given.schemathesis and find_spec("schemathesis"):
                found["schemathesis"] = schemathesis(server.port, given.schemathesis)
            found["errors_in_the_log"] = server.errors()[:20]
            found["alive"] = server.process.poll() is None
        found["few_descriptors"] = few_descriptors(Path(name) / "model")
    text = json.dumps(found, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
