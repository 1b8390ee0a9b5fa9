"""An ONNX graph written as formulas: values that can be added, compared and multiplied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from aloof.exceptions import MissingExtraError

__all__ = ["DOUBLE", "FLAG", "FLOAT", "ML", "ROWS", "Graph", "Value"]

FLOAT, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
FLAG = np.dtype(np.bool_)

ML = "ai.onnx.ml"  # trees, and numbers for words
# Understood by ONNX Runtime 1.20 and later.
_OPSETS = {"": 20, ML: 5}
_IR_VERSION = 10

ROWS = "rows"  # what the first axis of every input is called

_Number = float | int | bool


@dataclass(frozen=True, eq=False)
class Value:
    """What a node gives, with the operators of an array.

    Attributes
    ----------
    graph
        What it belongs to.
    name
        How other nodes call it.
    dtype
        Of its numbers; object: text.
    """

    graph: Graph
    name: str
    dtype: np.dtype[Any]

    def __add__(self, other: Value | _Number) -> Value:
        return self._with("Add", other)

    def __sub__(self, other: Value | _Number) -> Value:
        return self._with("Sub", other)

    def __mul__(self, other: Value | _Number) -> Value:
        return self._with("Mul", other)

    def __truediv__(self, other: Value | _Number) -> Value:
        return self._with("Div", other)

    def __rsub__(self, other: _Number) -> Value:
        return self.graph.number(other, self.dtype) - self

    def __rtruediv__(self, other: _Number) -> Value:
        return self.graph.number(other, self.dtype) / self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Value:
        return self.do("Neg")

    def __matmul__(self, other: Value) -> Value:
        return self._with("MatMul", other)

    def __le__(self, other: Value | _Number) -> Value:
        return self._with("LessOrEqual", other, FLAG)

    def __lt__(self, other: Value | _Number) -> Value:
        return self._with("Less", other, FLAG)

    def __ge__(self, other: Value | _Number) -> Value:
        return self._with("GreaterOrEqual", other, FLAG)

    def __gt__(self, other: Value | _Number) -> Value:
        return self._with("Greater", other, FLAG)

    def equals(self, other: Value | _Number) -> Value:
        """Return where both are the same."""
        return self._with("Equal", other, FLAG)

    def __and__(self, other: Value) -> Value:
        return self._with("And", other)

    def __or__(self, other: Value) -> Value:
        return self._with("Or", other)

    def __invert__(self) -> Value:
        return self.do("Not")

    def do(
        self, kind: str, *more: Value, dtype: DTypeLike | None = None, **attributes: Any
    ) -> Value:
        """Return what an operator makes of it, and of other values."""
        return self.graph.node(
            kind,
            [self, *more],
            dtype=self.dtype if dtype is None else np.dtype(dtype),
            **attributes,
        )

    def at_least(self, least: Value | _Number) -> Value:
        """Return the larger of both."""
        return self._with("Max", least)

    def clip(self, low: float, high: float) -> Value:
        """Return it with what is beyond cut off."""
        return self.do("Clip", *(self.graph.number(n, self.dtype) for n in (low, high)))

    def to(self, dtype: DTypeLike) -> Value:
        """Return it in another dtype."""
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        return self.do("Cast", dtype=wanted, to=_onnx_type(wanted))

    def sum(self, axis: int) -> Value:
        """Return the sum over an axis."""
        return self.do("ReduceSum", self.graph.indices([axis]), keepdims=0)

    def mean(self, axis: int) -> Value:
        """Return the mean over an axis."""
        return self.do("ReduceMean", self.graph.indices([axis]), keepdims=0)

    def max(self, axis: int) -> Value:
        """Return the largest along an axis."""
        return self.do("ReduceMax", self.graph.indices([axis]), keepdims=0)

    def expand(self, axis: int) -> Value:
        """Return it with one more axis."""
        return self.do("Unsqueeze", self.graph.indices([axis]))

    def squeeze(self, axis: int) -> Value:
        """Return it without an axis of length 1."""
        return self.do("Squeeze", self.graph.indices([axis]))

    def slice(self, begin: int, end: int, axis: int) -> Value:
        """Return a part along an axis."""
        return self.do("Slice", *(self.graph.indices([n]) for n in (begin, end, axis)))

    def split(self, *sizes: int, axis: int = -1) -> list[Value]:
        """Return parts along an axis, one after the other."""
        ends = np.cumsum(sizes).tolist()
        return [self.slice(end - n, end, axis) for n, end in zip(sizes, ends, strict=True)]

    def take(self, indices: Value | Sequence[int], axis: int = 0) -> Value:
        """Return what is in some places along an axis."""
        if not isinstance(indices, Value):
            indices = self.graph.indices(indices)
        return self.do("Gather", indices, axis=axis)

    def _with(self, kind: str, other: Value | _Number, dtype: DTypeLike | None = None) -> Value:
        if not isinstance(other, Value):
            other = self.graph.number(other, self.dtype)
        assert self.dtype == other.dtype, f"{kind} of {self.dtype} and {other.dtype}"
        return self.do(kind, other, dtype=dtype)


class Graph:
    """Inputs, nodes, constants and outputs, in the order in which they were made.

    The same calls make the same bytes: names are counted, and nothing else goes into them.

    Parameters
    ----------
    taken
        Names that no node may have: those of inputs.
    """

    def __init__(self, *, taken: Iterable[str] = ()) -> None:
        _require()
        self._taken = frozenset(taken)
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._nodes: list[Any] = []
        self._constants: dict[tuple[Any, ...], Any] = {}
        self._counts: dict[str, int] = {}
        self._part = ""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Put a word before the names of all nodes that are made in the block."""
        before, self._part = self._part, f"{self._part}{name}/"
        try:
            yield
        finally:
            self._part = before

    def input(self, name: str, dtype: DTypeLike, shape: Sequence[int] = ()) -> Value:
        """Return an input of rows of a shape; object: text."""
        from onnx import helper

        kind = np.dtype(dtype)
        info = helper.make_tensor_value_info(name, _onnx_type(kind), [ROWS, *shape])
        self.inputs.append(info)
        return Value(self, name, kind)

    def output(self, name: str, value: Value) -> None:
        """Make a value one of the answers, one number a row."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
        info = helper.make_tensor_value_info(name, _onnx_type(value.dtype), [ROWS])
        self.outputs.append(info)

    def constant(self, array: ArrayLike, dtype: DTypeLike | None = None) -> Value:
        """Return numbers as a value; equal ones are kept once."""
        from onnx import numpy_helper

        numbers = np.ascontiguousarray(array, dtype)
        key = (numbers.dtype.str, np.shape(array), numbers.tobytes())
        if key not in self._constants:
            name = self._name("constant")
            shaped = numbers.reshape(np.shape(array))
            self._constants[key] = numpy_helper.from_array(shaped, name)
        return Value(self, self._constants[key].name, numbers.dtype)

    def number(self, number: _Number, dtype: DTypeLike = DOUBLE) -> Value:
        """Return one number as a value."""
        return self.constant(np.asarray(number, dtype))

    def indices(self, numbers: Sequence[int] | NDArray[np.int64]) -> Value:
        """Return places as a value."""
        return self.constant(np.asarray(numbers, np.int64))

    def node(
        self,
        kind: str,
        values: Sequence[Value],
        *,
        dtype: DTypeLike,
        domain: str = "",
        **attributes: Any,
    ) -> Value:
        """Add a node with one output."""
        from onnx import helper

        name = self._name(kind)
        names = [value.name for value in values]
        self._nodes.append(
            helper.make_node(kind, names, [name], name=name, domain=domain, **attributes)
        )
        return Value(self, name, np.dtype(dtype))

    def where(self, condition: Value, yes: Value | _Number, no: Value | _Number) -> Value:
        """Return one value or the other."""
        known = yes if isinstance(yes, Value) else no
        assert isinstance(known, Value)
        yes, no = (
            value if isinstance(value, Value) else self.number(value, known.dtype)
            for value in (yes, no)
        )
        return self.node("Where", [condition, yes, no], dtype=yes.dtype)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Return values one after the other along an axis."""
        if len(values) == 1:
            return values[0]
        return self.node("Concat", values, dtype=values[0].dtype, axis=axis)

    def smallest(self, values: Value, n: int | Value) -> Value:
        """Return the `n` smallest along the last axis, in ascending order."""
        return self.smallest_at(values, n)[0]

    def smallest_at(self, values: Value, n: int | Value) -> tuple[Value, Value]:
        """Return the `n` smallest along the last axis, in ascending order, and their places."""
        from onnx import helper

        places = self.indices([n]) if isinstance(n, int) else n
        found, where = self._name("TopK"), self._name("TopK")
        node = helper.make_node(
            "TopK", [values.name, places.name], [found, where], name=found, largest=0
        )
        self._nodes.append(node)
        places_found = Value(self, where, np.dtype(np.int64))
        return Value(self, found, values.dtype), places_found

    @contextmanager
    def aside(self) -> Iterator[list[Any]]:
        """Collect the nodes that are made in the block, for a branch of `choose`."""
        before, self._nodes = self._nodes, []
        try:
            yield self._nodes
        finally:
            self._nodes = before

    def choose(
        self,
        condition: Value,
        yes: tuple[list[Any], Sequence[Value]],
        no: tuple[list[Any], Sequence[Value]],
    ) -> list[Value]:
        """Return the values of one branch or the other; only that one is computed.

        Parameters
        ----------
        condition
            One flag.
        yes, no
            Nodes from `aside`, and the values that they lead to.
        """
        from onnx import helper

        branches = {}
        for word, (nodes, values) in (("then_branch", yes), ("else_branch", no)):
            ends, infos = [], []
            for value in values:
                name = self._name(word)
                ends.append(helper.make_node("Identity", [value.name], [name], name=name))
                infos.append(helper.make_tensor_value_info(name, _onnx_type(value.dtype), None))
            branches[word] = helper.make_graph([*nodes, *ends], word, [], infos)
        names = [self._name("If") for _ in yes[1]]
        node = helper.make_node("If", [condition.name], names, name=names[0], **branches)
        self._nodes.append(node)
        return [Value(self, n, v.dtype) for n, v in zip(names, yes[1], strict=True)]

    def model(self, about: str, producer: tuple[str, str], notes: dict[str, str]) -> Any:
        """Return the ONNX model.

        Parameters
        ----------
        about
            What it is, in words.
        producer
            Name and version of what made it.
        notes
            What travels with it, as text by name.
        """
        from onnx import checker, helper

        graph = helper.make_graph(
            self._nodes,
            "anomaly_score",
            self.inputs,
            self.outputs,
            initializer=list(self._constants.values()),
        )
        opsets = [helper.make_opsetid(*pair) for pair in _OPSETS.items()]
        found = helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=_IR_VERSION,
            producer_name=producer[0],
            producer_version=producer[1],
            doc_string=about,
        )
        helper.set_model_props(found, notes)
        checker.check_model(found)
        return found

    def _name(self, word: str) -> str:
        full = f"{self._part}{word}"
        self._counts[full] = number = self._counts.get(full, 0) + 1
        name = f"{full}_{number}"
        return name if name not in self._taken else self._name(word)


def _onnx_type(dtype: np.dtype[Any]) -> int:
    from onnx import TensorProto, helper

    is_text = dtype.kind == "O"
    return int(TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(dtype))


def _require() -> None:
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("onnx", "onnx", "Exporting a model") from error
