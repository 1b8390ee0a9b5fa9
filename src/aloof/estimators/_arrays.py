"""Rows and labels as they come: arrays, frames, tensors."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from numpy.typing import ArrayLike

from aloof.exceptions import LabelWarning

__all__ = ["as_array", "check_order"]


def as_array(values: ArrayLike) -> Any:
    """Return a tensor of any device as an array, and anything else as it is."""
    if not isinstance(values, torch.Tensor):
        return values
    if values.dtype in (torch.bfloat16, torch.float16):
        values = values.float()
    return values.detach().cpu().numpy()


def check_order(X: ArrayLike, y: ArrayLike | None) -> None:
    """Warn where a frame and its labels have the same index in another order.

    Labels are taken by their position, as all of scikit-learn does.
    """
    rows: Any = getattr(X, "index", None)
    labels: Any = getattr(y, "index", None)
    if not (hasattr(rows, "equals") and hasattr(labels, "equals")) or rows.equals(labels):
        return
    if len(rows) == len(labels) and rows.is_unique and set(rows) == set(labels):
        warnings.warn(
            "X and y have the same index in a different order, and labels are matched by "
            "position. If they belong together by index, pass y.loc[X.index].",
            LabelWarning,
            stacklevel=4,
        )
