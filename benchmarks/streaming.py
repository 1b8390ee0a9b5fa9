"""Scoring files larger than memory: memory and speed that do not depend on the size.

    python benchmarks/streaming.py [--rows 1000000 4000000 16000000] [--out FILE]

Makes Parquet files of 20 columns in a temporary folder (about 120 MB for a million rows) and
scores each with `score_file` in a process of its own: five members, reasons for the one per
cent that is flagged, scores written as Parquet. Peak memory is that of the whole process.

Opponents, in the same run:

* the same model over an encoded array in memory, with one thread and with all, before and
  after the files; the fastest counts;
* scikit-learn's `IsolationForest` over the smallest of the files, encoded by the same encoder
  in batches of the same size, with as many threads.

Where other programs use the processor, rows per second say more about them. Rows per second
of processor time, of all threads together, are given as well.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from sklearn.ensemble import IsolationForest

import aloof
from aloof.models.table import TableModel, open_source
from aloof.models.table.streaming import score_file

GROUP = 131_072  # rows of a row group, and of the array in memory
BATCH = 65_536
TRAINING = 20_000


class Clock:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self.started, self.used = time.perf_counter(), time.process_time()

    def speed(self, rows: int) -> dict[str, float]:
        """Return how fast so many rows were done."""
        return {
            "rows_per_second": rows / (time.perf_counter() - self.started),
            "rows_per_cpu_second": rows / (time.process_time() - self.used),
        }


def best(*speeds: dict[str, float]) -> dict[str, float]:
    """Return the highest of each figure."""
    return {name: max(speed[name] for speed in speeds) for name in speeds[0]}


def table(n: int, seed: int) -> pa.Table:
    """Return rows of 20 columns: numbers, some heavy-tailed or missing, categories, a time."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n, 4))
    loadings = np.random.default_rng(0).standard_normal((4, 14))  # the same for all rows
    numbers = hidden @ loadings + rng.standard_normal((n, 14))
    columns: dict[str, Any] = {f"sensor_{i}": numbers[:, i] for i in range(14)}
    columns["amount"] = np.exp(3 + hidden[:, 0])
    columns["gaps"] = pa.array(hidden[:, 1], mask=rng.random(n) < 0.1)
    columns["city"] = pa.array(np.array(["Oslo", "Bern", "Rome"])[rng.integers(0, 3, n)])
    columns["code"] = pa.array(np.array([f"c{i}" for i in range(12)])[rng.integers(0, 12, n)])
    columns["active"] = rng.random(n) < 0.3
    seconds = 1_700_000_000 + rng.integers(0, 10**7, n)
    columns["when"] = pa.array(seconds, pa.timestamp("s"))
    return pa.table(columns)


def write(path: Path, rows: int) -> None:
    with pq.ParquetWriter(path, table(1, 0).schema) as writer:
        for start in range(0, rows, GROUP):
            writer.write_table(table(min(GROUP, rows - start), 1 + start // GROUP))


def fit(path: Path, method: str = "committee") -> None:
    rows = table(TRAINING, 0)
    labels = np.zeros(TRAINING, int)
    labels[:20] = 1
    rows = rows.append_column("bad", pa.array(labels))
    model = aloof.fit(rows, label="bad", method=method, max_epochs=5, device="cpu")
    model.save(path)


def stream(model: Path, data: Path, out: Path) -> dict[str, float]:
    """Score a file; what a process of its own does."""
    loaded = TableModel.load(model, device="cpu")
    clock = Clock()
    done = score_file(loaded, data, out)
    speed = clock.speed(done.n_rows)
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return {
        "rows": done.n_rows,
        "flagged": done.n_anomalies,
        **speed,
        "peak_mb": int(peak.split()[1]) / 1000,
    }


def in_memory(model: TableModel, data: Path) -> dict[str, float]:
    """Score an encoded array."""
    X = model.encode(next(open_source(data).batches(model.columns, rows=GROUP)))
    threads, speeds = torch.get_num_threads(), []
    for n_threads in sorted({1, threads}):
        torch.set_num_threads(n_threads)
        clock = Clock()
        model.detector.anomaly_score(X)
        speeds.append(clock.speed(len(X)))
    torch.set_num_threads(threads)
    return best(*speeds)


def isolation_forest(model: TableModel, data: Path) -> dict[str, float]:
    """Score a file with scikit-learn's detector."""
    train = model.encode(table(TRAINING, 0))
    forest = IsolationForest(random_state=0, n_jobs=torch.get_num_threads()).fit(train)
    clock, rows = Clock(), 0
    for batch in open_source(data).batches(model.columns, rows=BATCH):
        rows += len(forest.score_samples(model.encode(batch)))
    return clock.speed(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1_000_000, 4_000_000, 16_000_000]
    )
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--stream", nargs=3, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stream:
        print(json.dumps(stream(*options.stream)))
        return
    sizes = sorted(options.rows)
    with tempfile.TemporaryDirectory(prefix="aloof-streaming-") as temporary:
        folder = Path(temporary)
        fit(folder / "model")
        model = TableModel.load(folder / "model", device="cpu")
        first = folder / f"{sizes[0]}.parquet"
        write(first, sizes[0])
        array = in_memory(model, first)
        forest = isolation_forest(model, first)
        runs = []
        print(f"{'rows':>12}{'rows/s':>10}{'rows/cpu s':>12}{'peak MB':>10}")
        for size in sizes:
            data = folder / f"{size}.parquet"
            if size != sizes[0]:
                write(data, size)
            command = [sys.executable, __file__, "--stream"]
            command += map(str, (folder / "model", data, folder / "scores.parquet"))
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            run = json.loads(done.stdout)
            runs.append(run)
            print(
                f"{run['rows']:>12,}{run['rows_per_second']:>10,.0f}"
                f"{run['rows_per_cpu_second']:>12,.0f}{run['peak_mb']:>10.0f}",
                flush=True,
            )
            (folder / "scores.parquet").unlink()
            if size != sizes[0]:
                data.unlink()
        array = best(array, in_memory(model, first))
    figures: dict[str, Any] = {
        "command": shlex.join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "load_average": os.getloadavg(),
        "runs": runs,
        "array": array,
        "isolation_forest": forest,
        "peak_memory_spread": spread([run["peak_mb"] for run in runs]),
    }
    print(f"Peak memory differs by {figures['peak_memory_spread']:.1%}.")
    for name in ("rows_per_second", "rows_per_cpu_second"):
        speeds = [run[name] for run in runs]
        figures[name] = {
            "spread": spread(speeds),
            "slowest_against_array": min(speeds) / array[name],
            "first_against_isolation_forest": speeds[0] / forest[name],
        }
        print(
            f"{name}: differs by {spread(speeds):.1%}; the slowest has "
            f"{min(speeds) / array[name]:.0%} of an array in memory ({array[name]:,.0f}), the "
            f"first {speeds[0] / forest[name]:.2f} x IsolationForest ({forest[name]:,.0f})."
        )
    if options.out:
        options.out.write_text(json.dumps(figures, indent=2) + "\n")


def spread(values: list[float]) -> float:
    return max(values) / min(values) - 1


if __name__ == "__main__":
    main()
