"""Trained convolutional networks as plain layers, one member after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from aloof.networks.affine import (
    Affine,
    dense_layer,
    folded_norm,
    linear_layer,
    parameters_of,
)
from aloof.networks.conv import ConvDecoder, ConvEncoder, _Stage

__all__ = ["Convolution", "Convolutional", "convolutional_layers"]


@dataclass(frozen=True)
class Convolution:
    """A convolution of every member, and a leaky ReLU.

    Attributes
    ----------
    weight
        ``(members, out, in, kernel, kernel)``, float64.
    bias
        ``(members, out)``, float64.
    slope
        Of the leaky ReLU below zero; 1: there is none.
    pools
        Whether the largest of 2x2 pixels follows.
    size
        Height and width that pixels are repeated to before; None: they are not.
    """

    weight: Tensor
    bias: Tensor
    slope: float = 1.0
    pools: bool = False
    size: tuple[int, int] | None = None

    @property
    def padding(self) -> tuple[int, int, int, int]:
        """Pixels of zeros above, to the left, below and to the right: the size stays."""
        kernel = self.weight.shape[-1]
        before = (kernel - 1) // 2
        return before, before, kernel - 1 - before, kernel - 1 - before


@dataclass(frozen=True)
class Convolutional:
    """The layers of a network in the order in which they compute.

    Attributes
    ----------
    layers
        Convolutions and dense layers. Between an image and a dense layer, pixels become
        numbers in a row.
    folded
        Shape of the image that the numbers of the last dense layer become; None: they do not.
    """

    layers: list[Convolution | Affine]
    folded: tuple[int, int, int] | None = None


def convolutional_layers(
    network: nn.Module, tensors: Mapping[str, Tensor]
) -> Convolutional | None:
    """Return the layers of a network in eval mode, batch normalisation folded in.

    Parameters
    ----------
    network
        What computes with the tensors.
    tensors
        Parameters and buffers of all members by name, each with a leading axis of members.

    Returns
    -------
    None for any other network: also for a subclass, which may compute something else.
    """
    if type(network) not in (ConvEncoder, ConvDecoder):
        return None
    assert isinstance(network, ConvEncoder | ConvDecoder)
    dense: list[Convolution | Affine] = [
        dense_layer(layer, f"dense.{number}", tensors)  # type: ignore[arg-type]
        for number, layer in enumerate(network.dense)
    ]
    sizes = [None] * len(network.stages) if isinstance(network, ConvEncoder) else network._sizes
    stages: list[Convolution | Affine] = [
        _stage(stage, f"stages.{number}", tensors, size)  # type: ignore[arg-type]
        for number, (stage, size) in enumerate(zip(network.stages, sizes, strict=False))
    ]
    if isinstance(network, ConvEncoder):
        return Convolutional([*stages, *dense, linear_layer("head", tensors)])
    weight, bias = parameters_of("output", tensors)
    last = Convolution(weight, bias, size=network._sizes[-1])
    return Convolutional([*dense, *stages, last], network._folded)


def _stage(
    stage: _Stage, name: str, tensors: Mapping[str, Tensor], size: tuple[int, int] | None
) -> Convolution:
    weight, bias = parameters_of(f"{name}.convolution", tensors)
    if stage.norm is not None:
        scale, bias = folded_norm(stage.norm, f"{name}.norm", tensors, bias)
        weight = weight * scale[..., None, None, None]
    return Convolution(weight, bias, stage._slope, stage._pool, size)
