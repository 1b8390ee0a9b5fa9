"""The loop on images: answers join by folder and file, refits learn, drift is seen."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import aloof as package
from aloof.cli.app import app
from aloof.exceptions import AnswerError
from aloof.feedback import Answer
from aloof.feedback.answer import standings
from aloof.feedback.refitting import refit
from aloof.feedback.versions import present_version
from aloof.models.images import ImageModel
from aloof.models.images.changes import find_image_changes

image = pytest.importorskip("PIL.Image")
pytestmark = [
    pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning"),
    pytest.mark.filterwarnings("ignore::aloof.exceptions.LabelWarning"),
]


def written(folder: Path, n: int, seed: int, *, light: int = 100, spots: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for k in range(n):
        pixels = rng.integers(light, light + 20, (16, 16)).astype(np.uint8)
        if k < spots:
            pixels[4:9, 4:9] = 255
        image.fromarray(pixels).save(folder / f"{k:03d}.png")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    written(folder / "train", 120, 0)
    written(folder / "new", 40, 1, spots=4)
    written(folder / "dark", 40, 2, light=40)
    quick = {"members": 1, "max_epochs": 3, "size": 16, "filters": (4, 8), "hidden": (16,)}
    with warnings.catch_warnings(action="ignore"):  # they are few, and without labels
        model = package.fit(str(folder / "train"), latent_dim=4, **quick)
    model.save(folder / "model")
    return folder


def loaded(made: Path) -> ImageModel:
    model = package.load(made / "model")
    assert isinstance(model, ImageModel)
    return model


def answers(*given: tuple[str, str, int]) -> list[Answer]:
    return [
        Answer(row=row, source=source, label=label, by="eve", number=number)
        for number, (source, row, label) in enumerate(given, 1)
    ]


def test_answers_about_reviewed_images_are_learned_from_where_they_are(made: Path) -> None:
    model = loaded(made)
    given = [("new", f"{k:03d}.png", 1) for k in range(3)] + [("new", "020.png", 0)]
    done = refit(model, standings(answers(*given)), compare=str(made / "new"))
    assert (done.n_anomalies, done.n_normal, done.n_elsewhere, done.n_lost) == (3, 1, 4, 0)
    assert isinstance(done.model, ImageModel)
    assert done.model.training["n_anomalies"] == 3
    assert done.comparison.alerts is not None
    assert done.comparison.alerts.n_rows == 40
    words = " ".join(done.lines())
    assert "nobody can say yet" in words
    old, new = (each.anomaly_score(str(made / "new")) for each in (model, done.model))
    assert new[3] - new[4:].mean() != old[3] - old[4:].mean()
    assert model.training.get("refit") is None


def test_files_of_the_same_name_in_two_folders_are_not_one(made: Path) -> None:
    model = loaded(made)
    done = refit(model, standings(answers(("new", "000.png", 1), ("train", "001.png", 0))))
    assert (done.n_anomalies, done.n_normal + done.n_calibration) == (0, 1)
    assert done.n_lost == 1
    with pytest.raises(AnswerError, match="no answers"):
        refit(model, {})


def test_the_commands_refit_and_test_for_drift(made: Path, tmp_path: Path) -> None:
    run = CliRunner()
    model = str(made / "model")
    (tmp_path / "answers.csv").write_text("file,answer\n000.png,1\n030.png,0\n")
    given = ["label", model, str(tmp_path / "answers.csv"), "--by", "eve", "--source", "new"]
    done = run.invoke(app, given)
    assert done.exit_code == 0, done.output
    done = run.invoke(app, ["refit", model, "--compare", str(made / "new"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["n_anomalies"] == 1
    assert present_version(model) == 2
    done = run.invoke(app, ["drift", model, str(made / "dark")])
    assert "darker than in training" in done.stdout
    assert "(brightness)  CHANGED" in done.stdout
    assert "aloof calibrate" in done.stdout


def test_images_of_the_same_source_have_not_changed(made: Path, tmp_path: Path) -> None:
    model = loaded(made)
    same = find_image_changes(model, str(written(tmp_path / "same", 60, 3)))
    assert [change.name for change in same] == ["(brightness)", "(codes)", "(score)"]
    assert not any(change.has_changed for change in same)
    other = find_image_changes(model, str(made / "dark"))
    assert other[0].has_changed
