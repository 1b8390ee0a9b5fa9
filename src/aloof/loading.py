"""Any model on disk, opened as what it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aloof.estimators import Detector, from_model
from aloof.exceptions import ModelError
from aloof.networks import NetworkFactory
from aloof.persistence import read_model

if TYPE_CHECKING:
    from aloof.images import ImageModel
    from aloof.tabular import TableModel

__all__ = ["load"]


def load(
    path: str | os.PathLike[str],
    *,
    encoder: NetworkFactory | None = None,
    decoder: NetworkFactory | None = None,
    device: str = "auto",
) -> Detector | TableModel | ImageModel:
    """Read any model that was saved: a detector, or the model of a table or of images.

    Parameters
    ----------
    path
        The model folder.
    encoder, decoder
        The factories a detector was fitted with, if it was fitted with your own.
    device
        Where to score.
    """
    model = read_model(path)
    if "images" in model[0]:
        from aloof.images import ImageModel

        if encoder is not None or decoder is not None:
            raise ModelError(
                f"{os.fspath(path)} is a model of images; load it without encoder and decoder."
            )
        return ImageModel.from_model(path, model, device=device)
    if "table" not in model[0]:
        return from_model(path, model, encoder=encoder, decoder=decoder, device=device)
    from aloof.tabular import TableModel

    if encoder is not None or decoder is not None:
        raise ModelError(
            f"{os.fspath(path)} is a model of a table; load it without encoder and decoder."
        )
    return TableModel.from_model(path, model, device=device)
