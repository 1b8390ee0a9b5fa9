from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from pictures import encoded
from typer.testing import CliRunner, Result

from aloof.cli.app import app

NAMES = [
    *("arrhythmia", "cardio", "cats-vs-dogs", "cifar10", "fashion-mnist"),
    *("keel", "mnist", "satellite", "satimage-2", "shuttle", "thyroid"),
]


def data(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["data", *arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for the files: nothing is downloaded."""
    monkeypatch.setenv("ALOOF_DATA", str(tmp_path))
    monkeypatch.setattr("aloof.datasets.keel.find_spec", lambda name: None)  # as if not there
    return tmp_path


def test_list_shows_what_is_here(folder: Path) -> None:
    (folder / "odds").mkdir()
    (folder / "odds" / "cardio.mat").write_bytes(b"")
    entries = json.loads(data("list", "--json").output)
    assert [entry["name"] for entry in entries] == NAMES
    assert [entry["name"] for entry in entries if entry["present"]] == ["cardio"]
    assert entries[1]["n_anomalies"] == 176
    shown = data("list")
    assert shown.exit_code == 0
    for words in (*NAMES, "(9.6%)", "60000"):
        assert words in shown.output


def test_path_gets_nothing(folder: Path) -> None:
    result = data("path", "cardio", "thyroid")
    assert result.exit_code == 0
    assert result.output.split() == [
        str(folder / "odds" / "cardio.mat"),
        str(folder / "odds" / "thyroid.mat"),
    ]
    (entry,) = json.loads(data("path", "cardio", "--json").output)
    assert entry["present"] is False
    assert len(data("path", "all").output.split()) == len(NAMES)
    result = data("path", "mnist", "cifar10")
    assert result.output.split() == [
        str(folder / "mnist"),
        str(folder / "cifar10" / "cifar10.zip"),
    ]


@pytest.mark.parametrize("command", ["get", "path"])
def test_a_wrong_name_is_one_line_with_a_suggestion(command: str) -> None:
    result = data(command, "cardio", "satelite")
    assert result.exit_code == 2
    assert "did you mean 'satellite'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_a_file_that_is_not_there_is_said(folder: Path) -> None:
    result = data("get", "cardio")
    assert result.exit_code == 2
    assert "odds/cardio.mat cannot be read" in result.stderr
    assert "Traceback" not in result.output


def test_images_that_are_not_there_are_said() -> None:
    result = data("get", "mnist")
    assert result.exit_code == 2
    assert "mnist/train-images-idx3-ubyte.gz cannot be read" in result.stderr


def test_a_damaged_file_is_said(folder: Path) -> None:
    (folder / "odds").mkdir()
    (folder / "odds" / "cardio.mat").write_bytes(b"not MATLAB")
    result = data("get", "cardio")
    assert result.exit_code == 2
    assert "as a MATLAB file" in result.stderr


def write_cats(folder: Path) -> None:
    """An archive of CatsVsDogs in which a test image is the mirror image of another."""
    rng = np.random.default_rng(0)
    (folder / "cats-vs-dogs").mkdir()
    with zipfile.ZipFile(folder / "cats-vs-dogs" / "cats-vs-dogs-64.zip", "w") as file:
        for part in ("train", "test"):
            for kind in ("cats", "dogs"):
                for index in range(2):
                    pixels = rng.integers(0, 256, (64, 64, 3), np.uint8)
                    if (part, kind, index) == ("train", "dogs", 1):
                        copied = pixels
                    if (part, kind, index) == ("test", "cats", 0):
                        pixels = copied[:, ::-1]
                    file.writestr(f"{part}/{kind}/{index}.png", encoded(pixels))


def test_duplicates_are_counted_listed_and_drawn(folder: Path) -> None:
    write_cats(folder)
    (found,) = json.loads(data("duplicates", "cats-vs-dogs", "--json").stdout)
    assert found["alike"] == {"train-test": 1, "test": 0, "train": 0}
    assert found["same_pixels"] == {"train-test": 0, "test": 0, "train": 0}
    assert found["largest_auroc_change"] == 0.5  # one of two cats
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"]) == (["train", 3], ["test", 0])
    assert pair["mirrored"]
    assert pair["similarity"] == 1.0
    shown = data("duplicates", "cats-vs-dogs", "--pictures", str(folder / "pairs"))
    assert shown.exit_code == 0
    assert "50.00 points" in " ".join(shown.stdout.split())
    assert (folder / "pairs" / "cats-vs-dogs.png").read_bytes().startswith(b"\x89PNG")


def test_duplicates_of_a_table_are_not_asked_for() -> None:
    result = data("duplicates", "cardio")
    assert result.exit_code == 2
    assert "There is no data set 'cardio'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
