"""Early stopping: each member's best state so far."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["EarlyStopping"]


class EarlyStopping:
    """What is known of the members' losses on held-out rows.

    A member that has stopped goes on being computed with the others, but its best state is
    kept.

    Parameters
    ----------
    n_members
        Members.
    patience
        Epochs without a better loss after which a member stops.
    """

    def __init__(self, n_members: int, patience: int) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1, or None; got {patience}.")
        self._patience = patience
        self._best = np.full(n_members, np.inf)
        self._best_epoch = np.zeros(n_members, np.int64)
        self._waited = np.zeros(n_members, np.int64)
        self._best_state: dict[str, Tensor] = {}

    @property
    def all_stopped(self) -> bool:
        """Whether no member is still improving."""
        return bool((self._waited >= self._patience).all())

    def update(
        self, loss: NDArray[np.float64], epoch: int, current: Mapping[str, Tensor]
    ) -> None:
        """Take note of an epoch.

        Parameters
        ----------
        loss
            Of each member, ``(members,)``.
        epoch
            Its number, counted from 0.
        current
            The state of all members, ``(members, ...)`` by name; that of members that have
            never been better is remembered.
        """
        running = self._waited < self._patience
        better = running & (loss < self._best)
        if better.any():
            self._remember(current, better)
        self._best = np.where(better, loss, self._best)
        self._best_epoch = np.where(better, epoch + 1, self._best_epoch)
        self._waited = np.where(better, 0, self._waited + running)

    @property
    def best(self) -> tuple[dict[str, Tensor], NDArray[np.int64]] | None:
        """The best states and the epochs they are from, counted from 1; None: not yet any."""
        return (self._best_state, self._best_epoch) if self._best_state else None

    def state(self) -> dict[str, Tensor]:
        """Return all that a resumed fit needs."""
        tensors = {f"best.{k}": v for k, v in self._best_state.items()}
        tensors["loss"] = torch.from_numpy(self._best)
        tensors["epoch"] = torch.from_numpy(self._best_epoch)
        tensors["waited"] = torch.from_numpy(self._waited)
        return tensors

    def load(self, state: Mapping[str, Tensor], device: torch.device) -> None:
        """Take up where `state` was written."""
        self._best = state["loss"].numpy()
        self._best_epoch = state["epoch"].numpy()
        self._waited = state["waited"].numpy()
        prefix = "best."
        self._best_state = {
            name.removeprefix(prefix): value.to(device)
            for name, value in state.items()
            if name.startswith(prefix)
        }

    def _remember(self, current: Mapping[str, Tensor], better: NDArray[np.bool_]) -> None:
        if not self._best_state:
            self._best_state = {k: v.detach().clone() for k, v in current.items()}
            return
        chosen = torch.from_numpy(np.flatnonzero(better))
        for name, value in current.items():
            at = chosen.to(value.device)
            self._best_state[name][at] = value.detach()[at]
