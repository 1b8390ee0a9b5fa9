"""DAGMM and DSEBM on two tables of DAGMM's paper, by its protocol, beside its figures.

    python benchmarks/energy_models.py --dataset thyroid --method dagmm --epochs 20000

Of each run a random half of the rows is for training, and of these only normal ones are used;
the other half is for testing. As many test rows are taken for anomalies as there are: 2.5 % of
thyroid, 15 % of arrhythmia. Zong et al. have means of 20 runs. They do not say how columns were
scaled; here it is by the rows learned from, to [0, 1] or to a mean of 0 and a variance of 1.
All runs train as one stack. Results of a last epoch; nothing is chosen by test rows.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support, roc_auc_score

from aloof.baselines import BASELINES, DeepBaseline
from aloof.baselines.dagmm import PUBLISHED
from aloof.datasets import load_dataset
from aloof.problem import Problem

# Precision, recall and F1 of Zong et al., 2018, table 2.
PAPER = {
    ("dagmm", "thyroid"): (0.4766, 0.4834, 0.4782),
    ("dagmm", "arrhythmia"): (0.4909, 0.5078, 0.4983),
    ("dsebm-e", "thyroid"): (0.1319, 0.1319, 0.1319),
    ("dsebm-e", "arrhythmia"): (0.4667, 0.4565, 0.4601),
    ("dsebm-r", "thyroid"): (0.0404, 0.0403, 0.0403),
    ("dsebm-r", "arrhythmia"): (0.1515, 0.1513, 0.1510),
}
SHARE = {"thyroid": 0.025, "arrhythmia": 0.15}
METHODS = ("dagmm", "dsebm-e", "dsebm-r", "inclusive-nrf")
SCALINGS = ("standard", "unit")


def halves(y: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the normal rows of one half, and the other half, with as many anomalies each."""
    rng = np.random.default_rng(seed)
    parts = [rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)]
    test = np.concatenate([part[len(part) // 2 :] for part in parts])
    return parts[0][: len(parts[0]) // 2], test


def scaled(X: NDArray[np.float64], rows: NDArray[np.int64], how: str) -> NDArray[np.float64]:
    """Scale all rows by some of them; columns that are constant there become 0."""
    own = X[rows]
    low, spread = (own.min(0), np.ptp(own, 0)) if how == "unit" else (own.mean(0), own.std(0))
    return np.where(spread > 0, (X - low) / np.where(spread > 0, spread, 1.0), 0.0)


def baseline(method: str, dataset: str, epochs: int, changes: dict[str, Any]) -> DeepBaseline:
    own: dict[str, Any] = dict(PUBLISHED[dataset])  # DSEBM: with DAGMM's batches and rate
    if method != "dagmm":
        del own["hidden"]
    if method == "dsebm-r":
        own["criterion"] = "reconstruction"
    made = BASELINES[method.removesuffix("-e").removesuffix("-r")](**own)
    made.set_params(max_epochs=epochs, device="cpu", **changes)
    assert isinstance(made, DeepBaseline)
    return made


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", choices=SHARE, default="thyroid")
    parser.add_argument("--method", choices=METHODS, default="dagmm")
    parser.add_argument("--scaling", choices=SCALINGS, default="standard")
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    report(options.method, options.dataset, options.scaling, options.epochs, options.runs, {})


def report(
    method: str, dataset: str, scaling: str, epochs: int, runs: int, changes: dict[str, Any]
) -> None:
    table = load_dataset(dataset)
    started = time.perf_counter()
    blocks, problems, tests = [], [], []
    for seed in range(runs):
        normal, test = halves(table.y, seed)
        blocks.append(scaled(table.X, normal, scaling))
        problems.append(Problem(normal=normal + seed * len(table.X), seeds=(seed,)))
        tests.append(test)
    data = torch.from_numpy(np.concatenate(blocks).astype(np.float32))
    fitted = baseline(method, dataset, epochs, changes).fit_problems(data, problems)
    found = []
    for own, block, test in zip(fitted, blocks, tests, strict=True):
        scores, truth = own.score(block[test])[0], table.y[test]
        flagged = np.zeros_like(truth)
        flagged[np.argsort(-scores)[: round(SHARE[dataset] * len(truth))]] = 1
        measures = precision_recall_fscore_support(truth, flagged, average="binary")[:3]
        found.append([*measures, roc_auc_score(truth, scores)])
    mean, spread = np.mean(found, 0), np.std(found, 0, ddof=1)
    for number, name in enumerate(("precision", "recall", "F1", "AUROC")):
        paper = PAPER.get((method, dataset), ())
        beside = f"  (paper {paper[number]:.4f})" if number < len(paper) else ""
        print(f"{name:10} {mean[number]:.4f} +- {spread[number]:.4f}{beside}")
    print(
        f"{method} on {dataset}, {scaling}, {runs} runs, {epochs} epochs: "
        f"{time.perf_counter() - started:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
