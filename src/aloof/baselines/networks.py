"""The networks of the deep baselines, for rows of any shape, with or without biases.

They are made of the parts of `aloof.networks`, so that many members are as fast on a GPU as the
VAEs that they are compared with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from aloof.networks import (
    Architecture,
    ConvDecoder,
    ConvEncoder,
    FoldedDecoder,
    Linear,
    MLPDecoder,
    MLPEncoder,
)
from aloof.networks.dense import Dense, without_biases
from aloof.suggestion import did_you_mean

__all__ = [
    "CodeClassifier",
    "CodeEncoder",
    "Networks",
    "Perceptron",
    "networks_for",
    "without_biases",
]

_SLOPE = 0.1  # of the leaky ReLU, as in the paper's networks


class Perceptron(nn.Module):
    """Linear layers with leaky ReLUs between them, and a linear output.

    Parameters
    ----------
    widths
        From the input to the output.
    normalise
        Whether hidden layers are batch-normalised.
    slope
        Of the leaky ReLU below zero; 0: a plain ReLU.
    """

    stackable = True

    def __init__(
        self, widths: Sequence[int], *, normalise: bool, slope: float = _SLOPE
    ) -> None:
        super().__init__()
        self.dense = nn.ModuleList(
            Dense(*pair, slope, normalise) for pair in pairwise(widths[:-1])
        )
        self.head = Linear(widths[-2], widths[-1])

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., n, d)`` to ``(..., n, size)``."""
        for layer in self.dense:
            x = layer(x)
        return _exact(self.head, x)


class CodeEncoder(ConvEncoder):
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
        super().__init__(shape, size, **options)
        self.head = Linear(self.head.in_features, size)  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Map images ``(..., n, c, h, w)`` to codes ``(..., n, size)``."""
        return _exact(self.head, self.features(x))


class CodeClassifier(CodeEncoder):
    """A code, and a linear output of it: nothing is normalised or cut off between the two.

    Parameters
    ----------
    shape, size, options
        As in `CodeEncoder`.
    n_outputs
        How many numbers it returns.
    """

    stackable = True

    def __init__(self, shape: Sequence[int], size: int, n_outputs: int, **options: Any) -> None:
        super().__init__(shape, size, **options)
        self.output = Linear(size, n_outputs)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Map images ``(..., n, c, h, w)`` to ``(..., n, n_outputs)``."""
        return _exact(self.output, super().forward(x))


def _exact(head: nn.Linear, y: Tensor) -> Tensor:
    """Apply a last layer in its own precision.

    Distances to a centre are small differences, which bfloat16 would round away.
    """
    with torch.autocast(y.device.type, enabled=False):
        code: Tensor = head(y.to(head.weight.dtype))
    return code


class Networks(ABC):
    """What makes the networks of members, all for rows of one shape.

    Attributes
    ----------
    shape
        Shape of one row.
    size
        Of a code.
    """

    shape: tuple[int, ...]
    size: int

    @abstractmethod
    def encoder(self) -> nn.Module:
        """Return what maps rows to codes."""

    @abstractmethod
    def decoder(self) -> nn.Module:
        """Return what maps codes to rows."""

    @abstractmethod
    def classifier(self, *, normalise: bool = True, size: int = 1) -> nn.Module:
        """Return what maps rows to `size` numbers; `normalise` is for rows of numbers."""

    @abstractmethod
    def vae(self) -> Architecture:
        """Return what makes the encoder and decoder of a VAE."""


class _TableNetworks(Networks):
    def __init__(self, shape: tuple[int, ...], hidden: tuple[int, ...]) -> None:
        self.shape, self.size = shape, hidden[-1]
        self._hidden = hidden

    def encoder(self) -> nn.Module:
        return Perceptron((*self.shape, *self._hidden), normalise=True)

    def decoder(self) -> nn.Module:
        return Perceptron((*self._hidden[::-1], *self.shape), normalise=True)

    def classifier(self, *, normalise: bool = True, size: int = 1) -> nn.Module:
        return Perceptron((*self.shape, *self._hidden, size), normalise=normalise)

    def vae(self) -> Architecture:
        hidden = self._hidden[:-1]
        return Architecture(
            partial(MLPEncoder, self.shape, self.size, hidden),
            partial(MLPDecoder, self.shape, self.size, hidden),
            self.size,
        )


_DECODERS: Mapping[str, Callable[..., nn.Module]] = {
    "mirror": ConvDecoder,
    "folded": FoldedDecoder,
}


class _ImageNetworks(Networks):
    def __init__(self, shape: tuple[int, ...], options: Mapping[str, Any]) -> None:
        others = dict(options)
        self.shape = shape
        self.size = others.pop("latent_dim", 32)
        decoder = others.pop("decoder", "mirror")
        if decoder not in _DECODERS:
            close = did_you_mean(decoder, _DECODERS)
            raise ValueError(f"There is no decoder {decoder!r}{close}")
        self._decoder = _DECODERS[decoder]
        self._options = others

    def encoder(self) -> nn.Module:
        return CodeEncoder(self.shape, self.size, **self._options)

    def decoder(self) -> nn.Module:
        return self._decoder(self.shape, self.size, **self._options)

    def classifier(self, *, normalise: bool = True, size: int = 1) -> nn.Module:
        # A normalised and activated code remembers hidden anomalies: docs/reproduction.md.
        return CodeClassifier(self.shape, self.size, size, **self._options)

    def vae(self) -> Architecture:
        return Architecture(
            partial(ConvEncoder, self.shape, self.size, **self._options),
            partial(self._decoder, self.shape, self.size, **self._options),
            self.size,
        )


def networks_for(
    shape: Sequence[int], hidden: tuple[int, ...], images: Mapping[str, Any] | None
) -> Networks:
    """Return what makes networks for rows of a shape.

    Parameters
    ----------
    shape
        Of one row: ``(n_features,)`` or ``(channels, height, width)``.
    hidden
        For rows of numbers: widths of the layers, the last one is the size of the code.
    images
        For images: options of `aloof.networks.ConvEncoder`, ``latent_dim``, and ``decoder``,
        which is ``mirror`` (`aloof.networks.ConvDecoder`) or ``folded``
        (`aloof.networks.FoldedDecoder`); what is missing is the encoder's default, 32 and
        ``mirror``. None: all of it.
    """
    if len(shape) == 1:
        return _TableNetworks(tuple(shape), tuple(hidden))
    return _ImageNetworks(tuple(shape), images or {})
