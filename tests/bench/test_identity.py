"""A record is a result of what it says, and of nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aloof import VAE, DualPriorVAE
from aloof.baselines import BASELINES
from aloof.bench import identity as module
from aloof.bench import provenance, run_study, stored, write_tables
from aloof.bench.identity import Identity
from aloof.bench.odds import OddsStudy
from aloof.bench.revisions import REVISIONS, revision


@dataclass(frozen=True)
class Setting:
    rate: float = 0.1
    trim: float = 0.0


def test_every_part_counts() -> None:
    identity = Identity({"k": 1, "setting": Setting()}, {"data_sha256": "a"}, revision=2)
    record = identity.record
    assert record == {
        "data_sha256": "a",
        "revision": 2,
        "config": {"k": 1, "setting": {"rate": 0.1, "trim": 0.0}},
    }
    assert identity.holds(record)
    assert identity.holds({**record, "status": "ok"})
    assert not identity.holds({**record, "status": "error"})
    assert not identity.holds({**record, "data_sha256": "b"})
    assert not identity.holds({**record, "revision": 1})
    for other in ({"k": 2}, {"setting": Setting(rate=0.2)}, {"more": 1}):
        changed = Identity({**identity.config, **other}, identity.facts, revision=2)
        assert not identity.holds(changed.record)


def test_a_record_without_a_revision_is_of_the_first() -> None:
    first, second = (Identity({"k": 1}, revision=number) for number in (1, 2))
    old = {"config": {"k": 1}}
    assert first.holds(old)
    assert not second.holds(old)
    assert second.describes(old), "it can still be shown"
    assert not second.describes({"config": {"k": 2}})


def test_what_a_record_is_too_old_to_say_is_taken_as_said() -> None:
    identity = Identity({"setting": Setting()}, {"data_sha256": "a", "split_sha256": "b"})
    assert identity.holds({"data_sha256": "a", "config": {"setting": {"rate": 0.1}}})
    assert identity.holds({"data_sha256": "a"})
    assert not identity.holds({"data_sha256": "a", "config": {"setting": {"rate": 0.3}}})
    trimmed = Identity({"setting": Setting(trim=0.05)}, identity.facts)
    old = {"data_sha256": "a", "config": {"setting": {"rate": 0.1}}}
    assert not trimmed.holds(old), "an option that came later was at its default then"


def test_parameters_of_an_estimator_but_not_where_it_runs() -> None:
    identity = Identity(DualPriorVAE(alpha=3.0, device="cpu", random_state=1))
    assert identity.record["config"]["alpha"] == 3.0
    assert not {"device", "random_state"} & identity.record["config"].keys()
    assert identity.holds(Identity(DualPriorVAE(alpha=3.0, random_state=2)).record)
    assert not identity.holds(Identity(DualPriorVAE()).record)
    assert not identity.holds(Identity(VAE()).record), "alpha is not at its default"


def test_parameters_inside_of_parameters() -> None:
    identity = Identity(BASELINES["kde-hybrid"](random_state=0))
    record = identity.record
    assert record["config"]["detector"]["class"] == "KDE"
    assert identity.holds(record)
    old = dict(record["config"]["detector"])
    assert old.pop("max_search_rows") == 2000  # as if it had come later
    assert identity.holds({"config": {**record["config"], "detector": old}})
    other = {**record["config"]["detector"], "max_search_rows": 3}
    assert not identity.holds({"config": {**record["config"], "detector": other}})


def test_options_that_were_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = Identity({"setting": Setting(rate=0.5)})
    old = {"config": {"setting": {"speed": 0.5, "trim": 0.0}}}
    assert not identity.holds(old)
    monkeypatch.setattr(module, "RENAMED", {"speed": "rate"})
    assert identity.holds(old)


def test_a_raised_revision_runs_again(
    study: Callable[..., OddsStudy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = study(methods=["dp", "good"], seeds=1)
    first = run_study(what, tmp_path)
    assert [record["revision"] for record in first] == [REVISIONS["dp"], 1]
    raised = {**REVISIONS, "dp": REVISIONS["dp"] + 1}
    monkeypatch.setattr("aloof.bench.revisions.REVISIONS", raised)
    write_tables(what, stored(what, tmp_path), tmp_path)
    table = (tmp_path / "table.md").read_text()
    assert table.endswith(
        " 1 are of an older revision of their system: a run makes them again.\n"
    )
    again = run_study(what, tmp_path)
    assert again[0]["revision"] == first[0]["revision"] + 1
    assert again[1] == first[1]
    write_tables(what, again, tmp_path)
    assert "older revision" not in (tmp_path / "table.md").read_text()


def test_records_say_who_made_them(study: Callable[..., OddsStudy], tmp_path: Path) -> None:
    (record,) = run_study(study(methods=["dp"], seeds=1), tmp_path)
    assert record["code"] == provenance.code_version()["code"]
    assert record["versions"]["torch"]
    assert record["device"] == "cpu"
    assert record["finished"].startswith("20")


def test_the_commit_or_else_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version() -> dict[str, Any]:
        provenance.code_version.cache_clear()
        return provenance.code_version()

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    package = tmp_path / "src" / "aloof"
    (package / "bench").mkdir(parents=True)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(provenance, "__file__", str(package / "bench" / "provenance.py"))
    assert version() == {"code": provenance.__version__}
    git("init")
    (package / "_version.py").write_text("")
    git("commit", "--allow-empty", "-m", "Begin")
    assert version() == {"code": provenance.__version__}, "not a file of that repository"
    git("add", ".")
    git("commit", "-m", "Add")
    assert version() == {"code": git("rev-parse", "HEAD").strip(), "dirty": False}
    (package / "_version.py").write_text("changed")
    assert version()["dirty"] is True
    provenance.code_version.cache_clear()


def test_other_names_of_a_system() -> None:
    for name in ("deep-sad-5", "deep-sad-ill", "deep-sad-no-pretraining"):
        assert revision(name) == REVISIONS["deep-sad"]
    assert revision("iforest") == 1
