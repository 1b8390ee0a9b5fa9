"""Models that are replaced, damaged or gone while they are in use."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from serve_rows import in_types

from aloof.exceptions import ServingError
from aloof.models.table import TableModel
from aloof.serve.limits import Limits
from aloof.serve.logs import JsonLines, say
from aloof.serve.slots import Slots


def test_a_new_model_takes_over_and_no_request_is_lost(
    made: Path, folder: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    records = in_types(new)
    models = [TableModel.load(made / name, device="cpu") for name in ("model", "other")]
    scores = [model.anomaly_score(new) for model in models]
    assert not np.any(scores[0] == scores[1])
    seen: set[int] = set()
    wrong: list[Any] = []
    over = threading.Event()
    with serving(folder, watch_seconds=0.05) as client:

        def ask(first: int) -> None:
            own = type(client)(client.port, client.server)
            place = first
            while not over.is_set():
                place = (place + 1) % len(records)
                status, found = own.score(records[place : place + 1])
                score = found["results"][0]["anomaly_score"] if status == 200 else None
                which = [k for k in (0, 1) if scores[k][place] == score]
                seen.update(which)
                if not which:
                    wrong.append((status, found))
            own.close()

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for swap in range(1, 5):
            models[swap % 2].save(folder)
            until = time.monotonic() + 20
            while client.metric('aloof_model_loads_total{model="model",result="ok"}') <= swap:
                assert time.monotonic() < until
        over.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert seen == {0, 1}


@pytest.mark.parametrize("damage", ["tampered", "truncated", "gone", "probes"])
def test_what_cannot_be_used_leaves_the_former_model_in_use(
    damage: str,
    made: Path,
    folder: Path,
    new: pa.Table,
    model: TableModel,
    serving: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = in_types(new)[:5]
    scores = model.anomaly_score(new)[:5].tolist()
    manifest, tensors = folder / "manifest.json", folder / "model.safetensors"
    with serving(folder) as client, caplog.at_level(logging.INFO, "aloof.serve"):
        if damage == "tampered":
            text = manifest.read_text()
            manifest.write_text(text.replace('"Oslo"', '"Roma"', 1))
        elif damage == "truncated":
            os.truncate(tensors, tensors.stat().st_size // 2)
        elif damage == "gone":
            shutil.rmtree(folder)
        else:
            # What is there is whole, but rows do not get their scores.
            shutil.copytree(made / "other", folder, dirs_exist_ok=True)
            monkeypatch.setattr(
                "aloof.estimators._saving._probe", lambda detector: np.array([1e9, 1e9])
            )
        for _ in range(2):
            status, found = client.ask("POST", "/models/model/reload")
            assert status == 409
            assert found["stale"]
            assert found["problem"]
        status, found = client.score(records)
        assert [row["anomaly_score"] for row in found["results"]] == scores
        status, found = client.get("/readyz")
        assert status == 200
        assert found["models"][0]["stale"]
        assert client.metric("aloof_model_stale") == 1
        assert client.metric('aloof_model_loads_total{model="model",result="failed"}') == 2
        told = [r for r in caplog.records if r.getMessage() == "model or rules cannot be used"]
        assert len(told) == 1, "the same problem is told once"
        monkeypatch.undo()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made / "other", folder)
        assert client.ask("POST", "/models/model/reload")[0] == 200
        assert client.metric("aloof_model_stale") == 0
        status, found = client.score(records)
        assert [row["anomaly_score"] for row in found["results"]] != scores


def test_a_model_that_cannot_be_used_does_not_start(folder: Path) -> None:
    (folder / "manifest.json").write_text("{}")
    slots = Slots([str(folder)], Limits(), "cpu")
    with pytest.raises(ServingError, match="schema_version"):
        slots.load()
    with pytest.raises(ServingError, match="Two models are called 'model'"):
        Slots([str(folder), str(folder)], Limits())
    with pytest.raises(ServingError, match="cannot be called"):
        Slots([f"a/b={folder}"], Limits())


def test_several_models_have_names(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    records = in_types(new)[:3]
    with serving(made / "model", f"second={made / 'other'}") as client:
        status, found = client.score(records)
        assert status == 404
        assert "/models/model/score" in found["error"]
        scores = []
        for name in ("model", "second"):
            status, found = client.score(records, f"/models/{name}/score")
            assert (status, found["model"]) == (200, name)
            scores.append([row["anomaly_score"] for row in found["results"]])
        assert scores[0] != scores[1]
        _, found = client.get("/models")
        assert [each["name"] for each in found["models"]] == ["model", "second"]
        assert client.get("/models/second")[1]["model"]["method"] == "dp"


def test_old_folders_without_anything_new_are_served(
    folder: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    """What a rehearsal needs is made from the encoder: a folder has nothing for it."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert not {"probes", "rehearsal"} & {*manifest, *manifest["table"]}
    with serving(folder) as client:
        assert client.score(in_types(new)[:1])[0] == 200
        served = client.server.slots["model"].served
        assert len(served.rehearsal()) > 1
        assert served.rehearsal() == served.rehearsal()


def test_drift_is_a_figure_and_the_one_of_a_stream(
    made: Path,
    new: pa.Table,
    model: TableModel,
    tmp_path: Path,
    serving: Callable[..., Any],
) -> None:
    """The same rows give the same drift, whether they come one by one or from a file."""
    usual = in_types(new)
    far = [row | {"amount": row["amount"] * 1000, "extra": 1} for row in usual]
    source = tmp_path / "rows.jsonl"
    with serving(made / "model") as client:
        sent, figures = [], []
        for rows, times, at_once in ((usual, 1, 7), (far, 16, 150), (usual, 27, 150)):
            for _ in range(times):
                for first in range(0, len(rows), at_once):
                    assert client.score(rows[first : first + at_once])[0] == 200
                sent += rows
            client.server.keeper._look_for_drift()
            figures.append(client.metric("aloof_drift{"))
            source.write_text("".join(json.dumps(row) + "\n" for row in sent))
            said: list[str] = []
            target = tmp_path / f"{len(sent)}.jsonl"
            with source.open() as lines, pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.stdin", lines)
                done = model.follow("-", target, say=said.append)
            assert len(done.drift) == figures[-1]
            found = [each.what for each in done.drift]
            assert found == client.server.slots["model"].served.drift()
    assert figures[0] == figures[2] == 0
    assert figures[1] >= 2
    assert any("`amount`: as in training again" in words for words in said)


def test_logs_are_json_without_values() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("aloof.serve")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        say("model in use", model="m", version="2")
        try:
            raise ValueError("amount is 17.25")
        except ValueError:
            logger.exception("error")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["event"] == "model in use"
    assert (first["model"], first["version"], first["level"]) == ("m", "2", "info")
    assert second["error"] == "ValueError"
    assert any("test_swapping.py" in place for place in second["at"])
    assert "17.25" not in stream.getvalue()
