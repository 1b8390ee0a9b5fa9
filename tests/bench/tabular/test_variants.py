"""What our methods are shown in place of standardised columns: nothing is lost, or learned."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from aloof.bench.residual import ResidualDecoder, ResidualEncoder
from aloof.bench.tabular.variants import in_bins, in_unit, with_mixed


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([rng.lognormal(size=200), rng.integers(0, 3, 200), np.ones(200)])


def test_bins_add_up_to_the_value(rows: np.ndarray) -> None:
    """Also beyond the range of the training rows, on both sides."""
    x = rows[:, :1]
    edges = np.quantile(x, np.linspace(0, 1, 9))
    for value in (*x[:5, 0], x.max() + 10, x.min() - 10):
        _, (parts,) = in_bins(x, np.array([[value]]))
        assert edges[0] + parts @ np.diff(edges) == pytest.approx(value)


def test_bins_of_few_values_and_of_one(rows: np.ndarray) -> None:
    train, test = in_bins(rows[:, 1:], rows[:3, 1:])
    assert train.shape == (200, 3)  # two steps between three values, and the constant
    assert np.array_equal(test, train[:3])
    assert np.isfinite(train).all()


def test_test_rows_teach_no_scale(rows: np.ndarray) -> None:
    for how in (in_unit, in_bins):
        train, _ = how(rows, rows)
        same, _ = how(rows, 1e6 * rows)
        assert np.array_equal(train, same)


def test_one_anomaly_cannot_be_mixed(rows: np.ndarray) -> None:
    y = np.zeros(200, np.int64)
    y[0] = 1
    assert with_mixed(rows, y, 5, seed=0)[1].sum() == 1
    y[1] = 1
    X, more = with_mixed(rows, y, 5, seed=0)
    assert more.sum() == 7
    low, high = np.sort(rows[:2], 0)
    assert ((X[200:] >= low) & (X[200:] <= high)).all()


def test_residual_networks_stack_as_they_promise() -> None:
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        pairs = [
            (ResidualEncoder((5,), 2, (8, 4), 0.1), ResidualDecoder((5,), 2, (8, 4), 0.1))
            for _ in range(3)
        ]
    for part, given in ((0, x), (1, x[:, :2])):
        networks = [pair[part] for pair in pairs]
        parameters, _ = torch.func.stack_module_state(networks)
        stacked = torch.func.functional_call(
            networks[0], parameters, (given.expand(3, *given.shape),)
        )
        alone = [network(given) for network in networks]
        for found, *expected in zip(
            *(part if isinstance(part, tuple) else (part,) for part in (stacked, *alone)),
            strict=True,
        ):
            torch.testing.assert_close(found, torch.stack(expected))
