"""Rules of reviewers: the server, the command and what follows a file say the same."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet
import pytest
from serve_rows import in_types
from typer.testing import CliRunner

from aloof.cli.app import app
from aloof.cli.harmless import known_harmless
from aloof.exceptions import ServingError
from aloof.feedback import rules as reading
from aloof.feedback.rules import RuleBook
from aloof.feedback.store import AnswerStore, Rule
from aloof.models.table import TableModel
from aloof.serve.limits import Limits
from aloof.serve.slots import Slots

STREAM = "application/vnd.apache.arrow.stream"
SAID = ("anomaly_score", "p_value", "is_anomaly", "suppressed_by")


def add(folder: Path, column: str, value: str, **options: Any) -> int:
    with AnswerStore.of(folder) as store:
        return store.add_rule(Rule(column=column, value=value, by="eve", **options))


def command(*options: object) -> None:
    done = CliRunner().invoke(app, ["score", *map(str, options)])
    assert done.exit_code == 0, done.output


def said(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.get(name) for name in SAID) for row in rows]


@pytest.fixture
def team(new: pa.Table) -> pa.Table:
    """New rows with a column that the model does not know, but a rule does."""
    names = ["red" if i % 4 else "blue" for i in range(new.num_rows)]
    return new.append_column("team", pa.array(names))


def test_the_command_a_stream_and_the_server_decide_alike(
    folder: Path, team: pa.Table, tmp_path: Path, serving: Callable[..., Any]
) -> None:
    add(folder, "code", "2")  # a number in JSON, a category of the model
    add(folder, "team", "blue")  # which only the rule uses
    add(folder, "city", "Bern", until=datetime.now(UTC) - timedelta(days=1))
    table, lines = tmp_path / "new.csv", tmp_path / "new.jsonl"
    pa_csv.write_csv(team, table)
    records = in_types(team)
    lines.write_text("".join(json.dumps(row) + "\n" for row in records))

    command(folder, table, "--out", tmp_path / "a.parquet", "--reasons", 2)
    typed = tmp_path / "typed.parquet"
    pa.parquet.write_table(pa.Table.from_pylist(records), typed)
    command(folder, typed, "--out", tmp_path / "b.parquet", "--reasons", 2)
    expected = said(pa.parquet.read_table(tmp_path / "a.parquet").to_pylist())
    assert {row[3] for row in expected} == {None, "code = 2", "team = blue"}
    assert said(pa.parquet.read_table(tmp_path / "b.parquet").to_pylist()) == expected
    model = TableModel.load(folder, device="cpu")
    stop = threading.Event()
    stop.set()  # after what is there
    for number, source in enumerate((table, lines)):
        target = tmp_path / f"{number}.jsonl"
        model.follow(source, target, stop=stop, **known_harmless(model, folder, None))
        assert said([*map(json.loads, target.read_text().splitlines())]) == expected

    with serving(folder) as client:
        status, found = client.score(records, "/score?reasons=2")
        assert status == 200
        assert said(found["results"]) == expected
        assert all(r["is_anomaly"] or not r["reasons"] for r in found["results"])
        alone = [client.score([row])[1]["results"][0] for row in records[:40]]
        assert said(alone) == expected[:40]
        columns = {name: [row[name] for row in records] for name in records[0]}
        assert said(client.score({"columns": columns})[1]["results"]) == expected
        body = table.read_bytes()
        assert said(client.ask("POST", "/score", body, "text/csv")[1]["results"]) == expected
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, team.schema) as writer:
            writer.write_table(team)
        told = client.ask("POST", "/score", bytes(sink.getvalue()), STREAM, Accept=STREAM)[1]
        assert said(pa.ipc.open_stream(told).read_all().to_pylist()) == expected
        hidden = client.metric('aloof_rows_suppressed_total{model="model"}')
        assert hidden > 0

        flagged = model.decide(model.anomaly_score(team)).tolist()
        _, found = client.score(records, "/score?ignore_rules=true")
        assert [row["is_anomaly"] for row in found["results"]] == flagged
        assert not any("suppressed_by" in row for row in found["results"])
        assert sum(flagged) > sum(row[2] for row in expected)
        assert client.metric('aloof_rows_suppressed_total{model="model"}') == hidden
        assert client.score(records, "/score?ignore_rules=yes")[0] == 422

        inputs = [
            {"name": name, "shape": [len(records)], "datatype": "BYTES", "data": values}
            for name, values in team.to_pydict().items()
        ]
        path = "/v2/models/model/infer"
        _, found = client.score({"inputs": inputs}, path)
        outputs = {each["name"]: each["data"] for each in found["outputs"]}
        assert outputs["suppressed_by"] == [row[3] or "" for row in expected]
        assert outputs["is_anomaly"] == [row[2] for row in expected]
        ignoring = {"inputs": inputs, "parameters": {"ignore_rules": True}}
        _, found = client.score(ignoring, path)
        assert "suppressed_by" not in {each["name"] for each in found["outputs"]}


def test_rules_come_and_go_while_it_runs(
    folder: Path,
    new: pa.Table,
    serving: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = in_types(new)[:1]
    city, code = rows[0]["city"], rows[0]["code"]

    def rule(client: Any) -> Any:
        return client.score(rows)[1]["results"][0].get("suppressed_by", "no rules")

    caplog.set_level(logging.INFO, "aloof.serve")
    with serving(folder) as client:
        look = client.server.slots["model"].refresh
        assert rule(client) == "no rules"
        number = add(folder, "city", city)
        assert rule(client) == "no rules"
        assert look() == "same", "the model is"
        assert rule(client) == f"city = {city}"
        with AnswerStore.of(folder) as store:  # somebody has it open
            store.lift_rule(number, by="eve")
            assert look() == "same"
            assert rule(client) == "no rules"
        soon = datetime.now(UTC) + timedelta(hours=1)
        add(folder, "code", str(code), until=soon)
        look()
        assert rule(client) == f"code = {code}"
        monkeypatch.setattr(reading.time, "time", lambda: soon.timestamp() + 1)
        assert rule(client) == "no rules", "it has come to its end, without another look"
        monkeypatch.undo()

        add(folder, "city", city)
        look()
        before = rule(client)
        store_file = folder.with_name("model.answers.sqlite")
        good = store_file.read_bytes()
        store_file.write_bytes(b"no database" * 1000)
        status, found = client.ask("POST", "/models/model/reload")
        assert status == 409
        assert "rules of what is harmless" in found["problem"]
        assert look() == "failed"
        assert rule(client) == before, "those of before hold"
        assert client.get("/readyz")[1]["models"][0]["stale"]
        told = [r for r in caplog.records if r.levelno == logging.ERROR]
        assert len(told) == 1
        store_file.write_bytes(good)
        assert look() == "same"
        assert not client.get("/readyz")[1]["models"][0]["stale"]
        store_file.unlink()
        look()
        assert rule(client) == "no rules"
        assert "Bern" not in caplog.text


def test_a_store_that_cannot_be_read_does_not_start(folder: Path) -> None:
    folder.with_name("model.answers.sqlite").write_text("no database")
    with pytest.raises(ServingError, match="--ignore-rules"):
        Slots([str(folder)], Limits(), "cpu").load()
    Slots([str(folder)], Limits(), "cpu", ignores_rules=True).load()
    none = Slots([str(folder)], Limits(), "cpu", store=f"{folder}-none.sqlite")
    with pytest.raises(ServingError, match=r"no store of answers .*none\.sqlite"):
        none.load()


def test_reading_rules_writes_nothing(folder: Path, tmp_path: Path) -> None:
    number = add(folder, "city", "Oslo")
    shutil.rmtree(folder)  # rules need no model
    before = sorted(os.listdir(tmp_path))
    book = RuleBook(folder)
    assert book.refresh()
    assert not book.refresh()
    assert book.now().words == ("city = Oslo",)
    assert sorted(os.listdir(tmp_path)) == before
    with AnswerStore.of(folder) as store:
        store.lift_rule(number, by="eve")
        open_files = sorted(os.listdir(tmp_path))
        assert len(open_files) > len(before), "what was written last is not in the file yet"
        assert book.refresh()
        assert not book.now()
        assert sorted(os.listdir(tmp_path)) == open_files
