"""A model on disk is data: a folder with ``model.safetensors`` and ``manifest.json``.

Loading runs no code from the folder. The manifest carries a digest of everything but the
``threshold``, which may be edited by hand, and a digest of the tensors, so a model that was
changed or half-copied is refused. A folder is written aside and then put in place: it appears
whole or not at all.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import shutil
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from torch import Tensor

from aloof._version import __version__
from aloof.exceptions import ModelError

__all__ = [
    "SCHEMA_VERSION",
    "check_place",
    "check_tensors",
    "read_model",
    "versions",
    "write_model",
]

SCHEMA_VERSION = 1

_TENSORS, _MANIFEST = "model.safetensors", "manifest.json"
_EDITABLE = ("threshold",)


def check_place(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise `ModelError` where `write_model` would, before any work is done.

    Parameters
    ----------
    path
        The folder to be.
    force
        Whether a model that is there may be replaced.
    """
    target = Path(os.path.realpath(path))
    if not _may_replace(target):
        raise ModelError(
            f"{target} exists and holds more than an aloof model, so it is left alone. "
            "Save to a new folder."
        )
    if target.exists() and os.listdir(target) and not force:
        raise ModelError(
            f"{path} exists. Choose another name, or replace it with force=True (--force)."
        )
    parent = next(parent for parent in target.parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ModelError(f"{path} cannot be written: {parent} is no folder to write to.")


def write_model(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write a model folder, replacing an older model of the same name.

    Parameters
    ----------
    path
        The folder. It may not exist, be empty, or hold a model and nothing else; anything
        else is left alone.
    manifest
        What JSON can hold.
    tensors
        The rest.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    check_place(path, force=True)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        save_file(
            {name: value.detach().cpu().contiguous() for name, value in tensors.items()},
            temporary / _TENSORS,
        )
        content = {"schema_version": SCHEMA_VERSION, **manifest}
        content["tensors_sha256"] = _file_digest(temporary / _TENSORS)
        content["manifest_sha256"] = _manifest_digest(content)
        (temporary / _MANIFEST).write_text(
            json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
        for name in (_TENSORS, _MANIFEST):
            with (temporary / name).open("rb") as file:
                os.fsync(file.fileno())
        _put(temporary, target)
    except (OSError, SafetensorError) as error:  # of a full disk safetensors has its own
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"The model cannot be written to {target}: {reason}. Make room, or save "
            "elsewhere. Nothing was changed there."
        ) from error
    except (TypeError, ValueError) as error:
        raise ModelError(f"The model cannot be written as JSON: {error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a model folder; raise `ModelError` where it is not what was written."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(path)
    manifest = _read_manifest(folder)
    version = manifest.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModelError(f"{folder / _MANIFEST} has no valid schema_version.")
    if version > SCHEMA_VERSION:
        raise ModelError(
            f"{folder} was written by a newer aloof (schema {version}; this one reads up to "
            f"{SCHEMA_VERSION}). Upgrade with: pip install --upgrade aloof"
        )
    if manifest.get("manifest_sha256") != _manifest_digest(manifest):
        raise ModelError(
            f"{folder / _MANIFEST} was changed after the model was saved. Only "
            f"{' and '.join(map(repr, _EDITABLE))} may be edited by hand; restore the rest."
        )
    tensors_path = folder / _TENSORS
    try:
        digest = _file_digest(tensors_path)
    except OSError as error:
        raise ModelError(
            f"{folder} is incomplete: {_TENSORS} cannot be read ({error.strerror})."
        ) from error
    if digest != manifest.get("tensors_sha256"):
        raise ModelError(
            f"{tensors_path} is not the file that was saved with this manifest: it was "
            "changed or copied in part. Save or copy the model again."
        )
    try:
        return manifest, load_file(tensors_path)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{tensors_path} cannot be read: {error}.") from error


def check_tensors(
    expected: Mapping[str, Tensor], found: Mapping[str, Tensor], folder: object
) -> None:
    """Raise `ModelError` unless `found` has just the names and shapes of `expected`."""
    wrong = sorted(
        name
        for name in expected.keys() | found.keys()
        if name not in found
        or name not in expected
        or found[name].shape != expected[name].shape
    )
    if wrong:
        raise ModelError(
            f"The networks do not fit the weights in {folder}: {wrong[0]} is missing, left "
            f"over or of another shape (and {len(wrong) - 1} more). Pass the factories that "
            "the model was fitted with."
        )


def versions() -> dict[str, str]:
    """Return the versions a model was written with."""
    return {
        "aloof": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(
            f"{folder} is not an aloof model: it has no {_MANIFEST}. Name the folder that a "
            "model was saved to."
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{folder / _MANIFEST} cannot be read: {error}.") from error
    if not isinstance(content, dict):
        raise ModelError(f"{folder / _MANIFEST} does not hold a JSON object.")
    return content


def _may_replace(target: Path) -> bool:
    """Whether there is nothing at `target` that is not ours."""
    if not target.exists():
        return True
    if not target.is_dir():
        return False
    names = set(os.listdir(target))
    if not names:
        return True
    try:
        return names <= {_TENSORS, _MANIFEST} and "tensors_sha256" in _read_manifest(target)
    except ModelError:
        return False


def _put(temporary: Path, target: Path) -> None:
    """Put a finished folder in the place of what is there."""
    if not target.exists():
        os.rename(temporary, target)
    elif not _exchange(temporary, target):  # the old one is removed with the temporary name
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        os.rename(target, aside)
        try:
            os.rename(temporary, target)
        except OSError:
            os.rename(aside, target)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, where the system can (Linux); else return False."""
    if sys.platform != "linux":
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest_digest(manifest: Mapping[str, Any]) -> str:
    fixed = {
        key: value
        for key, value in manifest.items()
        if key not in (*_EDITABLE, "manifest_sha256")
    }
    text = json.dumps(fixed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
