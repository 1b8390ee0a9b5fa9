"""Labelled anomalies that stand for their neighbourhood."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["jitter_"]


def jitter_(rows: Tensor, n_normal: int, size: Tensor) -> None:
    """Move the anomalies of a batch, in place, the way normal rows differ from each other.

    Each anomaly is moved by a multiple of the difference of two normal rows of the batch,
    whose covariance is that of the normal data: along the directions in which data varies,
    and not off them, where noise would be all that the encoder needs to recognise anomalies.

    Parameters
    ----------
    rows
        ``(members, B + A, ...)``, normal rows first.
    n_normal
        B.
    size
        Of the noise, in standard deviations of the normal rows, ``(members, 1)``.
    """
    n_anomaly = rows.shape[1] - n_normal
    one = torch.arange(n_anomaly, device=rows.device) % n_normal
    other = (one + n_normal // 2) % n_normal
    scale = size.to(rows.dtype).view(-1, *[1] * (rows.dim() - 1)) / 2**0.5
    rows[:, n_normal:] += scale * (rows[:, one] - rows[:, other])
