"""Where to compute."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from aloof.exceptions import DeviceError

__all__ = ["on", "resolve_device"]


def on(device: torch.device) -> AbstractContextManager[object]:
    """Make a GPU the current one: kernels and graphs of ours go there."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def resolve_device(name: str) -> torch.device:
    """Turn ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"`` into a device.

    ``"auto"`` takes CUDA where there is one, else the CPU; Apple's MPS only when asked for.
    """
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if name == "auto":
        return torch.device("cuda", 0) if cuda else torch.device("cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise DeviceError(
            f"device must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'; got {name!r}."
        ) from error
    if device.type == "cpu" or (device.type == "mps" and mps):
        return device
    if device.type == "cuda" and cuda:
        device = torch.device("cuda", device.index or 0)
        if device.index < torch.cuda.device_count():
            return device
    raise DeviceError(
        f"This machine has no device {name!r} that torch {torch.__version__} can use. Use "
        "device='auto' (--device auto) to take what there is."
    )
