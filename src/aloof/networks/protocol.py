"""What an encoder and a decoder must do, and a check that says where they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from aloof.exceptions import NetworkError

__all__ = ["Architecture", "NetworkFactory", "Posterior", "check_architecture"]

Posterior = tuple[Tensor, Tensor]


class NetworkFactory(Protocol):
    """Anything that makes a fresh network: a class, a function, a `partial`."""

    def __call__(self, shape: tuple[int, ...], latent_dim: int) -> nn.Module:
        """Return a network for rows of `shape` and a latent space of `latent_dim`."""
        ...


@dataclass(frozen=True)
class Architecture:
    """How to make the two networks of a member.

    Attributes
    ----------
    encoder, decoder
        Functions without arguments that return a fresh network.
    latent_dim
        Size of the latent space.
    """

    encoder: Callable[[], nn.Module]
    decoder: Callable[[], nn.Module]
    latent_dim: int


def check_architecture(
    architecture: Architecture, rows: Sequence[Tensor], *, learned_variance: bool
) -> torch.dtype:
    """Run both networks on a few rows; raise `NetworkError` where they break the protocol.

    Parameters
    ----------
    architecture
        What makes the networks.
    rows
        A few rows ``(n, *shape)`` and, for conditional networks, their context.
    learned_variance
        Whether the decoder has to return ``(mean, log_var)``.

    Returns
    -------
    The dtype to score in: float64 if both networks run in it, else that of the rows.
    """
    with torch.random.fork_rng(devices=[]):
        encoder = _network(architecture.encoder, "encoder").eval()
        decoder = _network(architecture.decoder, "decoder").eval()
    x, *context = rows
    expected = (x.shape[0], architecture.latent_dim)
    with torch.no_grad():
        posterior = encoder(x, *context)
        if not _is_pair(posterior):
            raise NetworkError(
                f"The encoder must return a pair (mean, log_var); got {_describe(posterior)}."
            )
        for name, value in zip(("mean", "log_var"), posterior, strict=True):
            if tuple(value.shape) != expected:
                raise NetworkError(
                    f"The encoder's {name} must have shape (n, latent_dim) = {expected}; "
                    f"got {tuple(value.shape)}."
                )
        same, *same_context = (part[:1].expand_as(part) for part in rows)
        _check_company("encoder", encoder(same, *same_context)[0], posterior[0])
        output = decoder(posterior[0], *context)
        if learned_variance != _is_pair(output):
            wanted = "a pair (mean, log_var)" if learned_variance else "one tensor"
            raise NetworkError(
                f"With this likelihood the decoder must return {wanted}; "
                f"got {_describe(output)}."
            )
        mean = output[0] if learned_variance else output
        if learned_variance and output[1].shape != output[0].shape:
            raise NetworkError(
                "The decoder's log_var must have the shape of its mean, "
                f"{tuple(output[0].shape)}; got {tuple(output[1].shape)}."
            )
        if not learned_variance and not isinstance(output, Tensor):
            raise NetworkError(f"The decoder must return a tensor; got {_describe(output)}.")
        if mean.shape[0] != x.shape[0] or mean[0].numel() != x[0].numel():
            raise NetworkError(
                f"The decoder must return rows of shape {tuple(x.shape[1:])}; "
                f"got {tuple(mean.shape[1:])}."
            )
        same = posterior[0][:1].expand_as(posterior[0])
        alone = decoder(same, *same_context)
        _check_company("decoder", alone[0] if learned_variance else alone, mean)
        try:
            wide = [part.double() if part.is_floating_point() else part for part in rows]
            wide_mean, _ = encoder.double()(*wide)
            decoder.double()(wide_mean, *wide[1:])
        except RuntimeError:
            return x.dtype
    return torch.float64


def _network(factory: Callable[[], nn.Module], name: str) -> nn.Module:
    network = factory()
    if not isinstance(network, nn.Module):
        raise NetworkError(
            f"The {name} factory must return a torch.nn.Module; got {type(network).__name__}."
        )
    return network


def _check_company(name: str, alone: Tensor, together: Tensor) -> None:
    """Raise where a network says something else about a row in the company of its likes."""
    if not torch.allclose(alone[0], together[0], rtol=1e-3, atol=1e-4, equal_nan=True):
        raise NetworkError(
            f"In eval mode, what the {name} returns for a row depends on the other rows of the "
            "batch, or on chance, so scores would too. Use statistics of the batch and random "
            "numbers only if self.training is true."
        )


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(part, Tensor) for part in value)
    )


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"one tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return type(value).__name__
