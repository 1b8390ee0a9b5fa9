"""Functions that ONNX has no operator for: searches, interpolation, normal quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aloof.export.graph import DOUBLE, Graph, Value

__all__ = ["Knots", "arsinh", "leaky", "normal_quantile"]

# Cephes' ndtri, which is SciPy's: in the middle a rational function of the square of the
# distance from 1/2, and in the tails one of 1 / sqrt(-2 log p).
_MIDDLE = (
    (
        *(-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1),
        *(1.39312609387279679503e1, -1.23916583867381258016),
    ),
    (
        *(1.0, 1.95448858338141759834, 4.67627912898881538453, 8.63602421390890590575e1),
        *(-2.25462687854119370527e2, 2.00260212380060660359e2, -8.20372256168333339912e1),
        *(1.59056225126211695515e1, -1.18331621121330003142),
    ),
)
_TAIL = (
    (
        *(4.05544892305962419923, 3.15251094599893866154e1, 5.71628192246421288162e1),
        *(4.40805073893200834700e1, 1.46849561928858024014e1, 2.18663306850790267539),
        *(-1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4),
    ),
    (
        *(1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1),
        *(1.50425385692907503408e1, 2.50464946208309415979, -1.42182922854787788574e-1),
        *(-3.80806407691578277194e-2, -9.33259480895457427372e-4),
    ),
)
_EDGE = math.exp(-2.0)
_LEAST = 1e-12  # a probability; normal quantiles are cut off long before

_LARGE = 1e8  # from here on asinh(x) is log(2 x), also where x squared is infinite


class Knots:
    """Numbers in ascending order, a list for each column, in which values are looked up.

    Parameters
    ----------
    graph
        Where.
    lists
        The numbers, ``(n, columns)``; or ``(n,)`` for values without columns.
    """

    def __init__(self, graph: Graph, lists: NDArray[np.float64]) -> None:
        self.n = len(lists)
        self._graph = graph
        self._steps = [2**k for k in reversed(range(max(1, self.n.bit_length())))]
        # As many as the steps of a search reach, with what is beyond all values behind.
        size = 2 * self._steps[0]
        padded = np.full((size, *lists.shape[1:]), np.inf)
        padded[: self.n] = lists
        self._flat = graph.constant(np.moveaxis(padded, 0, -1).ravel())
        n_lists = 1 if lists.ndim == 1 else lists.shape[1]
        begin = np.arange(n_lists) * size
        self._begin = graph.indices(begin if lists.ndim == 2 else begin[0])

    def below(self, values: Value, *, equal: bool) -> Value:
        """Return how many numbers are smaller than values, or `equal` to them."""
        g = self._graph
        found = self._begin
        for step in self._steps:
            # After so many, the next one is in the place before.
            last = self._flat.take(found + (step - 1))
            goes_on = last <= values if equal else last < values
            found = found + g.where(goes_on, g.number(step, np.int64), 0)
        return found - self._begin

    def at(self, places: Value) -> Value:
        """Return the numbers in some places, which must be there."""
        return self._flat.take(places + self._begin)

    def interpolate(self, values: Value, heights: NDArray[np.float64]) -> Value:
        """Return what heights, one for each number, are in between, as `numpy.interp` does.

        Where numbers are the same, the last of them counts.
        """
        return self._between(values, self.below(values, equal=True) - 1, heights)

    def interpolate_first(self, values: Value, heights: NDArray[np.float64]) -> Value:
        """Return the same; where numbers are the same, the first of them counts."""
        return self._between(values, self.below(values, equal=False) - 1, heights)

    def _between(self, values: Value, before: Value, heights: NDArray[np.float64]) -> Value:
        g = self._graph
        known = g.constant(heights)
        left, right = (place.clip(0, self.n - 1) for place in (before, before + 1))
        low, high = self.at(left), self.at(right)
        base = known.take(left)
        width = high - low
        # Beyond both ends, left and right are the same.
        share = (values - low) / g.where(width > 0, width, 1.0)
        return base + (known.take(right) - base) * share


def arsinh(x: Value) -> Value:
    """Return the inverse hyperbolic sine, of doubles."""
    g = x.graph
    size = x.do("Abs")
    small = size.do("Min", g.number(_LARGE))
    near = (small + (small * small + 1.0).do("Sqrt")).do("Log")
    far = size.at_least(1.0).do("Log") + math.log(2.0)
    return x.do("Sign") * g.where(size > _LARGE, far, near)


def leaky(x: Value, slope: float) -> Value:
    """Return a leaky ReLU; with a slope of 1 there is none."""
    if slope == 1.0:
        return x
    if x.dtype == DOUBLE:
        return x.do("Max", x * slope)
    return x.do("LeakyRelu", alpha=slope)


def normal_quantile(p: Value) -> Value:
    """Return the quantiles of the normal distribution at probabilities."""
    g = p.graph
    upper = p > 1.0 - _EDGE
    tail = g.where(upper, 1.0 - p, p).at_least(_LEAST)
    x = (tail.do("Log") * -2.0).do("Sqrt")
    inverse = 1.0 / x
    far = x - x.do("Log") / x - inverse * _ratio(inverse, _TAIL)
    far = g.where(upper, far, -far)
    off = p - 0.5
    square = off * off
    near = (off + off * (square * _ratio(square, _MIDDLE))) * math.sqrt(2.0 * math.pi)
    return g.where(tail > _EDGE, near, far)


def _ratio(x: Value, factors: tuple[Sequence[float], Sequence[float]]) -> Value:
    above, below = (_polynomial(x, part) for part in factors)
    return above / below


def _polynomial(x: Value, factors: Sequence[float]) -> Value:
    found = x * factors[0] + factors[1]
    for factor in factors[2:]:
        found = found * x + factor
    return found
