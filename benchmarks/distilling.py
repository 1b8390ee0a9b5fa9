"""What speed costs: float32 against float64, and one distilled member against all of them.

    python benchmarks/distilling.py [--methods dp] [--splits 1] [--out FILE]

The six ODDS sets, 1 % of labels, default parameters, measures in %. `float64` is how much the
AUROC differs from that of scores computed in float64; `member` is the mean over members of what
each of them has alone. Of a committee, both are those of its DP-VAE.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.bench.odds.specification import OddsSpecification
from aloof.bench.odds.study import make_odds
from aloof.bench.provenance import provenance


def measures(truth: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    auroc, ap = roc_auc_score(truth, scores), average_precision_score(truth, scores)
    return {"auroc": 100 * auroc, "average_precision": 100 * ap}


def compared(trial: Any) -> dict[str, Any]:
    detector, X, truth = trial.detector.fit(trial.X, trial.y), trial.X_test, trial.y_test
    started = time.process_time()
    small = detector.distil(trial.X, trial.y)
    seconds = time.process_time() - started
    reader = detector._reader(X)
    wide = -detector._scorer._wide_scores(reader, len(X)).mean(0)
    alone = -detector._scorer.member_scores(reader, len(X))
    whole, fast = (measures(truth, each.anomaly_score(X)) for each in (detector, small))
    members = [measures(truth, scores) for scores in alone]
    narrow = measures(truth, alone.mean(0))
    return {
        **whole,
        "float64_auroc_difference": narrow["auroc"] - measures(truth, wide)["auroc"],
        **{f"distilled_{name}": value for name, value in fast.items()},
        **{f"distilled_{name}_difference": fast[name] - whole[name] for name in whole},
        **{
            f"member_{name}_difference": float(np.mean([m[name] for m in members]))
            - whole[name]
            for name in whole
        },
        "distil_cpu_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default="dp")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    options = parser.parse_args()
    study = make_odds(
        OddsSpecification(methods=options.methods.split(","), seeds=options.splits)
    )
    runs = []
    for case in study.cases:
        found = compared(study.trial(case, device="cpu"))
        place = {"dataset": case.dataset, "method": case.method, "seed": case.seed}
        runs.append({**place, **found})
        print(json.dumps(runs[-1]), flush=True)
    for name in (name for name in runs[0] if name.endswith("_difference")):
        values = [run[name] for run in runs]
        print(f"{name}: mean {np.mean(values):+.2f}, from {min(values):+.2f}")
    if options.out is not None:
        options.out.write_text(json.dumps({**provenance(), "runs": runs}, indent=2) + "\n")


if __name__ == "__main__":
    main()
