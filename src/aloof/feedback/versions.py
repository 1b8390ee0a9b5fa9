"""Versions of a model, kept beside it: what a refit makes, and what it was made from.

``MODEL.versions`` holds one model folder for each, with its number. The model itself is one of
them, put in its place in one step: whoever reads it, and whoever finds it after a kill, has
one version or another, never a mixture.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aloof.exceptions import ModelError
from aloof.models import Model
from aloof.persistence import read_model, write_model

__all__ = ["Version", "add_version", "list_versions", "present_version", "use_version"]

_FIRST = 1


@dataclass(frozen=True)
class Version:
    """One version of a model.

    Attributes
    ----------
    number
        From 1 on.
    parent
        The number of the version it was made from; None: it was fitted.
    path
        Its folder.
    training
        What it was made from.
    is_present
        Whether it is the one in use.
    """

    number: int
    parent: int | None
    path: Path
    training: dict[str, Any]
    is_present: bool


def _folder(model: str | os.PathLike[str]) -> Path:
    place = Path(os.path.realpath(model))
    return place.with_name(f"{place.name}.versions")


def _training(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what a manifest says of how its model was made, whatever it models."""
    parts = (part for part in manifest.values() if isinstance(part, dict))
    found: dict[str, Any] = next((p["training"] for p in parts if "training" in p), {})
    return found


def present_version(model: str | os.PathLike[str]) -> int:
    """Return the number of the version in use; a model that was never refitted is the first."""
    return int(_training(read_model(model)[0]).get("version", _FIRST))


def list_versions(model: str | os.PathLike[str]) -> list[Version]:
    """Return all versions that are kept, in order; the one in use is always among them."""
    manifest, _ = read_model(model)
    training = _training(manifest)
    present = int(training.get("version", _FIRST))
    found = {present: Version(present, training.get("parent"), Path(model), training, True)}
    folder = _folder(model)
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if not path.name.isdigit() or int(path.name) == present:
            continue
        with suppress(ModelError):  # a refit was killed before it was whole
            kept = _training(read_model(path)[0])
            number = int(path.name)
            found[number] = Version(number, kept.get("parent"), path, kept, False)
    return [found[number] for number in sorted(found)]


def add_version(model: str | os.PathLike[str], new: Model) -> Version:
    """Keep a new version beside the one in use, which stays in use.

    Parameters
    ----------
    model
        The folder of the model.
    new
        What a refit made of it; its number and its parent are written into it.
    """
    folder = _folder(model)
    present = _keep_present(model)
    number = max(present, *(int(p.name) for p in folder.iterdir() if p.name.isdigit())) + 1
    while True:  # a name of our own: another refit may be as far
        try:
            (folder / f"{number:04d}").mkdir()
            break
        except FileExistsError:
            number += 1
    new.training["version"], new.training["parent"] = number, present
    path = folder / f"{number:04d}"
    new.save(path)
    return Version(number, present, path, new.training, False)


def use_version(model: str | os.PathLike[str], number: int) -> Version:
    """Put a version in the place of the model; the one that was there is kept.

    Parameters
    ----------
    model
        The folder of the model.
    number
        Of the version.
    """
    known = {version.number: version for version in list_versions(model)}
    if number not in known:
        listed = ", ".join(map(str, known))
        raise ModelError(f"{os.fspath(model)} has no version {number}; it has {listed}.")
    chosen = known[number]
    if chosen.is_present:
        return chosen
    _keep_present(model)
    write_model(model, *read_model(chosen.path))
    return Version(number, chosen.parent, Path(model), chosen.training, True)


def _keep_present(model: str | os.PathLike[str]) -> int:
    """Copy the version in use to the others, as it is now; return its number."""
    manifest, tensors = read_model(model)
    number = int(_training(manifest).get("version", _FIRST))
    folder = _folder(model)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ModelError(f"{folder} cannot be made: {error.strerror}.") from error
    write_model(folder / f"{number:04d}", manifest, tensors)
    return number
