"""A folder of small tables, and peers that cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aloof import VAE
from aloof.baselines import KNN
from aloof.bench import specify
from aloof.bench.tabular import TablesSpecification, TablesStudy, make_tables

SHORT = {"n_members": 2, "hidden": [8], "latent_dim": 3, "max_epochs": 6}


def write_csv(path: Path, n_normal: int = 60, n_anomalies: int = 30) -> Path:
    """Write a table whose anomalies are of two kinds, each far off in its own direction."""
    rng = np.random.default_rng(len(path.name))
    rows = rng.normal(size=(n_normal + n_anomalies, 3))
    label = np.repeat([0, 1], [n_normal, n_anomalies])
    kind = np.where(label, np.where(np.arange(len(label)) % 2, "leak", "noise"), "")
    rows[kind == "leak", 0] += 4
    rows[kind == "noise", 1] += 4
    lines = [
        f"{a:.6f},{b:.6f},{c:.6f},{k},{y}"
        for (a, b, c), k, y in zip(rows, kind, label, strict=True)
    ]
    path.write_text("a,b,c,kind,label\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two tables, the second with few anomalies."""
    found = tmp_path / "mine"
    found.mkdir()
    write_csv(found / "pumps.csv")
    write_csv(found / "valves.csv", n_anomalies=12)
    return found


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The peers."""
    found = {
        "stacked": partial(VAE, **{**SHORT, "hidden": (8,)}),
        "broken": partial(VAE, n_members=0),
        "shallow": KNN,
    }
    monkeypatch.setattr("aloof.baselines.BASELINES", found)
    return found


@pytest.fixture
def study(folder: Path, registry: dict[str, Any]) -> Callable[..., TablesStudy]:
    """A small study of the folder; keywords change it."""

    def make(**options: Any) -> TablesStudy:
        base = {
            "folder": str(folder),
            "kind": "kind",
            "methods": ["dp", "shallow"],
            "variants": [{"name": "short", "parameters": SHORT}],
            "labels": 5,
            "hidden": 0.1,
            "seeds": 2,
        }
        return make_tables(specify(TablesSpecification, {**base, **options}))

    return make
