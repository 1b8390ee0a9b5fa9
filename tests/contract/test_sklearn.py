"""scikit-learn's own checks: all detectors pass them all, that of tables all but one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from aloof import (
    VAE,
    Committee,
    DualPriorVAE,
    MaxMinDualPriorVAE,
    MaxMinVAE,
    TableDetector,
)

SHORT: dict[str, Any] = {"n_members": 2, "hidden": (16,), "latent_dim": 4, "max_epochs": 8}
LABELLED: dict[str, Any] = {**SHORT, "warmup_epochs": 4}


@pytest.fixture(autouse=True)
def untouched_generators() -> None:
    """Overrides the check of the global generators: scikit-learn's checks use NumPy's."""


# The checks label rows with whatever a classifier would get; aloof warns, and so it should.
@pytest.mark.filterwarnings("ignore::aloof.exceptions.LabelWarning")
@pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")
@parametrize_with_checks(
    [
        VAE(**SHORT),
        MaxMinVAE(**LABELLED),
        DualPriorVAE(**LABELLED),
        MaxMinDualPriorVAE(**LABELLED),
        Committee(**LABELLED, n_trees=20),
        TableDetector(detector=DualPriorVAE(random_state=0, **LABELLED)),
    ],
    expected_failed_checks=lambda estimator: (
        {"check_fit_check_is_fitted": "of a table, labels that are mostly 1 are refused"}
        if isinstance(estimator, TableDetector)
        else {}
    ),
)
def test_estimator(estimator: Any, check: Any) -> None:
    state = np.random.get_state()
    try:
        check(estimator)
    finally:
        np.random.set_state(state)
