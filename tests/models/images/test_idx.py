from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from aloof.exceptions import ImageError
from aloof.models.images import read_idx

VALUES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
HEADER = bytes([0, 0, 8, 3, *(0, 0, 0, 2), *(0, 0, 0, 3), *(0, 0, 0, 4)])


@pytest.mark.parametrize("compress", [lambda raw: raw, gzip.compress])
def test_values_come_back_in_their_shape(compress, tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(compress(HEADER + VALUES.tobytes()))
    assert np.array_equal(read_idx(path), VALUES)


def test_other_types_are_big_endian(tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(
        bytes([0, 0, 0x0C, 1, 0, 0, 0, 2]) + bytes([0, 0, 1, 0, 255, 255, 255, 255])
    )
    assert read_idx(path).tolist() == [256, -1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not an idx file"),
        (b"PK\3\4 a zip", "not an idx file"),
        (bytes([0, 0, 7, 1]), "not an idx file"),
        (HEADER[:9], "cut off or damaged"),
        (HEADER + bytes(23), "takes 40 bytes"),
        (HEADER + bytes(25), "has 41"),
        (gzip.compress(HEADER + bytes(24), mtime=0)[:-9], "cut off or damaged"),
    ],
)
def test_a_damaged_file_is_said(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(content)
    with pytest.raises(ImageError, match=words):
        read_idx(path)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"Cannot read .*: No such file"):
        read_idx(tmp_path / "nothing")
