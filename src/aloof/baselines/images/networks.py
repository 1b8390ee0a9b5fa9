"""The networks of the deep baselines on images, with or without biases.

They are made of the parts of `aloof.networks.conv`, so that many members are as fast on a GPU
as the VAEs that they are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from aloof.networks import Architecture, ConvDecoder, ConvEncoder, Linear

__all__ = ["CodeEncoder", "ImageNetworks", "without_biases"]

_VARIANCE_FLOOR = 1e-4  # of normalisation without gain, as Ruff et al. published it


class CodeEncoder(nn.Module):
    """`aloof.networks.ConvEncoder` with one code instead of a mean and a log-variance.

    Parameters
    ----------
    shape
        Shape of one image, ``(channels, height, width)``.
    size
        Of the code.
    options
        Those of `ConvEncoder`.
    """

    stackable = True

    def __init__(self, shape: Sequence[int], size: int, **options: Any) -> None:
        super().__init__()
        body = ConvEncoder(shape, size, **options)
        self.stages, self.dense = body.stages, body.dense
        self.head = Linear(body.head.in_features, size)

    def forward(self, x: Tensor) -> Tensor:
        """Map images ``(..., n, c, h, w)`` to codes ``(..., n, size)``."""
        stacked = x.dim() == 5
        y = x.permute(0, 1, 3, 4, 2) if stacked else x
        for stage in self.stages:
            y = stage(y)
        y = y.permute(0, 1, 4, 2, 3).flatten(2) if stacked else y.flatten(1)
        for layer in self.dense:
            y = layer(y)
        # Distances to a centre are small differences, which bfloat16 would round away.
        with torch.autocast(x.device.type, enabled=False):
            code: Tensor = self.head(y.to(self.head.weight.dtype))
        return code


def without_biases(network: nn.Module) -> nn.Module:
    """Hold all biases at 0, and gains of normalisation at 1; return the network itself.

    They become buffers, which no optimiser sees: the layers compute as before, also stacked.
    A network without biases has no easy way to map everything to one point.
    """
    for layer in network.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.eps = _VARIANCE_FLOOR
            _hold(layer, "weight", 1.0)
        if getattr(layer, "bias", None) is not None:
            _hold(layer, "bias", 0.0)
    return network


def _hold(layer: nn.Module, name: str, number: float) -> None:
    value = layer._parameters.pop(name)
    assert value is not None
    layer.register_buffer(name, torch.full_like(value.detach(), number))


class ImageNetworks:
    """What makes the networks of the members, all of one kind.

    Parameters
    ----------
    shape
        Shape of one image.
    options
        Those of `aloof.networks.ConvEncoder`, ``latent_dim`` included. What is missing is the
        encoder's default, and 32 for ``latent_dim``.
    """

    def __init__(self, shape: Sequence[int], options: Mapping[str, Any] | None) -> None:
        others = dict(options or {})
        self.shape = tuple(shape)
        self.latent_dim: int = others.pop("latent_dim", 32)
        self._options = others

    def autoencoder(self, *, bias: bool) -> tuple[nn.Module, nn.Module]:
        """Return an encoder and a decoder."""
        parts = (
            CodeEncoder(self.shape, self.latent_dim, **self._options),
            ConvDecoder(self.shape, self.latent_dim, **self._options),
        )
        return parts if bias else (without_biases(parts[0]), without_biases(parts[1]))

    def classifier(self) -> nn.Module:
        """Return the encoder, its code one more hidden layer, and one logit."""
        hidden = (*self._options.get("hidden", (64,)), self.latent_dim)
        return CodeEncoder(self.shape, 1, **{**self._options, "hidden": hidden})

    def vae(self) -> Architecture:
        """Return what makes the encoder and decoder of a VAE."""
        return Architecture(
            partial(ConvEncoder, self.shape, self.latent_dim, **self._options),
            partial(ConvDecoder, self.shape, self.latent_dim, **self._options),
            self.latent_dim,
        )
