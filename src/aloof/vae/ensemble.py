"""The networks of all members, together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from aloof.networks import Architecture, Posterior
from aloof.training.seeds import Stream, derive, seeded
from aloof.training.stack import Engine, Stack
from aloof.training.stacks import load_state, state_of

__all__ = ["LOG_VAR_LIMIT", "Ensemble"]

# Posterior log-variances are kept in here: e^±12 is far outside what standardised data
# needs, and keeps exp() finite when a row is nothing like the training data.
LOG_VAR_LIMIT = 12.0


class Ensemble:
    """Encoders and decoders of K members; a single model is an ensemble of one.

    Attributes
    ----------
    encoder, decoder
        The members' networks.
    anomaly_encoder
        Encoders for anomalies alone, or None when all rows share one.
    """

    def __init__(
        self, encoder: Stack, decoder: Stack, anomaly_encoder: Stack | None = None
    ) -> None:
        self.encoder = encoder
        self.decoder = decoder
        self.anomaly_encoder = anomaly_encoder

    @classmethod
    def build(
        cls,
        architecture: Architecture,
        seeds: Sequence[int],
        example: Sequence[Tensor],
        *,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        engine: Engine = "auto",
        separate_encoder: bool = False,
    ) -> Ensemble:
        """Initialise one member for each seed.

        Parameters
        ----------
        architecture
            What makes the networks.
        seeds
            One for each member.
        example
            A few rows ``(n, *shape)`` and their context, if any.
        device, dtype, engine
            Where and how to compute.
        separate_encoder
            Give anomalies encoders of their own.
        """
        encoders, decoders, others = [], [], []
        for seed in seeds:
            with seeded(derive(seed, Stream.INITIALISE), torch.device("cpu")):
                encoders.append(architecture.encoder().to(dtype))
                decoders.append(architecture.decoder().to(dtype))
                if separate_encoder:
                    others.append(architecture.encoder().to(dtype))
        n = len(seeds)
        x, *context = (part[:2].expand(n, *part[:2].shape) for part in example)
        z = x.new_zeros(n, x.shape[1], architecture.latent_dim)
        return cls(
            Stack(encoders, engine=engine, example=[x, *context], device=device),
            Stack(decoders, engine=engine, example=[z, *context], device=device),
            Stack(others, engine=engine, example=[x, *context], device=device)
            if separate_encoder
            else None,
        )

    @staticmethod
    def joined(parts: Sequence[Ensemble]) -> Ensemble:
        """Return one ensemble of the members of several, without encoders for anomalies."""
        return Ensemble(
            Stack.joined([part.encoder for part in parts]),
            Stack.joined([part.decoder for part in parts]),
        )

    @property
    def n_members(self) -> int:
        """Return the number of members."""
        return self.encoder.n_members

    @property
    def stacks(self) -> dict[str, Stack]:
        """All networks, by name."""
        stacks = {"encoder": self.encoder, "decoder": self.decoder}
        if self.anomaly_encoder is not None:
            stacks["anomaly_encoder"] = self.anomaly_encoder
        return stacks

    @property
    def loops(self) -> bool:
        """Whether any network computes one member after the other."""
        return any(stack.engine == "loop" for stack in self.stacks.values())

    def encode(
        self,
        rows: Sequence[Tensor],
        *,
        n_normal: int | None = None,
        training: bool = False,
        seeds: Sequence[int] | None = None,
    ) -> Posterior:
        """Return mean and log-variance of q(z|x), each ``(members, rows, latent_dim)``.

        Parameters
        ----------
        rows
            Data ``(members, rows, ...)`` and its context.
        n_normal
            How many of the rows are normal; the rest are anomalies, which go to an encoder
            of their own if there is one and otherwise share the batch.
        training, seeds
            As in `Stack`.
        """
        if self.anomaly_encoder is None or n_normal is None:
            mean, log_var = self.encoder(*rows, training=training, seeds=seeds)
        else:
            head = [part[:, :n_normal] for part in rows]
            tail = [part[:, n_normal:] for part in rows]
            parts = [self.encoder(*head, training=training, seeds=seeds)]
            if tail[0].shape[1]:
                parts.append(self.anomaly_encoder(*tail, training=training, seeds=seeds))
            mean, log_var = (torch.cat(pair, 1) for pair in zip(*parts, strict=True))
        return mean, log_var.clamp(-LOG_VAR_LIMIT, LOG_VAR_LIMIT)

    def state(self) -> dict[str, Tensor]:
        """Return every parameter and buffer as ``(members, ...)``, by name."""
        return state_of(self.stacks)

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy `state` into the networks."""
        load_state(self.stacks, state)

    def select(self, members: Sequence[int] | slice) -> Ensemble:
        """Return the ensemble of some members, without encoders for anomalies."""
        return Ensemble(self.encoder.select(members), self.decoder.select(members))

    def to(self, device: torch.device, dtype: torch.dtype) -> Ensemble:
        """Return a copy on `device` with floating-point tensors of `dtype`."""
        return Ensemble(self.encoder.to(device, dtype), self.decoder.to(device, dtype))
