"""Fit, score, and take the measures: what is done for one group, in whichever process."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.baselines import fit_many as fit_baselines
from aloof.baselines import trains_networks
from aloof.bench.provenance import device_of
from aloof.bench.study import Outcome, Tell, epochs
from aloof.estimators import Detector, fit_many
from aloof.exceptions import AloofError

__all__ = ["Trial", "measure", "stacks"]


@dataclass(frozen=True, eq=False)
class Trial:
    """One method on one split.

    Attributes
    ----------
    detector
        Unfitted; has `fit` and `anomaly_score`.
    X, y
        Scaled training rows and the labels that training may know.
    X_test, y_test
        Scaled test rows and the truth.
    """

    detector: Any
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def stacks(detector: Any) -> bool:
    """Return whether fits of a detector to several splits are one computation."""
    return isinstance(detector, Detector) or trains_networks(detector)


def measure(trials: Sequence[Trial], tell: Tell) -> list[Outcome]:
    """Run trials, and return what goes into their records.

    What trains networks is trained as one stack, which takes `stacked` fits in the time of all;
    `fit_seconds` is a fit's share of it. Where a stack fails, its fits are run one by one, so
    that only those that are to blame have an error. An error is an outcome, not raised.
    """
    if len(trials) == 1 or not stacks(trials[0].detector):
        return [_guarded([trial], tell)[0] for trial in trials]
    outcomes = _guarded(trials, tell)
    if outcomes[0]["status"] == "error":
        return [_guarded([trial], tell)[0] for trial in trials]
    return outcomes


def _guarded(trials: Sequence[Trial], tell: Tell) -> list[Outcome]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcomes = _run(trials, tell)
        except Exception as error:  # whatever a method raises is a result about that method
            message = f"{type(error).__name__}: {error}"
            outcomes = [{"status": "error", "message": message} for _ in trials]
    texts = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    return [{**outcome, "warnings": texts} for outcome in outcomes]


def _run(trials: Sequence[Trial], tell: Tell) -> list[Outcome]:
    _reset_peak_memory()
    started = time.perf_counter()
    detectors = [trial.detector for trial in trials]
    data = [(trial.X, trial.y) for trial in trials]
    if isinstance(detectors[0], Detector):
        fit_many(detectors, data, on_epoch=epochs(tell))
    elif stacks(detectors[0]):
        fit_baselines(detectors, data, on_epoch=epochs(tell))
    else:
        for detector, (X, y) in zip(detectors, data, strict=True):
            detector.fit(X, y)
    seconds = (time.perf_counter() - started) / len(trials)
    outcomes = []
    for trial in trials:
        started = time.perf_counter()
        scores = trial.detector.anomaly_score(trial.X_test)
        outcomes.append(
            {
                "status": "ok",
                "auroc": float(roc_auc_score(trial.y_test, scores)),
                "average_precision": float(average_precision_score(trial.y_test, scores)),
                "fit_seconds": seconds,
                "score_seconds": time.perf_counter() - started,
                "stacked": len(trials),
                "device": device_of(trial.detector),
                **_size(trial.detector),
            }
        )
    memory = _peak_memory()
    return [{**outcome, **memory} for outcome in outcomes]


def _size(detector: Any) -> dict[str, int]:
    """Return how large a detector is on disk, where it can be saved."""
    if not hasattr(detector, "save"):
        return {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        try:
            detector.save(path)
        except (AloofError, ImportError, NotImplementedError):
            return {}  # ImportError: networks may be trained where nothing can be saved
        files = [file for file in path.rglob("*") if file.is_file()]
        return {"model_bytes": sum(file.stat().st_size for file in files)}


def _reset_peak_memory() -> None:
    """Start counting anew, where the system can: the process has done other jobs before."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.reset_peak_memory_stats()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def _peak_memory() -> dict[str, float]:
    """Return the most memory the process has held, in MiB, the interpreter included."""
    found = {}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        found["peak_device_memory_mib"] = torch.cuda.max_memory_allocated() / 2**20
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        if sys.platform == "win32":
            return found
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kib = used // 1024 if sys.platform == "darwin" else used
    return {**found, "peak_memory_mib": kib / 1024}
