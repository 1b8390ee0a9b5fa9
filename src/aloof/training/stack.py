"""K networks of one architecture as one callable over ``(members, rows, ...)``.

Parameters and buffers of all members lie in tensors with a leading member axis, whatever
computes with them:

* ``"stacked"``: the network itself takes stacked parameters (see `aloof.networks`);
* ``"vmap"``: `torch.vmap` over parameters, buffers and rows;
* ``"loop"``: one member after the other, for layers vmap has no rule for (recurrent ones),
  layers that draw random numbers, and convolutions on a CPU, where it is faster.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from aloof.training.seeds import seeded

__all__ = ["Engine", "Stack"]

Engine = Literal["auto", "stacked", "vmap", "loop"]

# vmap and loop swap tensors into one module; threads that score must not see each other's.
_LENT = threading.Lock()


class Stack:
    """An ensemble's networks of one kind (encoders, say).

    Parameters
    ----------
    networks
        One for each member.
    engine
        How to compute; ``"auto"`` takes the fastest that works.
    example
        Stacked inputs ``(members, rows, ...)`` to find that out with.
    device
        Where to compute.

    Attributes
    ----------
    parameters, buffers
        Name to tensor ``(members, ...)``.
    engine
        The engine in use.
    network
        The module the tensors belong to.
    mixes_rows
        Whether rows of a batch influence each other in training (batch normalisation).
    """

    def __init__(
        self,
        networks: Sequence[nn.Module],
        *,
        engine: Engine,
        example: Sequence[Tensor],
        device: torch.device,
    ) -> None:
        parameters, buffers = stack_module_state(list(networks))
        self.network = networks[0].to(device)
        self.mixes_rows = any(
            isinstance(layer, nn.modules.batchnorm._BatchNorm)
            for layer in self.network.modules()
        )
        self.parameters: dict[str, Tensor] = {
            name: value.detach().to(device).requires_grad_(value.requires_grad)
            for name, value in parameters.items()
        }
        self.buffers: dict[str, Tensor] = {
            name: value.to(device) for name, value in buffers.items()
        }
        self.engine: Engine = engine
        if engine == "auto":
            self.engine = self._choose([part.to(device) for part in example])
        self.hold(self.parameters, self.buffers)

    @property
    def n_members(self) -> int:
        """Return the number of members."""
        return len(next(iter(self.parameters.values())))

    def __call__(
        self,
        *inputs: Tensor,
        training: bool = False,
        frozen: bool = False,
        seeds: Sequence[int] | None = None,
    ) -> Any:
        """Apply every member to its own rows.

        Parameters
        ----------
        inputs
            Tensors ``(members, rows, ...)``.
        training
            Run in training mode.
        frozen
            Hold parameters fixed: gradients reach the inputs only, and running statistics
            are left alone. For training; in eval mode there is nothing to hold.
        seeds
            One for each member, for layers that draw random numbers in training.

        Returns
        -------
        What the network returns, with a leading member axis on every tensor.
        """
        if self.network.training != training:
            for network in (self.network, self._live, self._fixed):
                network.train(training)
        if self.engine == "stacked":
            return (self._fixed if frozen else self._live)(*inputs)
        if not training:  # the network is lent to one caller at a time
            with _LENT:
                return self._swapped(self.parameters, self.buffers, inputs, None)
        parameters, buffers = self.parameters, self.buffers
        if frozen:
            parameters = {name: value.detach() for name, value in parameters.items()}
            buffers = {name: value.clone() for name, value in buffers.items()}
        return self._swapped(parameters, buffers, inputs, seeds)

    def select(self, members: Sequence[int] | slice) -> Stack:
        """Return a stack of some of the members, with tensors of its own."""
        return self._with(
            {name: value.detach()[members].clone() for name, value in self.parameters.items()},
            {name: value[members].clone() for name, value in self.buffers.items()},
        )

    @staticmethod
    def joined(stacks: Sequence[Stack]) -> Stack:
        """Return one stack of the members of several, with tensors of its own, to train."""
        parameters, buffers = (
            {name: torch.cat([own[name].detach() for own in parts]) for name in parts[0]}
            for parts in zip(*[(s.parameters, s.buffers) for s in stacks], strict=True)
        )
        trainable = {name: value.requires_grad_() for name, value in parameters.items()}
        return stacks[0]._with(trainable, buffers)

    def copies(self, n: int) -> Stack:
        """Return `n` copies of every member side by side, each to be trained on its own.

        There are many, with a row or two for each: they are stacked where they can be, also
        where a loop over the members themselves is faster.
        """
        parameters, buffers = (
            {name: value.detach().repeat_interleave(n, 0) for name, value in tensors.items()}
            for tensors in (self.parameters, self.buffers)
        )
        trainable = {name: value.requires_grad_() for name, value in parameters.items()}
        engine: Engine = "stacked" if _is_stackable(self.network) else self.engine
        return self._with(trainable, buffers, engine)

    def to(self, device: torch.device, dtype: torch.dtype) -> Stack:
        """Return a copy on `device` with floating-point tensors of `dtype`, to infer."""
        parameters, buffers = (
            {
                name: value.detach().to(device, dtype if value.is_floating_point() else None)
                for name, value in tensors.items()
            }
            for tensors in (self.parameters, self.buffers)
        )
        return self._with(parameters, buffers)

    def state(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name."""
        return {**self.parameters, **self.buffers}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy `state` into parameters and buffers."""
        with torch.no_grad():
            for name, value in self.state().items():
                value.copy_(state[name])

    def _with(
        self,
        parameters: dict[str, Tensor],
        buffers: dict[str, Tensor],
        engine: Engine | None = None,
    ) -> Stack:
        other = object.__new__(Stack)
        other.engine, other.mixes_rows = engine or self.engine, self.mixes_rows
        other.network = copy.deepcopy(self.network)
        other.hold(parameters, buffers)
        return other

    def hold(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> None:
        """Take these tensors; for the stacked engine, make two modules of them.

        One module carries the parameters, the other the same memory without gradient (and
        running statistics that nobody reads); a plain call of either is several times
        cheaper than `functional_call`.
        """
        self.parameters, self.buffers = parameters, buffers
        self._live = self._fixed = self.network
        if self.engine != "stacked":
            return
        fixed = {name: value.detach() for name, value in parameters.items()}
        apart = {name: value.clone() for name, value in buffers.items()}
        self._live = _carrying(self.network, {**parameters, **buffers})
        self._fixed = _carrying(self.network, {**fixed, **apart})

    def _choose(self, example: Sequence[Tensor]) -> Engine:
        on_cpu = next(iter(self.parameters.values())).device.type == "cpu"
        convolves = any(
            isinstance(layer, nn.modules.conv._ConvNd) for layer in self.network.modules()
        )
        if on_cpu and convolves:
            return "loop"
        if _is_stackable(self.network):
            return "stacked"
        if self.n_members == 1:
            return "loop"
        self.network.train()
        buffers = {name: value.clone() for name, value in self.buffers.items()}
        try:
            with torch.no_grad():
                torch.vmap(self._call)(self.parameters, buffers, *example)
        except (RuntimeError, NotImplementedError):
            # vmap has no rule for a layer, or a layer draws random numbers. A network that
            # is simply wrong fails again, and with its own message, in the loop.
            return "loop"
        return "vmap"

    def __getstate__(self) -> dict[str, Any]:
        made = ("_live", "_fixed")
        return {name: value for name, value in vars(self).items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.hold(self.parameters, self.buffers)

    def _swapped(
        self,
        parameters: dict[str, Tensor],
        buffers: dict[str, Tensor],
        inputs: Sequence[Tensor],
        seeds: Sequence[int] | None,
    ) -> Any:
        """Apply one network with the members' tensors swapped in."""
        if self.engine == "vmap":
            return torch.vmap(self._call)(parameters, buffers, *inputs)
        own_parameters = _unbind(parameters)
        own_buffers = _unbind(buffers) or [{}] * self.n_members
        device = inputs[0].device
        outputs = []
        for k, own_inputs in enumerate(zip(*inputs, strict=True)):
            draws = seeds if self.network.training else None
            with seeded(draws[k], device) if draws else nullcontext():
                outputs.append(self._call(own_parameters[k], own_buffers[k], *own_inputs))
        if isinstance(outputs[0], Tensor):
            return torch.stack(outputs)
        return tuple(torch.stack(parts) for parts in zip(*outputs, strict=True))

    def _call(
        self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], *inputs: Tensor
    ) -> Any:
        return functional_call(self.network, (parameters, buffers), inputs)


def _is_stackable(network: nn.Module) -> bool:
    """Whether the network's own class promises to be, and all of its layers can be.

    A subclass has to renew the promise: it may have added layers that break it.
    """
    if not vars(type(network)).get("stackable", False):
        return False
    for layer in network.modules():
        holds = any(True for _ in layer.parameters(False)) or any(
            True for _ in layer.buffers(False)
        )
        if holds and not vars(type(layer)).get("stackable", False):
            return False
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            return False
    return True


def _carrying(network: nn.Module, tensors: Mapping[str, Tensor]) -> nn.Module:
    """Return a copy of `network` that holds `tensors` in place of its own."""
    twin = copy.deepcopy(network)
    for name, value in tensors.items():
        path, _, leaf = name.rpartition(".")
        owner = twin.get_submodule(path)
        place = owner._parameters if leaf in owner._parameters else owner._buffers
        place[leaf] = value  # type: ignore[assignment]
    return twin


def _unbind(tensors: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Split stacked tensors by member; they are views, so that writes go through."""
    parts = [value.unbind(0) for value in tensors.values()]
    return [dict(zip(tensors, own, strict=True)) for own in zip(*parts, strict=True)]
