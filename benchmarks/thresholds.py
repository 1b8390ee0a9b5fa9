"""Thresholds: how many new normal rows are above a level for 1 %, for 5 %, and so on.

    python benchmarks/thresholds.py [--tasks pima,german] [--out FILE]

Fits detectors to at most 700 normal rows and 10 labelled anomalies of development tasks (see
`aloof bench tables`), and counts normal rows that they never saw above the levels for several
shares: those set after `fit`, and those set by `calibrate` with at most 200 other normal rows.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from aloof import Committee, DualPriorVAE
from aloof.bench.provenance import provenance
from aloof.bench.tabular.development import DEVELOPMENT

TASKS = "pima,yeast1,winequality-red-4,phoneme,vowel0,german,page-blocks0,segment-4v3"
SHARES = (0.01, 0.05, 0.1, 0.2)
FITTED, LABELLED, CALIBRATION = 700, 10, 200


def counted(name: str) -> list[dict[str, Any]]:
    """Return the shares of new normal rows above each level, of two detectors on a task."""
    task = DEVELOPMENT[name].load()
    rng = np.random.default_rng(0)
    normal = rng.permutation(np.flatnonzero(task.y == 0))
    anomalies = rng.permutation(np.flatnonzero(task.y == 1))[:LABELLED]
    n = min(FITTED, len(normal) // 2)
    kept = min(CALIBRATION, (len(normal) - n) // 3)
    fitted, calibration, new = np.split(normal, [n, n + kept])
    X, y = task.X[np.r_[fitted, anomalies]], np.repeat([0, 1], [n, len(anomalies)])
    runs = []
    for kind in (DualPriorVAE, Committee):
        detector = kind(random_state=0).fit(X, y)
        scores = detector.anomaly_score(task.X[new])
        for calibrated in (False, True):
            if calibrated:
                detector.calibrate(task.X[calibration])
            for share in SHARES:
                level = -detector.set_threshold(share=share).offset_
                runs.append(
                    {
                        "task": name,
                        "method": detector.method,
                        "calibrated": calibrated,
                        "share": share,
                        "above": float((scores > level).mean()),
                        "rows": n,
                        "calibration_rows": kept,
                        "new_rows": len(new),
                    }
                )
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default=TASKS, help="with commas between")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # 83 rows are few for 1 %
    runs: list[dict[str, Any]] = []
    for name in options.tasks.split(","):
        runs += counted(name)
        print(json.dumps(runs[-len(SHARES) :]), flush=True)
    for method in ("dp", "committee"):
        for calibrated in (False, True):
            own = [r for r in runs if (r["method"], r["calibrated"]) == (method, calibrated)]
            said = (
                f"{share:.0%}: {np.mean([r['above'] for r in own if r['share'] == share]):.1%}"
                for share in SHARES
            )
            print(method, "calibrated" if calibrated else "after fit", *said)
    if options.out is not None:
        options.out.write_text(json.dumps({**provenance(), "runs": runs}, indent=2) + "\n")


if __name__ == "__main__":
    main()
