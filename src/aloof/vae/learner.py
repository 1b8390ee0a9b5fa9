"""VAEs as a learner: the four methods, with their phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.networks import Architecture
from aloof.training import Batch, Learner, Phase, Setup, Stack, Stream, derive
from aloof.training.rows import gather
from aloof.training.seeds import generator
from aloof.vae.config import TrainingConfig
from aloof.vae.ensemble import Ensemble
from aloof.vae.jitter import jitter_
from aloof.vae.loss import Terms, batch_loss, member_numbers
from aloof.vae.objective import Objective

__all__ = ["VAELearner"]

_CHUNK = 4096  # held-out rows at once


class VAELearner(Learner):
    """Members that are VAEs.

    First they see normal rows alone (the warm-up), with a KL divergence whose weight grows
    (annealing); then labelled anomalies join the batches, and, unless told otherwise, teach the
    encoder only.

    Parameters
    ----------
    architecture
        What makes a member's networks.
    config
        The phases.
    setup
        What the members are made for; the setting of each task is its `Objective`.
    """

    curves = ("loss", "normal", "anomaly", "reconstruction")

    def __init__(
        self, architecture: Architecture, config: TrainingConfig, setup: Setup
    ) -> None:
        objectives = [cast(Objective, task.setting) for task in setup.tasks]
        self._config, self._setup = config, setup
        self._objective = objectives[0]
        self._n_normal = setup.tasks[0].n_rows(config.batch_size)
        self.ensemble = Ensemble.build(
            architecture,
            setup.seeds,
            setup.example,
            device=setup.device,
            dtype=setup.dtype,
            engine=setup.engine,
            separate_encoder=config.separate_encoder and len(setup.tasks[0].extra) > 0,
        )
        self._numbers = member_numbers(objectives, device=setup.device, dtype=setup.dtype)
        self._jitters = any(objective.jitter for objective in objectives)
        if self._jitters and not setup.data[0].is_floating_point():
            raise ValueError("jitter needs rows of floating-point numbers; set jitter=0.")
        self.noise_size = architecture.latent_dim
        self.extra_size = config.anomaly_batch_size
        self.extra_samples = self._objective.n_samples
        held_out = config.patience is not None
        self._held_out = _HeldOut(setup, architecture.latent_dim) if held_out else None

    @property
    def stacks(self) -> Mapping[str, Stack]:
        """Encoders and decoders."""
        return self.ensemble.stacks

    def phase(self, epoch: int) -> Phase:
        """Return warm-up, annealing and trimming of an epoch."""
        config = self._config
        return Phase(
            extra_interval=config.interval(epoch),
            numbers={"beta_kl": self._numbers["beta_kl"] * config.annealing(epoch)},
            kind=config.n_kept(epoch, self._n_normal),
            complete=epoch >= config.first_full_epoch,
        )

    def loss(self, rows: Sequence[Tensor], batch: Batch, phase: Phase) -> tuple[Tensor, ...]:
        """Return the loss, its two parts, and the reconstruction error of normal rows."""
        if self._jitters and batch.extra_noise is not None:
            jitter_(rows[0], batch.n_rows, self._numbers["jitter"])
        terms = batch_loss(
            self.ensemble,
            self._objective,
            self._numbers,
            phase.numbers["beta_kl"],
            rows,
            batch.noise,
            batch.extra_noise,
            n_normal=batch.n_rows,
            freeze_decoder=self._config.freeze_decoder,
            n_kept=cast(int | None, phase.kind),
            seeds=batch.seeds if self.ensemble.loops else None,
        )
        return terms.total, terms.normal, terms.anomaly, terms.reconstruction

    def summary(
        self, sums: Mapping[str, NDArray[np.float64]], n_steps: int, n_extra: int, phase: Phase
    ) -> dict[str, NDArray[np.float64]]:
        """Return ``loss``, its parts ``normal`` and ``anomaly``, ``reconstruction`` and ``kl``.

        The last two are those of normal rows, the divergence without its weight.
        """
        normal, reconstruction = sums["normal"] / n_steps, sums["reconstruction"] / n_steps
        anomaly = sums["anomaly"] / max(1, n_extra)
        weight = phase.numbers["beta_kl"].cpu().double().numpy()[:, 0]
        return {
            "loss": normal + anomaly,
            "normal": normal,
            "anomaly": anomaly,
            "reconstruction": reconstruction,
            "kl": (sums["normal"] - sums["reconstruction"])
            / n_steps
            / np.where(weight, weight, np.nan),
        }

    def held_out_loss(self) -> NDArray[np.float64]:
        """Return the loss of held-out rows, with the full weight of the KL divergence."""
        assert self._held_out is not None
        return self._held_out.loss(self.ensemble, self._objective, self._numbers)

    def settings(self) -> object:
        """Return the phases."""
        return sorted(asdict(self._config).items())

    def select(self, members: slice) -> Ensemble:
        """Return some members as an ensemble."""
        return self.ensemble.select(members)


class _HeldOut:
    """The held-out rows of all members; their noise is drawn once, so that epochs compare."""

    def __init__(self, setup: Setup, latent_dim: int) -> None:
        self._data, device = setup.data, setup.device
        self._normal, self._anomaly = (
            torch.from_numpy(np.stack(rows)).to(device)
            for rows in (
                [task.held_out for task in setup.tasks],
                [task.held_out_extra for task in setup.tasks],
            )
        )
        n_rows = self._normal.shape[1] + self._anomaly.shape[1]
        self._noise = torch.stack(
            [
                torch.randn(
                    n_rows,
                    latent_dim,
                    generator=generator(derive(seed, Stream.VALIDATE), device),
                    device=device,
                )
                for seed in setup.seeds
            ]
        ).to(setup.dtype)

    def loss(
        self, ensemble: Ensemble, objective: Objective, numbers: dict[str, Tensor]
    ) -> NDArray[np.float64]:
        n_normal, n_anomaly = self._normal.shape[1], self._anomaly.shape[1]
        normal = torch.zeros(ensemble.n_members, dtype=torch.float64)
        anomaly = torch.zeros_like(normal)
        noise = self._noise
        for start in range(0, n_normal, _CHUNK):
            rows = self._normal[:, start : start + _CHUNK]
            terms = self._terms(ensemble, objective, numbers, rows, noise[:, start:])
            normal += terms.normal.cpu().double() * rows.shape[1] / n_normal
        if n_anomaly and objective.uses_labels:
            # One normal row completes the joint batch; its loss is not looked at.
            rows = torch.cat([self._normal[:, :1], self._anomaly], 1)
            terms = self._terms(
                ensemble, objective, numbers, rows, noise, noise[None, :, n_normal:]
            )
            anomaly = terms.anomaly.cpu().double()
        return (normal + anomaly).numpy()

    def _terms(
        self,
        ensemble: Ensemble,
        objective: Objective,
        numbers: dict[str, Tensor],
        rows: Tensor,
        noise: Tensor,
        anomaly_noise: Tensor | None = None,
    ) -> Terms:
        n_normal = rows.shape[1] if anomaly_noise is None else 1
        with torch.no_grad():
            return batch_loss(
                ensemble,
                objective,
                numbers,
                numbers["beta_kl"],
                gather(self._data, rows),
                noise[:, :n_normal],
                anomaly_noise,
                n_normal=n_normal,
                freeze_decoder=False,
                training=False,
            )
