"""The networks of all members, together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from aloof.networks import Architecture, Posterior
from aloof.training.seeds import Stream, derive, seeded
from aloof.training.stack import Engine, Stack

__all__ = ["Ensemble"]

# Posterior log-variances are kept in here: e^±12 is far outside what standardised data
# needs, and keeps exp() finite when a row is nothing like the training data.
_LOG_VAR_LIMIT = 12.0


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

    @property
    def n_members(self) -> int:
        """Return the number of members."""
        return self.encoder.n_members

    @property
    def mixes_rows(self) -> bool:
        """Whether rows of a batch influence each other in training."""
        return any(stack.mixes_rows for stack in self._parts().values())

    @property
    def loops(self) -> bool:
        """Whether any network computes one member after the other."""
        return any(stack.engine == "loop" for stack in self._parts().values())

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
        return mean, log_var.clamp(-_LOG_VAR_LIMIT, _LOG_VAR_LIMIT)

    def describe(self) -> str:
        """Return the networks in words: their layers, and every tensor's name and shape."""
        layers = [repr(stack.network) for stack in self._parts().values()]
        shapes = [(name, tuple(value.shape)) for name, value in self.state().items()]
        return repr((layers, shapes))

    def state(self) -> dict[str, Tensor]:
        """Return every parameter and buffer as ``(members, ...)``, by name."""
        return {
            f"{part}.{name}": value
            for part, stack in self._parts().items()
            for name, value in stack.state().items()
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy `state` into the networks."""
        for part, stack in self._parts().items():
            stack.load({name: state[f"{part}.{name}"] for name in stack.state()})

    def flatten(self) -> tuple[Tensor, list[Tensor]]:
        """Move all trainable parameters into one matrix with a row for each member.

        An optimiser then updates one tensor instead of dozens, and a member's gradient
        norm is the norm of a row.

        Returns
        -------
        The matrix ``(members, n)``, without gradient, and the parameters: leaves of the
        graph that share its memory, in the order of its columns.
        """
        trainable = [
            value
            for stack in self._parts().values()
            for value in stack.parameters.values()
            if value.requires_grad
        ]
        matrix = torch.cat([value.detach().flatten(1) for value in trainable], 1)
        leaves, start = [], 0
        for stack in self._parts().values():
            for name, value in stack.parameters.items():
                if not value.requires_grad:
                    continue
                columns = matrix[:, start : start + value[0].numel()]
                leaves.append(columns.view(value.shape).requires_grad_())
                stack.parameters[name] = leaves[-1]
                start += columns.shape[1]
            stack.hold(stack.parameters, stack.buffers)
        return matrix, leaves

    def select(self, members: Sequence[int] | slice) -> Ensemble:
        """Return the ensemble of some members, without encoders for anomalies."""
        return Ensemble(self.encoder.select(members), self.decoder.select(members))

    def to(self, device: torch.device, dtype: torch.dtype) -> Ensemble:
        """Return a copy on `device` with floating-point tensors of `dtype`."""
        return Ensemble(self.encoder.to(device, dtype), self.decoder.to(device, dtype))

    def _parts(self) -> dict[str, Stack]:
        parts = {"encoder": self.encoder, "decoder": self.decoder}
        if self.anomaly_encoder is not None:
            parts["anomaly_encoder"] = self.anomaly_encoder
        return parts
