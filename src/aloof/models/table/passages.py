"""Which words or sentences of a text carry its score: by leaving each of them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.text import split_sentences

__all__ = ["Passage", "find_passages"]

_MOST = 40  # parts that a text is taken apart into
_FEW = 3  # sentences; a text of fewer is taken apart into words
_WORK = 40_000  # words to read again for one text: a long one has fewer parts


@dataclass(frozen=True)
class Passage:
    """A part of a text.

    Attributes
    ----------
    text
        Its words.
    contribution
        How much lower the anomaly score is without it; of a committee, that of its views.
    """

    text: str
    contribution: float


def find_passages(
    table: pa.Table,
    column: str,
    scores: Callable[[pa.Table], NDArray[np.float64]],
    *,
    top: int = 3,
) -> list[list[Passage]]:
    """Return the passages that raise the score of each row most, the first of them first.

    Parameters
    ----------
    table
        Rows; only the text changes, other columns stay.
    column
        The column of text.
    scores
        Returns the anomaly scores of such a table.
    top
        How many at most. Passages that lower the score are left out.
    """
    documents = [str(text or "") for text in table[column].to_pylist()]
    parts = [_parts(document) for document in documents]
    rows = np.repeat(np.arange(len(parts)), [len(own) for own in parts])
    place = table.column_names.index(column)
    if not len(rows):
        return [[] for _ in parts]
    shortened = [text for own in parts for text in _without_each(own)]
    changed = table.take(pa.array(rows)).set_column(place, column, pa.array(shortened))
    fall = scores(table)[rows] - scores(changed)
    found = []
    for row, own in enumerate(parts):
        falls = fall[rows == row]
        order = np.argsort(-falls, kind="stable")[:top]
        found.append([Passage(own[i], float(falls[i])) for i in order if falls[i] > 0])
    return found


def _parts(document: str) -> list[str]:
    """Return sentences, or words of a short text; neighbours together where there are many."""
    words = document.split()
    parts = words
    if len(words) > _MOST:
        sentences = split_sentences(document)
        parts = sentences if len(sentences) >= _FEW else words
    if len(parts) < 2:  # without its only word it would be no text at all
        return []
    n_parts = min(len(parts), _MOST, max(_FEW, _WORK // len(words)))
    groups = np.array_split(np.array(parts, dtype=object), n_parts)
    return [" ".join(group) for group in groups]


def _without_each(parts: Sequence[str]) -> list[str]:
    return [" ".join([*parts[:i], *parts[i + 1 :]]) for i in range(len(parts))]
