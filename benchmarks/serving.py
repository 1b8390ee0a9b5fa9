"""The server under load: single rows, batches, overload, slow clients, hot swaps.

    python benchmarks/serving.py [--minutes 0.25] [--out FILE] [--only NAME ...]

A table of 20 columns, DP-VAE with five members, `aloof serve` as a process of its own on
loopback, one thread, and a load generator in this process. In the same run: the model without
a server, the server without batches (--max-batch 1), and a plain FastAPI application with
scikit-learn's IsolationForest of 100 trees behind it. Where MLflow is installed, its own server
is asked for the scores of the same model, by the same rows.

* Capacity is the rate of answers when a fixed number of connections each ask again as soon as
  they are answered. Latency is measured open-loop: requests leave at a constant rate, whatever
  becomes of those before, and a request's time begins when it was due, not when it was sent.
* Every score is compared, to the last bit, with that of the model without a server.
* Overload: twice the capacity for `--minutes`. Memory is that of the server's process, sampled
  every second.
* Slow clients: 1,000 connections that send a byte now and then, half of them in the head of
  the request, half in the body, while others ask as usual.
* Hot swap: the model folder is replaced again and again under load.

Server and generator share the machine. Run it where nothing else runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
os.environ.update(ONE_THREAD)

BATCH = 1000
CONNECTIONS = 256
ROWS = 2000  # that are sent, again and again


# The load generator


class Connection(asyncio.Protocol):
    """One connection with at most one request at a time."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.buffer = bytearray()
        self.waiting: asyncio.Future[tuple[int, bytes]] | None = None
        self.done: Callable[[int, bytes], None] | None = None
        self.lost = False

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that there is no answer."""
        self.lost = True
        self._finish(0, b"")

    def send(self, request: bytes, done: Callable[[int, bytes], None]) -> None:
        """Send a request; `done` is called with the status and the body of the answer."""
        self.done = done
        if self.lost:
            self._finish(0, b"")
        else:
            self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer."""
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        at = self.buffer.find(b"content-length: ")
        size = int(self.buffer[at + 16 : self.buffer.find(b"\r\n", at)])
        if len(self.buffer) < end + 4 + size:
            return
        status, body = int(self.buffer[9:12]), bytes(self.buffer[end + 4 : end + 4 + size])
        self.buffer.clear()
        self._finish(status, body)

    def _finish(self, status: int, body: bytes) -> None:
        if self.done is not None:
            done, self.done = self.done, None
            done(status, body)


@dataclass
class Outcome:
    """What became of requests."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: dict[int, list[float]] = field(default_factory=dict)
    wrong: int = 0
    late: int = 0  # that had no free connection when they were due

    def add(self, status: int, latency: float) -> None:
        """Count an answer."""
        self.statuses[status] += 1
        self.latencies.setdefault(status, []).append(latency)

    def summary(self, rows: int) -> dict[str, Any]:
        """Return figures; `rows` are those of one request."""
        good = self.latencies.get(200, [])
        refused = self.latencies.get(429, [])
        found = {
            "seconds": round(self.seconds, 2),
            "answers_per_second": round(self.statuses[200] / self.seconds, 1),
            "rows_per_second": round(self.statuses[200] * rows / self.seconds, 1),
            "statuses": {str(k): v for k, v in sorted(self.statuses.items())},
            "wrong_answers": self.wrong,
            "had_to_wait_for_a_connection": self.late,
        }
        for name, values in (("", good), ("refused_", refused)):
            if values:
                for q in (50, 99, 99.9):
                    found[f"{name}p{q:g}_ms"] = round(1e3 * float(np.percentile(values, q)), 2)
        return found


Check = Callable[[int, bytes], bool]


async def connected(port: int, n: int) -> list[Connection]:
    """Open connections."""
    loop = asyncio.get_running_loop()
    made = []
    for _ in range(n):
        _, protocol = await loop.create_connection(Connection, "127.0.0.1", port)
        made.append(protocol)
    return made


async def capacity(
    port: int, requests: Sequence[bytes], check: Check, *, seconds: float, connections: int
) -> Outcome:
    """Ask again and again; see the top."""
    outcome, loop = Outcome(), asyncio.get_running_loop()
    number, over = 0, loop.create_future()
    active = connections
    begin = time.perf_counter()

    def ask(connection: Connection) -> None:
        nonlocal number, active
        if time.perf_counter() - begin > seconds or connection.lost:
            active -= 1
            if not active and not over.done():
                over.set_result(None)
            return
        place, sent = number % len(requests), time.perf_counter()
        number += 1

        def done(status: int, body: bytes) -> None:
            outcome.add(status, time.perf_counter() - sent)
            if status == 200 and not check(place, body):
                outcome.wrong += 1
            ask(connection)

        connection.send(requests[place], done)

    opened = await connected(port, connections)
    begin = time.perf_counter()
    for connection in opened:
        ask(connection)
    await over
    outcome.seconds = time.perf_counter() - begin
    for connection in opened:
        connection.transport.close()
    return outcome


async def open_loop(
    port: int,
    requests: Sequence[bytes],
    check: Check,
    *,
    rate: float,
    seconds: float,
    connections: int = CONNECTIONS,
    meanwhile: Callable[[], None] | None = None,
) -> Outcome:
    """Ask at a constant rate, whatever becomes of it."""
    outcome = Outcome()
    free = deque(await connected(port, connections))
    everything = list(free)
    waiting: deque[tuple[int, float]] = deque()
    unanswered = 0

    def start(place: int, due: float) -> None:
        nonlocal unanswered
        connection = free.popleft()

        def done(status: int, body: bytes) -> None:
            nonlocal unanswered
            unanswered -= 1
            outcome.add(status, time.perf_counter() - due)
            if status == 200 and not check(place, body):
                outcome.wrong += 1
            if not connection.lost:
                free.append(connection)
            if waiting and free:
                start(*waiting.popleft())

        unanswered += 1
        connection.send(requests[place], done)

    begin, sent = time.perf_counter(), 0
    looked = begin
    while (now := time.perf_counter()) - begin < seconds:
        due_by_now = int((now - begin) * rate)
        while sent < due_by_now:
            due = begin + sent / rate
            place = sent % len(requests)
            sent += 1
            if free:
                start(place, due)
            else:
                outcome.late += 1
                waiting.append((place, due))
        if meanwhile is not None and now - looked > 1:
            looked = now
            meanwhile()
        await asyncio.sleep(max(0.0005, begin + (sent + 1) / rate - time.perf_counter()))
    outcome.seconds = time.perf_counter() - begin
    for _ in range(3000):
        if not unanswered and not waiting:
            break
        await asyncio.sleep(0.01)
    outcome.statuses[0] += unanswered + len(waiting)
    if not outcome.statuses[0]:
        del outcome.statuses[0]
    for connection in everything:
        connection.transport.close()
    return outcome


async def slow_clients(
    port: int, n: int, request: bytes, stop: asyncio.Event
) -> dict[str, int]:
    """Connect and send a byte now and then, half of them within the head of a request."""
    head, body = request.split(b"\r\n\r\n", 1)
    closed = 0

    async def one(number: int) -> None:
        nonlocal closed
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            rest = request
            if number % 2:
                writer.write(head + b"\r\n\r\n")
                rest = body
            for byte in rest:
                if stop.is_set():
                    break
                writer.write(bytes([byte]))
                await writer.drain()
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), 1.0)
            writer.close()
        except (ConnectionError, OSError):
            closed += 1

    await asyncio.gather(*(one(number) for number in range(n)))
    return {"clients": n, "closed_by_server": closed}


# Servers


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Process:
    """A server as a process."""

    def __init__(self, command: list[str], port: int, ready: str = "/healthz") -> None:
        self.port = port
        source = str(Path(__file__).parents[1] / "src")
        path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=self.log,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
        )
        import http.client

        for _ in range(600):
            with suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", ready)
                if connection.getresponse().status == 200:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.log.seek(0)
        raise SystemExit(f"The server did not start: {self.log.read().decode()[-2000:]}")

    def megabytes(self) -> float:
        """Return the memory of the process."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return float("nan")

    def cpu_seconds(self) -> float:
        """Return the processor time of the process."""
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def errors(self) -> list[str]:
        """Return what the log says of errors."""
        self.log.seek(0)
        lines = self.log.read().decode().splitlines()
        return [line for line in lines if '"level": "error"' in line or "Traceback" in line]

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def aloof_server(model: Path, *options: str) -> Process:
    """Start `aloof serve`."""
    port = free_port()
    code = "from aloof.cli import command; command()"
    command = [sys.executable, "-c", code, "serve", f"model={model}", "--port", str(port)]
    return Process([*command, "--threads", "1", *options], port)


PLAIN = """
import sys, numpy as np, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sklearn.ensemble import IsolationForest
rows = np.load(sys.argv[1])
forest = IsolationForest(random_state=0).fit(rows)
class Rows(BaseModel):
    rows: list[list[float]]
app = FastAPI()
@app.get("/healthz")
def healthz():
    return {}
@app.post("/score")
def score(body: Rows):
    return {"scores": (-forest.score_samples(np.array(body.rows))).tolist()}
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
"""


MLFLOW = """
import sys, uvicorn, mlflow.pyfunc
from mlflow.pyfunc import scoring_server
app = scoring_server.init(mlflow.pyfunc.load_model(sys.argv[1]))
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
"""


# What is sent


def post(path: str, body: bytes, kind: str, *headers: str) -> bytes:
    """Return a request."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def stream(table: pa.Table) -> bytes:
    """Return a table as Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


class Case:
    """A model, rows, and the scores that they must get."""

    def __init__(self, folder: Path) -> None:
        from streaming import table

        import aloof

        self.table = table(ROWS, 5).combine_chunks()
        training = table(6000, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.models = [aloof.fit(training, max_epochs=8, seed=seed) for seed in (0, 1)]
        self.paths = [folder / "first", folder / "second"]
        for model, path in zip(self.models, self.paths, strict=True):
            model.save(path)
        records = self.table.to_pylist()
        bodies = [json.dumps({"rows": [row]}, default=str).encode() for row in records]
        self.singles = [post("/score", body, "application/json") for body in bodies]
        # JSON has times as text: what is compared with is the score of just that.
        import datetime

        as_text = self.table
        for place, name in enumerate(as_text.column_names):
            if isinstance(records[0][name], datetime.datetime):
                text = pa.array([str(row[name]) for row in records])
                as_text = as_text.set_column(place, name, text)
        self.scores = [model.anomaly_score(as_text) for model in self.models]
        self.parts = [
            self.table.slice(i, BATCH).combine_chunks() for i in range(0, ROWS, BATCH)
        ]
        arrow = "application/vnd.apache.arrow.stream"
        self.batches = [
            post("/score", stream(part), arrow, f"Accept: {arrow}") for part in self.parts
        ]
        self.json_batches = [
            post(
                "/score",
                json.dumps({"rows": p.to_pylist()}, default=str).encode(),
                "application/json",
            )
            for p in self.parts
        ]
        self.part_scores = [self.models[0].anomaly_score(part) for part in self.parts]
        self.numbers = np.column_stack(
            [self.models[0].encode(self.table), np.zeros((ROWS, 0))]
        ).astype(np.float64)

    def single(self, place: int, body: bytes) -> bool:
        """Say whether an answer to a row is right."""
        return float(json.loads(body)["results"][0]["anomaly_score"]) == self.scores[0][place]

    def either(self, place: int, body: bytes) -> bool:
        """Say whether it is that of one of the models."""
        found = json.loads(body)["results"][0]["anomaly_score"]
        return found in (self.scores[0][place], self.scores[1][place])

    def batch(self, place: int, body: bytes) -> bool:
        """Say whether an answer to a batch is right."""
        found = pa.ipc.open_stream(body).read_all()["anomaly_score"].to_numpy()
        return np.array_equal(found, self.part_scores[place])

    def json_batch(self, place: int, body: bytes) -> bool:
        """Say whether an answer to a batch in JSON is right."""
        return len(json.loads(body)["results"]) == BATCH


def in_process(case: Case, seconds: float) -> dict[str, float]:
    """Return how fast the model is without a server: score, p-value and decision."""
    model = case.models[0]

    def judged(table: pa.Table) -> None:
        scores = model.anomaly_score(table)
        model.detector.decision_.p_values(scores)
        model.decide(scores)

    found = {}
    rows = [case.table.slice(i, 1).combine_chunks() for i in range(50)]
    for name, tables, n in (("single", rows, 1), ("batch", case.parts, BATCH)):
        judged(tables[0])
        begin, used, done = time.perf_counter(), time.process_time(), 0
        while (spent := time.perf_counter() - begin) < seconds:
            judged(tables[done % len(tables)])
            done += 1
        found[f"{name}_rows_per_second"] = round(done * n / spent, 1)
        cpu = time.process_time() - used
        found[f"{name}_rows_per_cpu_second"] = round(done * n / cpu, 1)
    return found


# What is measured


def single_rows(case: Case, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    ask = dict(requests=case.singles, check=case.single)
    with aloof_server(case.paths[0], "--max-batch", "1") as server:
        used = server.cpu_seconds()
        outcome = asyncio.run(capacity(server.port, **ask, seconds=seconds, connections=16))
        found["unbatched"] = outcome.summary(1)
        cpu = (server.cpu_seconds() - used) / outcome.statuses[200]
        found["unbatched"]["cpu_ms_per_row"] = round(1e3 * cpu, 3)
    with aloof_server(case.paths[0]) as server:
        asyncio.run(capacity(server.port, **ask, seconds=1, connections=64))
        used = server.cpu_seconds()
        outcome = asyncio.run(
            capacity(server.port, **ask, seconds=seconds, connections=CONNECTIONS)
        )
        found["capacity"] = outcome.summary(1)
        cpu = (server.cpu_seconds() - used) / outcome.statuses[200]
        found["capacity"]["cpu_ms_per_row"] = round(1e3 * cpu, 3)
        rate = outcome.statuses[200] / outcome.seconds
        for share in (0.2, 0.7):
            outcome = asyncio.run(
                open_loop(server.port, **ask, rate=share * rate, seconds=seconds)
            )
            found[f"at_{share:g}_of_capacity"] = {
                "rate": round(share * rate, 1),
                **outcome.summary(1),
            }
    found["batched_against_unbatched"] = round(
        found["capacity"]["rows_per_second"] / found["unbatched"]["rows_per_second"], 2
    )
    return found


def batches(case: Case, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with aloof_server(case.paths[0]) as server:
        for name, requests, check in (
            ("arrow", case.batches, case.batch),
            ("json", case.json_batches, case.json_batch),
        ):
            ask = dict(requests=requests, check=check)
            asyncio.run(capacity(server.port, **ask, seconds=1, connections=2))
            used = server.cpu_seconds()
            before = in_process(case, seconds / 2)
            outcome = asyncio.run(capacity(server.port, **ask, seconds=seconds, connections=3))
            after = in_process(case, seconds / 2)
            summary = outcome.summary(BATCH)
            cpu = server.cpu_seconds() - used
            summary["rows_per_cpu_second"] = round(outcome.statuses[200] * BATCH / cpu, 1)
            for unit in ("second", "cpu_second"):
                both = [each[f"batch_rows_per_{unit}"] for each in (before, after)]
                mean = sum(both) / 2
                summary[f"in_process_rows_per_{unit}"] = round(mean, 1)
                ratio = summary[f"rows_per_{unit}"] / mean
                summary[f"against_in_process_per_{unit}"] = round(ratio, 3)
            rate = 0.7 * outcome.statuses[200] / outcome.seconds
            late = asyncio.run(
                open_loop(server.port, **ask, rate=rate, seconds=seconds, connections=32)
            )
            summary["at_0.7_of_capacity"] = {"rate": round(rate, 2), **late.summary(BATCH)}
            found[name] = summary
    return found


def overload(case: Case, seconds: float, minutes: float) -> dict[str, Any]:
    ask = dict(requests=case.singles, check=case.single)
    with aloof_server(case.paths[0], "--max-queue", "1000", "--max-rows", "1000") as server:
        asyncio.run(capacity(server.port, **ask, seconds=1, connections=64))
        measured = asyncio.run(
            capacity(server.port, **ask, seconds=seconds, connections=CONNECTIONS)
        )
        rate = 2 * measured.statuses[200] / measured.seconds
        # Connections beyond the queue, so that it is the server that refuses.
        memory: list[float] = []
        outcome = asyncio.run(
            open_loop(
                server.port,
                **ask,
                rate=rate,
                seconds=60 * minutes,
                connections=1500,
                meanwhile=lambda: memory.append(round(server.megabytes(), 1)),
            )
        )
        alive = server.process.poll() is None
        after = asyncio.run(capacity(server.port, **ask, seconds=seconds, connections=64))
    third = max(1, len(memory) // 3)
    return {
        "rate": round(rate, 1),
        "capacity": round(rate / 2, 1),
        **outcome.summary(1),
        "alive": alive,
        "afterwards": after.summary(1),
        "megabytes": memory[:: max(1, len(memory) // 60)],
        "megabytes_first_and_last_third": [
            round(float(np.mean(memory[:third])), 1),
            round(float(np.mean(memory[-third:])), 1),
        ],
    }


def slow(case: Case, seconds: float) -> dict[str, Any]:
    ask = dict(requests=case.singles, check=case.single)

    async def both(port: int, n: int, rate: float) -> tuple[Outcome, dict[str, int]]:
        stop = asyncio.Event()
        crawl = asyncio.create_task(slow_clients(port, n, case.singles[0], stop))
        await asyncio.sleep(1)
        # Longer than the server waits for the head of a request.
        outcome = await open_loop(port, **ask, rate=rate, seconds=max(14, seconds))
        stop.set()
        return outcome, await crawl

    with aloof_server(case.paths[0]) as server:
        measured = asyncio.run(capacity(server.port, **ask, seconds=seconds, connections=64))
        rate = 0.3 * measured.statuses[200] / measured.seconds
        without, _ = asyncio.run(both(server.port, 0, rate))
        memory = server.megabytes()
        with_them, crawlers = asyncio.run(both(server.port, 1000, rate))
        return {
            "rate": round(rate, 1),
            "without_slow_clients": without.summary(1),
            "with_slow_clients": with_them.summary(1),
            "slow": crawlers,
            "megabytes": [round(memory, 1), round(server.megabytes(), 1)],
        }


def swap(case: Case, seconds: float) -> dict[str, Any]:
    place = case.paths[0].with_name("swapped")
    shutil.copytree(case.paths[0], place)
    swaps = 0

    def exchange() -> None:
        nonlocal swaps
        swaps += 1
        case.models[swaps % 2].save(place)

    ask = dict(requests=case.singles, check=case.either)
    with aloof_server(place, "--watch", "0.5") as server:
        measured = asyncio.run(capacity(server.port, **ask, seconds=seconds, connections=64))
        rate = 0.4 * measured.statuses[200] / measured.seconds
        outcome = asyncio.run(
            open_loop(server.port, **ask, rate=rate, seconds=3 * seconds, meanwhile=exchange)
        )
        import urllib.request

        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as page:
            lines = page.read().decode().splitlines()
        loads = next(
            float(x.split()[-1]) for x in lines if x.startswith("aloof_model_loads_total")
        )
    return {
        "rate": round(rate, 1),
        "folder_replaced": swaps,
        "models_taken_into_use": int(loads) - 1,
        **outcome.summary(1),
    }


def plain(case: Case, seconds: float, folder: Path) -> dict[str, Any]:
    file, port = folder / "rows.npy", free_port()
    np.save(file, case.numbers)
    singles = [
        post("/score", json.dumps({"rows": [row]}).encode(), "application/json")
        for row in case.numbers[:200].tolist()
    ]
    whole = [
        post(
            "/score",
            json.dumps({"rows": case.numbers[i : i + BATCH].tolist()}).encode(),
            "application/json",
        )
        for i in range(0, ROWS, BATCH)
    ]
    server = Process([sys.executable, "-c", PLAIN, str(file), str(port)], port)
    return asked(server, (singles, whole), lambda place, body: True, seconds)


def asked(
    server: Process, requests: tuple[list[bytes], list[bytes]], check: Check, seconds: float
) -> dict[str, Any]:
    """Ask another server for single rows, and for batches."""
    found = {}
    with server:
        for name, sent, n, connections in (
            ("single", requests[0], 1, 64),
            ("batch", requests[1], BATCH, 3),
        ):
            ask = dict(requests=sent, check=check)
            outcome = asyncio.run(
                capacity(server.port, **ask, seconds=seconds, connections=connections)
            )
            found[name] = outcome.summary(n)
            rate = 0.7 * outcome.statuses[200] / outcome.seconds
            late = asyncio.run(open_loop(server.port, **ask, rate=rate, seconds=seconds))
            found[name]["at_0.7_of_capacity"] = {"rate": round(rate, 2), **late.summary(n)}
    return found


def mlflow_server(case: Case, seconds: float, folder: Path) -> dict[str, Any]:
    """Ask MLflow's server, as ``mlflow models serve`` runs it, with the model as a pyfunc."""
    if find_spec("mlflow") is None:
        return {"skipped": "MLflow is not installed: pip install mlflow-skinny"}
    import aloof.mlflow

    path, port = folder / "mlflow", free_port()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        aloof.mlflow.save_model(case.models[0], path)
    records = case.table.to_pylist()

    def request(rows: list[dict[str, Any]]) -> bytes:
        body = json.dumps({"dataframe_records": rows}, default=str).encode()
        return post("/invocations", body, "application/json")

    def right(expected: list[float]) -> Check:
        """Every score, to the last bit: MLflow rounds nothing."""

        def check(place: int, body: bytes) -> bool:
            rows = json.loads(body)["predictions"]
            first = place * len(rows)
            found = [row["anomaly_score"] for row in rows]
            return found == expected[first : first + len(found)]

        return check

    scores = case.scores[0].tolist()
    singles = [request([row]) for row in records[:200]]
    whole = [request(records[i : i + BATCH]) for i in range(0, ROWS, BATCH)]
    return asked(
        Process([sys.executable, "-c", MLFLOW, str(path), str(port)], port, "/ping"),
        (singles, whole),
        right(scores),
        seconds,
    )


def in_short(record: dict[str, Any]) -> dict[str, Any]:
    """Return what a table shows: rates at capacity, latencies at 0.7 of it."""
    single, later = record["single"], "at_0.7_of_capacity"
    arrow, as_json = record["batches"]["arrow"], record["batches"]["json"]
    shown = {
        "single rows": (single["capacity"], single[later]),
        "single rows, no batching": (single["unbatched"], None),
        "1,000 rows, Arrow": (arrow, arrow[later]),
        "1,000 rows, JSON": (as_json, as_json[later]),
    }
    for name, other in (("IsolationForest", record["plain"]), ("MLflow", record["mlflow"])):
        for size, what in (("single", "single rows"), ("batch", "1,000 rows")):
            if "skipped" not in other:
                shown[f"{name}, {what}"] = (other[size], other[size][later])
    runs = []
    for what, (most, late) in shown.items():
        run = {"what": what, "rows_per_second": most["rows_per_second"]}
        for name in ("p50_ms", "p99_ms"):
            run[name] = None if late is None else late[name]
        runs.append(run)
    memory = record["overload"]["megabytes_first_and_last_third"]
    refused = record["overload"]["statuses"].get("429", 0)
    return {
        "runs": runs,
        "ratios": {
            "batched_against_unbatched": single["batched_against_unbatched"],
            "arrow_against_in_process": arrow["against_in_process_per_second"],
            "memory_last_against_first_third": round(memory[1] / memory[0], 3),
            "refused_share": refused / sum(record["overload"]["statuses"].values()),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each measurement")
    parser.add_argument("--minutes", type=float, default=0.25, help="of overload")
    parser.add_argument(
        "--only", nargs="*", help="single batches overload slow swap plain mlflow"
    )
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    wanted = given.only or ["single", "batches", "overload", "slow", "swap", "plain", "mlflow"]
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case = Case(folder)
        record: dict[str, Any] = {
            "command": f"python benchmarks/serving.py --seconds {given.seconds:g} "
            f"--minutes {given.minutes:g}",
            "date": datetime.now(UTC).date().isoformat(),
            "processors": os.cpu_count(),
            "load_average_before": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "columns": case.table.num_columns,
            "rows_of_a_batch": BATCH,
            "in_process": in_process(case, given.seconds),
        }
        steps: dict[str, Callable[[], Any]] = {
            "single": lambda: single_rows(case, given.seconds),
            "batches": lambda: batches(case, given.seconds),
            "overload": lambda: overload(case, given.seconds, given.minutes),
            "slow": lambda: slow(case, given.seconds),
            "swap": lambda: swap(case, given.seconds),
            "plain": lambda: plain(case, given.seconds, folder),
            "mlflow": lambda: mlflow_server(case, given.seconds, folder),
        }
        for step in wanted:
            record[step] = steps[step]()
            print(json.dumps({step: record[step]}, indent=1), flush=True)
    if not given.only:
        record |= in_short(record)
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n")
    else:
        print(json.dumps(record))


if __name__ == "__main__":
    main()
