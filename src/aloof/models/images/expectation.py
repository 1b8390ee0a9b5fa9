"""What an image would look like if it were normal.

A plain reconstruction does not say it: labelled anomalies were taught to lie far away from
normal images, and what the decoder makes of codes out there means nothing. So an image is
first compared with normal ones as the members remember them. Where it differs most from the
nearest of these it is hidden, by what should be there; the rest is reconstructed, which brings
its own position, light and details back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.estimators import Detector

__all__ = ["expected_images"]

# Pixels are hidden that differ by this part of the largest difference in the image. After
# three passes what is expected in their place has settled.
_STANDING_OUT, _PASSES = 0.2, 3


def expected_images(
    detector: Detector, images: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return images as they would be if they were normal, and how far they are from that.

    Parameters
    ----------
    detector
        A fitted detector of images.
    images
        ``(n, channels, height, width)``, bytes or numbers in [0, 1].

    Returns
    -------
    Images ``(n, channels, height, width)`` in [0, 1], and the squared differences of pixels
    ``(n, height, width)``, as the mean over the channels.
    """
    rows = images / 255.0 if images.dtype == np.uint8 else images.astype(np.float64)
    remembered = detector.prototypes()
    expected = np.stack([_nearest(row, remembered) for row in rows])
    for _ in range(_PASSES):
        differences = _difference(rows, expected)
        highest = differences.max((1, 2), keepdims=True)
        hidden = (differences >= _STANDING_OUT * highest)[:, None]
        whole = np.where(hidden, expected, rows)
        again = detector.reconstruct(whole)
        # Where hiding was not enough, the reconstruction is worse than what it replaces.
        better = _distance(whole, again) < _distance(whole, expected)
        expected = np.where(better[:, None, None, None], again, expected)
    return expected, _difference(rows, expected)


def _nearest(row: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    distances = [np.abs(row - other).sum() for other in others]
    nearest: NDArray[np.float64] = others[int(np.argmin(distances))]
    return nearest


def _difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = np.square(a - b).mean(1)
    return squares


def _distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = np.abs(a - b).sum((1, 2, 3))
    return distances
