"""Trained perceptrons as the affine maps that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from aloof.networks.dense import BatchNorm, Dense
from aloof.networks.linear import Linear
from aloof.networks.mlp import MLPDecoder, MLPEncoder

__all__ = [
    "Affine",
    "affine_layers",
    "dense_layer",
    "folded_norm",
    "linear_layer",
    "parameters_of",
]


@dataclass(frozen=True)
class Affine:
    """A layer of every member: a leaky ReLU of ``x @ weight + bias``.

    Attributes
    ----------
    weight
        ``(members, in, out)``, float64.
    bias
        ``(members, out)``, float64.
    slope
        Of the leaky ReLU below zero; 1: there is none.
    """

    weight: Tensor
    bias: Tensor
    slope: float = 1.0


def affine_layers(network: nn.Module, tensors: Mapping[str, Tensor]) -> list[Affine] | None:
    """Return the layers of a perceptron in eval mode, batch normalisation folded in.

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
    if type(network) not in (MLPEncoder, MLPDecoder):
        return None
    assert isinstance(network.body, nn.Sequential)
    named = [(f"body.{name}", layer) for name, layer in network.body.named_children()]
    layers: list[Affine] = []
    for name, layer in (*named, ("head", network.head)):
        if isinstance(layer, Dense):
            layers.append(dense_layer(layer, name, tensors))
        elif isinstance(layer, Linear):
            layers.append(linear_layer(name, tensors))
        elif isinstance(layer, nn.LeakyReLU):
            layers[-1] = Affine(layers[-1].weight, layers[-1].bias, layer.negative_slope)
        elif not isinstance(layer, nn.Dropout):
            return None
    return layers


def linear_layer(name: str, tensors: Mapping[str, Tensor]) -> Affine:
    """Return a linear layer by its name among the tensors."""
    weight, bias = parameters_of(name, tensors)
    return Affine(weight.mT, bias)


def dense_layer(layer: Dense, name: str, tensors: Mapping[str, Tensor]) -> Affine:
    """Return a dense layer, batch normalisation folded in, by its name among the tensors."""
    plain = linear_layer(f"{name}.linear", tensors)
    if layer.norm is None:
        return Affine(plain.weight, plain.bias, layer.slope)
    scale, bias = folded_norm(layer.norm, f"{name}.norm", tensors, plain.bias)
    return Affine(plain.weight * scale.unsqueeze(-2), bias, layer.slope)


def parameters_of(name: str, tensors: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a layer by its name among the tensors, float64."""
    weight, bias = (tensors[f"{name}.{part}"].detach().double() for part in ("weight", "bias"))
    return weight, bias


def folded_norm(
    norm: BatchNorm, name: str, tensors: Mapping[str, Tensor], bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Return what batch normalisation makes of the layer before it.

    Parameters
    ----------
    norm, name, tensors
        The normalisation, and its name among the tensors.
    bias
        Of the layer before, ``(members, out)``.

    Returns
    -------
    What the layer's weights are multiplied by, ``(members, out)``, and its new bias.
    """
    gain, shift, mean, variance = (
        tensors[f"{name}.{part}"].detach().double()
        for part in ("weight", "bias", "running_mean", "running_var")
    )
    scale = gain * (variance + norm.eps).rsqrt()
    return scale, (bias - mean) * scale + shift
