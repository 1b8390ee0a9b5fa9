"""Words as numbers, and as vectors that were learned elsewhere."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import TextError
from aloof.networks.sequence import END, PADDING, UNKNOWN

__all__ = ["MARKS", "number_words", "read_word_vectors"]

MARKS = ("<padding>", "<begin>", "<end>", "<unknown>")  # numbers 0 to 3 of every vocabulary


def number_words(
    sentences: Sequence[Sequence[str]], words: Sequence[str], *, length: int
) -> NDArray[np.int32]:
    """Return sentences as rows of word numbers, closed by an end and filled up.

    Parameters
    ----------
    sentences
        Their words.
    words
        The vocabulary, `MARKS` first. Other words become ``<unknown>``.
    length
        Most words of a sentence; what is beyond is cut off. Rows are one longer.

    Examples
    --------
    >>> number_words([["not", "bad"], ["bad", "bad", "film"]], [*MARKS, "bad", "not"], length=3)
    array([[5, 4, 2, 0],
           [4, 4, 3, 2]], dtype=int32)
    """
    numbers = {word: number for number, word in enumerate(words)}
    tokens = np.full((len(sentences), length + 1), PADDING, np.int32)
    for row, sentence in zip(tokens, sentences, strict=True):
        kept = [numbers.get(word, UNKNOWN) for word in sentence[:length]]
        row[: len(kept)] = kept
        row[len(kept)] = END
    return tokens


def read_word_vectors(path: Path, words: Sequence[str]) -> NDArray[np.float32]:
    """Read vectors from a file in GloVe's text format, which may be compressed (``.gz``).

    Returns
    -------
    A row for each of `words`; NaN for those the file lacks.
    """
    wanted = {word: number for number, word in enumerate(words)}
    found: dict[int, NDArray[np.float32]] = {}
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            for line in file:
                word, _, rest = line.partition(" ")
                if word in wanted:
                    found[wanted[word]] = np.array(rest.split(), np.float32)
    except (OSError, ValueError) as error:
        raise TextError(f"Cannot read word vectors from {path}: {error}.") from error
    if not found:
        raise TextError(f"{path} has no vector for any of the {len(words)} words.")
    sizes = {len(vector) for vector in found.values()}
    if len(sizes) > 1:
        raise TextError(f"{path} has vectors of different lengths: {sorted(sizes)}.")
    vectors = np.full((len(words), sizes.pop()), np.nan, np.float32)
    for number, vector in found.items():
        vectors[number] = vector
    return vectors
