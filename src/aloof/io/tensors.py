"""Tensors in files, by safetensors: data, no code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["parse_tensors", "save_tensors"]


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors into a file; raise `OSError` where that is not possible.

    Parameters
    ----------
    path
        The file.
    tensors
        On any device, laid out in any way.
    metadata
        Text to go with them.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    ready = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    try:
        save_file(ready, path, None if metadata is None else dict(metadata))
    except SafetensorError as error:  # its own word for a full disk
        raise OSError(str(error)) from error


def parse_tensors(content: bytes) -> dict[str, Tensor]:
    """Return the tensors in the bytes of a file; raise `ValueError` where there are none."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(content)
    except (SafetensorError, KeyError) as error:  # KeyError: a type that torch has not
        raise ValueError(str(error)) from error
