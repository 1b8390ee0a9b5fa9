from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from aloof.datasets import PublicTable, list_datasets, load_dataset
from aloof.exceptions import DatasetError

ROWS = np.arange(36.0).reshape(12, 3) / 7
LABELS = np.array([0] * 9 + [1] * 3)
REAL = Path(os.environ.get("ALOOF_DATA") or Path(__file__).parents[3] / "shared" / "data")


def save(path: Path, **variables) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, variables)
    return path


@pytest.fixture
def file(local) -> Path:
    return local(b"")


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8, np.int16])
@pytest.mark.parametrize("label_shape", [(12, 1), (1, 12)])
def test_rows_and_labels_come_as_float64_and_int64(file, kind, label_shape) -> None:
    rows = (ROWS * 7).astype(kind)
    save(file, X=rows, y=LABELS.reshape(label_shape).astype(kind))
    table = load_dataset("tiny")
    assert table.X.dtype == np.float64
    assert table.y.dtype == np.int64
    assert table.X.flags.c_contiguous
    np.testing.assert_array_equal(table.X, rows)
    np.testing.assert_array_equal(table.y, LABELS)
    assert table.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert table.path == file


def test_a_file_of_the_user_is_accepted_by_content_and_that_is_said(
    local, content, caplog
) -> None:
    save(local(b""), X=ROWS + 1, y=LABELS)
    with caplog.at_level(logging.WARNING):
        assert not load_dataset("tiny").known
    assert "values were not checked" in caplog.text
    caplog.clear()
    local(content)
    assert load_dataset("tiny").known
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": ROWS}, "has no variable y"),
        ({"y": LABELS}, "has no variable X"),
        ({"Z": ROWS}, "has no variable X and no y"),
        ({"X": ROWS, "y": LABELS[:-1]}, "12 rows in X but 11 labels in y"),
        ({"X": ROWS, "y": LABELS.reshape(4, 3)}, "one row or column"),
        ({"X": ROWS, "y": LABELS * 2}, r"must hold only 1 \(anomaly\) and 0"),
        (
            {"X": ROWS, "y": np.where(LABELS, 1.0, np.nan)},
            r"must hold only 1 \(anomaly\) and 0",
        ),
        ({"X": ROWS, "y": "yes"}, "one row or column of numbers"),
        ({"X": ROWS.reshape(12, 3, 1).repeat(2, 2), "y": LABELS}, "must be a matrix"),
        ({"X": ROWS.astype(object), "y": LABELS}, "must be a matrix of numbers"),
        ({"X": np.where(ROWS > 4, np.inf, ROWS), "y": LABELS}, "missing or infinite"),
        (
            {"X": ROWS[:, :2], "y": LABELS},
            "12 rows x 2 columns with 3 anomalies, but should hold 12 rows x 3 columns",
        ),
        ({"X": ROWS[1:], "y": LABELS[1:]}, "is not tiny: it holds 11 rows"),
        ({"X": ROWS, "y": 1 - LABELS}, "with 9 anomalies, but should hold .* with 3"),
    ],
)
def test_a_file_with_something_else_is_refused(file, variables, message) -> None:
    save(file, **variables)
    with pytest.raises(DatasetError, match=message) as caught:
        load_dataset("tiny")
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("length", [0, 60, 200, 300])
def test_a_file_that_breaks_off_is_refused(local, content, length) -> None:
    assert length < len(content)
    local(content[:length])
    with pytest.raises(DatasetError, match=r"tiny\.mat"):
        load_dataset("tiny")


def test_a_file_that_is_not_matlab_is_refused(local) -> None:
    local(b"<!DOCTYPE html>" * 40)
    with pytest.raises(DatasetError, match=r"Cannot read .* as a MATLAB file"):
        load_dataset("tiny")


def test_every_flipped_byte_is_an_error_or_the_same_size(local, content) -> None:
    """A damaged file never ends in an error of another library."""
    for position in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        local(bytes(damaged))
        try:
            table = load_dataset("tiny")
        except DatasetError:
            continue
        assert table.X.shape == (12, 3)
        assert not table.known


def test_matlab_7_3_is_named(local) -> None:
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    local(header + b"\x89HDF\r\n\x1a\n" + bytes(512))
    with pytest.raises(DatasetError, match=r"MATLAB 7\.3 \(HDF5\).*-v7"):
        load_dataset("tiny")


@pytest.mark.skipif(
    not (REAL / "odds").is_dir(), reason="no folder with real data; ALOOF_DATA can name one"
)
@pytest.mark.parametrize("entry", list_datasets(PublicTable), ids=lambda entry: entry.name)
def test_the_real_files_are_what_the_registry_says(entry, monkeypatch) -> None:
    monkeypatch.setenv("ALOOF_DATA", str(REAL))
    table = load_dataset(entry.name)
    assert table.X.shape == (entry.n_rows, entry.n_columns)
    assert int(table.y.sum()) == entry.n_anomalies
    assert table.known
    assert np.ptp(table.X, axis=0).max() > 0
