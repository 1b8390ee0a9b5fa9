from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import aloof
import aloof.ray
import aloof.training
from aloof.bench.study import Group
from aloof.bench.workers import Event, execute
from aloof.models.table import TableModel, fit
from aloof.models.table.folders import FolderWork

if "ALOOF_ENGINES" not in os.environ:
    pytest.skip("starts Ray, which takes a minute; make engines", allow_module_level=True)
ray = pytest.importorskip("ray", reason="ray is not installed (aloof[ray])")
pytestmark = pytest.mark.filterwarnings("ignore")


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n)
    if seed:
        amount[::17] *= 1e6
    return pa.table({"key": np.arange(n), "amount": amount, "city": rng.choice([*"ABC"], n)})


@pytest.fixture(scope="module")
def model() -> TableModel:
    tiny = {"members": 1, "max_epochs": 3, "hidden": (8,), "latent_dim": 2}
    return fit(rows(600, 0), method="vae", id="key", **tiny).set_threshold(share=0.05)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for seed in range(1, 4):
        pq.write_table(rows(80, seed), folder / f"{seed}.parquet")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=100 * 2**20,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
    )
    yield
    ray.shutdown()


def same_files(first: Path, second: Path) -> int:
    paths = sorted(first.glob("*.parquet"))
    for path in paths:
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name
    return len(paths)


def test_a_folder_is_the_same_bytes_also_when_workers_are_killed(
    model: TableModel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file kills its worker once, another always."""
    model.score_folder(data, tmp_path / "here")
    deadly = tmp_path / "deadly"
    deadly.mkdir()

    class Dying(FolderWork):
        def start(self, model: Any = None) -> Any:
            score = super().start(model)

            def run(task: Any) -> Any:
                mark = deadly / task.name
                if task.name == "3.parquet" or (task.name == "1.parquet" and not mark.exists()):
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                return score(task)

            return run

    monkeypatch.setattr(aloof.ray.pool, "_DEATHS", 2)
    pool = aloof.ray.folder_pool(2)

    def dying(work: Any, tasks: Any) -> Any:
        return pool(Dying(work.model, work.options), tasks)

    with pytest.raises(aloof.exceptions.TableError, match=r"1 of 3 .*3\.parquet: its worker"):
        model.score_folder(data, tmp_path / "there", pool=dying)
    done = model.score_folder(data, tmp_path / "there", pool=pool, resume=True)
    assert (done.n_rows, done.n_resumed) == (240, 160)
    assert same_files(tmp_path / "here", tmp_path / "there") == 3


def test_a_data_set_is_scored_as_the_model_scores_it(
    model: TableModel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code of docs/scaling.md, with other names."""
    monkeypatch.chdir(tmp_path)
    model.save("model")
    text = (Path(__file__).parents[1] / "docs" / "scaling.md").read_text()
    (block,) = re.findall(r"```python ray\n(.*?)```", text, re.DOTALL)
    block = block.replace("s3://bucket/new/", str(data)).replace("s3://bucket", str(tmp_path))
    exec(block.replace("country", "city").replace("(1, 64)", "1, batch_size=50"), {})
    tables = pq.read_table(tmp_path / "scores")
    read = pa.concat_tables([pq.read_table(path) for path in sorted(data.glob("*"))])
    expected = model.score(read, keep=["city"])
    order = [("anomaly_score", "ascending"), ("key", "ascending")]
    assert tables.select(expected.column_names).sort_by(order).equals(expected.sort_by(order))


def test_groups_of_a_benchmark_run_on_a_cluster(tmp_path: Path) -> None:
    """One after a worker was killed, one not at all, one with an error."""
    marks = str(tmp_path)

    def prepare(name: str) -> Any:
        def work(tell: Any) -> Iterator[dict[str, Any]]:
            mark = os.path.join(marks, name)
            if name == "deadly" or (name == "once" and not os.path.exists(mark)):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "wrong":
                raise ValueError("no")
            tell(1, 2, "")
            yield {"pid": os.getpid()}

        return lambda: work

    names = ("fine", "once", "deadly", "wrong")
    groups = [Group(name, (name,), prepare(name)) for name in names]
    events: list[Event] = []
    found = dict(execute(groups, n_workers=1, on_event=events.append, cluster=True))
    assert found["fine"]["pid"] != os.getpid()
    assert "pid" in found["once"]
    assert found["deadly"]["message"].startswith("The process was killed")
    assert found["wrong"]["message"] == "ValueError: no"
    assert sum(event.kind == "finished" for event in events) == 4


def test_problems_and_members_learn_on_a_cluster_as_here() -> None:
    """Two tables, members of one fit, and a committee, whose views share a warm-up."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), np.repeat([0, 1], [112, 8])
    X[y == 1] += 3
    tiny: dict[str, Any] = {"max_epochs": 6, "random_state": 0, "hidden": (8,), "latent_dim": 2}

    def made() -> list[aloof.estimators.Detector]:
        return [
            aloof.VAE(n_members=3, **tiny),
            aloof.DualPriorVAE(n_members=2, **tiny),
            aloof.Committee(**tiny),
        ]

    data = [(X, None), (X[::-1], y[::-1]), (X, y)]
    here, there = made(), made()
    aloof.fit_many(here, data)
    seen: list[int] = []
    aloof.ray.fit_many(
        there, data, workers=2, on_epoch=lambda report: seen.append(report.epoch)
    )
    assert seen == sorted(seen)
    for own, other in zip(here, there, strict=True):
        np.testing.assert_allclose(own.anomaly_score(X), other.anomaly_score(X), rtol=1e-3)
        assert own.history_["loss"].shape == other.history_["loss"].shape
    text = (Path(__file__).parents[1] / "docs" / "scaling.md").read_text()
    (block,) = re.findall(r"```python ray fit\n(.*?)```", text, re.DOTALL)
    shown: dict[str, Any] = {"X": X, "y": y}
    exec(block.replace("alpha=alpha", "alpha=alpha, max_epochs=3").replace("15", "1"), shown)
    assert all(len(one.anomaly_score(X)) == len(X) for one in shown["grid"])
    with pytest.raises(aloof.exceptions.AloofError, match="train on processors"):
        aloof.ray.fitting._Cluster(None)([], [], None, None, device=torch.device("cuda"))
