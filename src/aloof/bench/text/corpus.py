"""First sentences of film reviews as word numbers: what the text experiment learns from.

Needs the extra ``text``.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from aloof.bench.splits import Split, make_split
from aloof.exceptions import DatasetError
from aloof.networks.sequence import UNKNOWN
from aloof.text import MARKS, first_sentence, number_words, read_word_vectors, split_words

__all__ = ["DIRECTIONS", "Corpus", "Direction", "TextRun", "make_runs", "read_reviews"]

Direction = Literal["positive", "negative"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

_TEST_SIZE = 0.3  # as in the paper
_LONGEST_FIELD = 2**24  # characters of a review


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences, each with the sentiment of its review.

    Attributes
    ----------
    tokens
        Word numbers, ``(n, t)``; see `aloof.text.number_words`.
    positive
        The sentiment, ``(n,)``.
    words
        Of every sentence together, marks first. No run is told words of its test rows.
    vectors
        One for each word; NaN where it has to be learned.
    sentences
        As they were written; empty where only the numbers were kept.
    """

    tokens: NDArray[np.int32]
    positive: NDArray[np.bool_]
    words: NDArray[np.str_]
    vectors: NDArray[np.float32]
    sentences: tuple[str, ...] = ()

    @cached_property
    def sha256(self) -> str:
        """A digest of the sentences, their sentiments, the words and their vectors."""
        digest = hashlib.sha256()
        for part in (self.tokens, self.positive, self.vectors):
            digest.update(str(part.shape).encode() + np.ascontiguousarray(part).tobytes())
        for text in (*self.words, *self.sentences):
            digest.update(str(text).encode() + b"\0")
        return digest.hexdigest()

    def with_frequent(self, min_count: int) -> Corpus:
        """Return the same sentences without words that are in all of them less often."""
        counts = np.bincount(self.tokens.ravel(), minlength=len(self.words))
        kept = counts >= min_count
        kept[: len(MARKS)] = True
        numbers = np.where(kept, np.cumsum(kept) - 1, UNKNOWN).astype(np.int32)
        return replace(
            self,
            tokens=numbers[self.tokens],
            words=self.words[kept],
            vectors=self.vectors[kept],
        )


@dataclass(frozen=True, eq=False)
class TextRun:
    """One direction of one split, with the vocabulary of its training rows.

    Attributes
    ----------
    corpus
        What the rows are of.
    direction
        The sentiment that is normal.
    number
        Of the run; it decides the split.
    split
        Who sees which rows.
    normal
        Normal training rows: as many as in every other run.
    min_count
        How often a word must be in the normal training rows to be known.
    """

    corpus: Corpus
    direction: Direction
    number: int
    split: Split
    normal: NDArray[np.int64]
    min_count: int

    @property
    def anomaly(self) -> NDArray[np.int64]:
        """Labelled anomalies."""
        return self.split.train_anomaly

    @property
    def labels(self) -> NDArray[np.bool_]:
        """Which rows of the test are anomalies."""
        return np.not_equal(self.corpus.positive[self.split.test], self.direction == "positive")

    @cached_property
    def tokens(self) -> NDArray[np.int32]:
        """Every row in the words that this run knows."""
        own = self.corpus.tokens[self.normal]
        counts = np.bincount(own.ravel(), minlength=len(self.corpus.words))
        known = counts >= self.min_count
        known[: len(MARKS)] = True
        numbers = np.where(known, np.arange(len(known)), UNKNOWN).astype(np.int32)
        return numbers[self.corpus.tokens]


def make_runs(
    corpus: Corpus,
    n_runs: int,
    *,
    gamma_l: float,
    min_count: int = 2,
) -> list[TextRun]:
    """Return both directions of every split.

    All have the same number of normal rows, those of the rarer sentiment (a few rows of the
    other are left out), so that all of them can be trained as one stack.
    """
    splits = {
        (direction, number): make_split(
            (corpus.positive != (direction == "positive")).astype(int),
            seed=number,
            gamma_l=gamma_l,
            test_size=_TEST_SIZE,
        )
        for direction in DIRECTIONS
        for number in range(n_runs)
    }
    size = min(len(split.train_unlabelled) for split in splits.values())
    runs = []
    for (direction, number), split in splits.items():
        some = np.linspace(0, len(split.train_unlabelled) - 1, size).astype(np.int64)
        normal = split.train_unlabelled[some]
        runs.append(TextRun(corpus, direction, number, split, normal, min_count))
    return runs


def read_reviews(
    reviews: Path, vectors: Path, *, min_words: int = 5, max_words: int = 20
) -> Corpus:
    """Make a corpus of the first sentences of reviews.

    Parameters
    ----------
    reviews
        A CSV file, which may be compressed, with the columns ``review`` and ``sentiment``.
    vectors
        Word vectors in GloVe's format.
    min_words, max_words
        Reviews whose first sentence is shorter or longer are left out.
    """
    documents, positive = _read_columns(reviews)
    sentences = [first_sentence(document) for document in documents]
    words = split_words(sentences)
    kept = [i for i, own in enumerate(words) if min_words <= len(own) <= max_words]
    counts = Counter(word for i in kept for word in words[i])
    # A word that is nowhere twice is unknown to every run.
    vocabulary = [*MARKS, *sorted(word for word, count in counts.items() if count > 1)]
    return Corpus(
        number_words([words[i] for i in kept], vocabulary, length=max_words),
        np.array([positive[i] for i in kept]),
        np.array(vocabulary),
        read_word_vectors(vectors, vocabulary),
        tuple(sentences[i] for i in kept),
    )


def _read_columns(path: Path) -> tuple[list[str], list[bool]]:
    opened = gzip.open if path.suffix == ".gz" else open
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            rows = [(row["review"], row["sentiment"]) for row in csv.DictReader(file)]
    except (OSError, KeyError, csv.Error) as error:
        raise DatasetError(
            f"Cannot read reviews from {path}: {error}. It must be a CSV file with the "
            "columns `review` and `sentiment` (positive or negative)."
        ) from error
    finally:
        csv.field_size_limit(before)
    return [review for review, _ in rows], [sentiment == "positive" for _, sentiment in rows]
