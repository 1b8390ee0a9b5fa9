"""Exported models: how large and how fast they are, against the models themselves.

    python benchmarks/exporting.py [--lite PYTHON] [--rows 20000] [--out FILE] [--odds NAMES]

A table of 20 columns, models of five members in their default sizes. Rows in memory are scored
in one process and with one thread; files are CSV, scored by a fresh process each, so that
starting counts. Seconds are those of the processor, the fewest of three rounds: others may use
the machine. PYTHON is an interpreter in whose environment nothing but aloof-lite is installed;
without it, the one that runs this. On the data sets of --odds, every row is scored by
the model and by its file, once for each method.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import aloof
from aloof.bench.provenance import provenance
from aloof.datasets import load_dataset
from aloof.estimators import DETECTORS
from aloof.export import export, to_onnx
from aloof.lite import load
from aloof.lite.scorer import opened
from aloof.models.table import TableModel

ONE, SOME = 1, 1000
# Not a part of what is needed to score.
INSTALLERS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
SIZE = """
import json, pathlib, site
files = [p for p in pathlib.Path(site.getsitepackages()[0]).rglob("*") if p.is_file()]
print(json.dumps([[str(p.relative_to(site.getsitepackages()[0])), p.stat().st_size] for p in files]))
"""  # noqa: E501


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"x{i}": rng.normal(size=n).round(4) for i in range(12)}
    columns |= {f"amount{i}": np.exp(rng.normal(3, 2, n)).round(2) for i in range(3)}
    columns |= {f"kind{i}": rng.choice(["a", "b", "c", "d"], n) for i in range(3)}
    begin = dt.datetime(2024, 1, 1)
    minutes = rng.integers(0, 500_000, n)
    columns["when"] = [str(begin + dt.timedelta(minutes=int(m))) for m in minutes]
    columns["active"] = rng.choice(["yes", "no"], n)
    columns["label"] = np.where(np.arange(n) % 50 == 0, 1, 0)
    return pa.table(columns)


def best(work: Callable[[], object], rounds: int = 3, times: int = 1) -> float:
    seconds = []
    for _ in range(rounds):
        started = used()
        for _ in range(times):
            work()
        seconds.append((used() - started) / times)
    return min(seconds)


def used() -> float:
    """Return the seconds that processors worked for this process and those it started."""
    times = os.times()
    return sum(times[:4])


def run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return done.stdout


def measured(
    model: TableModel, data: pa.Table, folder: Path, lite: str
) -> list[dict[str, Any]]:
    method, file = model.detector.method, folder / "model.onnx"
    done = export(model, file, force=True)
    model.save(folder / method)
    small = load(file, threads=1)
    rows: dict[str, Any] = {
        name: column.to_numpy() if pa.types.is_floating(column.type) else column.to_pylist()
        for name, column in zip(data.column_names, data.columns, strict=True)
    }
    ours, theirs = small.score(rows), model.anomaly_score(data)
    off = np.abs(ours["anomaly_score"] / theirs - 1)
    flags = model.detector.decision_.flag(theirs)
    exported = {
        "file_mb": done.n_bytes / 1e6,
        "largest_relative_difference": float(off.max()),
        "rows_beyond_1e-5": int((off > 1e-5).sum()),
        "decisions_that_differ": int((flags != ours["is_anomaly"]).sum()),
        "open_seconds": best(partial(load, file, threads=1), times=5),
    }
    alone = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" or lite == sys.executable}
    own = [sys.executable, "-c", "from aloof.cli import command; command()"]
    scorers: dict[str, Any] = {
        "aloof-lite": (
            lambda n: small.score({name: values[:n] for name, values in rows.items()}),
            [lite, "-m", "aloof.lite", "score", str(file), "--threads", "1"],
            alone,
        ),
        "aloof": (
            lambda n: model.anomaly_score(data.slice(0, n)),
            [*own, "score", str(folder / method), "--reasons", "0", "--device", "cpu"],
            dict(os.environ),
        ),
    }
    runs = []
    for name, (score, command, environment) in scorers.items():
        speeds = {  # the clock of processors ticks a hundred times a second
            n: n / best(partial(score, n), times=times)
            for n, times in ((ONE, 200), (SOME, 10), (data.num_rows, 1))
        }
        seconds = {}
        for csv in ("one.csv", "new.csv"):
            whole = [*command, str(folder / csv), "--out", str(folder / "out.csv"), "--force"]
            seconds[csv] = best(partial(run, whole, environment))
        runs.append(
            {
                "method": method,
                "scorer": name,
                "rows_per_cpu_second_1": speeds[ONE],
                "rows_per_cpu_second_1000": speeds[SOME],
                "rows_per_cpu_second_all": speeds[data.num_rows],
                "one_row_seconds": seconds["one.csv"],
                "file_seconds": seconds["new.csv"],
                **(exported if name == "aloof-lite" else {}),
            }
        )
        print(json.dumps(runs[-1], indent=1), flush=True)
    return runs


def compared(name: str) -> list[dict[str, Any]]:
    """Score all rows of an ODDS set both ways; learn from some of them, with few labels."""
    data = load_dataset(name)
    rng = np.random.default_rng(0)
    known = rng.permutation(len(data.X))[: min(4000, 3 * len(data.X) // 5)]
    labelled = (data.y[known] == 1) & (rng.uniform(size=len(known)) < 0.1)
    labelled[np.flatnonzero(data.y[known] == 1)[:2]] = True
    known, labels = known[keep := (data.y[known] == 0) | labelled], labelled[keep].astype(int)
    runs = []
    for method, kind in DETECTORS.items():
        detector = kind(max_epochs=30, random_state=0, device="cpu")
        detector.fit(data.X[known], None if method == "vae" else labels)
        small = opened(Path(f"{name}.onnx"), to_onnx(detector))
        ours, theirs = small.score(data.X), detector.anomaly_score(data.X)
        off = np.abs(ours["anomaly_score"] / theirs - 1)
        flags = detector.decision_.flag(theirs)
        runs.append(
            {
                "data": name,
                "method": method,
                "rows": len(data.X),
                "largest_relative_difference": float(off.max()),
                "rows_beyond_1e-5": int((off > 1e-5).sum()),
                "decisions_that_differ": int((flags != ours["is_anomaly"]).sum()),
            }
        )
        print(json.dumps(runs[-1]), flush=True)
    return runs


def installed(lite: str) -> float:
    """Return the MB of all packages beside an interpreter, without installers and bytecode."""
    files = json.loads(run([lite, "-c", SIZE], {}))
    return (
        sum(
            size
            for name, size in files
            if not name.startswith(INSTALLERS) and not name.endswith(".pyc")
        )
        / 1e6
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lite", default=sys.executable)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--odds", default="", help="names of data sets, with commas")
    given = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    warnings.simplefilter("ignore")
    began = os.getloadavg()
    data = table(given.rows, 1).drop_columns(["label"])
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pa_csv.write_csv(data, folder / "new.csv")
        pa_csv.write_csv(data.slice(0, 1), folder / "one.csv")
        for method in ("dp", "committee"):
            model: Any = aloof.fit(
                table(3000, 0), label="label", method=method, max_epochs=15, device="cpu"
            )
            runs += measured(model, data, folder, given.lite)
    found = {
        "rows": given.rows,
        "installed_mb": installed(given.lite) if given.lite != sys.executable else None,
        "load_average": began,
        **provenance(),
        "runs": runs,
        "odds": [run for name in filter(None, given.odds.split(",")) for run in compared(name)],
    }
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
