"""What each view of a committee is worth: alone, and to the others.

    python benchmarks/committee.py --tasks wdbc,yeast3 --out results/committee.jsonl

Fits a committee to development tasks (see `aloof bench tables`) and records the AUROC and the
average precision of the whole, of every view alone, of the trees alone, of the whole without
each of them, and of other ways to combine them. So it does for what a committee does not have:
the contrast of distances to normal rows and to labelled anomalies, of values and of the plain
VAE's codes, as a third voice beside the two sets of trees; and nearest neighbours among those
codes, beside the neighbours among values and in their place. All come from one fit: the
evidence of views that were left out is left out of the mean. Results go to a file of JSON
lines; what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof import Committee
from aloof.bench.provenance import device_of, provenance
from aloof.bench.specification import specify
from aloof.bench.tabular import TablesSpecification, make_tables
from aloof.bench.trials import Trial
from aloof.calibration import Evidence
from aloof.shallow import Neighbours

Scores = NDArray[np.float64]


MOST_NEIGHBOURS = 1024


def voices(committee: Committee, trial: Trial) -> Iterator[tuple[str, Scores]]:
    """Yield what the whole says of rows, each part alone, and the rest without it."""
    seen = committee._see(trial.X_test)
    views = {name: committee._evidence[name](s) for name, s in seen.scores.items()}
    trees = {
        name: committee._evidence[name](forest.score(seen.by_trees(name)))
        for name, forest in committee._forests.items()
    }
    yield "committee", whole(views, trees, committee.tree_weight_)
    for name, evidence in {**views, **trees}.items():
        yield name, evidence
        others = whole(without(views, name), without(trees, name), committee.tree_weight_)
        yield f"without {name}", others
    parts = [*views.values(), *trees.values()]
    yield "views alone", whole(views, {}, 0.0)
    yield "mean of ranks", np.mean([rankdata(part) for part in parts], axis=0)
    yield "mean of all", np.mean(parts, axis=0)
    yield "largest of all", np.max(parts, axis=0)
    for name, evidence in distances(committee, trial):
        yield name, evidence
        if name == "neighbours of codes":
            more = {**views, name: evidence}
            yield f"with {name}", whole(more, trees, committee.tree_weight_)
            instead = without(more, "neighbours")
            yield f"{name} instead", whole(instead, trees, committee.tree_weight_)
        else:
            more = {**trees, name: evidence}
            yield f"with {name}", whole(views, more, committee.tree_weight_)


def distances(committee: Committee, trial: Trial) -> Iterator[tuple[str, Scores]]:
    """Yield the evidence of distances, weighed by training rows that are not anomalies."""
    plain = dict(committee._views()).get("plain", committee)
    spaces = {
        "values": committee.scaling_.transform,
        "codes": lambda X: np.concatenate(plain.latent(X), axis=1),
    }
    anomalies = np.flatnonzero(trial.y == 1)
    trusted = np.setdiff1d(np.flatnonzero(trial.y != 1), committee.suspects_)
    near = np.random.default_rng(0).permutation(trusted)[:MOST_NEIGHBOURS]
    own = np.full(len(trial.X), -1)
    own[near] = np.arange(len(near))
    for name, look in spaces.items():
        rows, new = look(trial.X), look(trial.X_test)
        normal, labelled = Neighbours(rows[near]), Neighbours(rows[anomalies], k=1)
        known = contrast(normal, labelled, rows, own)[trial.y != 1]
        called = "contrast" if name == "values" else f"contrast of {name}"
        yield called, Evidence.fit(known)(contrast(normal, labelled, new))
        if name == "codes":  # a committee has those of values
            far = normal.distance(rows, own)[trial.y != 1]
            yield "neighbours of codes", Evidence.fit(far)(normal.distance(new))


def contrast(
    normal: Neighbours, labelled: Neighbours, rows: Scores, own: NDArray[np.int64] | None = None
) -> Scores:
    """Return how much nearer labelled anomalies are than normal rows, as a logarithm."""
    least = 1e-6 * np.sqrt(rows.shape[1])
    distances = normal.distance(rows, own), labelled.distance(rows)
    far, close = (np.log(np.maximum(distance, least)) for distance in distances)
    found: Scores = far - close
    return found


def whole(views: Mapping[str, Scores], trees: Mapping[str, Scores], weight: float) -> Scores:
    total: Scores = np.mean(list(views.values()), axis=0)
    return total + weight * np.mean(list(trees.values()), axis=0) if trees else total


def without(parts: Mapping[str, Scores], name: str) -> dict[str, Scores]:
    return {other: part for other, part in parts.items() if other != name}


def measured(trial: Trial) -> dict[str, Any]:
    """Fit a committee, and return what it found and how well each voice does."""
    committee = trial.detector.fit(trial.X, trial.y)
    return {
        "tree_weight": committee.tree_weight_,
        "hidden_share": committee.hidden_share_,
        "device": device_of(committee),
        "voices": [
            {
                "voice": name,
                "auroc": float(roc_auc_score(trial.y_test, scores)),
                "average_precision": float(average_precision_score(trial.y_test, scores)),
            }
            for name, scores in voices(committee, trial)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default="development", help="with commas between")
    parser.add_argument("--protocols", default="known,novel,hidden")
    parser.add_argument("--labels", default="5,0.05", help="numbers, or shares below 1")
    parser.add_argument("--hidden", default="0.05,0.1")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    parser.add_argument("--out", type=Path, default=Path("committee.jsonl"))
    options = parser.parse_args()
    given: dict[str, Any] = {
        "methods": ["committee"],
        "tasks": options.tasks.split(","),
        "protocols": options.protocols.split(","),
        "labels": [float(part) for part in options.labels.split(",")],
        "hidden": [float(part) for part in options.hidden.split(",")],
        "seeds": options.seeds,
    }
    study = make_tables(specify(TablesSpecification, given))
    options.out.touch()
    found = {
        (r["task"], r["protocol"], r["labels"], r["hidden"], r["seed"])
        for r in map(json.loads, options.out.read_text().splitlines())
    }
    todo = {}
    for case in study.cases:
        place = (case.task, case.protocol, case.labels, case.hidden, case.seed)
        if place not in found and not study.infeasible(case):
            todo[place] = study.trial(case, device=options.device)
    with ProcessPoolExecutor(options.jobs) as pool:
        running = {pool.submit(measured, trial): place for place, trial in todo.items()}
        for finished in as_completed(running):
            place, result = running[finished], finished.result()
            described = dict(
                zip(("task", "protocol", "labels", "hidden", "seed"), place, strict=True)
            )
            lines = [
                {**described, **result, **voice, **provenance()}
                for voice in result.pop("voices")
            ]
            with options.out.open("a") as file:
                file.write("".join(json.dumps(line) + "\n" for line in lines))
            print(*place, flush=True)


if __name__ == "__main__":
    main()
