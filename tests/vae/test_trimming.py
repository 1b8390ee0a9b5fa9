"""Trimming of the worst-fitting normal rows."""

from __future__ import annotations

import torch
from problems import CPU, LATENT, architecture, config, data, problem

from aloof.vae import Ensemble, Objective, train
from aloof.vae.loss import batch_loss, member_numbers


def test_trimming_keeps_the_rows_that_fit_best() -> None:
    x, objective = data(), Objective("vae")
    ensemble = Ensemble.build(architecture(), [7], [x], device=CPU, dtype=torch.float64)
    numbers = member_numbers([objective], device=CPU, dtype=torch.float64)

    def loss(rows: torch.Tensor, n_kept: int | None = None) -> torch.Tensor:
        noise = torch.zeros(1, len(rows), LATENT).double()
        terms = batch_loss(
            ensemble,
            objective,
            numbers,
            numbers["beta_kl"],
            [rows[None]],
            noise,
            None,
            n_normal=len(rows),
            freeze_decoder=True,
            n_kept=n_kept,
        )
        return terms.total[0]

    each = torch.stack([loss(row[None]) for row in x[:20]])
    torch.testing.assert_close(loss(x[:20], 15), each.sort().values[:15].mean())
    torch.testing.assert_close(loss(x[:20]), each.mean())


def test_trimming_waits_for_the_whole_objective() -> None:
    one = config(trim=0.1, annealing_epochs=2)
    assert [one.n_kept(epoch, 30) for epoch in range(4)] == [None, None, 27, 27]
    assert one.n_kept(3, 9) is None  # less than one row


def test_trimmed_training_is_not_taken_in_by_hidden_anomalies() -> None:
    """Far rows hidden among normal ones stay badly reconstructed."""
    x = data(90, 0)
    x[:9] = 4 * torch.sign(x[:9])
    one = problem([1, 2, 3], n_anomaly=0, objective=Objective("vae", beta_kl=0.01))

    def error_of_hidden(trim: float) -> float:
        fitted = train(
            [x],
            [one],
            architecture((16,)),
            config(max_epochs=150, learning_rate=0.01, trim=trim),
            device=CPU,
        )[0].ensemble
        rows = x.expand(3, *x.shape)
        output = fitted.decoder(fitted.encode([rows])[0])
        error = (output - rows).square().mean(-1).mean(0)
        return float(error[:9].mean() / error[9:].mean())

    assert error_of_hidden(0.2) > 2 * error_of_hidden(0.0)
