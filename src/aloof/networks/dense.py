"""Batch-normalised dense layers that also take stacked parameters."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, leaky_relu

from aloof.networks.linear import Linear
from aloof.networks.stacked import can_fuse, fused_activation

__all__ = ["BatchNorm", "Dense", "without_biases"]

_VARIANCE_FLOOR = 1e-4  # of normalisation without gain, as Ruff et al. published it


class BatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation of channels, members' channels side by side."""

    stackable = True

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``(n, members x channels, ...)``."""
        mean, var = self.running()
        if self.training:
            self.count()
        return batch_norm(
            x,
            mean.flatten(),
            var.flatten(),
            self.weight.flatten(),
            self.bias.flatten(),
            self.training,
            0.1 if self.momentum is None else self.momentum,
            self.eps,
        )

    def activated(self, x: Tensor, slope: float) -> Tensor:
        """Normalise ``(members, n, width)``, and take a leaky ReLU of it."""
        out, mean, var = fused_activation(
            x,
            self.weight,
            self.bias,
            statistics=None if self.training else self.running(),
            eps=self.eps,
            slope=slope,
        )
        if self.training:
            self.follow(mean, var, x.shape[1])
        return out

    def running(self) -> tuple[Tensor, Tensor]:
        """Return running mean and variance."""
        assert self.running_mean is not None
        assert self.running_var is not None
        return self.running_mean, self.running_var

    def count(self) -> None:
        """Count a batch."""
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)

    def follow(self, mean: Tensor, var: Tensor, n: int) -> None:
        """Move the running statistics towards those of a batch of `n` values."""
        self.count()
        momentum = 0.1 if self.momentum is None else self.momentum
        running_mean, running_var = self.running()
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        running_var.lerp_((var * (n / max(1, n - 1))).to(running_var.dtype), momentum)

    def _check_input_dim(self, input: Tensor) -> None:
        pass  # any number of dimensions will do


class Dense(nn.Module):
    """A linear layer, batch normalisation and a leaky ReLU."""

    def __init__(self, n_in: int, n_out: int, slope: float, normalise: bool) -> None:
        super().__init__()
        self.linear = Linear(n_in, n_out)
        self.norm = BatchNorm(n_out) if normalise else None
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., n, in)`` to ``(..., n, out)``."""
        y: Tensor = self.linear(x)
        if self.norm is not None and y.dim() == 2:
            y = self.norm(y)
        elif self.norm is not None and can_fuse(y):
            return self.norm.activated(y, self.slope)
        elif self.norm is not None:  # members' features side by side, and back
            members, n, width = y.shape
            y = self.norm(y.transpose(0, 1).reshape(n, members * width))
            y = y.view(n, members, width).transpose(0, 1)
        return leaky_relu(y, self.slope)


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
