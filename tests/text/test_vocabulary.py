from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from aloof.exceptions import TextError
from aloof.text import MARKS, number_words, read_word_vectors


def test_long_sentences_are_cut_and_closed() -> None:
    words = [*MARKS, "a", "b"]
    tokens = number_words([["a"] * 9, [], ["b", "zzz"]], words, length=3)
    assert tokens.tolist() == [[4, 4, 4, 2], [2, 0, 0, 0], [5, 3, 2, 0]]


@pytest.mark.parametrize("compressed", [False, True])
def test_vectors_are_read_and_lacking_ones_are_nan(tmp_path: Path, compressed: bool) -> None:
    text = "the 0.5 -1\n. 1 1\ngood 2 3e-1\n"
    path = tmp_path / ("v.txt.gz" if compressed else "v.txt")
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    found = read_word_vectors(path, ["good", "odd", "the"])
    np.testing.assert_allclose(found[[0, 2]], [[2, 0.3], [0.5, -1]])
    assert np.isnan(found[1]).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 1 2\nb 1\n", "different lengths"),
        ("x 1 2\n", "no vector for any of"),
        ("a 1 two\n", "Cannot read word vectors"),
    ],
)
def test_files_that_are_no_vectors(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(TextError, match=words):
        read_word_vectors(path, ["a", "b"])
    with pytest.raises(TextError, match="Cannot read word vectors"):
        read_word_vectors(tmp_path / "missing.txt", ["a"])
