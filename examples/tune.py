"""
Choosing parameters with Optuna
===============================

Optuna proposes parameters a batch at a time, and `aloof.fit_many` trains all proposals on all
folds as one computation: a batch costs little more than one fit. What is compared is how well
anomalies that were left out are told from normal rows that were left out. The test rows take no
part in the choice.

Run it with ``python examples/tune.py``; it needs ``pip install 'aloof[tuning]'``.
"""

from __future__ import annotations

import numpy as np
import optuna
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from aloof import DualPriorVAE, fit_many

FOLDS = 3


def detector(trial: optuna.trial.BaseTrial | None = None, **more: int) -> DualPriorVAE:
    """Return a detector with the parameters of a trial, or with the defaults."""
    if trial is None:
        return DualPriorVAE(n_members=3, random_state=0, **more)
    return DualPriorVAE(
        n_members=3,
        random_state=0,
        beta_kl=trial.suggest_float("beta_kl", 1e-3, 1.0, log=True),
        alpha=trial.suggest_float("alpha", 1.0, 30.0, log=True),
        gamma=trial.suggest_float("gamma", 0.1, 10.0, log=True),
        **more,
    )


def tune(
    X: NDArray[np.float64], y: NDArray[np.int64], *, batches: int, size: int, **more: int
) -> optuna.Study:
    """Try `batches` times `size` proposals; return what was learned from them."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=size)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    for _ in range(batches):
        trials = [study.ask() for _ in range(size)]
        detectors = [detector(trial, **more) for trial in trials for _ in folds]
        fit_many(detectors, [(X[train], y[train]) for _ in trials for train, _ in folds])
        scores = [
            roc_auc_score(y[left_out], fitted.anomaly_score(X[left_out]))
            for fitted, (_, left_out) in zip(detectors, folds * size, strict=True)
        ]
        for trial, values in zip(trials, np.reshape(scores, (size, FOLDS)), strict=True):
            study.tell(trial, float(values.mean()))
    return study


def main(batches: int = 4, size: int = 8, **more: int) -> tuple[optuna.Study, float, float]:
    """Choose, fit with the choice; return the study and two AUROCs: default and chosen."""
    X, benign = load_breast_cancer(return_X_y=True)
    malignant = 1 - benign
    rng = np.random.default_rng(0)
    normal, anomalies = (rng.permutation(np.flatnonzero(malignant == k)) for k in (0, 1))
    train = np.r_[normal[:214], anomalies[:12]]
    test = np.r_[normal[214:], anomalies[12:]]
    study = tune(X[train], malignant[train], batches=batches, size=size, **more)
    default = detector(**more)
    chosen = detector(study.best_trial, **more)
    fit_many([default, chosen], [(X[train], malignant[train])] * 2)
    before, after = (
        float(roc_auc_score(malignant[test], each.anomaly_score(X[test])))
        for each in (default, chosen)
    )
    return study, before, after


if __name__ == "__main__":
    study, before, after = main()
    print(f"{len(study.trials)} proposals; the best on rows left out: {study.best_params}")
    print(f"AUROC on the test rows: {before:.1%} with the defaults, {after:.1%} with these")
