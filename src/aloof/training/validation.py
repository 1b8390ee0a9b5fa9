"""Early stopping: the loss of held-out rows, and each member's best state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.training.ensemble import Ensemble
from aloof.training.loss import Terms, batch_loss
from aloof.training.objective import Objective
from aloof.training.problem import Problem
from aloof.training.rows import gather
from aloof.training.seeds import Stream, derive, generator

__all__ = ["Validation"]

_CHUNK = 4096


class Validation:
    """The held-out rows of a stack's members.

    The noise is drawn once, so that epochs are compared on equal terms. A member that has
    stopped goes on being computed with the others, but its best state is kept.

    Parameters
    ----------
    problems, seeds
        The problem and the seed of each member.
    latent_dim
        Size of the noise.
    patience
        Epochs without a better loss after which a member stops.
    data
        The rows the problems index.
    device
        Where to compute.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        seeds: Sequence[int],
        latent_dim: int,
        patience: int | None,
        data: Sequence[Tensor],
        device: torch.device,
    ) -> None:
        self._patience = patience
        self._data = data
        n_members = len(seeds)
        self._normal, self._anomaly = (
            torch.from_numpy(np.stack([getattr(p, name) for p in problems])).to(device)
            for name in ("validation_normal", "validation_anomaly")
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
                for seed in seeds
            ]
        )
        self._best = np.full(n_members, np.inf)
        self._best_epoch = np.zeros(n_members, np.int64)
        self._waited = np.zeros(n_members, np.int64)
        self._best_state: dict[str, Tensor] = {}

    @property
    def all_stopped(self) -> bool:
        """Whether no member is still improving."""
        return self._patience is not None and bool((self._waited >= self._patience).all())

    def check(
        self,
        ensemble: Ensemble,
        objective: Objective,
        numbers: dict[str, Tensor],
        epoch: int,
        *,
        counts: bool,
    ) -> NDArray[np.float64]:
        """Return the validation loss of each member; remember states that are best.

        Parameters
        ----------
        ensemble, objective, numbers
            As in `batch_loss`.
        epoch
            The epoch, counted from 0.
        counts
            Whether the epoch counts for stopping.
        """
        loss = self._loss(ensemble, objective, numbers)
        if not counts:
            return loss
        running = self._waited < (self._patience or 0)
        better = running & (loss < self._best)
        if better.any():
            self._remember(ensemble, better)
        self._best = np.where(better, loss, self._best)
        self._best_epoch = np.where(better, epoch + 1, self._best_epoch)
        self._waited = np.where(better, 0, self._waited + running)
        return loss

    def restore(self, ensemble: Ensemble, n_epochs: int) -> NDArray[np.int64]:
        """Put each member's best state into `ensemble`; return the epochs they are from."""
        if not self._best_state:
            return np.full(len(self._best), n_epochs)
        ensemble.load(self._best_state)
        return self._best_epoch

    def state(self) -> dict[str, Tensor]:
        """Return all that a resumed fit needs."""
        tensors = {f"best.{k}": v for k, v in self._best_state.items()}
        tensors["loss"] = torch.from_numpy(self._best)
        tensors["epoch"] = torch.from_numpy(self._best_epoch)
        tensors["waited"] = torch.from_numpy(self._waited)
        return tensors

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up where `state` was written."""
        self._best = state["loss"].numpy()
        self._best_epoch = state["epoch"].numpy()
        self._waited = state["waited"].numpy()
        prefix = "best."
        self._best_state = {
            name.removeprefix(prefix): value.to(self._normal.device)
            for name, value in state.items()
            if name.startswith(prefix)
        }

    def _loss(
        self, ensemble: Ensemble, objective: Objective, numbers: dict[str, Tensor]
    ) -> NDArray[np.float64]:
        n_normal, n_anomaly = self._normal.shape[1], self._anomaly.shape[1]
        normal = torch.zeros(len(self._best), dtype=torch.float64)
        anomaly = torch.zeros_like(normal)
        noise = self._noise.to(numbers["beta_kl"].dtype)
        for start in range(0, n_normal, _CHUNK):
            rows = self._normal[:, start : start + _CHUNK]
            terms = self._terms(ensemble, objective, numbers, rows, noise[:, start:])
            normal += terms.normal.cpu().double() * rows.shape[1] / n_normal
        if n_anomaly and objective.method != "vae":
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

    def _remember(self, ensemble: Ensemble, better: NDArray[np.bool_]) -> None:
        current = ensemble.state()
        if not self._best_state:
            self._best_state = {k: v.detach().clone() for k, v in current.items()}
            return
        chosen = torch.from_numpy(np.flatnonzero(better))
        for name, value in current.items():
            at = chosen.to(value.device)
            self._best_state[name][at] = value.detach()[at]
