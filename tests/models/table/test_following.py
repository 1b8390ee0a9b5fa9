from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aloof.exceptions import TableError
from aloof.io.growing import Line
from aloof.models.table import TableModel, fit, following
from aloof.models.table.events import EventReader
from aloof.models.table.harmless import Harmless

pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n).round(2)
    if seed:
        amount[::17] *= 1e6
    age = rng.integers(18, 90, n)
    return pa.table(
        {
            "key": [f"r{i}" for i in range(n)],
            "amount": amount,
            "age": pa.array(age, mask=rng.random(n) < 0.1),
            "city": rng.choice(["Oslo", "Bern", "Rome"], n),
        }
    )


@pytest.fixture(scope="module")
def model() -> TableModel:
    tiny = {"members": 2, "max_epochs": 3, "hidden": (8,), "latent_dim": 2}
    return fit(rows(600, 0), method="vae", id="key", **tiny).set_threshold(share=0.05)


def as_csv(table: pa.Table) -> list[str]:
    lines = [",".join(table.column_names)]
    for row in table.to_pylist():
        lines.append(",".join("" if value is None else str(value) for value in row.values()))
    return lines


def as_json(table: pa.Table) -> list[str]:
    return [json.dumps(row) for row in table.to_pylist()]


@contextmanager
def running(*arguments: Any, **options: Any) -> Iterator[list[str]]:
    """Follow in a thread; give what is said, and stop at the end."""
    said: list[str] = []
    failed: list[BaseException] = []
    stop = threading.Event()

    def run() -> None:
        try:
            following.follow(*arguments, **options, stop=stop, say=said.append)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield said
    finally:
        stop.set()
        thread.join(20)
    if failed:
        raise failed[0]


def waited(out: Path, n: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if out.exists() and out.read_text().count("\n") >= n:
            break
        time.sleep(0.01)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(found) == n, found[-3:]
    return found


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_WAIT", 0.01)


@pytest.mark.parametrize("write", [as_csv, as_json])
def test_rows_say_what_the_model_says_however_they_arrive(
    model: TableModel, tmp_path: Path, write: Any
) -> None:
    table = rows(150, 1)
    text = "".join(f"{line}\n" for line in write(table))
    source, out = tmp_path / "in", tmp_path / "out.jsonl"
    rng = np.random.default_rng(0)
    cuts = sorted(rng.integers(0, len(text), 9))
    with running(model, source, out):
        with source.open("w") as file:
            for first, last in zip([0, *cuts], [*cuts, len(text)], strict=True):
                file.write(text[first:last])
                file.flush()
                time.sleep(0.02)
        found = waited(out, 150)
    expected = model.score(table).to_pylist()
    assert any(row["is_anomaly"] for row in expected)
    header = write is as_csv
    for number, (got, wanted) in enumerate(zip(found, expected, strict=True), start=1):
        told = [wanted.pop(f"reason_{i}") for i in (1, 2, 3)]
        assert got.pop("reasons") == [words for words in told if words]
        assert got.pop("line") == number + header
        assert got == wanted


def test_a_kill_between_any_two_steps_loses_and_doubles_nothing(
    model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies after scoring, in the middle of writing, or before the state."""
    lines = as_csv(rows(120, 1))
    source, out, state = tmp_path / "in", tmp_path / "out.jsonl", tmp_path / "state"
    monkeypatch.setattr(following, "_ROWS", 16)
    monkeypatch.setattr(following, "_COMMIT", 0.0)
    rng, write, calls = np.random.default_rng(3), following._Output.write, []

    def write_and_die(self: Any, written: Any) -> None:
        calls.append(len(written))
        if rng.random() < 0.4:
            self._stream.write(b'{"line": 7, "anoma')  # half a line, as a power cut leaves
            self._stream.flush()
            raise SystemExit
        write(self, written)
        if rng.random() < 0.4:
            raise SystemExit

    monkeypatch.setattr(following._Output, "write", write_and_die)
    deaths, done = 0, 0
    for place in range(0, len(lines), 10):
        with source.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines[place : place + 10]))
        if place == 60:
            source.rename(source.with_name("in.1"))
            source.touch()
        stop = threading.Event()
        stop.set()  # what is there, and no more
        try:
            following.follow(model, source, out, state=state, stop=stop)
        except SystemExit:
            deaths += 1
    assert deaths > 3
    monkeypatch.setattr(following._Output, "write", write)
    with running(model, source, out, state=state):
        found = waited(out, 120)
    assert [row["line"] for row in found] == list(range(2, 122))
    assert [row["key"] for row in found] == [f"r{i}" for i in range(120)]
    told = json.loads(state.read_text())
    assert told["counts"][0] == 120 + done
    scores = [row["anomaly_score"] for row in found]
    assert scores == model.anomaly_score(rows(120, 1)).tolist()


def test_lines_that_cannot_be_read_have_an_error_and_the_others_scores(
    model: TableModel, tmp_path: Path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out.jsonl"
    good = json.dumps({"key": "a", "amount": 20, "age": 30, "city": "Oslo"})
    lines = [good, "{", "[1]", '{"key": "b", "amount": {"x": 1}}', '{"amount": NaN}', "", good]
    source.write_text("".join(f"{line}\n" for line in lines))
    with running(model, source, out):
        found = waited(out, 6)
    assert ["error" in row for row in found] == [False, True, True, True, True, False]
    assert [row["line"] for row in found] == [1, 2, 3, 4, 5, 7]
    assert found[0]["anomaly_score"] == found[-1]["anomaly_score"]
    assert "'amount' holds an object" in found[3]["error"]


def test_objects_inside_objects_are_columns_as_in_a_file(tmp_path: Path) -> None:
    events = [
        {"amount": float(i % 7), "card": {"country": "NO" if i % 3 else "SE"}}
        for i in range(120)
    ]
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    model = fit(source, method="vae", members=1, max_epochs=2)
    assert model.columns == ("amount", "card.country")
    with running(model, source, out):
        found = waited(out, 120)
    scores = [row["anomaly_score"] for row in found]
    assert scores == model.anomaly_score(source).tolist()


@pytest.mark.parametrize(("missing", "taken"), [("refuse", "missing"), ("fill", "typical")])
def test_a_key_that_no_row_has_counts_as_is_said(
    model: TableModel, tmp_path: Path, missing: Any, taken: str
) -> None:
    source, out = tmp_path / "in", tmp_path / "out.jsonl"
    lines = as_json(rows(20, 0).drop_columns("city"))
    source.write_text("".join(f"{line}\n" for line in lines))
    with running(model, source, out, missing_columns=missing) as said:
        found = waited(out, 20)
    assert f"`city`: the column is gone; its values count as {taken}" in said
    blamed = "`city` is missing, which it never was in training"
    assert any(blamed in row["reasons"] for row in found) == (taken == "missing")


def test_a_row_is_scored_alike_whatever_stands_beside_it(
    model: TableModel, tmp_path: Path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out.jsonl"
    each: list[dict[str, Any]] = [
        {"key": "a", "amount": 20, "age": 30, "city": "Oslo"},
        {"key": "b", "amount": "20", "age": "thirty", "city": 7},
        {"key": "c", "amount": 20.5, "city": None},
        {"key": "d", "amount": True, "age": 30, "city": "Bern"},
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in each))
    with running(model, source, out):
        together = waited(out, 4)
    for row, expected in zip(each, together, strict=True):
        source.write_text(json.dumps(row) + "\n")
        out.unlink()
        with running(model, source, out):
            (alone,) = waited(out, 1)
        assert alone["anomaly_score"] == expected["anomaly_score"], row


def test_drift_is_said_when_it_begins_and_when_it_ends(
    model: TableModel, tmp_path: Path
) -> None:
    source, out, state = tmp_path / "in", tmp_path / "out.jsonl", tmp_path / "state"
    usual, other = as_csv(rows(300, 0)), as_csv(rows(300, 0))
    other = [line.replace("Oslo", "Lima").replace("Bern", "Lima") for line in other]
    lines = usual
    options = {"state": state, "drift_every": 300, "flagged_only": True}
    with running(model, source, out, **options) as said:
        for n, lines in enumerate((usual, other[1:], usual[1:]), start=1):
            with source.open("a") as file:
                file.write("".join(f"{line}\n" for line in lines))
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                if state.exists() and json.loads(state.read_text())["counts"][0] == 300 * n:
                    break
                time.sleep(0.02)
            drift = json.loads(state.read_text())["drift"]
            assert any(each["column"] == "city" for each in drift) == (n == 2)
    (begins,) = (words for words in said if "'Lima'" in words)
    (ends,) = (words for words in said if words.startswith("`city`: as in training again"))
    assert said.index(begins) < said.index(ends)


def test_rows_known_to_be_harmless_are_not_flagged(model: TableModel, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out.jsonl"
    source.write_text("".join(f"{line}\n" for line in as_json(rows(100, 1))))
    flagged = [row for row in model.score(rows(100, 1)).to_pylist() if row["is_anomaly"]]
    rules = [Harmless("key", flagged[0]["key"])]  # not a column that the model uses
    with running(model, source, out, harmless=rules, state=tmp_path / "s"):
        found = waited(out, 100)
    assert sum(row["is_anomaly"] for row in found) == len(flagged) - 1
    (hidden,) = (row for row in found if row["suppressed_by"] is not None)
    assert hidden["key"] == flagged[0]["key"]
    assert json.loads((tmp_path / "s").read_text())["counts"] == [100, len(flagged) - 1, 1, 0]


def test_rules_that_change_take_effect_and_hold_when_unread(
    model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_ASK", 0.0)
    source, out = tmp_path / "in", tmp_path / "out.jsonl"
    flagged = [row for row in model.score(rows(100, 1)).to_pylist() if row["is_anomaly"]]
    key = flagged[0]["key"]
    line = next(one for one in as_json(rows(100, 1)) if json.loads(one)["key"] == key)
    known: list[Harmless] = []
    is_away = threading.Event()

    def harmless() -> list[Harmless]:
        if is_away.is_set():
            raise TableError("The store is away.")
        return known

    source.write_text("")
    with running(model, source, out, harmless=harmless) as said:
        for n in range(1, 4):
            with source.open("a") as file:
                file.write(f"{line}\n")
            found = waited(out, n)
            known = [Harmless("key", key)]
            if n == 2:
                is_away.set()
    assert [row["is_anomaly"] for row in found] == [True, False, False]
    assert [words for words in said if "The store is away." in words]


def test_what_cannot_be_followed_is_refused(
    model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"

    def refused(words: str, *arguments: Any, **options: Any) -> None:
        with pytest.raises(TableError, match=words):
            following.follow(*arguments, **options)

    refused("all rows at once", _with_rate(model), "in", out)
    refused("cannot be read again", model, "-", out, state=tmp_path / "s")
    refused(r"ends in \.jsonl", model, "in", tmp_path / "out.csv")
    refused("utf-16 cannot be followed", model, "in", out, encoding="utf-16")
    refused("one of csv, tsv, jsonl", model, "in", out, format="parquet")
    refused("Cannot keep column 'reasons'", model, "in", out, keep=["reasons"])
    refused("cannot be read: Is a directory", model, tmp_path, out)
    out.write_text("{}\n")
    refused("already exists", model, "in", out)
    out.unlink()
    source = tmp_path / "in"
    source.write_text("key,amount,age\nr1,3.5,20\n")
    refused("city", model, source, out)
    (tmp_path / "s").write_text("{}")
    refused("not a state", model, source, out, state=tmp_path / "s")
    source.write_text("\n".join(as_csv(rows(3, 1))) + "\n")
    with running(model, source, out, force=True):
        waited(out, 2 + 1)
        refused("another process", model, source, out, force=True)


def test_standard_input_to_its_end(
    model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    text = "\n".join(as_json(rows(20, 1)))  # the last line has no end
    os.write(writing, text.encode())
    os.close(writing)
    with os.fdopen(reading) as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        done = following.follow(model, "-", tmp_path / "out.jsonl", keep=["city"])
    found = waited(tmp_path / "out.jsonl", 20)
    assert [row["city"] for row in found] == rows(20, 1)["city"].to_pylist()
    assert (done.n_rows, done.n_failed) == (20, 0)
    assert done.n_anomalies == sum(row["is_anomaly"] for row in found) > 0


def _with_rate(model: TableModel) -> Any:
    class Other:
        threshold = type(model.threshold)(fdr=0.1)

    return Other()


def lines_of(*contents: bytes) -> list[Line]:
    return [Line(content, None, place == 0) for place, content in enumerate(contents)]


def test_rows_of_csv_may_go_on_in_the_next_line() -> None:
    reader = EventReader(["a", "b"])
    assert reader.events(lines_of(b"\xef\xbb\xbfa;b", b'1;"two')) == []
    (event,) = reader.events([Line(b'lines"', None)])
    assert event.values == {"a": "1", "b": "two\nlines"}
    assert (event.line, event.n_lines) == (2, 3)
    (inch,) = reader.events([Line(b'5" pipe;3', None)])
    assert inch.values == {"a": '5" pipe', "b": "3"}
    (wrong,) = reader.events([Line(b"1;2;3", None)])
    assert "3 values, but the header has 2" in wrong.error
    found = reader.events([Line(b'"never closed;1', None), *lines_of(*[b"7;8"] * 120)])
    assert found[0].error
    assert [event.values for event in found[1:]] == [{"a": "7", "b": "8"}] * 120
    (accents,) = reader.events([Line("é;ü".encode("cp1252"), None)])
    assert accents.values == {"a": "é", "b": "ü"}


def test_a_new_file_may_have_its_columns_in_another_order() -> None:
    reader = EventReader(["a", "b"])
    reader.events(lines_of(b"a,b,c", b"1,2,3"))
    (event,) = reader.events(lines_of(b"b,a", b"5,4"))
    assert event.values == {"a": "4", "b": "5"}
    again = EventReader(["a", "b"], state=json.loads(json.dumps(reader.state())))
    (event,) = again.events([Line(b"7,6", None)])
    assert event.values == {"a": "6", "b": "7"}
    assert event.line == 5
