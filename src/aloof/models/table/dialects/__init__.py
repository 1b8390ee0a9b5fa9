"""How cells are written: what numbers and times in text mean, and how that is found out."""

from aloof.models.table.dialects.evidence import Evidence, survey
from aloof.models.table.dialects.hints import Hints, Locale, Question, Wishes
from aloof.models.table.dialects.numbers import NumberDialect
from aloof.models.table.dialects.times import TimeDialect

__all__ = [
    "Evidence",
    "Hints",
    "Locale",
    "NumberDialect",
    "Question",
    "TimeDialect",
    "Wishes",
    "survey",
]
