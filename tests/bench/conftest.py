"""Two small data sets, and peers that cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from aloof import VAE
from aloof.baselines import KNN
from aloof.bench import specify
from aloof.bench.odds import OddsSpecification, OddsStudy, make_odds
from aloof.datasets import DataFile, PublicTable
from aloof.datasets.registry import DATASETS

SHORT = {"n_members": 2, "hidden": [8], "latent_dim": 3, "max_epochs": 6}


def write_dataset(folder: Path, name: str, n_anomalies: int) -> PublicTable:
    rng = np.random.default_rng(len(name))
    X = np.r_[rng.normal(size=(100, 4)), rng.normal(size=(n_anomalies, 4)) + 2.0]
    y = np.r_[np.zeros(100), np.ones(n_anomalies)]
    (folder / "odds").mkdir(parents=True, exist_ok=True)
    savemat(folder / "odds" / f"{name}.mat", {"X": X, "y": y[:, None]})
    return PublicTable(
        name=name,
        title=name,
        home=f"https://example.org/{name}",
        files=(DataFile(path=f"odds/{name}.mat", sha256=("0" * 64,)),),
        task="the last rows are anomalies",
        n_rows=100 + n_anomalies,
        n_columns=4,
        n_anomalies=n_anomalies,
    )


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data sets `many` and `few`, by their number of anomalies."""
    for name, n_anomalies in (("many", 30), ("few", 4)):
        monkeypatch.setitem(DATASETS, name, write_dataset(tmp_path / "data", name, n_anomalies))
    monkeypatch.setenv("ALOOF_DATA", str(tmp_path / "data"))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The peers: estimators of ours, because a worker must be able to import them."""
    short = {**SHORT, "hidden": (8,)}
    found = {
        "good": partial(VAE, **short),
        "poor": partial(VAE, **{**short, "max_epochs": 1, "n_members": 1}),
        "broken": partial(VAE, **{**short, "n_members": 0}),
        "shallow": KNN,
    }
    monkeypatch.setattr("aloof.baselines.BASELINES", found)
    return found


@pytest.fixture
def study(small: None, registry: dict[str, Any]) -> Callable[..., OddsStudy]:
    """A small study; keywords change it."""

    def make(**options: Any) -> OddsStudy:
        base = {
            "datasets": ["many"],
            "methods": ["vae", "dp", "good"],
            "variants": [{"name": "short", "parameters": SHORT}],
            "gamma_l": 0.05,
            "seeds": 2,
        }
        return make_odds(specify(OddsSpecification, {**base, **options}))

    return make
