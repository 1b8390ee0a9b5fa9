"""The kinds of columns there are: which one takes a column, and columns from JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import pyarrow as pa

from aloof.exceptions import ModelError, TableError
from aloof.models.table.columns.base import Choice, Column, Values
from aloof.models.table.columns.reading import unwrapped
from aloof.models.table.dialects import Evidence, Hints
from aloof.suggestion import did_you_mean
from aloof.text import DEFAULT_EMBEDDER

__all__ = ["choose_column", "column_from_state", "register"]

_KINDS: dict[str, type[Column]] = {}  # in the order of registration

_C = TypeVar("_C", bound=type[Column])


def register(column: _C) -> _C:
    """Make a kind of columns known, in the place of others of the same name.

    Its `Column.claim` is asked before those of the kinds that were known already. A model with
    such a column can be loaded where the kind is registered.

    Parameters
    ----------
    column
        A frozen dataclass that is a `Column`. As a decorator, `register` returns it.
    """
    if not (dataclasses.is_dataclass(column) and issubclass(column, Column)):
        raise TypeError(f"A kind of columns must be a dataclass and a Column; got {column!r}.")
    if missing := sorted(column.__abstractmethods__):
        raise TypeError(f"{column.__name__} has no {' and no '.join(missing)}.")
    kinds = getattr(column, "kinds", None)
    if not isinstance(kinds, tuple) or not kinds or not all(isinstance(k, str) for k in kinds):
        raise TypeError(
            f"{column.__name__}.kinds must be a tuple of names, such as ('address',); got "
            f"{kinds!r}."
        )
    for kind in column.kinds:
        _KINDS.pop(kind, None)
        _KINDS[kind] = column
    return column


def choose_column(
    name: str,
    array: pa.Array,
    kind: str | None = None,
    *,
    embedder: str = DEFAULT_EMBEDDER,
    hints: Hints | None = None,
    seen: Evidence | None = None,
) -> Choice:
    """Decide what to make of a column from its training rows, of which there is one at least.

    Parameters
    ----------
    name
        Its name.
    array
        Its values.
    kind
        What it is, where the user knows better.
    embedder
        What makes vectors of text.
    hints
        What is known besides about how they are written.
    seen
        What all values say about it, also those of rows that are not learned from.
    """
    values = Values(
        name, unwrapped(name, array), kind, embedder, Hints() if hints is None else hints, seen
    )
    asked = list(dict.fromkeys(reversed(_KINDS.values())))
    if kind is not None:
        known = [word for word in _KINDS if _KINDS[word].on_request]
        if kind not in known:
            raise TableError(
                f"Column {name!r} cannot be of the kind {kind!r}{did_you_mean(kind, known)}"
            )
        if values.n_distinct:
            asked = [_KINDS[kind]]
        else:  # there is nothing that could be of a kind
            values = dataclasses.replace(values, kind=None)
    for column in asked:
        if (choice := column.claim(values)) is not None:
            return choice
    raise TableError(f"Column {name!r} cannot be read as {kind!r}. Choose another kind.")


def column_from_state(state: Mapping[str, Any]) -> Column:
    """Return the column whose `Column.state` this is."""
    kind = state.get("kind")
    try:
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(f"there is no kind {kind!r}{did_you_mean(kind, _KINDS)[:-1]}")
        return _KINDS[kind].from_state(state)
    except ValueError as error:
        raise ModelError(
            f"Cannot read the model's description of column {state.get('name')!r}: {error}."
        ) from error
