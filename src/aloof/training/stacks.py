"""All networks of a learner together: stacks by name."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from aloof.training.stack import Stack

__all__ = ["describe", "flatten", "load_state", "state_of"]

_Stacks = Mapping[str, Stack]


def describe(stacks: _Stacks) -> str:
    """Return the networks in words: their layers, and every tensor's name and shape."""
    layers = [repr(stack.network) for stack in stacks.values()]
    shapes = [(name, tuple(value.shape)) for name, value in state_of(stacks).items()]
    return repr((layers, shapes))


def state_of(stacks: _Stacks) -> dict[str, Tensor]:
    """Return every parameter and buffer as ``(members, ...)``, by name."""
    return {
        f"{part}.{name}": value
        for part, stack in stacks.items()
        for name, value in stack.state().items()
    }


def load_state(stacks: _Stacks, state: Mapping[str, Tensor]) -> None:
    """Copy `state` into the networks."""
    for part, stack in stacks.items():
        stack.load({name: state[f"{part}.{name}"] for name in stack.state()})


def flatten(stacks: _Stacks) -> tuple[Tensor, list[Tensor]]:
    """Move all trainable parameters into one matrix with a row for each member.

    An optimiser then updates one tensor instead of dozens, and a member's gradient norm is the
    norm of a row.

    Returns
    -------
    The matrix ``(members, n)``, without gradient, and the parameters: leaves of the graph that
    share its memory, in the order of its columns.
    """
    trainable = [
        value
        for stack in stacks.values()
        for value in stack.parameters.values()
        if value.requires_grad
    ]
    matrix = torch.cat([value.detach().flatten(1) for value in trainable], 1)
    leaves, start = [], 0
    for stack in stacks.values():
        for name, value in stack.parameters.items():
            if not value.requires_grad:
                continue
            columns = matrix[:, start : start + value[0].numel()]
            leaves.append(columns.view(value.shape).requires_grad_())
            stack.parameters[name] = leaves[-1]
            start += columns.shape[1]
        stack.hold(stack.parameters, stack.buffers)
    return matrix, leaves
