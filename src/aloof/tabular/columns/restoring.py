"""Columns from what JSON held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aloof.exceptions import ModelError
from aloof.tabular.columns.base import Column
from aloof.tabular.columns.category import CategoryColumn
from aloof.tabular.columns.constant import ConstantColumn
from aloof.tabular.columns.number import NumberColumn
from aloof.tabular.columns.text import TextColumn
from aloof.tabular.columns.timestamp import Cycle, TimestampColumn

__all__ = ["column_from_state"]

_KINDS: dict[str, type[Any]] = {
    "number": NumberColumn,
    "category": CategoryColumn,
    "boolean": CategoryColumn,
    "timestamp": TimestampColumn,
    "text": TextColumn,
    "constant": ConstantColumn,
}


def column_from_state(state: Mapping[str, Any]) -> Column:
    """Return the column whose `Column.state` this is."""
    try:
        fields = {key: _restored(value) for key, value in state.items() if key != "kind"}
        column: Column = _KINDS[state["kind"]](**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"The model describes a column that cannot be read: {error}."
        ) from error
    return column


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return Cycle(**value) if isinstance(value, dict) else value
