"""The kinds of columns: what is learned about one, and how it becomes features."""

from aloof.tabular.columns.base import Column, Kind, Note
from aloof.tabular.columns.category import CategoryColumn
from aloof.tabular.columns.choice import Choice, choose_column, listed
from aloof.tabular.columns.constant import ConstantColumn
from aloof.tabular.columns.number import NumberColumn
from aloof.tabular.columns.reading import one_array, plain
from aloof.tabular.columns.restoring import column_from_state
from aloof.tabular.columns.text import TextColumn
from aloof.tabular.columns.timestamp import Cycle, TimestampColumn

__all__ = [
    "CategoryColumn",
    "Choice",
    "Column",
    "ConstantColumn",
    "Cycle",
    "Kind",
    "Note",
    "NumberColumn",
    "TextColumn",
    "TimestampColumn",
    "choose_column",
    "column_from_state",
    "listed",
    "one_array",
    "plain",
]
