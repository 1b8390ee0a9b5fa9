"""What a committee has beside networks, from tensors of a file that anybody may have made."""

from __future__ import annotations

import torch

from aloof.calibration import Evidence
from aloof.estimators._folds import NO_FOLD, KnownRows
from aloof.persistence import SavedTensors
from aloof.shallow import Forest

__all__ = ["restored_evidence", "restored_forest", "restored_rows"]


def restored_rows(tensors: SavedTensors, n_folds: int) -> KnownRows:
    """Return which training rows each member left out."""
    digests = tensors.take("known.digests", torch.int64, None)
    folds = tensors.take("known.folds", torch.int16, len(digests))
    if not bool((digests.diff() >= 0).all()):
        raise ValueError("the tensor known.digests is not sorted")
    if not NO_FOLD <= int(folds.min()) <= int(folds.max()) < n_folds:
        raise ValueError("the tensor known.folds names members that are not there")
    return KnownRows(digests.numpy(), folds.numpy())


def restored_evidence(tensors: SavedTensors, name: str) -> Evidence:
    """Return what scores of a view, or shares of trees, are worth."""
    scores = tensors.take(f"evidence.{name}.scores", torch.float64, None)
    worth = tensors.take(f"evidence.{name}.evidence", torch.float64, len(scores))
    scale = float(tensors.take(f"evidence.{name}.scale", torch.float64))
    if not bool((scores.diff() > 0).all() and (worth.diff() >= 0).all()) or scale <= 0:
        raise ValueError(f"the tensors evidence.{name} are not a rising function")
    return Evidence(scores.numpy(), worth.numpy(), scale)


def restored_forest(tensors: SavedTensors, name: str, n_features: int) -> Forest:
    """Return trees that see so many features."""
    feature = tensors.take(f"{name}.feature", torch.int32, None)
    n = len(feature)
    kinds = {"threshold": torch.float64, "left": torch.int32, "right": torch.int32}
    found = {part: tensors.take(f"{name}.{part}", kind, n) for part, kind in kinds.items()}
    found["value"] = tensors.take(f"{name}.value", torch.float64, n)
    roots = tensors.take(f"{name}.roots", torch.int64, None)
    depth = int(tensors.take(f"{name}.depth", torch.int64))
    arrays = {part: value.numpy() for part, value in found.items()}
    forest = Forest(roots=roots.numpy(), feature=feature.numpy(), depth=depth, **arrays)
    try:
        forest.check(n_features)
    except ValueError as wrong:
        raise ValueError(f"the tensors of {name} {wrong}") from None
    return forest
