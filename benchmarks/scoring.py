"""Scoring: rows per second against IsolationForest, and memory that does not grow.

    python benchmarks/scoring.py [--rows 1000000] [--out FILE]

Detectors of five members, with and without the aggregate prior, and a forest score the same
float32 array in one process, in turns; the best of three rounds counts. Memory is the peak of
the resident set above what it was with the input loaded, read while `score_samples` runs.
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
from sklearn.ensemble import IsolationForest

from aloof import DualPriorVAE
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    train = rows(5000, 0)
    labels = np.zeros(len(train))
    train[:9] += 3
    labels[:9] = 1
    detector = DualPriorVAE(max_epochs=6, random_state=0).fit(train, labels)
    plain = DualPriorVAE(max_epochs=6, random_state=0, aggregate_prior=0).fit(train, labels)
    forest = IsolationForest(random_state=0).fit(train)
    print(f"{'rows':>10}{'detector':>26}{'rows/s':>12}{'rows/cpu s':>12}{'MB above input':>16}")
    speeds: dict[str, float] = {}
    runs: list[dict[str, object]] = []
    for n in (options.rows // 10, options.rows):
        X = rows(n, 1)
        for name, score in (
            ("DualPriorVAE", detector.score_samples),
            ("without aggregate prior", plain.score_samples),
            ("IsolationForest", forest.score_samples),
        ):
            outcomes = [watched(partial(score, X)) for _ in range(3)]
            seconds, used = (min(o[part] for o in outcomes) for part in (0, 1))
            memory = max(o[2] for o in outcomes)
            speeds[name] = n / used
            runs.append(
                {
                    "detector": name,
                    "rows": n,
                    "rows_per_second": n / seconds,
                    "rows_per_cpu_second": n / used,
                    "mb_above_input": memory,
                }
            )
            print(
                f"{n:>10}{name:>26}{n / seconds:>12,.0f}{n / used:>12,.0f}{memory:>16.0f}",
                flush=True,
            )
    ours, theirs = speeds["DualPriorVAE"], speeds["IsolationForest"]
    print(f"DualPriorVAE scores {ours / theirs:.2f}x as many rows per CPU second.")
    if options.out is not None:
        load = os.getloadavg()
        found = {"threads": options.threads, "load_average": load, **provenance(), "runs": runs}
        options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
