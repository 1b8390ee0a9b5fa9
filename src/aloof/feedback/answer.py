"""What a reviewer says about a row, and how all answers about it stand together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aloof.exceptions import AnswerError
from aloof.labels import ANOMALY, NORMAL, UNLABELLED

__all__ = ["UNSURE", "WORDS", "Answer", "Key", "Standing", "standings"]

UNSURE = UNLABELLED
WORDS = {ANOMALY: "anomaly", NORMAL: "normal", UNSURE: "unsure"}

# Where a row is named, and its name there.
Key = tuple[str, str]

# Longer texts are a mistake, or an attack.
_LONGEST = {"row": 1000, "source": 1000, "by": 200, "note": 10_000}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer about one row. It is never changed: another answer, or an undo, follows it.

    Attributes
    ----------
    row
        The row's id, or where the model has no id column its number, from 1 on; an image's
        file name.
    label
        1 anomaly, 0 normal, -1 unsure.
    by
        Who says so.
    note
        What else they say.
    source
        The file the row is numbered in; empty for ids, which hold anywhere.
    values
        The row itself, column by column, so that it can be learned from wherever its file is;
        None: nobody kept it.
    score
        Its anomaly score when it was answered; None: unknown.
    number
        Of the event in the store, from 1 on; None: not stored yet.
    at
        When it was stored.
    undoes
        The number of the answer that this event takes back; None: it is an answer.
    """

    row: str
    label: int
    by: str = ""
    note: str = ""
    source: str = ""
    values: Mapping[str, Any] | None = field(default=None, compare=False)
    score: float | None = None
    number: int | None = None
    at: datetime | None = None
    undoes: int | None = None

    def __post_init__(self) -> None:
        if self.label not in WORDS:
            raise AnswerError(
                f"An answer is 1 (anomaly), 0 (normal) or -1 (unsure); got {self.label!r}."
            )
        if not self.row:
            raise AnswerError("An answer must name its row.")
        for name, most in _LONGEST.items():
            text = getattr(self, name)
            if len(text) > most:
                raise AnswerError(
                    f"The {name} of an answer has {len(text):,} characters; "
                    f"at most {most:,} are kept."
                )
            if "\x00" in text:
                raise AnswerError(f"The {name} of an answer holds a NUL character.")

    @property
    def key(self) -> Key:
        """Which row it is about."""
        return self.source, self.row

    @property
    def word(self) -> str:
        """The label in a word."""
        return WORDS[self.label]


@dataclass(frozen=True)
class Standing:
    """How the answers about one row stand: the last one of each reviewer.

    Attributes
    ----------
    answers
        One of each reviewer, the latest last.
    """

    answers: tuple[Answer, ...]

    @property
    def last(self) -> Answer:
        """The latest of them."""
        return self.answers[-1]

    @property
    def key(self) -> Key:
        """Which row it is about."""
        return self.last.key

    @property
    def in_conflict(self) -> bool:
        """Whether one says anomaly and another one normal."""
        return {ANOMALY, NORMAL} <= {answer.label for answer in self.answers}

    @property
    def label(self) -> int:
        """What is known: 1 or 0 if nobody contradicts, else -1."""
        if self.in_conflict:
            return UNSURE
        sure = [answer.label for answer in self.answers if answer.label != UNSURE]
        return sure[-1] if sure else UNSURE

    @property
    def values(self) -> Mapping[str, Any] | None:
        """The row, as kept with the latest answer that has it."""
        kept = [answer.values for answer in self.answers if answer.values is not None]
        return kept[-1] if kept else None


def standings(events: Iterable[Answer]) -> dict[Key, Standing]:
    """Return how things stand after these events, which must be in order, row by row.

    Of each reviewer the latest answer counts that was not taken back: an undo brings the one
    before it back. Rows come in the order of their latest answers.
    """
    answers: dict[int, Answer] = {}
    for event in events:
        if event.undoes is None:
            answers[event.number or 0] = event
        else:
            answers.pop(event.undoes, None)
    latest: dict[tuple[Key, str], Answer] = {}
    for answer in answers.values():
        latest.pop((answer.key, answer.by), None)
        latest[answer.key, answer.by] = answer
    found: dict[Key, list[Answer]] = {}
    for answer in latest.values():
        others = found.pop(answer.key, [])
        found[answer.key] = [*others, answer]
    return {key: Standing(tuple(own)) for key, own in found.items()}
