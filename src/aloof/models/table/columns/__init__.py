"""The kinds of columns: what is learned about one, and how it becomes features."""

from aloof.models.table.columns.base import (
    Choice,
    Column,
    Note,
    Positive,
    Share,
    Values,
)
from aloof.models.table.columns.category import CategoryColumn
from aloof.models.table.columns.constant import ConstantColumn
from aloof.models.table.columns.number import NumberColumn
from aloof.models.table.columns.reading import one_array
from aloof.models.table.columns.registry import choose_column, column_from_state, register
from aloof.models.table.columns.text import TextColumn
from aloof.models.table.columns.timestamp import Cycle, TimestampColumn

__all__ = [
    "CategoryColumn",
    "Choice",
    "Column",
    "ConstantColumn",
    "Cycle",
    "Note",
    "NumberColumn",
    "Positive",
    "Share",
    "TextColumn",
    "TimestampColumn",
    "Values",
    "choose_column",
    "column_from_state",
    "one_array",
    "register",
]

# The last one is asked first whether a column is its own.
for _kind in (CategoryColumn, ConstantColumn, TimestampColumn, NumberColumn, TextColumn):
    register(_kind)
