"""A data set from outside: one record, for the command and for its loader."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aloof.cli.app import app
from aloof.datasets import (
    DataFile,
    Dataset,
    PublicTable,
    find_dataset,
    load_dataset,
    register,
)
from aloof.datasets.registry import DATASETS
from aloof.exceptions import DatasetError

CONTENT = b"1.5,0\n2.5,0\n99,1\n"


def recipe(url: str) -> None:
    class Pumps(Dataset):
        def load(self) -> tuple[np.ndarray, np.ndarray]:
            (file,) = self.fetch()
            rows = np.loadtxt(file.content.decode().splitlines(), delimiter=",")
            return rows[:, :1], rows[:, 1].astype(int)

        @property
        def content(self) -> str:
            return "3 pumps"

    register(
        Pumps(
            name="pumps",
            title="Pumps",
            home="https://example.org/pumps",
            files=(
                DataFile(
                    path="pumps/pumps.csv",
                    sha256=(hashlib.sha256(CONTENT).hexdigest(),),
                    urls=(url,),
                ),
            ),
            task="pumps that leak are anomalies",
        )
    )


@pytest.fixture(autouse=True)
def datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr("aloof.datasets.registry.DATASETS", dict(DATASETS))


def test_it_takes_at_most_forty_lines() -> None:
    assert len(inspect.getsource(recipe).splitlines()) <= 40


def test_it_is_got_and_read(server, folders: Path) -> None:
    server.files["/pumps.csv"] = CONTENT
    recipe(f"{server.url}/pumps.csv")
    X, y = load_dataset("pumps")
    assert X.ravel().tolist() == [1.5, 2.5, 99]
    assert y.tolist() == [0, 0, 1]
    path = folders / "cache" / "aloof" / "pumps" / "pumps.csv"
    assert find_dataset("pumps").path == path
    assert path.read_bytes() == CONTENT


def test_the_command_knows_it(server, closed_port: str) -> None:
    recipe(f"{closed_port}/pumps.csv")
    listed = CliRunner().invoke(app, ["data", "list"])
    assert "pumps" in listed.output
    assert "3 pumps" in listed.output
    result = CliRunner().invoke(app, ["data", "get", "pumps"])
    assert result.exit_code == 2
    assert "Connection refused" in result.stderr
    server.files["/pumps.csv"] = CONTENT
    recipe(f"{server.url}/pumps.csv")
    result = CliRunner().invoke(app, ["data", "get", "pumps", "--json"])
    (entry,) = json.loads(result.stdout)
    assert entry["present"] is True
    assert entry["task"] == "pumps that leak are anomalies"
    with pytest.raises(DatasetError, match="did you mean 'pumps'"):
        find_dataset("pumsp")


def test_what_is_no_data_set_is_refused() -> None:
    with pytest.raises(TypeError, match="must be an instance of Dataset; got <class"):
        register(PublicTable)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="needs a name and files"):
        register(dataclasses.replace(find_dataset("cardio"), files=()))
