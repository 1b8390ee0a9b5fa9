"""Answers, and rules about what is harmless."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make both tables."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "answer",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column("model", sa.String(500), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("row", sa.Text, nullable=False),
        sa.Column("label", sa.SmallInteger, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("values", sa.JSON, nullable=True),
        sa.Column("score", sa.Float, nullable=True),
        sa.Column("undoes", number, sa.ForeignKey("answer.number"), nullable=True),
        sa.Column("request", sa.String(100), nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.UniqueConstraint("request", "place", name="answer_once"),
        sa.UniqueConstraint("undoes", name="answer_undone_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("answer_of_model", "answer", ["model", "number"])
    op.create_table(
        "rule",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column("model", sa.String(500), nullable=False),
        sa.Column("column", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("lifted_by", sa.Text, nullable=True),
        sa.Column("lifted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("request", sa.String(100), nullable=False),
        sa.UniqueConstraint("request", name="rule_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("rule_of_model", "rule", ["model", "number"])


def downgrade() -> None:
    """Drop both, with all that is in them."""
    op.drop_table("rule")
    op.drop_table("answer")
