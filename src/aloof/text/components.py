"""What vectors of documents differ in most: a few numbers in the place of hundreds.

A vector of meaning has hundreds of numbers, and a handful of labelled documents cannot tell
which of them matter: a detector that sees them all learns those documents by heart. Most of
what tells documents apart lies in a few directions, the principal components. How far a
document lies off all of them is one number more: it is large for what nobody wrote before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Components"]

_MOST = 32
# Vectors for each component, at least: axes that follow few vectors leave less over of these
# than of others, and those would look odd.
_EACH = 32
_LEAST = 1e-6  # variation that is more than rounding
# Of the variation along the last axis: the scale of the rest where no vector has any.
_FLOOR = 0.1


@dataclass(frozen=True)
class Components:
    """Principal components of vectors, and the rest.

    Attributes
    ----------
    centre
        The mean vector, ``(d,)``.
    axes
        Orthogonal directions, those of most variation first, ``(k, d)``.
    scale
        Standard deviation along each, ``(k,)``.
    rest, rest_scale
        Mean and standard deviation of the distance from what the axes span. Where all vectors
        lie in it, a small part of the last axis's: to be off it is odd then.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> plane = rng.normal(size=(500, 2)) @ [[3.0, 3.0, 0.0], [0.0, 0.0, 1.0]]
    >>> vectors = plane + 0.01 * rng.normal(size=(500, 3))
    >>> components = Components.fit(vectors, most=2)
    >>> components(vectors).std(0).round(2)
    array([1., 1., 1.])
    >>> off = components([[3.0, -3.0, 0.0]])[0]  # not in the plane
    >>> bool(abs(off[0]) < 1 and abs(off[1]) < 1 and off[2] > 100)
    True
    """

    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    scale: NDArray[np.float64]
    rest: float
    rest_scale: float

    @classmethod
    def fit(cls, vectors: NDArray[np.floating], most: int = _MOST) -> Components:
        """Find at most so many components of vectors ``(n, d)``; fewer of few vectors."""
        wide = np.asarray(vectors, np.float64)
        centre = wide.mean(0)
        _, spread, axes = np.linalg.svd(wide - centre, full_matrices=False)
        scale = spread / np.sqrt(len(wide))
        kept = np.flatnonzero(scale > _LEAST)[: max(1, min(most, len(wide) // _EACH))]
        # The sign of an axis is arbitrary: its largest number is positive.
        axes = axes[kept]
        largest = np.abs(axes).argmax(1)
        axes = axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]
        distance = _distance(wide - centre, axes)
        rest_scale = float(distance.std())
        if rest_scale <= _LEAST and len(kept):
            rest_scale = _FLOOR * float(scale[kept[-1]])
        return cls(centre, axes, scale[kept], float(distance.mean()), rest_scale)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return len(self.scale) + 1

    def __call__(self, vectors: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return what vectors have along each axis, and the rest, ``(n, k + 1)``.

        All in standard deviations from the mean.
        """
        centred = np.asarray(vectors, np.float64) - self.centre
        along = centred @ self.axes.T / self.scale
        rest = (_distance(centred, self.axes) - self.rest) / max(self.rest_scale, _LEAST)
        return np.column_stack([along, rest])


def _distance(centred: NDArray[np.float64], axes: NDArray[np.float64]) -> NDArray[np.float64]:
    distance: NDArray[np.float64] = np.linalg.norm(centred - centred @ axes.T @ axes, axis=1)
    return distance
