"""Functions of tensors in a graph: they are traced, and each operation is written in ONNX.

What a model computes is written once, in torch. A new operation is one entry of `_OPERATIONS`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aloof.exceptions import ModelError
from aloof.export.graph import Graph, Value

__all__ = ["trace"]

# The number of rows while tracing. A side that it divides has the rows in it: the number is
# prime, and larger than anything else that is counted here.
_ROWS = 1_000_003

_aten: Any = torch.ops.aten


def trace(
    function: Callable[..., Any],
    *inputs: Value,
    shape: Sequence[int] = (),
    each: int = 1,
) -> list[Value]:
    """Return what a function makes of values.

    Parameters
    ----------
    function
        Of tensors ``(n * each, *shape)``, all alike, for any n; returns one, or several. What
        it does may not depend on the numbers in them.
    *inputs
        The values.
    shape, each
        See `function`.

    Raises
    ------
    ModelError
        If it does something that nobody has written in ONNX yet.
    """
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.attention import SDPBackend, sdpa_kernel

    given = [
        torch.empty((), dtype=_torch_type(value.dtype)).expand(_ROWS * each, *shape)
        for value in inputs
    ]
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        made = make_fx(
            lambda *tensors: function(*tensors),
            tracing_mode="fake",
            _allow_non_fake_inputs=True,
        )(*given)
    return _Tracer(inputs, made, each).run()


class _Tracer:
    """Writes the nodes of a trace; what does not depend on inputs is computed."""

    def __init__(self, inputs: Sequence[Value], made: torch.fx.GraphModule, each: int) -> None:
        self.g: Graph = inputs[0].graph
        self._inputs, self._made = list(inputs), made
        self._known: dict[torch.fx.Node, Any] = {}
        self._n = inputs[0].do("Shape", dtype=np.int64, start=0, end=1) / each

    def run(self) -> list[Value]:
        """Return the values of the outputs."""
        waiting = iter(self._inputs)
        for node in self._made.graph.nodes:
            if node.op == "placeholder":
                self._known[node] = next(waiting)
            elif node.op == "get_attr":
                self._known[node] = getattr(self._made, str(node.target)).detach()
            elif node.op == "call_function":
                self._known[node] = self._done(node)
        (found,) = self._made.graph.output_node().args
        several: Any = found if isinstance(found, tuple | list) else [found]
        return [self.value(self._known[node]) for node in several]

    def _done(self, node: torch.fx.Node) -> Any:
        both: Any = torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda part: self._known[part]
        )
        arguments, options = both
        if node.target is operator.getitem:
            return arguments[0][arguments[1]]
        shape = _shape(node)
        if not _has_value(arguments) and not any(side % _ROWS == 0 for side in shape):
            return node.target(*arguments, **options)  # type: ignore[operator]
        write = _OPERATIONS.get(getattr(node.target, "overloadpacket", None))
        if write is None:
            raise ModelError(
                f"The model uses {node.target}, which cannot be written in ONNX yet. Serve it "
                "with aloof serve, or fit with another backbone."
            )
        return write(_Call(self, node, options), *arguments)

    def value(self, found: Any, dtype: Any = None) -> Value:
        """Return a value, or a constant as one."""
        if isinstance(found, Value):
            return found if dtype is None else found.to(dtype)
        if isinstance(found, Tensor):
            array = found.detach().cpu().contiguous().numpy()
            return self.g.constant(array if dtype is None else array.astype(dtype))
        return self.g.number(found, np.float32 if dtype is None else dtype)

    def sides(self, shape: Sequence[int]) -> Value:
        """Return a shape as a value; rows are counted when they are there."""
        if not any(side % _ROWS == 0 and side for side in shape):
            return self.g.indices(list(shape))
        parts = [
            self._n * (side // _ROWS) if side and side % _ROWS == 0 else self.g.indices([side])
            for side in shape
        ]
        return self.g.concat(parts, 0)


class _Call:
    """One operation: where it is written, and what is known of its result."""

    def __init__(self, tracer: _Tracer, node: torch.fx.Node, options: dict[str, Any]) -> None:
        self.tracer, self.g, self.options = tracer, tracer.g, options
        self._node = node

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the result."""
        found = self._node.meta["val"]
        first = found[0] if isinstance(found, tuple | list) else found
        return np.dtype(str(first.dtype).removeprefix("torch."))

    @property
    def shape(self) -> list[int]:
        """Of the result."""
        return _shape(self._node)

    def value(self, found: Any, dtype: Any = None) -> Value:
        return self.tracer.value(found, dtype)

    def to_shape(self, x: Any) -> Value:
        """Return x in the shape of the result."""
        return self.value(x).do("Reshape", self.tracer.sides(self.shape))


def _shape(node: torch.fx.Node) -> list[int]:
    found = node.meta["val"]
    first = found[0] if isinstance(found, tuple | list) else found
    return list(first.shape)


def _has_value(found: Any) -> bool:
    if isinstance(found, tuple | list):
        return any(map(_has_value, found))
    return isinstance(found, Value)


def _torch_type(dtype: np.dtype[Any]) -> torch.dtype:
    found: torch.dtype = getattr(torch, dtype.name)
    return found


def _sides(found: Any) -> list[int]:
    """Return one number for height and width, or both, as both."""
    return (
        [int(found)] * 2 if isinstance(found, int) else [*map(int, found)] * (2 // len(found))
    )


def _convolution(
    call: _Call,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    _: Any,
    groups: int,
) -> Value:
    if transposed:
        raise ModelError("Transposed convolutions cannot be written in ONNX yet.")
    more = [] if bias is None else [call.value(bias)]
    return call.value(x).do(
        "Conv",
        call.value(weight),
        *more,
        strides=_sides(stride),
        pads=_sides(padding) * 2,
        dilations=_sides(dilation),
        group=groups,
    )


def _with(kind: str) -> Callable[..., Value]:
    def write(call: _Call, x: Any, y: Any) -> Value:
        if (alpha := call.options.get("alpha", 1)) != 1:
            y = y * alpha
        return call.value(x, call.dtype).do(kind, call.value(y, call.dtype))

    return write


def _like(kind: str, **attributes: Any) -> Callable[..., Value]:
    return lambda call, x, *_: call.value(x).do(kind, **attributes)


def _same(call: _Call, x: Any, *_: Any) -> Value:
    return call.value(x, call.dtype)


def _clip(call: _Call, x: Any, low: Any = None, high: Any = None) -> Value:
    found = call.value(x, call.dtype)
    if low is not None:
        found = found.do("Max", call.value(low, call.dtype))
    return found if high is None else found.do("Min", call.value(high, call.dtype))


def _pad(mode: str) -> Callable[..., Value]:
    def write(call: _Call, x: Any, pads: Sequence[int], value: float = 0.0) -> Value:
        found, n = call.value(x), len(pads) // 2
        begin = list(pads[0::2])[::-1]
        end = list(pads[1::2])[::-1]
        axes = list(range(len(call.shape) - n, len(call.shape)))
        return found.do(
            "Pad",
            call.g.indices(begin + end),
            call.g.number(value, found.dtype),
            call.g.indices(axes),
            mode=mode,
        )

    return write


def _pool(kind: str) -> Callable[..., Any]:
    def write(
        call: _Call, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, *rest: Any
    ) -> Any:
        given: dict[str, Any] = {}
        if kind == "AveragePool" and any(_sides(padding)):
            given["count_include_pad"] = int(bool(rest[1])) if len(rest) > 1 else 1
        found = call.value(x).do(
            kind,
            kernel_shape=_sides(kernel),
            strides=_sides(stride or kernel),
            pads=_sides(padding) * 2,
            **given,
        )
        return (found, None) if kind == "MaxPool" else found

    return write


def _resize(mode: str) -> Callable[..., Value]:
    def write(call: _Call, x: Any, size: Any, corners: bool, *_: Any) -> Value:
        if corners:
            raise ModelError("Resizing by corners cannot be written in ONNX yet.")
        found, g = call.value(x), call.g
        nothing = Value(g, "", found.dtype)
        return found.do(
            "Resize",
            nothing,
            nothing,
            g.indices(call.shape[2:]),
            mode=mode,
            axes=[2, 3],
            cubic_coeff_a=-0.75,
            coordinate_transformation_mode="half_pixel",
        )

    return write


def _reduce(kind: str) -> Callable[..., Value]:
    def write(call: _Call, x: Any, axes: Any = None, keeps: bool = False) -> Value:
        found = call.value(x, call.dtype)
        chosen = [axes] if isinstance(axes, int) else list(axes or ())
        return found.do(kind, call.g.indices(chosen), keepdims=int(keeps))

    return write


def _cat(call: _Call, parts: Sequence[Any], axis: int = 0) -> Value:
    return call.g.concat([call.value(part, call.dtype) for part in parts], axis)


def _expand(call: _Call, x: Any, *_: Any) -> Value:
    return call.value(x).do("Expand", call.tracer.sides(call.shape))


def _permute(call: _Call, x: Any, axes: Sequence[int]) -> Value:
    n = len(call.shape)
    return call.value(x).do("Transpose", perm=[axis % n for axis in axes])


def _transpose(call: _Call, x: Any, one: int = 0, two: int = 1) -> Value:
    order = list(range(len(call.shape)))
    order[one], order[two] = order[two], order[one]
    return call.value(x).do("Transpose", perm=order)


def _matmul(call: _Call, x: Any, y: Any) -> Value:
    return call.value(x).do("MatMul", call.value(y))


def _addmm(call: _Call, bias: Any, x: Any, y: Any) -> Value:
    found = _matmul(call, x, y)
    if (alpha := call.options.get("alpha", 1)) != 1:
        found = found * alpha
    return found + call.value(bias)


def _slice(
    call: _Call, x: Any, axis: int = 0, begin: Any = None, end: Any = None, step: int = 1
) -> Value:
    found = call.value(x)
    if end is not None and end >= _ROWS:
        end = None
    if not begin and end is None and step == 1:
        return found
    ends = [begin or 0, np.iinfo(np.int64).max if end is None else end, axis, step]
    return found.do("Slice", *(call.g.indices([n]) for n in ends))


def _select(call: _Call, x: Any, axis: int, place: int) -> Value:
    return call.value(x).do("Gather", call.g.constant(np.int64(place)), axis=axis)


def _take(call: _Call, x: Any, axis: int, places: Any) -> Value:
    return call.value(x).do("Gather", call.value(places), axis=axis)


def _lowest(call: _Call, x: Any, axis: int, keeps: bool = False) -> Value:
    return call.value(x).do("ArgMin", dtype=np.int64, axis=axis, keepdims=int(keeps))


def _unbind(call: _Call, x: Any, axis: int = 0) -> list[Value]:
    n = len(call._node.meta["val"])
    return [_select(call, x, axis, place) for place in range(n)]


def _power(call: _Call, x: Any, exponent: Any) -> Value:
    found = call.value(x, call.dtype)
    return found * found if exponent == 2 else found.do("Pow", call.value(exponent, call.dtype))


def _top(
    call: _Call, x: Any, n: int, axis: int = -1, largest: bool = True, *_: Any
) -> tuple[Value, Value]:
    found = call.value(x)
    if axis % len(call.shape) != len(call.shape) - 1:
        raise ModelError("The highest are only found along the last axis in ONNX.")
    values, places = call.g.smallest_at(-found if largest else found, n)
    return (-values if largest else values), places


def _layer_norm(
    call: _Call, x: Any, shape: Sequence[int], weight: Any, bias: Any, epsilon: float
) -> tuple[Value, None, None]:
    found = call.value(x).do(
        "LayerNormalization",
        call.value(weight),
        call.value(bias),
        axis=-len(shape),
        epsilon=epsilon,
    )
    return found, None, None


def _where(call: _Call, condition: Any, yes: Any, no: Any) -> Value:
    return call.g.where(
        call.value(condition), call.value(yes, call.dtype), call.value(no, call.dtype)
    )


def _gelu(call: _Call, x: Any) -> Value:
    form = call.options.get("approximate", "none")
    return call.value(x).do("Gelu", approximate=form)


_OPERATIONS: dict[Any, Callable[..., Any]] = {
    _aten.convolution: _convolution,
    _aten.add: _with("Add"),
    _aten.sub: _with("Sub"),
    _aten.mul: _with("Mul"),
    _aten.div: _with("Div"),
    _aten.maximum: _with("Max"),
    _aten.minimum: _with("Min"),
    _aten.relu: _like("Relu"),
    _aten.exp: _like("Exp"),
    _aten.log: _like("Log"),
    _aten.sqrt: _like("Sqrt"),
    _aten.neg: _like("Neg"),
    _aten.sigmoid: _like("Sigmoid"),
    _aten.abs: _like("Abs"),
    _aten._softmax: lambda call, x, axis, _: call.value(x).do("Softmax", axis=axis),
    _aten._safe_softmax: lambda call, x, axis, *_: call.value(x).do("Softmax", axis=axis),
    _aten.gelu: _gelu,
    _aten.hardtanh: lambda call, x, low=-1.0, high=1.0: _clip(call, x, low, high),
    _aten.hardtanh_: lambda call, x, low=-1.0, high=1.0: _clip(call, x, low, high),
    _aten.clamp: _clip,
    _aten.clamp_min: _clip,
    _aten.clamp_max: lambda call, x, high: _clip(call, x, None, high),
    _aten.constant_pad_nd: _pad("constant"),
    _aten.replication_pad2d: _pad("edge"),
    _aten.avg_pool2d: _pool("AveragePool"),
    _aten.max_pool2d_with_indices: _pool("MaxPool"),
    _aten.upsample_bilinear2d: _resize("linear"),
    _aten.upsample_bicubic2d: _resize("cubic"),
    _aten.mean: _reduce("ReduceMean"),
    _aten.sum: _reduce("ReduceSum"),
    _aten.amax: _reduce("ReduceMax"),
    _aten.amin: _reduce("ReduceMin"),
    _aten.argmin: _lowest,
    _aten.cat: _cat,
    _aten.view: lambda call, x, _: call.to_shape(x),
    _aten._unsafe_view: lambda call, x, _: call.to_shape(x),
    _aten.reshape: lambda call, x, _: call.to_shape(x),
    _aten.unsqueeze: lambda call, x, _: call.to_shape(x),
    _aten.squeeze: lambda call, x, *_: call.to_shape(x),
    _aten.expand: _expand,
    _aten.permute: _permute,
    _aten.transpose: _transpose,
    _aten.t: _transpose,
    _aten.mm: _matmul,
    _aten.mv: _matmul,
    _aten.bmm: _matmul,
    _aten.addmm: _addmm,
    _aten.slice: _slice,
    _aten.select: _select,
    _aten.index_select: _take,
    _aten.unbind: _unbind,
    _aten.pow: _power,
    _aten.topk: _top,
    _aten.native_layer_norm: _layer_norm,
    _aten.where: _where,
    _aten._to_copy: _same,
    _aten.clone: _same,
    _aten.detach: _same,
    _aten.alias: _same,
    _aten.lift_fresh_copy: _same,
}
