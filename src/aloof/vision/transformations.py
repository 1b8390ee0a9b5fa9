"""Images mirrored, moved and turned: where each pixel of the result comes from."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["N_TRANSFORMATIONS", "transformations"]

N_TRANSFORMATIONS = 72


def transformations(side: int) -> NDArray[np.int64]:
    """Return where each pixel of a transformed image comes from, ``(72, side * side)``.

    Images are mirrored or not, moved by a quarter of their side up, down, left or right or not
    at all, with their own reflection beyond the edge, and turned by 0, 90, 180 or 270 degrees.
    The first transformation changes nothing.

    Examples
    --------
    >>> transformations(4)[:2, :4]
    array([[ 0,  1,  2,  3],
           [ 3,  7, 11, 15]])
    """
    step = side // 4
    pixels = np.arange(side * side).reshape(side, side)
    found = []
    moves = (0, -step, step)
    for mirrored, down, right, turns in product((False, True), moves, moves, range(4)):
        image = np.pad(pixels[:, ::-1] if mirrored else pixels, step, "symmetric")
        top, left = step + down, step + right
        found.append(np.rot90(image[top : top + side, left : left + side], turns).ravel())
    return np.stack(found)
