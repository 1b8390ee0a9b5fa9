"""A folder scored by this process and by workers of Ray: speed, and the same bytes.

    python benchmarks/scale_out.py [--files 8] [--rows 50000] [--workers 1 2] [--method dp]
        [--out FILE]

Makes a folder of Parquet files of 20 columns (those of `benchmarks/streaming.py`) and scores it
into another: by this process with one thread, and by Ray with so many workers, each with one
processor, on this machine. The model is the default, a committee, or one of `--method`; five
members, reasons for the one per cent that is flagged. With the last, a worker is killed with
signal 9 half-way.

Where other programs use the processor, rows per second say more about them; rows per second of
processor time, of all workers together while they score, are given as well. Ray's own processes
and the start of workers are not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pyarrow.parquet as pq
import torch

from aloof.models.table import TableModel
from aloof.models.table.folders import FileTask, FolderWork
from aloof.ray import folder_pool

sys.path.insert(0, str(Path(__file__).parent))
from streaming import fit, table


@dataclass(frozen=True)
class Timed(FolderWork):
    """Work that notes who did it, and how much processor time a file took."""

    notes: str = ""

    def start(self, model: TableModel | None = None) -> Callable[[FileTask], Any]:
        """Load the model, and return what scores and measures."""
        score = super().start(model)
        ready = time.time()

        def run(task: FileTask) -> Any:
            begun, used = time.time(), time.process_time()
            Path(self.notes, f"{task.name}.{os.getpid()}.begun").touch()
            done = score(task)
            cpu = time.process_time() - used
            note = {"pid": os.getpid(), "cpu": cpu, "begun": min(begun, ready)}
            Path(self.notes, f"{task.name}.json").write_text(
                json.dumps({**note, "end": time.time()})
            )
            return done

        return run


def timed(notes: Path, workers: int | None) -> Any:
    """Return a pool that measures: Ray's, or this process."""
    notes.mkdir()

    def pool(work: FolderWork, tasks: Sequence[FileTask]) -> Iterator[tuple[int, Any]]:
        measured = Timed(work.model, work.options, work.missing_columns, work.level, str(notes))
        if workers is not None:
            yield from folder_pool(workers)(measured, tasks)
            return
        score = measured.start()
        for place, task in enumerate(tasks):
            yield place, score(task)

    return pool


def kill_one(notes: Path, half: int) -> None:
    """Kill the worker that is at a file when half are done."""
    while len(list(notes.glob("*.json"))) < half:
        time.sleep(0.05)
    while True:
        for mark in notes.glob("*.begun"):
            name, pid, _ = mark.name.rsplit(".", 2)
            if not (notes / f"{name}.json").exists():
                os.kill(int(pid), signal.SIGKILL)
                return
        time.sleep(0.01)


def measure(
    model: TableModel, folder: Path, name: str, workers: int | None, *, kill: bool = False
) -> dict[str, Any]:
    notes = folder / f"notes-{name}"
    pool, n_files = timed(notes, workers), len(list((folder / "data").iterdir()))
    if kill:
        killer = threading.Thread(target=kill_one, args=(notes, n_files // 2), daemon=True)
        killer.start()
    started = time.perf_counter()
    done = model.score_folder(folder / "data", folder / name, pool=pool)
    seconds = time.perf_counter() - started
    told = [json.loads(path.read_text()) for path in notes.glob("*.json")]
    busy = max(each["end"] for each in told) - min(each["begun"] for each in told)
    written = {p.name: p.read_bytes() for p in sorted((folder / name).glob("*.parquet"))}
    here = {p.name: p.read_bytes() for p in sorted((folder / "here").glob("*.parquet"))}
    found = {
        "run": name,
        "workers": workers or 0,
        "rows": done.n_rows,
        "seconds": seconds,
        "seconds_scoring": busy,
        "rows_per_second": done.n_rows / busy,
        "rows_per_cpu_second": done.n_rows / sum(each["cpu"] for each in told),
        "processes": len({each["pid"] for each in told}),
        "same_bytes": written == here,
    }
    print(json.dumps(found), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rows", type=int, default=50_000, help="of each file")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--method", default="committee")
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="aloof-scale-") as temporary:
        folder = Path(temporary)
        fit(folder / "model", options.method)
        model = TableModel.load(folder / "model", device="cpu")
        (folder / "data").mkdir()
        for number in range(options.files):
            pq.write_table(
                table(options.rows, 1 + number), folder / f"data/{number:03}.parquet"
            )
        size = sum(path.stat().st_size for path in (folder / "data").iterdir())
        runs = [measure(model, folder, "here", None)]
        for workers in options.workers:
            runs.append(measure(model, folder, f"ray-{workers}", workers))
        last = options.workers[-1]
        runs.append(measure(model, folder, f"ray-{last}-killed", last, kill=True))
    figures = {
        "command": shlex.join(["python", *sys.argv]),
        "method": options.method,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load_average": os.getloadavg(),
        "bytes_per_row": size / runs[0]["rows"],
        "runs": runs,
    }
    if options.out:
        options.out.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
