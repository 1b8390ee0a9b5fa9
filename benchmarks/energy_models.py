"""DSEBM, DAGMM and Inclusive-NRF as published, on data of their papers, beside their figures.

    python benchmarks/energy_models.py --method dagmm --dataset thyroid --epochs 200
    python benchmarks/energy_models.py --method inclusive-nrf --dataset cifar10 --runs 1

Tables, by the protocol of Zong et al.: of each run a random half of the rows is for training,
and of these only normal ones are used; the other half is for testing. As many test rows are
taken for anomalies as there are: 2.5 % of thyroid, 15 % of arrhythmia. Their F1 is a mean of 20
runs. They do not say how columns were scaled; here it is by the rows learned from, to [0, 1] or
to a mean of 0 and a variance of 1. Halves have the same share of anomalies.

Images, by that of Ruff et al.: all training images of a class are normal, and the test images
of all classes are scored, for each class in turn.

All runs train as one stack where they have as many rows. Scores are those of the last epoch.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score, roc_auc_score

from aloof.baselines import BASELINES, DeepBaseline, dagmm, dsebm, inclusive_nrf
from aloof.datasets import ImageDataset, load_dataset
from aloof.problem import Problem

PUBLISHED: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "dagmm": dagmm.PUBLISHED,
    "dsebm": dsebm.PUBLISHED,
    "inclusive-nrf": inclusive_nrf.PUBLISHED,
}
# F1 of tables, of Zong et al.; mean AUROC of images, of Song and Ou and of Golan and El-Yaniv.
FIGURES = {
    ("dagmm", "thyroid"): 0.4782,
    ("dagmm", "arrhythmia"): 0.4983,
    ("inclusive-nrf", "mnist"): 0.9526,
    ("inclusive-nrf", "cifar10"): 0.700,
    ("dsebm", "cats-vs-dogs"): 0.516,
    ("dagmm", "cats-vs-dogs"): 0.477,
}
ANOMALIES = {"thyroid": 0.025, "arrhythmia": 0.15}
IMAGES = ("mnist", "fashion-mnist", "cifar10", "cats-vs-dogs")


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", choices=PUBLISHED, required=True)
    parser.add_argument("--dataset", choices=[*ANOMALIES, *IMAGES], required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epochs", type=int, help="in place of what was published")
    parser.add_argument("--scaling", choices=["unit", "standard"], default="unit")
    parser.add_argument("--changes", type=json.loads, default={}, help="of parameters, as JSON")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    own = dict(PUBLISHED[options.method].get(options.dataset, {}))
    if options.epochs is not None:
        own["max_epochs"] = options.epochs
    baseline = BASELINES[options.method](**own | options.changes, device=options.device)
    assert isinstance(baseline, DeepBaseline)
    started = time.perf_counter()
    if options.dataset in ANOMALIES:
        found = on_table(baseline, options.dataset, options.scaling, options.runs)
    else:
        found = on_images(baseline, options.dataset, options.runs)
    for name, values in found.items():
        print(f"{name:12} {np.mean(values):.4f} +- {np.std(values):.4f}")
    figure = FIGURES.get((options.method, options.dataset))
    print(f"published    {'unknown' if figure is None else f'{figure:.4f}'}")
    print(f"{baseline}: {time.perf_counter() - started:.0f} s")


def on_table(
    baseline: DeepBaseline, dataset: str, scaling: str, runs: int
) -> dict[str, list[float]]:
    """Return F1 and AUROC of each run."""
    table = load_dataset(dataset)
    blocks, problems, tests = [], [], []
    for seed in range(runs):
        normal, test = halves(table.y, seed)
        blocks.append(scaled(table.X, normal, scaling))
        problems.append(Problem(normal=normal + seed * len(table.X), seeds=(seed,)))
        tests.append(test)
    data = torch.from_numpy(np.concatenate(blocks).astype(np.float32))
    fitted = baseline.fit_problems(data, problems)
    found: dict[str, list[float]] = {"F1": [], "AUROC": []}
    for own, block, test in zip(fitted, blocks, tests, strict=True):
        scores, truth = own.score(block[test])[0], table.y[test]
        flagged = np.zeros_like(truth)
        flagged[np.argsort(-scores)[: round(ANOMALIES[dataset] * len(truth))]] = 1
        found["F1"].append(float(f1_score(truth, flagged)))
        found["AUROC"].append(float(roc_auc_score(truth, scores)))
    return found


def halves(y: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the normal rows of one half, and the other half."""
    rng = np.random.default_rng(seed)
    parts = [rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)]
    test = np.concatenate([part[len(part) // 2 :] for part in parts])
    return parts[0][: len(parts[0]) // 2], test


def scaled(X: NDArray[np.float64], rows: NDArray[np.int64], how: str) -> NDArray[np.float64]:
    """Scale all rows by some of them; columns that are constant there become 0."""
    own = X[rows]
    low, spread = (own.min(0), np.ptp(own, 0)) if how == "unit" else (own.mean(0), own.std(0))
    return np.where(spread > 0, (X - low) / np.where(spread > 0, spread, 1.0), 0.0)


def on_images(baseline: DeepBaseline, dataset: str, runs: int) -> dict[str, list[float]]:
    """Return the AUROC of each run, by class and of all; in bfloat16 on a GPU."""
    data = load_dataset(dataset)
    assert isinstance(data, ImageDataset)
    if torch.cuda.is_available() and baseline.device in ("auto", "cuda"):
        baseline.set_params(precision="bfloat16")
    problems = [
        Problem(normal=np.flatnonzero(data.train_labels == k), seeds=range(runs))
        for k in range(len(data.classes))
    ]
    fitted = baseline.fit_problems(torch.from_numpy(data.train), problems)
    found = {}
    for k, own in enumerate(fitted):
        truth = data.test_labels != k
        found[data.classes[k]] = [roc_auc_score(truth, s) for s in own.score(data.test)]
    found["AUROC"] = [float(np.mean(values)) for values in zip(*found.values(), strict=True)]
    return found


if __name__ == "__main__":
    main()
