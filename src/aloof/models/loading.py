"""Any model on disk, opened as what it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aloof.estimators import Detector, from_model
from aloof.exceptions import ModelError
from aloof.models import Model
from aloof.models.arrays import ArrayModel
from aloof.models.kinds import KINDS, ModelKind
from aloof.networks import NetworkFactory
from aloof.persistence import read_model

if TYPE_CHECKING:
    from aloof.models.images import ImageModel
    from aloof.models.table import TableModel

__all__ = ["load", "open_model"]


def load(
    path: str | os.PathLike[str],
    *,
    encoder: NetworkFactory | None = None,
    decoder: NetworkFactory | None = None,
    device: str = "auto",
) -> Detector | TableModel | ImageModel:
    """Load any saved model: a detector, a table model or an image model.

    Parameters
    ----------
    path
        The model folder.
    encoder, decoder
        The factories of your own networks, if the detector was fitted with them.
    device
        Where to score.
    """
    content = read_model(path)
    kind = _kind(content[0])
    if kind is None:
        return from_model(path, content, encoder=encoder, decoder=decoder, device=device)
    if encoder is not None or decoder is not None:
        raise ModelError(
            f"{os.fspath(path)} is a model of {kind.model.kind}; load it without encoder and "
            "decoder."
        )
    return kind.model.from_model(path, content, device=device)  # type: ignore[return-value]


def open_model(path: str | os.PathLike[str], *, device: str = "auto") -> Model:
    """Read any model that was saved; a detector as an `ArrayModel`."""
    content = read_model(path)
    kind = _kind(content[0])
    model = ArrayModel if kind is None else kind.model
    return model.from_model(path, content, device=device)


def _kind(manifest: dict[str, object]) -> ModelKind | None:
    """Return the kind of model that a manifest describes; None: a detector alone."""
    return next((kind for kind in KINDS if kind.section in manifest), None)
