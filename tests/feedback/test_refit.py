"""Refits of tables: answers find their rows, versions are whole, and worse is noticed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner, Result

import aloof as package
from aloof.cli.app import app
from aloof.exceptions import AnswerError, ModelError, TableError
from aloof.feedback import Answer
from aloof.feedback.answer import standings
from aloof.feedback.comparison import compare_alerts, compare_held_out
from aloof.feedback.refitting import held_out_by_name, refit
from aloof.feedback.store import AnswerStore
from aloof.feedback.versions import add_version, list_versions, present_version, use_version
from aloof.models.loading import open_model
from aloof.models.table import TableModel

KILLS = int(os.environ.get("ALOOF_KILLS", "4"))
QUICK = {"method": "dp", "members": 1, "max_epochs": 8, "hidden": (16,), "latent_dim": 4}


def aloof(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def rows(n: int, seed: int, prefix: str) -> pa.Table:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    c = a + b + 0.1 * rng.normal(size=n)
    c[: n // 20] += 3  # anomalies
    table = {"id": [f"{prefix}{k}" for k in range(n)], "a": a, "b": b, "c": c}
    return pa.table({**table, "city": rng.choice(["Oslo", "Bern"], n)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refit")
    pa_csv.write_csv(rows(600, 0, "t"), folder / "train.csv")
    pa_csv.write_csv(rows(400, 1, "n"), folder / "new.csv")
    with pytest.warns(UserWarning, match="no labelled anomalies"):
        model = package.fit(str(folder / "train.csv"), id="id", **QUICK)
    model.save(folder / "model")
    return folder


@pytest.fixture
def model(folder: Path) -> TableModel:
    return TableModel.load(folder / "model", device="cpu")


@pytest.fixture
def here(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder / "model", tmp_path / "model")
    return tmp_path


def answered(*given: tuple[str, int], values: bool = False) -> dict:
    row = {"a": 0.1, "b": -0.2, "c": 4.0, "city": "Oslo"}
    return standings(
        Answer(row=name, label=label, by="eve", number=k, values=row if values else None)
        for k, (name, label) in enumerate(given, 1)
    )


def test_answers_are_joined_by_id(model: TableModel, folder: Path) -> None:
    before = model.anomaly_score(folder / "train.csv")
    given = [(f"t{k}", 1) for k in range(10)] + [(f"t{k}", 0) for k in range(500, 505)]
    found = refit(model, answered(*given, ("nobody", 1)), max_epochs=10)
    assert found.n_anomalies == 10
    assert found.n_normal + found.n_calibration == 5
    assert (found.n_lost, found.n_elsewhere, found.n_held_out) == (1, 0, 0)
    assert found.model.training["n_anomalies"] == 10
    after = found.model.anomaly_score(folder / "train.csv")
    assert np.array_equal(model.anomaly_score(folder / "train.csv"), before)  # left alone

    def above(scores: np.ndarray) -> float:  # unlabelled anomalies over normal rows
        return float((scores[10:30, None] > scores[None, 30:500]).mean())

    assert above(after) > above(before)


def test_an_answer_is_about_all_rows_of_its_id(folder: Path, tmp_path: Path) -> None:
    """A row that was exported twice must not be an anomaly once, and normal once."""
    table = rows(600, 0, "t")
    path = tmp_path / "twice.csv"
    pa_csv.write_csv(pa.concat_tables([table, table.slice(0, 3)]), path)
    model = package.fit(str(path), id="id", **{**QUICK, "method": "vae"})
    found = refit(model, answered(("t0", 1), ("t1", 1), ("t2", 0)), max_epochs=1)
    assert (found.n_anomalies, found.n_lost) == (2, 0)
    assert found.n_normal + found.n_calibration == 1
    assert found.model.training["n_anomalies"] == 4


def test_answers_by_other_names_are_said_to_be(model: TableModel) -> None:
    """As spreadsheets do that take 007 for a number."""
    with pytest.raises(AnswerError, match=r"none of 2 answers.*'7'.*like 't0'") as error:
        refit(model, answered(("7", 1), ("8", 1)))
    assert "\n" not in str(error.value)
    assert "Answer by the names in the data." in str(error.value)
    assert "all their columns next to the answers (aloof score --keep-all" in str(error.value)
    found = refit(model, answered(("7", 1), ("t8", 1)), max_epochs=1)
    assert any("1 answer taught nothing" in line and "'7'" in line for line in found.lines())


def test_rows_to_calibrate_with_stay_so(model: TableModel, folder: Path) -> None:
    scores = model.anomaly_score(folder / "train.csv")
    known = set(np.round(model.detector.calibration_scores_, 9))
    held = [k for k in range(600) if round(float(scores[k]), 9) in known]
    assert len(held) == 120
    anomaly, normal = held[0], held[1]
    found = refit(model, answered((f"t{anomaly}", 1), (f"t{normal}", 0)), max_epochs=1)
    now = found.model.anomaly_score(folder / "train.csv")
    expected = np.sort(now[[k for k in held if k != anomaly]])
    assert np.allclose(found.model.detector.calibration_scores_, expected)
    assert found.n_calibration == 1


def test_rows_from_elsewhere_are_learned_from_what_was_kept(model: TableModel) -> None:
    given = [("t1", 1), *((f"x{k}", 0) for k in range(5))]
    with_values = refit(model, answered(*given, values=True), max_epochs=10)
    assert (with_values.n_elsewhere, with_values.n_lost) == (5, 0)
    assert with_values.n_normal == 5
    probe = {"id": ["p"], "a": [0.1], "b": [-0.2], "c": [4.0], "city": ["Oslo"]}
    without = refit(model, answered(("t1", 1)), max_epochs=10)
    scores = [each.model.anomaly_score(probe)[0] for each in (with_values, without)]
    assert scores[0] < 0.8 * scores[1]


def test_the_file_itself_may_hold_the_labels_and_answers_go_before_them(
    folder: Path, tmp_path: Path
) -> None:
    table = rows(600, 0, "t")
    labels = [1 if k < 8 else None for k in range(600)]
    path = tmp_path / "labelled.csv"
    pa_csv.write_csv(table.append_column("fraud", pa.array(labels, pa.int64())), path)
    model = package.fit(str(path), id="id", label="fraud", **QUICK)
    found = refit(model, answered(("t0", 0), ("t20", 1)), max_epochs=1)
    assert found.model.training["n_anomalies"] == 8
    assert found.model.training["n_labelled_normal"] + found.n_calibration == 1


def test_from_20_answers_on_a_fifth_is_held_out_and_the_same_ones_always(
    model: TableModel,
) -> None:
    given = [(f"t{k}", 1) for k in range(20)] + [(f"t{k}", 0) for k in range(300, 320)]
    held = [name for name, _ in given if held_out_by_name(("", name))]
    assert 2 <= len(held) <= 14
    found = refit(model, answered(*given), max_epochs=3)
    assert found.n_held_out == len(held)
    assert found.n_anomalies + found.n_normal + found.n_calibration == 40 - len(held)
    compared = found.comparison.held_out
    assert compared is not None
    assert compared.n_anomalies + compared.n_normal == len(held)
    assert compared.low <= compared.new_auroc - compared.old_auroc <= compared.high


def test_without_ids_rows_are_numbers_in_their_file(folder: Path) -> None:
    plain = package.fit(str(folder / "train.csv"), drop=("id",), **{**QUICK, "method": "vae"})
    events = [
        Answer(row="3", label=0, source="train.csv", number=1),
        Answer(row="3", label=0, source="other.csv", number=2),
    ]
    found = refit(plain, standings(events), max_epochs=1)
    assert found.n_normal + found.n_calibration == 1
    assert found.n_lost == 1


def test_other_data_takes_the_place_of_the_training_table(
    model: TableModel, folder: Path
) -> None:
    model.set_threshold(share=0.05)
    found = refit(model, answered(("n1", 1)), folder / "new.csv", max_epochs=1)
    assert found.model.training["n_training"] + found.model.training["n_calibration"] == 399
    assert found.model.training["n_calibration"] in (79, 80)
    assert found.model.threshold.share == 0.05
    assert found.model.profile != model.profile


def test_what_cannot_be_refitted_is_said(model: TableModel) -> None:
    with pytest.raises(AnswerError, match="no answers"):
        refit(model, answered(("t1", -1)))
    model.training["made"]["data"] = "gone.csv"
    with pytest.raises(TableError, match=r"no gone\.csv"):
        refit(model, answered(("t1", 1)))


def test_worse_is_noticed_and_better_is_not_called_worse() -> None:
    rng = np.random.default_rng(0)
    labels = np.r_[np.ones(20, int), np.zeros(10, int)]
    good, bad = (np.r_[rng.normal(shift, 1, 20), rng.normal(0, 1, 10)] for shift in (3, 0.5))
    normal = rng.normal(size=(2, 300))
    down = compare_held_out(labels, good, bad, *normal)
    up = compare_held_out(labels, bad, good, *normal)
    same = compare_held_out(labels, good, good + 0.01 * rng.normal(size=30), *normal)
    assert down is not None
    assert up is not None
    assert same is not None
    assert down.is_worse
    assert not up.is_worse
    assert not same.is_worse
    assert up.low > 0
    assert compare_held_out(labels[20:], good[20:], bad[20:], *normal) is None


def test_alerts_and_moves_are_counted() -> None:
    names = list("abcdef")
    old, new = np.array([6.0, 5, 4, 3, 2, 1]), np.array([1.0, 5, 4, 3, 2, 6])
    found = compare_alerts(names, {"a": 0, "b": 1}, old, new, old > 3.5, new > 3.5)
    assert (found.n_old, found.n_new, found.n_open, found.n_open_stay) == (3, 3, 1, 1)
    assert (found.n_fresh, found.n_false, found.n_false_stay) == (1, 1, 0)
    assert (found.n_confirmed, found.n_confirmed_stay) == (1, 1)
    assert [(m.name, m.old_rank, m.new_rank) for m in found.rises] == [("f", 6, 1)]
    fall = found.falls[0]
    assert (fall.name, fall.old_rank, fall.new_rank, fall.answer) == ("a", 1, 6, 0)


def test_versions_are_kept_and_put_in_use(here: Path, folder: Path) -> None:
    place = here / "model"
    first = open_model(place, device="cpu")
    data = folder / "new.csv"
    scores = [first.anomaly_score(data)]
    for _ in range(2):
        new = refit(open_model(place, device="cpu"), answered(("t1", 1)), max_epochs=1).model
        version = add_version(place, new)
        assert np.array_equal(open_model(place, device="cpu").anomaly_score(data), scores[-1])
        use_version(place, version.number)
        scores.append(open_model(place, device="cpu").anomaly_score(data))
    assert [v.parent for v in list_versions(place)] == [None, 1, 2]
    assert present_version(place) == 3
    for number in (1, 3, 2):
        use_version(place, number)
        assert present_version(place) == number
        now = open_model(place, device="cpu").anomaly_score(data)
        assert np.array_equal(now, scores[number - 1])
    with pytest.raises(ModelError, match="no version 7"):
        use_version(place, 7)


def test_a_threshold_that_was_changed_comes_back_with_its_version(here: Path) -> None:
    place = here / "model"
    changed = open_model(place, device="cpu").set_threshold(value=7.5)
    changed.save(place)
    new = refit(open_model(place, device="cpu"), answered(("t1", 1)), max_epochs=1).model
    use_version(place, add_version(place, new).number)
    use_version(place, 1)
    assert open_model(place, device="cpu").threshold.value == 7.5


def test_the_command_accepts_keeps_both_and_rolls_back(
    here: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    lines = ["id,answer"] + [f"t{k},1" for k in range(6)] + [f"t{k},0" for k in range(400, 406)]
    Path("answers.csv").write_text("\n".join(lines) + "\n")
    assert aloof("label", "model", "answers.csv").exit_code == 0
    compare = ["--compare", str(folder / "new.csv"), "--epochs", "2"]
    done = aloof("refit", "model", *compare, "--keep-both", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["version"], found["parent"], found["is_used"]) == (2, 1, False)
    assert found["alerts"]["n_rows"] == 400
    assert present_version("model") == 1
    done = aloof("refit", "model", *compare)
    assert "model is version 3 now" in done.stdout, done.stderr
    assert "refitted from 1 with 6 rows answered" in aloof("info", "model").stdout
    assert "Learned from 6 rows answered as anomalies" in done.stdout
    done = aloof("versions", "model", "--rollback")
    assert done.stdout.splitlines()[0].startswith("*   1  fitted")
    done = aloof("versions", "model", "--rollback")
    assert done.exit_code == 2
    assert "first version" in done.stderr
    listed = json.loads(aloof("versions", "model", "--use", "3", "--json").stdout)
    assert [each["is_used"] for each in listed] == [False, False, True]


def test_a_worse_version_is_not_used_unless_told(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    Path("answers.csv").write_text("id,answer\nt1,1\n")
    assert aloof("label", "model", "answers.csv").exit_code == 0
    monkeypatch.setattr("aloof.feedback.comparison.Comparison.is_worse", True)
    done = aloof("refit", "model", "--epochs", "1")
    assert "It is worse, so model is still version 1" in done.stdout
    assert present_version("model") == 1
    assert aloof("refit", "model", "--epochs", "1", "--accept").exit_code == 0
    assert present_version("model") == 3


# Forks for every line that it is sent, as it takes seconds to import all this.
REFITTER = """
import os, sys, warnings
from aloof.feedback import Answer
from aloof.feedback.refitting import refit
from aloof.feedback.store import AnswerStore
from aloof.feedback.versions import add_version, use_version
from aloof.models.loading import open_model
warnings.simplefilter("ignore")
place = sys.argv[1]
for line in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print("dead", flush=True)
        continue
    with AnswerStore.of(place) as store:
        store.add([Answer(row="t1", label=1)])
        print(os.getpid(), flush=True)
        while True:
            done = refit(open_model(place, device="cpu"), store.standings(), max_epochs=1)
            use_version(place, add_version(place, done.model).number)
"""


def test_a_refit_that_is_killed_leaves_one_version_or_another(here: Path, folder: Path) -> None:
    place, chance = here / "model", random.Random(KILLS)
    data = folder / "new.csv"
    forker = subprocess.Popen(
        [sys.executable, "-c", REFITTER, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert forker.stdin is not None
    assert forker.stdout is not None
    for _ in range(KILLS):
        print("again", file=forker.stdin, flush=True)
        refitter = int(forker.stdout.readline())
        time.sleep(chance.uniform(0, 1.5))
        os.kill(refitter, signal.SIGKILL)
        assert forker.stdout.readline() == "dead\n"
        present = open_model(place, device="cpu").anomaly_score(data)
        number = present_version(place)
        kept = place.with_name("model.versions") / f"{number:04d}"
        if kept.exists():
            assert np.array_equal(open_model(kept, device="cpu").anomaly_score(data), present)
        assert number in [version.number for version in list_versions(place)]
    forker.communicate()
    with AnswerStore.of(place) as store:
        assert len(store.events()) == KILLS
    use_version(place, 1)
    assert present_version(place) == 1
