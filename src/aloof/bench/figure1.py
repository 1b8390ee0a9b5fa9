"""The paper's first figure: the latent space of a VAE beside that of DP-VAE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from aloof.bench.identity import jsonable
from aloof.bench.methods import title_of
from aloof.bench.odds.settings import build
from aloof.bench.provenance import provenance
from aloof.bench.specification import Setting
from aloof.bench.splits import Scaling, make_split, scale, training_rows
from aloof.datasets import PublicTable, find_dataset
from aloof.estimators import fit_many
from aloof.training import ProgressCallback

__all__ = ["LatentSpaces", "latent_spaces"]

_METHODS = {title_of(method): method for method in ("vae", "dp")}


@dataclass(frozen=True, eq=False)
class LatentSpaces:
    """What there is to draw.

    Attributes
    ----------
    codes
        By title, posterior means of the test rows in the first member.
    y_test
        The truth about them.
    record
        How it was made, for a file.
    """

    codes: dict[str, NDArray[np.float64]]
    y_test: NDArray[np.int64]
    record: dict[str, Any]


def latent_spaces(
    dataset: str = "thyroid",
    *,
    setting: Setting = "paper",
    scaling: Scaling | None = None,
    gamma_l: float = 0.01,
    seed: int = 0,
    device: str = "auto",
    overrides: dict[str, Any] | None = None,
    on_epoch: ProgressCallback | None = None,
) -> LatentSpaces:
    """Train both on one split, and return where they put rows they have not seen.

    Parameters
    ----------
    dataset, setting, scaling, gamma_l, seed
        What to train on, and how. Without a scaling, columns are in [0, 1] in the paper's
        setting, where its plain VAE is as bad on thyroid as it says, and standardised in ours.
    device
        Where.
    overrides
        Parameters that are not the setting's.
    on_epoch
        Called after each epoch.
    """
    if scaling is None:
        scaling = "unit" if setting == "paper" else "standard"
    table = find_dataset(dataset, PublicTable).load()
    split = make_split(table.y, seed=seed, gamma_l=gamma_l)
    X, y = training_rows(split, table.X)
    X, X_test = scale(X, table.X[split.test], scaling)
    y_test = table.y[split.test]
    detectors = {
        title: build(
            method,
            setting,
            dataset,
            seed=seed,
            scaling=scaling,
            overrides=overrides,
            device=device,
        )
        for title, method in _METHODS.items()
    }
    for detector in detectors.values():
        fit_many([detector], [(X, y)], on_epoch=on_epoch)
    aurocs = {
        title: float(roc_auc_score(y_test, detector.anomaly_score(X_test)))
        for title, detector in detectors.items()
    }
    record = {
        "dataset": dataset,
        "data_sha256": table.sha256,
        "setting": setting,
        "scaling": scaling,
        "gamma_l": gamma_l,
        "seed": seed,
        "split_sha256": split.sha256,
        "auroc": aurocs,
        "config": {title: detector.get_params() for title, detector in detectors.items()},
        **provenance(),
    }
    codes = {
        f"{title}: AUROC {100 * aurocs[title]:.1f}": detector.latent(X_test)[0]
        for title, detector in detectors.items()
    }
    return LatentSpaces(codes, y_test, jsonable(record))
