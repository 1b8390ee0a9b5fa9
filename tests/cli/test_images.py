"""The commands for images, as a user types them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.csv as pa_csv
import pytest
from pictures import disc, encoded, parts
from PIL import Image
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner, Result

from aloof.cli.app import app

SHORT = ["--members", "1", "--epochs", "3"]


def aloof(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def refused(done: Result, *words: str) -> None:
    """Check that a command ended with one line that says these things, and code 2."""
    assert done.exit_code == 2, done.output
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning")]
    assert len(lines) == 1, done.stderr
    for part in words:
        assert part in lines[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad parts, new ones with what may go wrong, and a model of the first."""
    folder = tmp_path_factory.mktemp("images")
    parts(folder / "parts", good=100, bad=8)
    parts(folder / "new", good=16, bad=6, seed=1)
    rng = np.random.default_rng(2)
    (folder / "new" / "cut.jpg").write_bytes(encoded(disc(rng, 64), "JPEG")[:-100])
    (folder / "new" / "text.png").write_text("no picture")
    (folder / "new" / "notes.txt").write_text("beside the images")
    done = aloof(
        "fit",
        *("--normal", str(folder / "parts" / "good")),
        *("--anomaly", str(folder / "parts" / "bad")),
        *("--size", "16", "--members", "2", "--epochs", "20"),
        *("--out", str(folder / "model")),
    )
    assert done.exit_code == 0, done.stderr
    assert "Learned from 80 images and 8 labelled anomalies, 16 x 16 pixels" in done.stdout
    assert not list(folder.glob(".model*"))  # the checkpoint is gone
    return folder


@pytest.fixture
def here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with the same files, which the commands run in."""
    for name in ("parts", "new", "model"):
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_scored_and_bad_files_are_named(here: Path) -> None:
    done = aloof("score", "model", "new", "--out", "scores.csv")
    assert done.exit_code == 0, done.stderr
    assert "Scored 22 images" in done.stdout
    assert "2 files skipped" in done.stdout
    assert "warning: skipped: cut.jpg is cut off or damaged" in done.stderr
    assert "warning: skipped: text.png is not an image" in done.stderr
    table = pa_csv.read_csv(here / "scores.csv")
    assert table.column_names == ["file", "anomaly_score", "p_value", "is_anomaly"]
    names = table["file"].to_pylist()
    assert names == sorted(names)
    bad = [name.startswith("bad/") for name in names]
    assert roc_auc_score(bad, table["anomaly_score"].to_numpy()) > 0.9


def test_an_archive_scores_as_its_folder_does(here: Path) -> None:
    with zipfile.ZipFile(here / "new.zip", "w") as file:
        for path in sorted((here / "new").rglob("*.png")):
            file.write(path, path.relative_to(here / "new"))
        file.writestr("../evil.png", (here / "new" / "bad" / "000.png").read_bytes())
    assert aloof("score", "model", "new", "--out", "folder.csv").exit_code == 0
    done = aloof("score", "model", "new.zip", "--out", "archive.csv", "--json")
    assert (here / "folder.csv").read_bytes() == (here / "archive.csv").read_bytes()
    found = json.loads(done.stdout)
    assert found["n_images"] == 22
    assert {"file": "../evil.png", "reason": "has a name that leads outside the archive"} in (
        found["skipped"]
    )
    assert not (here.parent / "evil.png").exists()


def test_one_file_is_scored(here: Path) -> None:
    done = aloof("score", "model", "new/bad/001.png", "--out", "-")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith('"001.png",')


def test_info_and_threshold(here: Path, tmp_path: Path) -> None:
    shown = aloof("info", "model").stdout
    assert "100 images" not in shown
    for part in ("108 images", "8 anomalies, 100 normal", "20 images held out"):
        assert part in shown
    assert "16 x 16 pixels, in colour" in shown
    assert json.loads(aloof("info", "model", "--json").stdout)["shape"] == [3, 16, 16]
    (here / "model").unlink()
    (here / "copy").mkdir()
    folder = aloof("fit", "parts", "--anomaly", "bad", *SHORT, "--out", "mine")
    assert folder.exit_code == 0, folder.stderr
    done = aloof("threshold", "mine", "--share", "0.25", "--json")
    assert json.loads(done.stdout)["rule"] == {"share": 0.25}
    assert json.loads(aloof("info", "mine", "--json").stdout)["threshold"]["rule"] == {
        "share": 0.25
    }


def test_explain_lists_and_draws(here: Path) -> None:
    done = aloof("explain", "model", "new", "--top", "3", "--out", "strange.png")
    assert done.exit_code == 0, done.stderr
    assert "The 3 most anomalous of 22 images" in done.stdout
    with Image.open(here / "strange.png") as picture:
        width, height = picture.size
    assert (width, height) == (3 * 192 + 2 * 4, 3 * 192 + 2 * 4)
    rows = json.loads(aloof("explain", "model", "new", "--json").stdout)["images"]
    scores = [row["anomaly_score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    refused(aloof("explain", "model", "new", "--out", "x.jpg"), "PNG file", "x.png")


def test_report(here: Path) -> None:
    done = aloof("report", "model", "new", "--top", "4", "--out", "report.html")
    assert done.exit_code == 0, done.stderr
    page = (here / "report.html").read_text()
    assert page.count('<li class="card">') == 4
    assert "cut.jpg" in page
    refused(aloof("report", "model", "new", "--out", "report.html"), "exists")


def test_labels_come_from_a_table(here: Path) -> None:
    lines = [f"bad\\{i:03}.png,defect" for i in range(4)]
    lines += [f"good/{i:03}.png,fine" for i in range(20)]
    (here / "labels.csv").write_text("\n".join(["picture,state", *lines]))
    refused(
        aloof("fit", "parts", "--labels", "labels.csv", *SHORT, "--out", "m"),
        "Cannot read the labels in column 'state'",
    )
    done = aloof(
        "fit",
        "parts",
        *("--labels", "labels.csv", "--anomaly-value", "defect"),
        *SHORT,
        *("--out", "m", "--json"),
    )
    assert done.exit_code == 0, done.stderr
    training = json.loads(done.stdout)["training"]
    assert training["n_anomalies"] == 4
    assert training["n_labelled_normal"] == 20
    assert training["n_unlabelled"] == 84


def test_a_table_of_labels_must_be_clear(here: Path) -> None:
    (here / "three.csv").write_text("file,a,b\ngood/000.png,0,1\n")
    (here / "other.csv").write_text("file,label\nx.png,0\n")
    common = ("--out", "m", *SHORT)
    refused(aloof("fit", "parts", "--labels", "three.csv", *common), "a, b", "--label COLUMN")
    refused(aloof("fit", "parts", "--labels", "other.csv", *common), "--id COLUMN")
    refused(aloof("fit", "--labels", "other.csv", *common), "Name the folder")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["parts", "--kind", "a=number"], "--kind cannot be used with images"),
        (["parts", "--drop", "a"], "--drop cannot be used with images"),
        (["parts", "--id", "a"], "--id needs --labels FILE"),
        (["parts", "--max-rows", "10"], "--max-rows cannot be used with images"),
        (["table.csv", "--size", "8"], "--size cannot be used with a table"),
        (["table.csv", "--normal", "parts"], "--normal cannot be used with a table"),
        (["table.csv", "--labels", "l.csv"], "--label COLUMN. If you have a list of ids"),
        (["--normal", "empty"], "empty holds no images"),
        (["--normal", "one"], "got 1 image."),
        (["--normal", "nowhere"], "There is no folder or file 'nowhere'"),
        (["--anomaly", "parts/bad"], "There are no images"),
        (["parts", "--normal", "fine"], "no images in a folder 'fine'"),
        ([], "Nothing to learn from"),
    ],
)
def test_bad_usage_is_one_line(here: Path, arguments: list[str], words: str) -> None:
    (here / "table.csv").write_text("a,b\n1,2\n")
    (here / "empty").mkdir()
    parts(here / "one", good=1, bad=0)
    refused(aloof("fit", *arguments, "--out", "m"), words)
    assert not (here / "m").exists()


def test_a_folder_of_tables_is_still_a_table(here: Path) -> None:
    (here / "tables").mkdir()
    rng = np.random.default_rng(0)
    for part in range(2):
        lines = [",".join(f"{value:.3f}" for value in row) for row in rng.normal(size=(40, 2))]
        (here / "tables" / f"{part}.csv").write_text("\n".join(["a,b", *lines]))
    done = aloof("fit", "tables", "--out", "m", "--method", "vae", *SHORT)
    assert done.exit_code == 0, done.stderr
    assert "in 2 columns" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["score", "model", "new", "--out", "s.csv", "--keep", "a"], "--keep cannot be used"),
        (["score", "model", "new", "--out", "s.csv", "--resume"], "--resume cannot be used"),
        (
            ["report", "model", "new", "--out", "r.html", "--label", "a"],
            "--label needs --labels FILE",
        ),
        (["score", "model", "new", "--out", "s.csv", "--reasons", "3"], "--reasons cannot be"),
        (["evaluate", "model", "new"], "Say which images are anomalies"),
        (["evaluate", "model", "new", "--anomaly", "bad"], "no images labelled as normal"),
        (["score", "model", "nowhere", "--out", "s.csv"], "no folder or file 'nowhere'"),
    ],
)
def test_what_only_tables_have_is_refused(here: Path, arguments: list[str], words: str) -> None:
    refused(aloof(*arguments), words)


def test_labels_are_compared_with(here: Path) -> None:
    folders = ("--normal", "good", "--anomaly", "bad")
    done = aloof("evaluate", "model", "new", *folders)
    assert done.exit_code == 0, done.stderr
    assert "22 images: 6 anomalies, 16 normal" in done.stdout
    found = json.loads(aloof("evaluate", "model", "new", *folders, "--json").stdout)
    assert found["auroc"] > 0.9
    lines = [f"bad/{i:03}.png;1" for i in range(6)] + [f"good/{i:03}.png;0" for i in range(16)]
    (here / "labels.csv").write_text("\n".join(["file;defect", *lines]))
    table = ("--labels", "labels.csv", "--delimiter", ";")
    again = json.loads(aloof("evaluate", "model", "new", *table, "--json").stdout)
    assert again == found
    done = aloof("report", "model", "new", *table, "--out", "report.html")
    assert done.exit_code == 0, done.stderr
    page = (here / "report.html").read_text()
    assert "Against the labels" in page
    assert "6 labelled anomalies, 16 labelled normal" in page
    assert f"ROC curve is {100 * found['auroc']:.1f}".rstrip("0").rstrip(".") in page
    assert "aloof report MODEL new --labels labels.csv --delimiter" in page
    refused(
        aloof("evaluate", "model", "new", *folders, *table),
        "Give either labels, or the folders",
    )


def test_calibration_with_new_images(here: Path) -> None:
    (here / "model").unlink()
    done = aloof("fit", "parts", "--anomaly", "bad", *SHORT, "--out", "model")
    assert done.exit_code == 0, done.stderr
    done = aloof("calibrate", "model", "new", "--anomaly", "bad")
    assert done.exit_code == 0, done.stderr
    assert "calibrated with 16 images" in done.stdout
    assert "16 images scored" in aloof("info", "model").stdout


def test_the_strangest_are_written(here: Path) -> None:
    plain = aloof("score", "model", "new", "--out", "all.csv")
    assert plain.exit_code == 0, plain.stderr
    whole = pa_csv.read_csv(here / "all.csv").to_pylist()
    highest = sorted(whole, key=lambda row: -row["anomaly_score"])[:4]
    chosen = ("--top", "4", "--flagged-only", "--sort", "--keep-all")
    done = aloof("score", "model", "new", *chosen, "--out", "worst.csv")
    assert done.exit_code == 0, done.stderr
    assert "4 flagged (the 4 highest scores)" in done.stdout
    worst = pa_csv.read_csv(here / "worst.csv").to_pylist()
    assert [row["file"] for row in worst] == [row["file"] for row in highest]
    assert all(row["is_anomaly"] for row in worst)
    assert [row["folder"] for row in worst] == [row["file"].split("/")[0] for row in worst]
    for row in worst:
        with Image.open(here / "new" / row["file"]) as image:
            assert (row["width"], row["height"]) == image.size
            assert row["grey"] is False
            light = np.asarray(image).mean()
        assert row["brightness"] == pytest.approx(light, abs=1)
    found = json.loads(
        aloof(
            "score", "model", "new", "--flagged-only", "--out", "flagged.csv", "--json"
        ).stdout
    )
    flagged = pa_csv.read_csv(here / "flagged.csv").to_pylist()
    assert flagged == [row for row in whole if row["is_anomaly"]]
    assert found["n_images"] == 22
    assert found["n_anomalies"] == len(flagged)
    refused(aloof("score", "model", "new", "--keep", "x", "--out", "x.csv"), "--keep cannot")


def test_one_picture_is_explained_by_its_path(here: Path) -> None:
    for name in ("bad/003.png", "new/bad/003.png", str(here / "new" / "bad" / "003.png")):
        done = aloof("explain", "model", "new", "--id", name, "--json")
        assert done.exit_code == 0, done.stderr
        assert [row["file"] for row in json.loads(done.stdout)["images"]] == ["bad/003.png"]
    done = aloof("explain", "model", "new", "--id", "014.png", "--row", "1", "--out", "two.png")
    assert done.stdout.startswith("2 of 22 images:")
    assert [line.split()[1] for line in done.stdout.splitlines()[1:3]] == [
        "bad/000.png",
        "good/014.png",
    ]
    with Image.open(here / "two.png") as picture:
        assert picture.size[1] > 2 * 16
    for name, words in (
        ("003.png", "can be bad/003.png, good/003.png"),
        ("014.pgn", "did you"),
    ):
        refused(aloof("explain", "model", "new", "--id", name), words)
    refused(aloof("explain", "model", "new", "--row", "23"), "there are 22 images")
    refused(
        aloof("explain", "model", "new", "--line", "3"), "--line cannot be used with images"
    )


def test_images_that_look_otherwise_are_told(here: Path) -> None:
    same = aloof("score", "model", "parts/good", "--out", "same.csv", "--json")
    assert json.loads(same.stdout)["drift"] == []
    rng = np.random.default_rng(3)
    for i in range(30):
        dark = Image.fromarray(disc(rng, 48) // 3).convert("L")
        (here / "other").mkdir(exist_ok=True)
        dark.save(here / "other" / f"{i}.png")
    done = aloof("score", "model", "other", "--out", "other.csv")
    assert done.exit_code == 0, done.stderr
    for words in (
        "100 % of the images are of another size than in training, such as 48 x 48 pixels; "
        "most were 16 x 16 pixels",
        "100 % of the images are grey; in training, 0 % were",
        "the images are darker than in training: 2",
        "30 of 30 images are flagged (100 %), but the threshold aims at",
    ):
        assert f"warning: {words}" in done.stderr, done.stderr
    assert "The images do not look like the training images: 4 differences" in done.stdout
    found = json.loads(aloof("score", "model", "other", "--out", "o.csv", "--json").stdout)
    kinds = ["size", "colours", "brightness", "flagged"]
    assert [each["what"] for each in found["drift"]] == kinds
    top = json.loads(
        aloof("score", "model", "other", "--top", "3", "--out", "t.csv", "--json").stdout
    )
    assert [each["what"] for each in top["drift"]] == kinds[:3]
