"""A data set and a peer for the benchmarks, which take no time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from aloof import VAE
from aloof.datasets import DataFile, PublicTable
from aloof.datasets.registry import DATASETS


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Makes the data set "tiny" of so many normal rows and anomalies, and the peer "peer"."""

    def make(n_normal: int, n_anomalies: int) -> None:
        rng = np.random.default_rng(0)
        X = np.r_[rng.normal(size=(n_normal, 4)), rng.normal(size=(n_anomalies, 4)) + 2]
        y = np.repeat([0, 1], [n_normal, n_anomalies])
        (tmp_path / "data" / "odds").mkdir(parents=True)
        savemat(tmp_path / "data" / "odds" / "tiny.mat", {"X": X, "y": y[:, None]})
        entry = PublicTable(
            name="tiny",
            title="Tiny",
            home="https://example.org/tiny",
            files=(DataFile(path="odds/tiny.mat", sha256=("0" * 64,)),),
            task="the last rows are anomalies",
            n_rows=len(X),
            n_columns=4,
            n_anomalies=n_anomalies,
        )
        monkeypatch.setitem(DATASETS, "tiny", entry)
        monkeypatch.setenv("ALOOF_DATA", str(tmp_path / "data"))
        peer = partial(VAE, n_members=1, hidden=(8,), latent_dim=2, max_epochs=2)
        broken = partial(VAE, n_members=0)
        monkeypatch.setattr("aloof.baselines.BASELINES", {"peer": peer, "broken": broken})

    return make
