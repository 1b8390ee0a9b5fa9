from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import parts
from typer.testing import CliRunner, Result

import aloof
from aloof.cli.app import app
from aloof.models.images import fit_images
from aloof.models.table import fit

pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")

TINY: dict[str, Any] = {"members": 1, "max_epochs": 1, "hidden": (4,), "latent_dim": 2}


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def rows(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "amount|net": rng.normal(size=n),
        "city": rng.choice(["Oslo", "Bern"], n),
        "code": [f"x{seed}-{i * 7919 % 999_983}" for i in range(n)],
        "fraud": np.arange(n) < 7,
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("card")
    fit(rows(200, 0), label="fraud", drop=("code",), method="dp", **TINY).save(home / "model")
    return home


@pytest.fixture
def test_csv(home: Path) -> Path:
    found, path = rows(50, 1), home / "test.csv"
    lines = zip(*found.values(), strict=True)
    text = "\n".join([",".join(found), *(",".join(map(str, line)) for line in lines)])
    path.write_text(text + "\n")
    return path


def test_what_nobody_knows_is_said_to_be_unknown(home: Path) -> None:
    done = run("card", home / "model")
    assert done.exit_code == 0, done.output
    text = done.stdout
    for heading in ("Intended use", "How good it is", "Licence"):
        assert f"## {heading}\n\nUnknown." in text
    assert "When it was trained: unknown." in text
    assert not re.search(r"^(license|model-index):", text, re.MULTILINE)


def test_the_card_says_what_the_model_knows(home: Path) -> None:
    text = run("card", home / "model").stdout
    model = aloof.load(home / "model")
    assert isinstance(model, aloof.TableModel)
    for term, words in model.facts():
        assert f"| {term} | {words} |" in text
    assert "| amount\\|net | number |" in text
    assert "7 labelled anomalies" in text
    assert "`code` (dropped on request)" in text
    for line in model.describe()["again"]:
        assert line in text
    for name in ("manifest.json", "model.safetensors"):
        digest = hashlib.sha256((home / "model" / name).read_bytes()).hexdigest()
        assert f"| {name} | {digest} |" in text
    scores = model.detector.calibration_scores_
    assert scores is not None
    assert f"P-values come from {len(scores)} rows" in text


def test_figures_with_their_date(home: Path, test_csv: Path, tmp_path: Path) -> None:
    figures, out = tmp_path / "figures.json", tmp_path / "CARD.md"
    printed = run("evaluate", home / "model", test_csv, "--json").stdout
    figures.write_text(printed)
    found = json.loads(printed)
    words = ("--license", "apache-2.0", "--use", "Tests.", "--name", 'a "name": b')
    done = run("card", home / "model", "--figures", figures, "--out", out, *words)
    assert done.exit_code == 0, done.output
    text = out.read_text()
    assert f"| {test_csv} | {found['date']} | 7 of 50 | {found['auroc']:.1%} |" in text
    yaml = pytest.importorskip("yaml")
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["license"] == "apache-2.0"
    (index,) = front["model-index"]
    assert index["name"] == 'a "name": b'
    (auroc,) = [m for m in index["results"][0]["metrics"] if m["type"] == "auroc"]
    assert auroc["value"] == pytest.approx(found["auroc"], abs=1e-4)
    again = run("card", home / "model", "--out", out)
    assert again.exit_code == 2
    assert "--force" in again.stderr


def test_figures_of_another_model_are_refused(
    home: Path, test_csv: Path, tmp_path: Path
) -> None:
    fit(rows(200, 5), label="fraud", drop=("code",), method="dp", **TINY).save(
        tmp_path / "other"
    )
    figures = tmp_path / "figures.json"
    figures.write_text(run("evaluate", tmp_path / "other", test_csv, "--json").stdout)
    assert run("card", tmp_path / "other", "--figures", figures).exit_code == 0
    done = run("card", home / "model", "--figures", figures)
    assert done.exit_code == 2
    assert "another model" in done.stderr
    run("threshold", tmp_path / "other", "--share", "0.2")  # the same model
    assert run("card", tmp_path / "other", "--figures", figures).exit_code == 0
    figures.write_text("{}")
    done = run("card", home / "model", "--figures", figures)
    assert "aloof evaluate MODEL DATA --json" in done.stderr


def test_every_kind_of_model_has_a_card(tmp_path: Path) -> None:
    parts(tmp_path / "parts", good=8, bad=0)
    fit_images(tmp_path / "parts", method="vae", **TINY).save(tmp_path / "images")
    X = np.random.default_rng(0).normal(size=(40, 2))
    aloof.VAE(n_members=1, max_epochs=1).fit(X).save(tmp_path / "array")
    for name, words in (("images", "`aloof score` say where"), ("array", "What labels")):
        done = run("card", tmp_path / name)
        assert done.exit_code == 0, done.output
        assert words in done.stdout
    done = run("card", tmp_path / "array", "--out", tmp_path / "array" / "README.md")
    assert "inside the model" in done.stderr
