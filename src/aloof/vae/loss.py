"""From a batch to one loss for each member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from aloof.objectives import (
    bernoulli,
    categorical,
    elbo,
    gaussian,
    reparameterize,
    squared_error,
)
from aloof.vae.ensemble import Ensemble
from aloof.vae.methods import METHODS
from aloof.vae.objective import Objective
from aloof.vae.terms import Anomalies

__all__ = ["Terms", "batch_loss", "log_likelihood", "member_numbers"]


@dataclass(frozen=True)
class Terms:
    """What a step minimised, each ``(members,)``.

    `total` is `normal` + `anomaly`; `normal` is `reconstruction` plus the weighted KL
    divergence.
    """

    total: Tensor
    normal: Tensor
    anomaly: Tensor
    reconstruction: Tensor


def member_numbers(
    objectives: Sequence[Objective], *, device: torch.device, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Return each number of the members' objectives as a column ``(members, 1)``."""
    return {
        name: torch.tensor(
            [[objective.numbers[name]] for objective in objectives],
            device=device,
            dtype=dtype,
        )
        for name in objectives[0].numbers
    }


def log_likelihood(objective: Objective, x: Tensor, output: Any) -> Tensor:
    """Return log p(x|z) of each row, ``(members, rows)``, from the decoder's output."""
    kind, reduction = objective.likelihood, objective.reduction
    flat = x.flatten(2)
    if kind == "gaussian":
        mean, log_var = output
        return gaussian(flat, mean.flatten(2), log_var.flatten(2), reduction=reduction)
    if kind == "bernoulli":
        return bernoulli(flat, output.flatten(2), reduction=reduction)
    if kind == "categorical":
        return categorical(flat, output, reduction=reduction, mask=flat != 0)
    return squared_error(flat, output.flatten(2), reduction=reduction)


def batch_loss(
    ensemble: Ensemble,
    objective: Objective,
    numbers: dict[str, Tensor],
    beta_kl: Tensor,
    rows: Sequence[Tensor],
    noise: Tensor,
    anomaly_noise: Tensor | None,
    *,
    n_normal: int,
    freeze_decoder: bool,
    n_kept: int | None = None,
    training: bool = True,
    seeds: Sequence[int] | None = None,
) -> Terms:
    """Return the loss of a joint batch of normal rows and anomalies.

    Both kinds of row go through the encoder together, so that batch normalisation sees
    one batch and learns nothing that is lost in eval mode.

    Parameters
    ----------
    ensemble
        The members' networks.
    objective
        The method; its numbers are taken from `numbers`.
    numbers
        From `member_numbers`.
    beta_kl
        Weight of the KL divergence now, ``(members, 1)``.
    rows
        Data ``(members, B + A, ...)``, normal rows first, and its context.
    noise, anomaly_noise
        As in `Batch`.
    n_normal
        B.
    freeze_decoder
        Keep the decoder's parameters out of the anomalies' gradient.
    n_kept
        Count only so many of the normal rows, those with the smallest loss; None: all.
    training, seeds
        As in `Stack`.
    """
    mean, log_var = ensemble.encode(rows, n_normal=n_normal, training=training, seeds=seeds)
    normal_mean, normal_log_var = mean[:, :n_normal], log_var[:, :n_normal]
    z_normal = reparameterize(normal_mean, normal_log_var, noise)
    normal_rows = [part[:, :n_normal] for part in rows]
    decode = _Decoder(ensemble, training, seeds)

    if anomaly_noise is None:
        output = decode(z_normal, normal_rows[1:])
        likelihood = log_likelihood(objective, normal_rows[0], output)
        bound = elbo(likelihood, normal_mean, normal_log_var, beta=beta_kl)
        return _terms(likelihood, -bound, torch.zeros_like(bound), n_kept)

    anomaly_mean, anomaly_log_var = mean[:, n_normal:], log_var[:, n_normal:]
    z_anomaly = reparameterize(anomaly_mean, anomaly_log_var, anomaly_noise)
    n_samples = anomaly_noise.shape[0]
    anomaly_rows = [_repeat(part[:, n_normal:], n_samples) for part in rows]
    output_normal, output_anomaly = decode.both(
        z_normal,
        _members_first(z_anomaly),
        normal_rows[1:],
        anomaly_rows[1:],
        freeze=freeze_decoder,
    )
    likelihood = log_likelihood(objective, normal_rows[0], output_normal)
    anomaly_likelihood = log_likelihood(objective, anomaly_rows[0], output_anomaly)
    anomaly_likelihood = anomaly_likelihood.view(len(mean), n_samples, -1).transpose(0, 1)

    anomalies = Anomalies(
        anomaly_likelihood,
        z_anomaly,
        anomaly_mean,
        anomaly_log_var,
        beta_kl,
        numbers,
        objective,
    )
    normal_loss = -elbo(likelihood, normal_mean, normal_log_var, beta=beta_kl)
    anomaly_loss = torch.zeros_like(anomaly_mean[..., 0])
    for term in METHODS[objective.method].terms:
        anomaly_loss = anomaly_loss + numbers["gamma"] * term(anomalies)
    return _terms(likelihood, normal_loss, anomaly_loss, n_kept)


class _Decoder:
    """The decoder in one step."""

    def __init__(self, ensemble: Ensemble, training: bool, seeds: Sequence[int] | None) -> None:
        self._decoder = ensemble.decoder
        self._training = training
        self._seeds = None if seeds is None else [seed + 1 for seed in seeds]

    def __call__(self, z: Tensor, context: Sequence[Tensor], *, frozen: bool = False) -> Any:
        return self._decoder(
            z, *context, training=self._training, frozen=frozen, seeds=self._seeds
        )

    def both(
        self,
        z_normal: Tensor,
        z_anomaly: Tensor,
        normal_context: Sequence[Tensor],
        anomaly_context: Sequence[Tensor],
        *,
        freeze: bool,
    ) -> tuple[Any, Any]:
        """Decode normal rows and anomalies, anomalies with frozen parameters if asked."""
        n_normal = z_normal.shape[1]
        if freeze and not self._decoder.mixes_rows:
            return (
                self(z_normal, normal_context),
                self(z_anomaly, anomaly_context, frozen=True),
            )
        z = torch.cat([z_normal, z_anomaly], 1)
        context = [
            torch.cat(pair, 1) for pair in zip(normal_context, anomaly_context, strict=True)
        ]
        output = self(z, context)
        fixed = output
        # Rows influence each other: the anomalies' gradient goes back through the same batch,
        # with parameters held fixed.
        if freeze and torch.compiler.is_compiling():
            fixed = self(z, context, frozen=True)
        elif freeze:
            fixed = _held(z, output)
        return _rows(output, slice(None, n_normal)), _rows(fixed, slice(n_normal, None))


def _held(z: Tensor, output: Any) -> Any:
    """Return a network's output again, as if its parameters were constants."""
    if isinstance(output, Tensor):
        return _Held.apply(z, output)[0]  # type: ignore[no-untyped-call]
    return _Held.apply(z, *output)  # type: ignore[no-untyped-call]


class _Held(torch.autograd.Function):
    """Results, whose gradient goes back through what made them to one input and no other."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, *outputs: Tensor) -> tuple[Tensor, ...]:
        ctx.z, ctx.outputs = z, outputs
        return tuple(output.detach() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # What made the outputs waits for this: they are inputs here, of no gradient.
        pairs = zip(ctx.outputs, gradients, strict=True)
        made = [(output, given) for output, given in pairs if output.requires_grad]
        d_z = None
        if ctx.needs_input_grad[0] and made:
            outputs, given = zip(*made, strict=True)
            (d_z,) = torch.autograd.grad(
                outputs, ctx.z, given, retain_graph=True, allow_unused=True
            )
        ctx.z, ctx.outputs = None, ()
        return d_z, *[None for _ in gradients]


def _terms(
    likelihood: Tensor, normal_loss: Tensor, anomaly_loss: Tensor, n_kept: int | None
) -> Terms:
    if n_kept is not None:
        best = normal_loss.detach().topk(n_kept, 1, largest=False, sorted=False).indices
        normal_loss, likelihood = normal_loss.gather(1, best), likelihood.gather(1, best)
    normal, anomaly = normal_loss.mean(1), anomaly_loss.mean(1)
    return Terms(normal + anomaly, normal, anomaly, -likelihood.detach().mean(1))


def _rows(output: Any, rows: slice) -> Any:
    if isinstance(output, Tensor):
        return output[:, rows]
    return tuple(part[:, rows] for part in output)


def _repeat(part: Tensor, n_samples: int) -> Tensor:
    """Repeat rows for each sample: ``(members, A, ...)`` to ``(members, S A, ...)``."""
    return part if n_samples == 1 else part.repeat(1, n_samples, *[1] * (part.dim() - 2))


def _members_first(z: Tensor) -> Tensor:
    """``(S, members, A, d)`` to ``(members, S A, d)``."""
    return z.transpose(0, 1).flatten(1, 2)
