"""Scoring: rows per second against forests, and memory that does not grow.

    python benchmarks/scoring.py [--rows 1000000] [--threads 1,2] [--out FILE]

A detector of five members, in float32 and, as before, in float64; without the aggregate prior;
its explanations; what it is distilled to; the same of a committee; and forests of 100 trees.
All take the same float32 array in one process, in turns; the best of several rounds counts.
Memory is the peak of the resident set above what it was with the input loaded, read while rows
are scored. What is slow gets fewer rows.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest, RandomForestClassifier

from aloof import Committee, DualPriorVAE
from aloof.bench.provenance import provenance

N_FEATURES = 30


def resident() -> float:
    """Return the resident set in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def watched(work: Callable[[], object]) -> tuple[float, float, float]:
    """Return the seconds `work` takes, those of the processor, and the MB it adds at most."""
    gc.collect()
    before, peak, done = resident(), 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, resident())

    thread = threading.Thread(target=watch)
    thread.start()
    started, used = time.perf_counter(), time.process_time()
    work()
    seconds, used = time.perf_counter() - started, time.process_time() - used
    done.set()
    thread.join()
    return seconds, used, max(0.0, peak - before)


def rows(n: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((n, N_FEATURES), dtype=np.float32)


def scorers(threads: int) -> dict[str, tuple[Callable[[NDArray[np.float32]], object], int]]:
    """Return what scores rows, by name, and the share of the rows that is enough for it."""
    train, labels = rows(5000, 0), np.zeros(5000)
    train[:9] += 3
    labels[:9] = 1
    detector = DualPriorVAE(max_epochs=6, random_state=0).fit(train, labels)
    committee = Committee(max_epochs=6, random_state=0).fit(train, labels)
    plain = DualPriorVAE(max_epochs=6, random_state=0, aggregate_prior=0).fit(train, labels)
    trees = RandomForestClassifier(random_state=0, class_weight="balanced", n_jobs=threads)
    forest = IsolationForest(random_state=0, n_jobs=threads).fit(train)

    def wide(X: NDArray[np.float32]) -> object:
        return detector._scorer._wide_scores(detector._reader(X), len(X))

    return {
        "DualPriorVAE": (detector.score_samples, 1),
        "float64": (wide, 8),
        "without aggregate prior": (plain.score_samples, 1),
        "distilled": (detector.distil(train, labels).score_samples, 1),
        "explain": (detector.explain, 4),
        "Committee": (committee.score_samples, 8),
        "Committee, distilled": (committee.distil(train, labels).score_samples, 1),
        "Committee, explain": (committee.explain, 32),
        "IsolationForest": (forest.score_samples, 1),
        "RandomForestClassifier": (trees.fit(train, labels).predict_proba, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="detectors whose names contain this")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    options = parser.parse_args()
    X = rows(options.rows, 1)
    print(
        f"{'threads':>8}{'detector':>26}{'rows/s':>12}{'rows/cpu s':>12}{'MB above input':>16}"
    )
    runs: list[dict[str, object]] = []
    for threads in map(int, options.threads.split(",")):
        torch.set_num_threads(threads)
        taken = {k: v for k, v in scorers(threads).items() if options.only in k}
        outcomes: dict[str, list[tuple[float, float, float]]] = {name: [] for name in taken}
        for _ in range(options.rounds):
            for name, (score, share) in taken.items():
                outcomes[name].append(watched(partial(score, X[: len(X) // share])))
        for name, found in outcomes.items():
            n = len(X) // taken[name][1]
            seconds, used = (min(o[part] for o in found) for part in (0, 1))
            memory = max(o[2] for o in found)
            speed = {"rows_per_second": n / seconds, "rows_per_cpu_second": n / used}
            place = {"detector": name, "threads": threads, "rows": n}
            runs.append({**place, **speed, "mb_above_input": memory})
            print(
                f"{threads:>8}{name:>26}{n / seconds:>12,.0f}{n / used:>12,.0f}{memory:>12.0f}",
                flush=True,
            )
    if options.out is not None:
        load = os.getloadavg()
        found = {"load_average": load, **provenance(), "runs": runs}
        options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
