"""Weights that somebody has, read as tensors and nothing else.

A file is safetensors, or what `torch.save` has written since version 1.6: a zip archive, whose
index of tensors is read by a reader that can make nothing but tensors. Older files are one long
pickle, a program. They are opened only where their digest is one that is known.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from aloof.exceptions import BackboneError
from aloof.io.tensors import parse_tensors

__all__ = ["digest_of", "read_checkpoint"]

_MOST_BYTES = 2**31
# Where training scripts put the weights among other things.
_INSIDE = ("state_dict", "model", "teacher", "model_state_dict")


def read_checkpoint(
    path: str | os.PathLike[str], *, digest: str | None = None
) -> tuple[dict[str, Tensor], str]:
    """Return the tensors of a file, and the SHA-256 of the file.

    Parameters
    ----------
    path
        The file.
    digest
        The SHA-256 that it must have. Such a file is known, and may be of the older format.

    Raises
    ------
    BackboneError
        Where it is another file, a pickle, or damaged.
    """
    content = _content(Path(path))
    found = hashlib.sha256(content).hexdigest()
    if digest is not None and found != digest:
        raise BackboneError(
            f"{path} is not the file it should be: its SHA-256 begins with {found[:8]}, not "
            f"{digest[:8]}. It was changed or only partly copied; install or copy it again."
        )
    pickled = content[:1] == b"\x80" and content[8:9] != b"{"  # the latter: safetensors
    if pickled and digest is None:
        raise BackboneError(
            f"{path} is a pickle, which can run any code, and was not opened. Save its weights "
            "as safetensors, or, if you trust it, again with torch.save of torch 1.6 or later."
        )
    if content[:4] == b"PK\x03\x04" or pickled:
        return _unzipped(content, path), found
    try:
        return parse_tensors(content), found
    except ValueError as error:
        raise BackboneError(
            f"{path} holds no weights that can be read: it is neither safetensors nor a file "
            f"of torch.save ({error})."
        ) from error


def digest_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(_content(Path(path))).hexdigest()


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BackboneError(f"{path} has more than {_MOST_BYTES:,} bytes.")
        return path.read_bytes()
    except OSError as error:
        raise BackboneError(
            f"The weights in {path} cannot be read: {error.strerror or error}."
        ) from error


def _unzipped(content: bytes, path: str | os.PathLike[str]) -> dict[str, Tensor]:
    try:
        found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BackboneError(
            f"{path} holds more than tensors, and was not opened: it could run any code. Save "
            "the state_dict of the network alone, best as safetensors."
        ) from error
    except (RuntimeError, zipfile.BadZipFile, EOFError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BackboneError(f"{path} is cut off or damaged ({reason}).") from error
    for name in _INSIDE:
        if isinstance(found, dict) and isinstance(found.get(name), dict):
            found = found[name]
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        raise BackboneError(f"{path} holds no state_dict of a network.")
    return {str(name).removeprefix("module."): value for name, value in found.items()}
