"""What ONNX has no operator for, against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from aloof.export.functions import Knots, arsinh, normal_quantile  # noqa: E402
from aloof.export.graph import Graph  # noqa: E402


def computed(function, x):
    graph = Graph()
    graph.output("y", function(graph.input("x", np.float64, x.shape[1:])))
    content = graph.model("", ("aloof", "0"), {}).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def test_arsinh_is_that_of_numpy_from_the_smallest_to_the_largest():
    x = np.array([0.0, 1e-300, -1e-9, 0.3, -2.0, 1e7, 1e8, 1.1e8, -1e200, 1.7e308, -np.inf])
    np.testing.assert_allclose(computed(arsinh, x), np.arcsinh(x), rtol=1e-14, atol=1e-15)


def test_normal_quantiles_are_those_of_scipy():
    p = np.r_[np.linspace(0.0002, 0.9998, 999), 0.5, np.exp(-2), 1 - np.exp(-2)]
    np.testing.assert_allclose(computed(normal_quantile, p), ndtri(p), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 201])
def test_searches_and_interpolation_are_those_of_numpy_also_with_ties(n):
    rng = np.random.default_rng(n)
    knots = np.sort(rng.integers(0, max(2, n // 2), n).astype(float))
    x = np.r_[knots, knots + 0.5, -5.0, 1e300, rng.uniform(-1, n, 50)]
    heights = np.arange(n) ** 1.5

    def found(value):
        own = Knots(value.graph, knots)
        return {
            "last": own.interpolate(value, heights),
            "first": own.interpolate_first(value, heights),
            "left": own.below(value, equal=False).to(np.float64),
            "right": own.below(value, equal=True).to(np.float64),
        }

    last = np.interp(x, knots, heights)
    first = -np.interp(-x, -knots[::-1], -heights[::-1])
    np.testing.assert_allclose(computed(lambda v: found(v)["last"], x), last, atol=1e-12)
    np.testing.assert_allclose(computed(lambda v: found(v)["first"], x), first, atol=1e-12)
    for side in ("left", "right"):
        places = computed(lambda v, side=side: found(v)[side], x)
        assert places.tolist() == np.searchsorted(knots, x, side).tolist()


def test_each_column_has_knots_of_its_own():
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=(20, 3)) * [1, 10, 100], axis=0)
    x, heights = rng.normal(size=(40, 3)) * [1, 10, 100], np.linspace(0, 1, 20)
    found = computed(lambda v: Knots(v.graph, knots).interpolate(v, heights).mean(1), x)
    wanted = [np.interp(x[:, j], knots[:, j], heights) for j in range(3)]
    np.testing.assert_allclose(found, np.mean(wanted, axis=0), atol=1e-12)


def test_the_same_calls_make_the_same_bytes():
    def made():
        graph = Graph()
        graph.output("y", normal_quantile(graph.input("x", np.float64)))
        return graph.model("", ("aloof", "0"), {}).SerializeToString(deterministic=True)

    assert made() == made()
