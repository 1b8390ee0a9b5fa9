from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aloof.models.table import TableModel, fit


def orders(n: int, seed: int) -> pa.Table:
    """Return orders; one in forty is labelled as bad, and is."""
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.025
    size = rng.normal(3, 0.4, n)
    price = np.exp(size + rng.normal(0, 0.1, n)) * np.where(bad, rng.uniform(1.2, 9, n), 1.0)
    country = np.where(rng.random(n) < 0.7, "NO", "SE").astype(object)
    country[bad & (rng.random(n) < 0.5)] = "XX"
    label = np.where(bad, 1, np.where(rng.random(n) < 0.8, 0, -1))
    return pa.table(
        {
            "order": [f"A{seed}-{i}" for i in range(n)],
            "price": price.round(2),
            "size": size,
            "country": country.tolist(),
            "weight": pa.array(rng.normal(10, 2, n), mask=rng.random(n) < 0.1),
            "bad": label,
        }
    )


def fitted(table: Any, **options: Any) -> TableModel:
    settings: dict[str, Any] = {"members": 2, "max_epochs": 6, "hidden": (16,), "latent_dim": 4}
    settings |= {"method": "dp"}
    return fit(table, **(settings | options))


@pytest.fixture(scope="session")
def small() -> Callable[..., TableModel]:
    """Fits a model that is too small to be good."""
    return fitted


@pytest.fixture(scope="session")
def train() -> pa.Table:
    return orders(1500, 0)


@pytest.fixture(scope="session")
def new() -> pa.Table:
    return orders(1200, 1)


@pytest.fixture(scope="session")
def saved(train: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "orders"
    fitted(train, label="bad", id="order").save(folder)
    return str(folder)


@pytest.fixture
def model(saved: str) -> TableModel:
    """A model of its own for every test, because thresholds change it."""
    return TableModel.load(saved, device="cpu")
