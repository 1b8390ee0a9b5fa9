"""The tables of the store, as the migrations make them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

__all__ = ["METADATA", "UtcTime", "answer", "number_type", "rule"]

METADATA = MetaData()


class UtcTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return what is stored."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Return what was stored."""
        if value is None:
            return None
        found: datetime = value
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def number_type() -> Any:
    """Return the type of numbers that the database counts itself."""
    return BigInteger().with_variant(Integer, "sqlite")


# Events: only ever added to. `label` is that of the answer, or of the one that is taken back.
answer = Table(
    "answer",
    METADATA,
    Column("number", number_type(), primary_key=True, autoincrement=True),
    Column("model", String(500), nullable=False),
    Column("source", Text, nullable=False),
    Column("row", Text, nullable=False),
    Column("label", SmallInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("note", Text, nullable=False),
    Column("values", JSON, nullable=True),
    Column("score", Float, nullable=True),
    Column("undoes", number_type(), ForeignKey("answer.number"), nullable=True),
    Column("request", String(100), nullable=False),
    Column("place", Integer, nullable=False),
    UniqueConstraint("request", "place", name="answer_once"),
    UniqueConstraint("undoes", name="answer_undone_once"),
    Index("answer_of_model", "model", "number"),
    sqlite_autoincrement=True,
)

# What is known to be harmless; a rule that was lifted says when.
rule = Table(
    "rule",
    METADATA,
    Column("number", number_type(), primary_key=True, autoincrement=True),
    Column("model", String(500), nullable=False),
    Column("column", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("until", UtcTime, nullable=True),
    Column("by", Text, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("note", Text, nullable=False),
    Column("lifted_by", Text, nullable=True),
    Column("lifted_at", UtcTime, nullable=True),
    Column("request", String(100), nullable=False),
    UniqueConstraint("request", name="rule_once"),
    Index("rule_of_model", "model", "number"),
    sqlite_autoincrement=True,
)
