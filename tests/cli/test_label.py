"""``aloof label``, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner, Result

import aloof as package
from aloof.cli.app import app
from aloof.feedback.store import AnswerStore


def aloof(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("label")
    amounts = [float(10 + (7 * n) % 13) for n in range(200)]
    table = pa.table({"payment": [f"p{n}" for n in range(200)], "amount": amounts})
    pa_csv.write_csv(table, folder / "train.csv")
    for name, options in (("model", {"id": "payment"}), ("plain", {"drop": ("payment",)})):
        quick = {"method": "vae", "members": 1, "max_epochs": 1, "calibration": 0.0}
        model = package.fit(folder / "train.csv", **quick, **options)
        model.save(folder / name)
    return folder


@pytest.fixture
def here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("model", "plain"):
        (tmp_path / name).mkdir()
        for file in (folder / name).iterdir():
            (tmp_path / name / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALOOF_STORE", raising=False)
    return tmp_path


def test_answers_are_kept_by_id_and_come_back(here: Path) -> None:
    Path("answers.csv").write_text(
        "payment,answer,note\np3,1,odd\np4,no,\np5,unsure,\np6,,\np7,Anomaly,\n"
    )
    done = aloof("label", "model", "answers.csv", "--by", "eve", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["n_given"], found["n_anomaly"], found["n_normal"], found["n_unsure"]) == (
        *(4, 2),
        *(1, 1),
    )
    assert aloof("label", "model", "--export", "out.csv").exit_code == 0
    out = pa_csv.read_csv("out.csv").to_pylist()
    assert [(row["payment"], row["label"], row["answer"]) for row in out] == [
        ("p3", 1, "anomaly"),
        ("p4", 0, "normal"),
        ("p5", None, "unsure"),
        ("p7", 1, "anomaly"),
    ]
    assert {row["by"] for row in out} == {"eve"}
    assert out[0]["note"] == "odd"


def test_a_list_of_ids_needs_answers(here: Path) -> None:
    Path("list.csv").write_text("payment,remark\np3,confirmed\n")
    done = aloof("label", "model", "list.csv")
    assert done.exit_code == 2
    assert "list.csv has no column of answers. Add a column 'answer' with 1" in done.stderr


def test_conflicts_are_said_and_an_undo_ends_them(here: Path) -> None:
    Path("eve.csv").write_text("payment,answer\np3,1\np4,1\n")
    Path("bob.csv").write_text("payment,answer\np3,0\n")
    aloof("label", "model", "eve.csv", "--by", "eve")
    done = aloof("label", "model", "bob.csv", "--by", "bob")
    assert "row p3 is in conflict (eve: anomaly, bob: normal)" in done.stderr
    done = aloof("label", "model", "bob.csv", "--by", "bob", "--undo")
    assert "Took back 1 answer of bob" in done.stdout
    assert not done.stderr
    assert (
        "Took back 2 answers of eve" in aloof("label", "model", "--undo", "--by", "eve").stdout
    )
    assert "Took back 0 answers" in aloof("label", "model", "--undo", "--by", "eve").stdout
    done = aloof("label", "model", "--export", "all.csv", "--history", "--json")
    assert json.loads(done.stdout)["n_rows"] == 0
    said = pa_csv.read_csv("all.csv").to_pylist()
    assert [row["what"] for row in said] == ["answer"] * 3 + ["undo"] * 3


def test_a_table_with_all_columns_has_its_rows_kept(here: Path) -> None:
    Path("answers.csv").write_text("payment,amount,fraud\nx1,99.5,1\n")
    done = aloof("label", "model", "answers.csv", "--label", "fraud")
    assert done.exit_code == 0, done.stderr
    with AnswerStore.of("model") as store:
        (event,) = store.events()
    assert event.values == {"amount": "99.5"}


def test_without_ids_rows_are_numbered_in_a_file(here: Path) -> None:
    Path("answers.csv").write_text("row,answer\n3,1\n")
    arguments = ("label", "plain", "answers.csv", "--source", "data/new.csv")
    assert aloof(*arguments).exit_code == 0
    with AnswerStore.of("plain") as store:
        assert list(store.standings()) == [("new.csv", "3")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("payment,answer\np3,perhaps\n", "'perhaps' in column 'answer' cannot be read"),
        ("payment,answer\n,1\n", "has an answer and no 'payment'"),
        ("id,answer\np3,1\n", "There is no column 'payment'"),
        ("payment,verdict\np3,1\n", "no column of answers"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_kept(
    content: str, words: str, here: Path
) -> None:
    Path("answers.csv").write_text("payment,answer\np1,1\n" + content)
    if not content.startswith("payment,answer"):
        Path("answers.csv").write_text(content)
    else:
        Path("answers.csv").write_text(content.replace("\n", "\np1,1\n", 1))
    done = aloof("label", "model", "answers.csv")
    assert done.exit_code == 2
    assert words in done.stderr
    with AnswerStore.of("model") as store:
        assert store.events() == []


def test_history_needs_a_file(here: Path) -> None:
    done = aloof("label", "model", "--history")
    assert done.exit_code == 2
    assert "--export" in done.stderr


def test_an_export_can_be_given_to_another_store(here: Path) -> None:
    Path("eve.csv").write_text("payment,answer,note\np3,1,odd\np4,unsure,\np5,0,\n")
    Path("bob.csv").write_text("payment,answer\np5,1\n")
    aloof("label", "model", "eve.csv", "--by", "eve")
    aloof("label", "model", "bob.csv", "--by", "bob")
    assert aloof("label", "model", "--export", "out.csv").exit_code == 0
    done = aloof("label", "model", "out.csv", "--store", "other.sqlite", "--json")
    found = json.loads(done.stdout)
    assert (found["n_anomaly"], found["n_normal"], found["n_unsure"]) == (1, 0, 1)
    assert found["store"] == "other.sqlite"


def test_who_answers_must_be_known(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise OSError("no such user")

    monkeypatch.setattr("getpass.getuser", nobody)
    done = aloof("label", "model")
    assert done.exit_code == 2
    assert "--by NAME" in done.stderr
