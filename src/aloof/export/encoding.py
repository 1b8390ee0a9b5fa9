"""Columns of a table as inputs of a graph, and the features that they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from aloof.exceptions import ModelError
from aloof.export.functions import arsinh
from aloof.export.graph import DOUBLE, FLOAT, ML, Graph, Value
from aloof.models.table.columns import (
    CategoryColumn,
    Column,
    ConstantColumn,
    Cycle,
    NumberColumn,
    TextColumn,
    TimestampColumn,
)
from aloof.models.table.columns.base import LIMIT, NEVER, flag_weight
from aloof.models.table.columns.category import FALSE_WORDS, TRUE_WORDS
from aloof.models.table.columns.number import LARGEST
from aloof.models.table.columns.timestamp import DAY, FREE, GROWING
from aloof.models.table.encoder import TableEncoder

__all__ = ["encode"]

_FIRST_MONDAY = 3  # days after the first of 1970, a Thursday, and a week before


def encode(graph: Graph, encoder: TableEncoder) -> Value:
    """Add an input for each column; return the encoded rows ``(rows, n_features)``, float32.

    Raises
    ------
    ModelError
        If there is a column that a graph cannot encode.
    """
    features: list[Value] = []
    for column in encoder.columns:
        kind = _KINDS.get(type(column))
        if kind is None:
            raise ModelError(_refusal(column))
        with graph.part(f"encode {column.name}"):
            found = kind.encode(graph, column, graph.input(column.name, kind.dtype))
            assert len(found) == len(column.features)
            features += [feature.to(FLOAT).expand(1) for feature in found]
    with graph.part("encode"):
        return graph.concat(features, 1) * graph.number(encoder.gain, FLOAT)


def _refusal(column: Column) -> str:
    if isinstance(column, TextColumn):
        return (
            f"Column {column.name!r} is text, which the language model {column.embedder!r} "
            "reads. That is larger than an exported file may be, so models with text cannot "
            f"be exported. Fit again without it: drop=[{column.name!r}] (--drop)."
        )
    return (
        f"Column {column.name!r} is of the kind {column.kind!r}, which is not aloof's own, and "
        "nobody knows how to write it in ONNX."
    )


def _number(g: Graph, column: NumberColumn, values: Value) -> list[Value]:
    missing, infinite = values.do("IsNaN", dtype=bool), values.do("IsInf", dtype=bool)
    scaled = values.clip(-LARGEST, LARGEST)
    if column.bend is not None:
        scaled = arsinh(scaled / column.bend)
    scaled = ((scaled - column.centre) / column.scale).clip(-LIMIT, LIMIT)
    known = column.scaled(np.array([column.low, column.middle, column.high])).tolist()
    low, middle, high = known if column.infinite_share else (-LIMIT, known[1], LIMIT)
    ends = g.where(values > 0.0, g.number(high), low)
    scaled = g.where(infinite, ends, scaled)
    scaled = g.where(missing, middle if column.missing_share else NEVER, scaled)
    flags = [(missing, column.missing_share), (infinite, column.infinite_share)]
    return [scaled, *(_flag(g, flag, share) for flag, share in flags if share)]


def _category(g: Graph, column: CategoryColumn, values: Value) -> list[Value]:
    n, never = len(column.categories), len(column.features) - 1
    # Of the frequent values each has a place, all rare ones share the next.
    places = {value: place for place, value in enumerate(column.categories)}
    places |= dict.fromkeys(column.rare, n)
    if column.boolean:
        known = dict(places)
        for words, meaning in ((TRUE_WORDS, "true"), (FALSE_WORDS, "false")):
            place = known.get(meaning, never if column.complete else n)
            places |= {spelling: place for word in words for spelling in _spellings(word)}
    places[""] = never - 1 if column.missing_share else never
    slots = _numbered(values, places, never if column.complete else n)
    return [
        g.where(slots.equals(number), g.number(weight), 0.0)
        for number, weight in enumerate(column.weights.tolist())
    ]


def _numbered(values: Value, known: Mapping[str, int], other: int) -> Value:
    """Return the numbers of texts that are known, and one of all others."""
    return values.do(
        "LabelEncoder",
        dtype=np.int64,
        domain=ML,
        keys_strings=list(known),
        values_int64s=list(known.values()),
        default_int64=other,
    )


def _spellings(word: str) -> list[str]:
    """Return a word in small and capital letters in all mixtures."""
    letters = [dict.fromkeys((letter, letter.upper())) for letter in word]
    return ["".join(chosen) for chosen in product(*letters)]


def _constant(g: Graph, column: ConstantColumn, values: Value) -> list[Value]:
    # One text for the value of the training, one for nothing: all others are something else.
    known = {"": 0} if column.value is None else {column.value: 1, "": 0}
    place = _numbered(values, known, 2)
    missing, same = place.equals(0), place.equals(1)
    expected = missing if column.value is None else same
    if column.varies:
        expected = expected | missing
    stands_out = g.where(expected, g.number(0.0), NEVER)
    return (
        [stands_out, _flag(g, missing, column.missing_share)] if column.varies else [stands_out]
    )


def _timestamp(g: Graph, column: TimestampColumn, values: Value) -> list[Value]:
    missing = values.do("IsNaN", dtype=bool)
    seconds = g.where(missing, column.centre, values)
    found: list[Value] = []
    if column.position:
        found.append(_position(g, column, seconds))
    if column.day is not None:
        found += _circle(column.day, _rest(g, seconds, DAY) / DAY)
    if column.week is not None:
        days = (seconds / DAY).do("Floor") + _FIRST_MONDAY
        found += _circle(column.week, _rest(g, days, 7.0) / 7.0)
    found = [g.where(missing, 0.0, feature) for feature in found]
    if column.missing_share:
        return [*found, _flag(g, missing, column.missing_share)]
    return [g.where(missing, NEVER, found[0]), *found[1:]]


def _position(g: Graph, column: TimestampColumn, seconds: Value) -> Value:
    free = max(column.high - column.low, FREE)
    position = (seconds.clip(*column.bounds) - column.centre) / column.scale
    off = (column.low - seconds).at_least(seconds - column.high)
    farness = ((off - free) / GROWING).clip(0.0, 1.0)
    farthest = g.where(seconds < column.low, g.number(-NEVER), NEVER)
    return position + farness * (farthest - position)


def _rest(g: Graph, values: Value, period: float) -> Value:
    """Return what is left after whole periods, never negative."""
    rest = values.do("Mod", g.number(period), fmod=1)
    return g.where(rest < 0.0, rest + period, rest)


def _circle(cycle: Cycle, phase: Value) -> list[Value]:
    angle = phase * (2 * np.pi)
    sine, cosine = angle.do("Sin"), angle.do("Cos")
    return [(sine - cycle.sine) * cycle.weight, (cosine - cycle.cosine) * cycle.weight]


def _flag(g: Graph, flag: Value, share: float) -> Value:
    return g.where(flag, g.number(flag_weight(share)), 0.0)


@dataclass(frozen=True)
class _Kind:
    """How a kind of columns comes in, and what encodes it."""

    dtype: Any
    encode: Callable[[Graph, Any, Value], list[Value]]


_KINDS: dict[type[Column], _Kind] = {
    NumberColumn: _Kind(DOUBLE, _number),
    CategoryColumn: _Kind(object, _category),
    ConstantColumn: _Kind(object, _constant),
    TimestampColumn: _Kind(DOUBLE, _timestamp),
}
