"""Rows that are images: bytes, or numbers in [0, 1], of shape ``(channels, height, width)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloof.vae import Likelihood

__all__ = ["are_bytes", "as_numbers", "check_axes", "check_images"]


def are_bytes(X: ArrayLike) -> bool:
    """Whether these are images whose pixels are bytes."""
    return getattr(X, "ndim", 0) == 4 and getattr(X, "dtype", None) == np.uint8


def as_numbers(rows: NDArray[Any]) -> NDArray[np.floating]:
    """Return a few rows as numbers: bytes in [0, 1], anything else as it is."""
    return rows / 255.0 if rows.dtype == np.uint8 else rows


def check_axes(X: ArrayLike, owner: str) -> None:
    """Say what to do with images without an axis for channels, or with it at the end."""
    if getattr(X, "ndim", 0) == 3:
        raise ValueError(
            f"Found array with dim 3, but {owner} takes rows (n, n_features) or images (n, "
            "channels, height, width). Give grey images an axis of length 1: X[:, "
            "np.newaxis]."
        )
    shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))
    if len(shape) == 4 and shape[3] in (1, 3, 4) and shape[1] > 4:
        raise ValueError(
            f"X of shape {shape} looks like images with channels last, but {owner} takes (n, "
            "channels, height, width). Use X.transpose(0, 3, 1, 2)."
        )


def check_images(
    X: NDArray[Any], owner: str, *, standardize: bool | None, likelihood: Likelihood
) -> None:
    """Raise an error where aloof's own convolutional networks cannot learn these images."""
    if standardize:
        raise ValueError(
            f"{owner} does not standardise images: pixels stay in [0, 1]. Set "
            "standardize=None or False."
        )
    if likelihood != "squared-error":
        raise ValueError(
            "aloof's networks for images need likelihood='squared-error'; got "
            f"{likelihood!r}. For another one, pass your own encoder and decoder."
        )
    if X.dtype == np.uint8 or X.size == 0:
        return
    lowest, highest = float(X.min()), float(X.max())
    if lowest < 0.0 or highest > 1.0:
        raise ValueError(
            f"Pixels must be numbers in [0, 1] or bytes (uint8); these range from {lowest:g} "
            f"to {highest:g}. Divide by 255, or convert: X.astype(np.uint8)."
        )
