"""What a fit costs: time, memory and disk of the default, of DP-VAE alone and of peers.

    python benchmarks/costs.py [--methods committee,dp] [--datasets cardio] [--out FILE]

The six ODDS sets, 1 % of labels, the first split, one thread. Every system has a process of its
own for every set. Memory is the peak of the resident set above what it was before the fit, with
the data and torch loaded. Size on disk is that of the saved model, or of the pickled peer; for
TabPFN that includes its weights. Of large sets, 3,000 training and 3,000 test rows are drawn. A
system that cannot run, for want of a package, of weights or of other things, is left out
and the file says why. At the end come tables in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from aloof.bench.odds.specification import OddsSpecification
from aloof.bench.odds.study import make_odds
from aloof.bench.provenance import provenance
from aloof.exceptions import AloofError, ExperimentError

METHODS = "committee,dp,xgbod,tabpfn-v1,lightgbm"
DATASETS = "arrhythmia,cardio,satellite,satimage-2,shuttle,thyroid"

# Scores are taken again until so many seconds of the processor have been spent.
ENOUGH = 0.5


def memory(field: str) -> float:
    """Return VmRSS or VmHWM, the resident set and its peak, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def used() -> float:
    """Return the seconds of the processor, with those of processes that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what `work` returns, its seconds, and those of the processor."""
    started, before = time.perf_counter(), used()
    found = work()
    return found, time.perf_counter() - started, used() - before


def size_of(detector: Any) -> float:
    """Return the MB that a fitted detector has on disk."""
    if not hasattr(detector, "save"):
        return len(pickle.dumps(detector)) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        detector.save(Path(folder) / "model")
        files = (Path(folder) / "model").rglob("*")
        return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def some(y: NDArray[Any], most: int, labels: bool) -> NDArray[np.int64]:
    """Return which rows are taken: at most so many, and every labelled anomaly of training."""
    rng = np.random.default_rng(0)
    kept = np.flatnonzero(y == 1) if labels else np.empty(0, np.int64)
    others = np.setdiff1d(np.arange(len(y)), kept)
    n = max(0, min(len(others), most - len(kept)))
    return np.sort(np.r_[kept, rng.choice(others, n, replace=False)])


def measured(dataset: str, method: str, most: int) -> dict[str, Any]:
    """Fit a system in this process, score the test rows, and return what that took."""
    warnings.simplefilter("ignore")
    study = make_odds(OddsSpecification(datasets=[dataset], methods=[method], seeds=1))
    if reason := study.infeasible(study.cases[0]):
        raise ExperimentError(reason)
    trial = study.trial(study.cases[0], device="cpu")
    train, test = some(trial.y, most, labels=True), some(trial.y_test, most, labels=False)
    X, y, X_test, truth = trial.X[train], trial.y[train], trial.X_test[test], trial.y_test[test]
    before = memory("VmRSS")
    detector, seconds, cpu = timed(lambda: trial.detector.fit(X, y))
    fitting = memory("VmHWM")
    rounds: list[tuple[float, float]] = []
    while not rounds or sum(each[1] for each in rounds) < ENOUGH:
        scores, wall, score_cpu = timed(lambda: detector.anomaly_score(X_test))
        rounds.append((wall, score_cpu))
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "labelled": int((y == 1).sum()),
        "test_rows": len(X_test),
        "auroc": 100 * float(roc_auc_score(truth, scores)),
        "fit_seconds": seconds,
        "fit_cpu_seconds": cpu,
        "fit_mb": fitting - before,
        "peak_mb": memory("VmHWM"),
        "disk_mb": size_of(detector),
        "score_us_per_row": 1e6 * min(each[0] for each in rounds) / len(X_test),
        "score_cpu_us_per_row": 1e6 * min(each[1] for each in rounds) / len(X_test),
    }


def in_its_own_process(dataset: str, method: str, most: int) -> dict[str, Any]:
    """Return what a process that does nothing else measures."""
    command = [sys.executable, __file__, "--one", dataset, method, str(most)]
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env={**os.environ, **one}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return {"left_out": said[-1] if said else f"ended with {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def print_tables(runs: list[dict[str, Any]]) -> None:
    """Print tables for a document, tied to the file that holds the figures."""
    done = [run for run in runs if "left_out" not in run]
    methods = list(dict.fromkeys(run["method"] for run in done))
    figures = " | ".join(f"method={method} fit_cpu_seconds" for method in methods)
    print(f"\n<!-- figures: costs-cpu.json row=dataset | {figures} -->")
    print(f"| fit, CPU s | {' | '.join(methods)} |\n|---|{'---|' * len(methods)}")
    for dataset in dict.fromkeys(run["dataset"] for run in done):
        own = {r["method"]: r["fit_cpu_seconds"] for r in done if r["dataset"] == dataset}
        print(f"| {dataset} | {' | '.join(shown(own.get(method)) for method in methods)} |")
    measures = ("fit_mb", "disk_mb", "score_cpu_us_per_row")
    print(f"\n<!-- figures: costs-cpu.json dataset=* row=method | {' | '.join(measures)} -->")
    print("| mean over the sets | memory of a fit, MB | on disk, MB | score, CPU µs a row |")
    print("|---|---|---|---|")
    for method in methods:
        own_runs = [run for run in done if run["method"] == method]
        means = [float(np.mean([run[name] for run in own_runs])) for name in measures]
        print(f"| {method} | {' | '.join(map(shown, means))} |")


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.{0 if value >= 100 else 1}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default=METHODS, help="with commas between")
    parser.add_argument("--datasets", default=DATASETS, help="with commas between")
    parser.add_argument("--most", type=int, default=3000, help="rows of each part, at most")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        dataset, method, most = options.one
        try:
            print(json.dumps(measured(dataset, method, int(most))))
        except (AloofError, ImportError, ValueError) as wrong:
            sys.exit(str(wrong))
        return
    runs: list[dict[str, Any]] = []
    started = time.perf_counter()
    for dataset in options.datasets.split(","):
        for method in options.methods.split(","):
            found = in_its_own_process(dataset, method, options.most)
            runs.append({"dataset": dataset, "method": method, **found})
            print(json.dumps(runs[-1]), flush=True)
    print_tables(runs)
    if options.out is not None:
        about = {"seconds": time.perf_counter() - started, "load_average": os.getloadavg()}
        found = {**about, **provenance(), "runs": runs}
        options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
