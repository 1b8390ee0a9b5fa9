"""Jitter on labelled anomalies."""

from __future__ import annotations

import pytest
import torch
from problems import CPU, architecture, config, data, problem, states

from aloof.vae import Objective, train
from aloof.vae.jitter import jitter_


def test_anomalies_move_with_the_covariance_of_normal_rows() -> None:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.tensor([[1.0, 0.9, 0.0], [0.0, 0.1, 3.0]], dtype=torch.float64)
    normal = torch.randn(2, 4000, 2, generator=generator, dtype=torch.float64) @ mixing
    rows = torch.cat([normal, torch.full((2, 4000, 3), 7.0, dtype=torch.float64)], 1)
    jitter_(rows, 4000, torch.tensor([[0.5], [0.0]]))
    assert torch.equal(rows[:, :4000], normal)
    moved = rows[:, 4000:] - 7.0
    assert (moved[1] == 0).all()
    torch.testing.assert_close(
        torch.cov(moved[0].T), 0.25 * torch.cov(normal[0].T), rtol=0.1, atol=0.02
    )
    # No direction is left that normal rows do not vary in.
    off = torch.linalg.svd(mixing).Vh[2]
    assert (moved[0] @ off).abs().max() < 1e-9


@pytest.mark.parametrize(("n_normal", "n_anomaly"), [(1, 4), (3, 8), (8, 3)])
def test_any_number_of_rows_will_do(n_normal: int, n_anomaly: int) -> None:
    rows = torch.randn(
        2, n_normal + n_anomaly, 5, 4, generator=torch.Generator().manual_seed(1)
    )
    before = rows.clone()
    jitter_(rows, n_normal, torch.ones(2, 1))
    moved = (rows != before)[:, n_normal:].flatten(2).any(2)
    assert moved.all() if n_normal > 1 else not moved.any()


def test_a_member_learns_the_same_whatever_the_jitter_of_others() -> None:
    def one(seed: int, jitter: float) -> object:
        return problem([seed], objective=Objective("dp", jitter=jitter))

    together = train([data()], [one(1, 0.0), one(2, 0.7)], architecture(), config(), device=CPU)
    for result, chosen in zip(together, (one(1, 0.0), one(2, 0.7)), strict=True):
        alone = train([data()], [chosen], architecture(), config(), device=CPU)[0]
        for key, value in states(alone.ensemble).items():
            torch.testing.assert_close(
                result.ensemble.state()[key], value, rtol=1e-7, atol=1e-9
            )


def test_jitter_reaches_anomalies_and_leaves_the_data_alone() -> None:
    x = data()
    before = x.clone()
    plain, noisy = (
        train(
            [x],
            [problem([1], objective=Objective("dp", jitter=jitter))],
            architecture(),
            config(),
            device=CPU,
        )[0].history
        for jitter in (0.0, 0.5)
    )
    assert torch.equal(x, before)
    warmup = config().warmup_epochs
    assert (plain["normal"][:warmup] == noisy["normal"][:warmup]).all()
    assert (plain["anomaly"][warmup:] != noisy["anomaly"][warmup:]).all()


def test_jitter_of_whole_numbers_is_refused() -> None:
    one = problem([1], objective=Objective("dp", jitter=0.5))
    with pytest.raises(ValueError, match="jitter needs rows of floating-point"):
        train([data().long()], [one], architecture(), config(), device=CPU)
