"""Models of a small table."""

from __future__ import annotations

import warnings

import pytest
from table_cells import as_table, cells

import aloof

SMALL = {"members": 2, "max_epochs": 3, "hidden": (16, 8), "latent_dim": 4, "seed": 0}


@pytest.fixture(scope="session")
def fit_table():
    def fit(method="dp", **parameters):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return aloof.fit(
                as_table(cells(0)),
                label="label",
                id="id",
                kinds={"clock": "timestamp"},
                method=method,
                **{**SMALL, **parameters},
            )

    return fit


@pytest.fixture(scope="session")
def table_model(fit_table):
    return fit_table()
