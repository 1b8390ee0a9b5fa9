"""The demonstration: five labelled tumours improve a detector, on real data.

scikit-learn's bundled breast-cancer measurements, benign tumours as the normal rows. Every
detector learns from the benign training rows; all but the plain VAE also from five labelled
malignant ones. Ten random splits of a method are one stacked run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from aloof.bench.methods import OURS, PAPERS, title_of
from aloof.bench.provenance import device_of, provenance
from aloof.estimators import Detector, fit_many
from aloof.training import EpochReport

__all__ = ["N_LABELLED", "Demo", "DemoSplit", "make_splits", "run_demo"]

N_LABELLED = 5


@dataclass(frozen=True)
class DemoSplit:
    """Rows to learn from and rows to be judged by.

    Attributes
    ----------
    X, y
        Benign training rows (0) and five labelled malignant ones (1).
    X_test, y_test
        The rest, benign (0) and malignant (1).
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class Demo:
    """The outcome.

    Attributes
    ----------
    splits
        The random splits.
    detectors
        By name, the fitted detectors of the splits.
    auroc, average_precision
        By name, one value for each split.
    """

    splits: list[DemoSplit]
    detectors: dict[str, list[Detector]]
    auroc: dict[str, NDArray[np.float64]]
    average_precision: dict[str, NDArray[np.float64]]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each method and split."""
        return [
            {
                "method": name,
                "split": split,
                "n_labelled": 0 if name == title_of("vae") else N_LABELLED,
                "auroc": float(auroc),
                "average_precision": float(self.average_precision[name][split]),
                "device": device_of(self.detectors[name][split]),
                **provenance(),
            }
            for name, values in self.auroc.items()
            for split, auroc in enumerate(values)
        ]


def make_splits(n_splits: int) -> list[DemoSplit]:
    """Split the data 60:40 at random and label five of the malignant training rows."""
    X, benign = load_breast_cancer(return_X_y=True)
    malignant = 1 - benign
    splits = []
    shuffles = StratifiedShuffleSplit(n_splits, test_size=0.4, random_state=0)
    for seed, (train_rows, test_rows) in enumerate(shuffles.split(X, malignant)):
        normal = train_rows[malignant[train_rows] == 0]
        known = train_rows[malignant[train_rows] == 1]
        labelled = np.random.default_rng(seed).choice(known, N_LABELLED, replace=False)
        rows = np.concatenate([normal, labelled])
        splits.append(DemoSplit(X[rows], malignant[rows], X[test_rows], malignant[test_rows]))
    return splits


def run_demo(
    n_splits: int = 10, *, on_progress: Callable[[str, EpochReport], None] | None = None
) -> Demo:
    """Fit all four methods to all splits.

    Parameters
    ----------
    n_splits
        Random splits.
    on_progress
        Called with a method's name after each of its epochs.
    """
    splits = make_splits(n_splits)
    detectors: dict[str, list[Detector]] = {}
    auroc: dict[str, NDArray[np.float64]] = {}
    precision: dict[str, NDArray[np.float64]] = {}
    for name, method in ((title_of(name), OURS[name]) for name in PAPERS):
        fitted = [method(random_state=seed) for seed in range(n_splits)]
        report = None
        if on_progress is not None:
            report = _named(on_progress, name)
        fit_many(fitted, [(split.X, split.y) for split in splits], on_epoch=report)
        scores = [
            detector.anomaly_score(split.X_test)
            for detector, split in zip(fitted, splits, strict=True)
        ]
        truths = [split.y_test for split in splits]
        detectors[name] = fitted
        auroc[name] = np.array(
            [roc_auc_score(t, s) for t, s in zip(truths, scores, strict=True)]
        )
        precision[name] = np.array(
            [average_precision_score(t, s) for t, s in zip(truths, scores, strict=True)]
        )
    return Demo(splits, detectors, auroc, precision)


def _named(
    on_progress: Callable[[str, EpochReport], None], name: str
) -> Callable[[EpochReport], None]:
    return lambda report: on_progress(name, report)
