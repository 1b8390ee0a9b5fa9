"""Decisions: the false discovery rate that comes out, and what hidden anomalies cost.

    python benchmarks/discoveries.py [--out FILE]

A small `DualPriorVAE` decides on 160 normal rows and 20 anomalies, over 200 fresh calibration
sets of 400 rows; once with normal rows alone among these, once with eight anomalies in hiding.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from aloof import DualPriorVAE
from aloof.bench.provenance import provenance
from aloof.bench.statistics import moments

ROUNDS = 200
MIX = np.random.default_rng(99).normal(size=(3, 6))


def normal(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, 3)) @ MIX + 0.3 * rng.normal(size=(n, 6))


def anomalous(n: int, rng: np.random.Generator) -> np.ndarray:
    return 4 * rng.normal(size=(n, 6)) + 6


def run(model: DualPriorVAE, target: float, hidden: int) -> dict[str, float]:
    rng = np.random.default_rng(2)
    truth = np.arange(180) >= 160
    shares, found = [], []
    for _ in range(ROUNDS):
        model.calibrate(np.r_[normal(400 - hidden, rng), anomalous(hidden, rng)])
        model.set_threshold(fdr=target)
        flagged = model.predict(np.r_[normal(160, rng), anomalous(20, rng)]) == -1
        shares.append((flagged & ~truth).sum() / max(1, flagged.sum()))
        found.append(flagged[truth].mean())
    rate = moments(shares)
    return {
        "target": target,
        "hidden": hidden,
        "rounds": ROUNDS,
        "false_discovery_rate": rate.mean,
        "standard_error": rate.sem,
        "found": float(np.mean(found)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X, y = np.r_[normal(400, rng), anomalous(8, rng)], np.r_[np.zeros(400), np.ones(8)]
    small = {"n_members": 2, "hidden": (16,), "latent_dim": 4, "max_epochs": 30}
    model = DualPriorVAE(**small, random_state=0).fit(X, y)
    runs = [run(model, target, hidden) for target in (0.05, 0.2) for hidden in (0, 8)]
    for record in runs:
        print(json.dumps(record))
    if options.out is not None:
        options.out.write_text(json.dumps({**provenance(), "runs": runs}, indent=2) + "\n")


if __name__ == "__main__":
    main()
