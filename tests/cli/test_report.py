"""``aloof report`` as a user would type it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner, Result

from aloof import VAE
from aloof.cli.app import app
from aloof.models.table import fit


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and a table."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "load": rng.normal(size=700),
            "site": rng.choice(["north", "south"], 700).tolist(),
            "broken": ["yes" if i % 50 == 0 else "" for i in range(700)],
        }
    )
    pa_csv.write_csv(table, folder / "new.csv")
    tiny = {"members": 1, "max_epochs": 2, "hidden": (4,), "latent_dim": 2}
    model = fit(table, label="broken", method="dp", **tiny)
    model.save(folder / "model")
    return folder


def test_a_page_is_written(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    result = run(folder / "model", folder / "new.csv", "--out", out, "--top", 3)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out)
    text = out.read_text()
    assert text.count('<td class="n rank">') == 3
    assert "700" in text
    result = run(folder / "model", folder / "new.csv", "--out", out, "--force", "--json")
    assert json.loads(result.stdout) == {"report": str(out)}


def test_a_page_that_exists_is_left_alone(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("mine")
    result = run(folder / "model", folder / "new.csv", "--out", out)
    assert result.exit_code == 2
    assert "exists" in result.stderr
    assert "--force" in result.stderr
    assert out.read_text() == "mine"


def test_bad_input_is_one_line_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    VAE(n_members=1, max_epochs=1, random_state=0).fit(np.zeros((9, 2))).save(
        tmp_path / "array"
    )
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("load,site\n")
    (tmp_path / "other.csv").write_text("load,sight\n1,north\n")
    (tmp_path / "labels.csv").write_text("load,site,broken\n1,north,maybe\n")
    model, data, out = folder / "model", folder / "new.csv", tmp_path / "r.html"
    before = sorted(tmp_path.iterdir())
    for words, reason in (
        ((folder, data), "is not an aloof model"),
        ((tmp_path / "array", data), "not for tables"),
        ((model, tmp_path / "empty.csv"), "is empty"),
        ((model, tmp_path / "header.csv"), "no rows"),
        ((model, tmp_path / "other.csv"), "no column 'site'"),
        ((model, tmp_path / "labels.csv"), "'maybe'"),
        ((model, tmp_path / "none.csv"), "There is no file"),
        ((model, data, "--label", "brocken"), "Did you mean 'broken'"),
    ):
        result = run(*words, "--out", out)
        assert result.exit_code == 2, (reason, result.output)
        (line,) = result.stderr.splitlines()
        assert line.startswith("aloof: ")
        assert reason.lower() in line.lower(), line
        assert sorted(tmp_path.iterdir()) == before


def test_help_teaches_with_an_example() -> None:
    assert "aloof report model new.parquet --out report.html" in " ".join(
        run("--help").output.replace("│", " ").split()
    )
