"""The store of answers: history, undo, conflicts, and that nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from full_disk import FullDisk

from aloof.exceptions import AnswerError
from aloof.feedback import UNSURE, Answer
from aloof.feedback.migrating import newest
from aloof.feedback.schema import METADATA
from aloof.feedback.store import AnswerStore, Rule, store_beside

# 200 kills take minutes; a few are enough to notice most of what can go wrong.
KILLS = int(os.environ.get("ALOOF_KILLS", "4"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "answers.sqlite")
    return str(request.getfixturevalue("postgresql").url)


@pytest.fixture
def store(url: str) -> Iterator[AnswerStore]:
    with AnswerStore(url, model=uuid.uuid4().hex) as opened:
        yield opened


def labels(store: AnswerStore) -> dict[str, int]:
    return {row: standing.label for (_, row), standing in store.standings().items()}


def test_the_latest_answer_counts_and_an_undo_brings_the_one_before_back(
    store: AnswerStore,
) -> None:
    store.add([Answer(row="a", label=1, by="eve"), Answer(row="b", label=0, by="eve")])
    store.add([Answer(row="a", label=0, by="eve", note="was a test")])
    assert labels(store) == {"a": 0, "b": 0}
    undone = store.undo(by="eve")
    assert undone is not None
    assert (undone.row, undone.label, undone.note) == ("a", 0, "was a test")
    assert labels(store) == {"a": 1, "b": 0}
    assert [event.undoes for event in store.events()][:3] == [None] * 3
    assert store.events()[3].undoes == undone.number


def test_what_was_said_at_once_is_taken_back_at_once(store: AnswerStore) -> None:
    store.add([Answer(row="z", label=1, by="eve")])
    store.add([Answer(row=row, label=0, by="eve") for row in "abc"])
    store.add([Answer(row="a", label=1, by="bob")])
    store.undo(by="eve")
    assert labels(store) == {"z": 1, "a": 1}
    store.undo(by="eve")
    store.undo(by="bob")
    assert labels(store) == {}
    assert store.undo(by="eve") is None


def test_an_undo_of_one_row_leaves_the_others(store: AnswerStore) -> None:
    store.add([Answer(row=row, label=1, by="eve") for row in "abc"])
    store.undo(by="eve", key=("", "b"))
    assert labels(store) == {"a": 1, "c": 1}
    assert store.undo(by="eve", key=("", "b")) is None


def test_reviewers_who_disagree_are_in_conflict_until_one_gives_in(store: AnswerStore) -> None:
    store.add([Answer(row="a", label=1, by="eve")])
    store.add([Answer(row="a", label=0, by="bob")])
    store.add([Answer(row="b", label=1, by="eve")])
    store.add([Answer(row="b", label=UNSURE, by="bob")])
    (conflict,) = store.conflicts()
    assert conflict.last.row == "a"
    assert labels(store) == {"a": UNSURE, "b": 1}
    store.add([Answer(row="a", label=1, by="bob")])
    assert not store.conflicts()
    assert labels(store) == {"a": 1, "b": 1}


def test_models_and_files_do_not_mix(url: str) -> None:
    one, two = uuid.uuid4().hex, uuid.uuid4().hex
    with AnswerStore(url, model=one) as first, AnswerStore(url, model=two) as second:
        first.add([Answer(row="1", label=1, source="may.csv")])
        first.add([Answer(row="1", label=0, source="june.csv")])
        assert [standing.label for standing in first.standings().values()] == [1, 0]
        assert second.events() == []
        assert second.undo(by="") is None


def test_what_is_kept_comes_back_as_it_was(store: AnswerStore) -> None:
    values = {"amount": 12.5, "city": "Ærø <script>", "n": 3, "ok": True, "gap": None}
    before = datetime.now(UTC) - timedelta(seconds=1)
    note = "line 1\nline 2 'quoted' \"\u202e"
    store.add([Answer(row="ä'; --", label=1, by="eve", note=note, values=values, score=0.25)])
    (event,) = store.events()
    assert (event.row, event.note, event.score) == ("ä'; --", note, 0.25)
    assert event.values == values
    assert event.at is not None
    assert before < event.at < datetime.now(UTC) + timedelta(seconds=1)


def test_a_request_that_comes_again_is_not_stored_again(store: AnswerStore) -> None:
    given = [Answer(row="a", label=1, by="eve"), Answer(row="b", label=0, by="eve")]
    name = uuid.uuid4().hex
    assert store.add(given, request=name) == store.add(given, request=name)
    assert len(store.events()) == 2
    undo = uuid.uuid4().hex
    assert store.undo(by="eve", request=undo) == store.undo(by="eve", request=undo)
    assert len(store.events()) == 4  # both answers were taken back, once
    rule = Rule(column="host", value="backup01")
    again = uuid.uuid4().hex
    assert store.add_rule(rule, request=again) == store.add_rule(rule, request=again)


def test_rules_end_when_they_say_or_are_lifted(store: AnswerStore) -> None:
    now = datetime.now(UTC)
    store.add_rule(Rule(column="host", value="old", until=now - timedelta(days=1)))
    number = store.add_rule(Rule(column="host", value="backup01", by="eve", note="nightly"))
    store.add_rule(Rule(column="host", value="new", until=now + timedelta(days=1)))
    assert [rule.value for rule in store.rules()] == ["backup01", "new"]
    assert [rule.value for rule in store.rules(now=now + timedelta(days=2))] == ["backup01"]
    assert store.lift_rule(number, by="bob")
    assert not store.lift_rule(number, by="bob")
    assert [rule.value for rule in store.rules()] == ["new"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": 2}, "anomaly"),
        ({"row": ""}, "name its row"),
        ({"note": "x" * 10_001}, "10,001 characters"),
        ({"row": "a\x00b"}, "NUL"),
    ],
)
def test_answers_that_cannot_be_kept_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        Answer(**{"row": "a", "label": 1, **change})


def test_all_answers_of_a_request_or_none(store: AnswerStore) -> None:
    given = [Answer(row="a", label=1), Answer(row="b", label=1, undoes=10**9)]
    with pytest.raises(AnswerError):  # there is no such answer to take back
        AnswerStore.add(_impatient(store), given)
    assert store.events() == []


def _impatient(store: AnswerStore) -> AnswerStore:
    store._patience = 0.1
    return store


def test_many_threads_at_once_lose_nothing_and_see_events_in_order(store: AnswerStore) -> None:
    seen: list[int] = []
    done = threading.Event()

    def write(name: str) -> None:
        for number in range(10):
            store.add([Answer(row=f"{name} {number}", label=1, by=name)])

    def poll() -> None:
        while not done.is_set():
            seen.extend(e.number or 0 for e in store.events(after=seen[-1] if seen else 0))

    writers = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    reader = threading.Thread(target=poll)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    time.sleep(0.05)
    done.set()
    reader.join()
    assert len(store.standings()) == 40
    assert seen == [event.number for event in store.events()][: len(seen)]
    assert len(seen) == len(set(seen)) == 40


def test_the_migrations_make_the_tables_that_the_code_reads(url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with AnswerStore(url) as store, store._engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == newest()
        assert compare_metadata(context, METADATA) == []


def test_a_store_of_a_newer_aloof_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    AnswerStore(path).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    with pytest.raises(AnswerError, match="newer aloof"):
        AnswerStore(path)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "in memory"),
        ("mysql://x", "SQLite or PostgreSQL"),
        ("/nowhere/at/all/answers.sqlite", "no folder"),
    ],
)
def test_urls_that_cannot_be_used_are_refused(url: str, words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        AnswerStore(url)


def test_a_password_is_never_said() -> None:
    url = "postgresql://aloof:s3cret@127.0.0.1:1/x"
    with pytest.raises(AnswerError) as caught:
        AnswerStore(url, patience=0)
    assert "s3cret" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_text("id,label\n" * 200)
    with pytest.raises(AnswerError, match="not a database"):
        AnswerStore(path, patience=0)
    assert path.read_text().startswith("id,label")


def test_the_store_is_beside_the_model_whatever_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    expected = tmp_path.resolve() / "real.answers.sqlite"
    assert store_beside(tmp_path / "link") == store_beside(tmp_path / "real") == expected


def test_a_full_disk_is_said_and_the_answer_not_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with AnswerStore(path, patience=0.1) as store:
        store.add([Answer(row="a", label=1)])
        FullDisk(store)
        with pytest.raises(AnswerError, match=r"full.*Make room"):
            store.add([Answer(row="b", label=1, note="x" * 10_000)])
        assert [event.row for event in store.events()] == ["a"]


def test_a_database_that_is_restarted_is_waited_for(postgresql: Any) -> None:
    with AnswerStore(postgresql.url, model=uuid.uuid4().hex, patience=30) as store:
        store.add([Answer(row="before", label=1)])
        postgresql.stop()
        written: list[int] = []
        thread = threading.Thread(
            target=lambda: written.extend(store.add([Answer(row="during", label=0)]))
        )
        thread.start()
        time.sleep(0.3)
        assert not written
        postgresql.start()
        thread.join()
        assert len(written) == 1
        assert labels(store) == {"before": 1, "during": 0}


WRITER = """
import sys
from aloof.feedback import Answer
from aloof.feedback.store import AnswerStore
with AnswerStore(sys.argv[1], model="killed") as store:
    print("ready", flush=True)
    for number in range(10**6):
        rows = [f"{sys.argv[2]} {number} {part}" for part in range(3)]
        store.add([Answer(row=row, label=number % 2, by="eve") for row in rows])
        print(number, flush=True)
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_writer_that_is_killed_loses_nothing_that_was_acknowledged(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "postgresql":
        url = request.getfixturevalue("postgresql").url
    else:
        url = str(tmp_path / "answers.sqlite")
    chance = random.Random(KILLS)
    for kill in range(KILLS):
        with (tmp_path / "errors").open("w") as errors:
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, url, str(kill)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n", (tmp_path / "errors").read_text()
        acknowledged = [int(writer.stdout.readline())]
        time.sleep(chance.uniform(0, 0.1))
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        with AnswerStore(url, model="killed") as store:
            rows = {row for _, row in store.standings() if row.split()[0] == str(kill)}
        numbers = {int(row.split()[1]) for row in rows}
        assert set(acknowledged) <= numbers
        assert len(numbers) - len(acknowledged) <= 1  # written, and killed before it said so
        assert len(rows) == 3 * len(numbers)  # all answers of a request, or none
