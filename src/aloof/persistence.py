"""A model on disk is data: a folder with ``model.safetensors`` and ``manifest.json``.

Loading runs no code from the folder. The manifest carries a digest of everything but the
``threshold``, which may be edited by hand, and a digest of the tensors, so a model that was
changed or half-copied is refused. A folder is written aside and then put in place: it appears
whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import sklearn
import torch
from torch import Tensor

from aloof._version import __version__
from aloof.exceptions import AloofError, ModelError
from aloof.io import replacing, writing
from aloof.io.remote import check_here
from aloof.io.tensors import parse_tensors, save_tensors

if TYPE_CHECKING:
    from aloof.io.sections import Section

__all__ = [
    "SCHEMA_VERSION",
    "SavedTensors",
    "check_target",
    "check_tensors",
    "identity",
    "read_model",
    "refusing",
    "section_of",
    "versions",
    "write_model",
]

SCHEMA_VERSION = 2

_S = TypeVar("_S", bound="Section")
_TENSORS, _MANIFEST = "model.safetensors", "manifest.json"
_EDITABLE = ("threshold",)
_SHA256 = re.compile("[0-9a-f]{64}")
_PENDING = re.compile(r"model-[0-9a-f]{16}\.safetensors")  # until a replaced model is whole
_TRIES = 5  # a model that is replaced while it is read is read again


def check_target(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise `ModelError` where `write_model` would, before any work is done.

    Parameters
    ----------
    path
        The folder to be.
    force
        Whether a model that is there may be replaced.
    """
    target = Path(os.path.realpath(_here(path)))
    if not _may_replace(target):
        raise ModelError(
            f"{target} exists and holds more than an aloof model, so it was left alone. Save "
            "to a new folder."
        )
    if target.exists() and os.listdir(target) and not force:
        raise ModelError(
            f"{path} already exists. Choose another name, or replace it with force=True "
            "(--force)."
        )
    parent = next(parent for parent in target.parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ModelError(f"Cannot write {path}: {parent} is not a folder to write to.")


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
    check_target(path, force=True)
    target = Path(os.path.realpath(path))
    with replacing(target, ModelError, put=_put) as aside, writing(target, ModelError):
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.mkdir()
        save_tensors(aside / _TENSORS, tensors)
        content = {"schema_version": SCHEMA_VERSION, **manifest}
        with (aside / _TENSORS).open("rb") as file:
            content["tensors_sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
        content["manifest_sha256"] = _manifest_digest(content)
        try:
            text = json.dumps(content, indent=2, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ModelError(f"Cannot write the model as JSON: {error}.") from error
        (aside / _MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a model folder; raise `ModelError` where it is not what was written."""
    folder = _here(path)
    for _ in range(_TRIES):
        manifest = _read_manifest(folder)
        _check_manifest(manifest, folder)
        content = _read_tensors(folder, manifest["tensors_sha256"])
        if content is not None:
            break
    else:
        raise ModelError(
            f"{folder / _TENSORS} is not the file saved with this manifest: it was changed, "
            "or only partly copied. Save or copy the model again."
        )
    try:
        return manifest, parse_tensors(content)
    except ValueError as error:
        raise ModelError(f"{folder / _TENSORS} cannot be read: {error}.") from error


def identity(path: str | os.PathLike[str]) -> str:
    """Return a digest that tells a saved model from others, whatever its threshold is.

    It changes when the model is calibrated or fitted again.
    """
    return str(_read_manifest(_here(path)).get("tensors_sha256", ""))


def section_of(
    kind: type[_S], manifest: Mapping[str, Any], folder: object, key: str = ""
) -> _S:
    """Return a part of the manifest as what it should be; raise `ModelError` where it is not.

    Parameters
    ----------
    kind
        What it should be.
    manifest
        The whole.
    folder
        Of the model.
    key
        Of the part; empty: the whole.
    """
    from aloof.io.sections import read_section

    with refusing(folder):
        return read_section(kind, manifest[key] if key else manifest, within=key)


@contextmanager
def refusing(folder: object) -> Iterator[None]:
    """Turn whatever is raised over the content of a model into a `ModelError`.

    The content may be anything, and so may be what it leads to; only errors that name the
    folder already pass as they are.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, AloofError) and str(folder) in str(error):
            raise
        reason = " ".join(str(error).split()).rstrip(".")
        if not isinstance(error, ValueError):  # not said in words for people
            reason = f"it does not describe a model ({type(error).__name__}: {reason})"
        raise ModelError(f"{os.path.join(str(folder), _MANIFEST)}: {reason}.") from error


class SavedTensors:
    """The tensors of a model, each checked when it is taken.

    Parameters
    ----------
    tensors
        By name, with dots between the parts of a name.
    folder
        Of the model.
    """

    def __init__(self, tensors: Mapping[str, Tensor], folder: object) -> None:
        self._left, self._folder = dict(tensors), folder

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(
        self,
        name: str,
        dtype: torch.dtype,
        *shape: int | None,
        infinite: bool = False,
        empty: bool = False,
    ) -> Tensor:
        """Return a tensor without NaN.

        Parameters
        ----------
        name
            Its name.
        dtype, shape
            What it must have; None: any length but 0.
        infinite
            Whether values may be.
        empty
            Whether a length that may be any may also be 0.
        """
        if name not in self._left:
            raise self._wrong(name, "is missing")
        tensor = self._left.pop(name)
        sizes = zip(tensor.shape, shape, strict=False)
        fits = len(tensor.shape) == len(shape) and all(
            size == wanted if wanted is not None else size > 0 or empty
            for size, wanted in sizes
        )
        if tensor.dtype != dtype or not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise self._wrong(
                name,
                f"is {tensor.dtype} of shape {tuple(tensor.shape)}, but should be {dtype} of "
                f"shape ({wanted})",
            )
        if bool(tensor.isnan().any()) or not (infinite or bool(tensor.isfinite().all())):
            raise self._wrong(name, "has values that are not finite")
        return tensor

    def take_all(self, part: str) -> dict[str, Tensor]:
        """Return all tensors of one part, by the rest of their names, unchecked."""
        names = [name for name in self._left if name.startswith(f"{part}.")]
        return {name.removeprefix(f"{part}."): self._left.pop(name) for name in names}

    def finish(self) -> None:
        """Raise unless all were taken."""
        if self._left:
            raise self._wrong(min(self._left), "is left over")

    def _wrong(self, name: str, words: str) -> ModelError:
        return ModelError(f"{self._folder}: the tensor {name} {words}.")


def check_tensors(
    expected: Mapping[str, Tensor], found: Mapping[str, Tensor], folder: object
) -> None:
    """Raise `ModelError` unless `found` has just the names, shapes and types of `expected`."""
    wrong = sorted(
        name
        for name in expected.keys() | found.keys()
        if name not in found
        or name not in expected
        or found[name].shape != expected[name].shape
        or found[name].dtype != expected[name].dtype
    )
    if wrong:
        raise ModelError(
            f"The networks do not fit the weights in {folder}: {wrong[0]} is missing, left "
            f"over or of another shape (and {len(wrong) - 1} more). Pass the factories the "
            "model was fitted with."
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


def _here(path: str | os.PathLike[str]) -> Path:
    advice = "Models are folders here. Copy them, as in: aws s3 cp --recursive"
    return check_here(path, ModelError, advice)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        lacks = f"it has no {_MANIFEST}" if folder.exists() else "there is no such folder"
        raise ModelError(
            f"{folder} is not an aloof model: {lacks}. Name the folder you saved a model in."
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{folder / _MANIFEST} cannot be read: {error}.") from error
    if not isinstance(content, dict):
        raise ModelError(f"{folder / _MANIFEST} does not hold a JSON object.")
    return content


def _check_manifest(manifest: Mapping[str, Any], folder: Path) -> None:
    """Raise `ModelError` unless the manifest is one of ours, and as it was written."""
    version = manifest.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModelError(f"{folder / _MANIFEST} has no valid schema_version.")
    if version > SCHEMA_VERSION:
        raise ModelError(
            f"{folder} was written by a newer aloof (schema {version}; this one reads up to "
            f"{SCHEMA_VERSION}). Upgrade with: pip install --upgrade aloof"
        )
    if version < SCHEMA_VERSION:
        raise ModelError(
            f"{folder} was written by an older aloof (schema {version}; this one reads "
            f"{SCHEMA_VERSION}), when parameters had other names. Fit the model again."
        )
    try:
        digest = _manifest_digest(manifest)
    except RecursionError as error:
        raise ModelError(f"{folder / _MANIFEST} cannot be read: {error}.") from error
    tensors = manifest.get("tensors_sha256")
    whole = isinstance(tensors, str) and _SHA256.fullmatch(tensors)
    if manifest.get("manifest_sha256") != digest or not whole:
        raise ModelError(
            f"{folder / _MANIFEST} was changed after the model was saved. Only "
            f"{' and '.join(map(repr, _EDITABLE))} may be edited by hand; restore the rest."
        )


def _read_tensors(folder: Path, digest: str) -> bytes | None:
    """Return the content of the file of tensors with this digest; None: there is none."""
    for name in (_TENSORS, _pending(digest)):
        try:
            content = (folder / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ModelError(
                f"{folder} is incomplete: {name} cannot be read ({error.strerror})."
            ) from error
        if hashlib.sha256(content).hexdigest() == digest:
            return content
    if not (folder / _TENSORS).exists():
        raise ModelError(f"{folder} is incomplete: it has no {_TENSORS}.")
    return None


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
        ours = all(name in (_TENSORS, _MANIFEST) or _PENDING.fullmatch(name) for name in names)
        return ours and "tensors_sha256" in _read_manifest(target)
    except ModelError:
        return False


def _put(new: Path, target: Path) -> None:
    """Put a finished folder in the place of what is there.

    No system but Linux can swap two folders in one step, and there not on every disk. A file
    can be replaced in one step everywhere, and the manifest says which tensors are its own. So
    they come first, beside the old ones; the new manifest makes the old model the new one; and
    then they take the old ones' name. Whoever reads meanwhile, and whoever finds the folder
    after a run that was killed meanwhile, has one model or the other.
    """
    if not target.exists() or not os.listdir(target):
        if target.exists():
            target.rmdir()
        os.rename(new, target)
        return
    pending = target / _pending(_read_manifest(new)["tensors_sha256"])
    try:
        os.replace(new / _TENSORS, pending)
        os.replace(new / _MANIFEST, target / _MANIFEST)
    except OSError:
        pending.unlink(missing_ok=True)
        raise
    os.replace(pending, target / _TENSORS)
    for left in target.iterdir():  # by a run that was killed
        if _PENDING.fullmatch(left.name):
            left.unlink(missing_ok=True)


def _pending(digest: str) -> str:
    """Return the name of tensors that have not got their own yet."""
    return f"model-{digest[:16]}.safetensors"


def _manifest_digest(manifest: Mapping[str, Any]) -> str:
    fixed = {
        key: value
        for key, value in manifest.items()
        if key not in (*_EDITABLE, "manifest_sha256")
    }
    text = json.dumps(fixed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
