"""Processors are counted with a quota, and the user has the last word on threads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from aloof import VAE, processors, threads
from aloof.processors import (
    available_processors,
    be_considerate,
    chosen_threads,
    wait_asleep,
)


@pytest.fixture
def quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cpu.max"
    monkeypatch.setattr(processors, "_QUOTA", path)
    return path


@pytest.mark.parametrize(
    ("text", "count"), [("50000 100000\n", 1), ("100000 100000\n", 1), ("160000 100000\n", 2)]
)
def test_a_quota_is_counted(
    quota: Path, text: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    quota.write_text(text)
    assert available_processors() == count


@pytest.mark.parametrize("text", ["max 100000\n", "nonsense", ""])
def test_without_a_quota_every_processor_counts(
    quota: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    quota.write_text(text)
    assert available_processors() == 8


def test_threads_sleep_while_they_wait(quota: Path) -> None:
    quota.write_text("100000 100000\n")
    said: dict[str, str] = {}
    be_considerate(said)
    assert said["OMP_WAIT_POLICY"] == "PASSIVE"
    assert int(said["GOMP_SPINCOUNT"]) < 100_000
    assert said["OMP_NUM_THREADS"] == "1"
    assert not chosen_threads(said)
    assert wait_asleep(said)
    assert not wait_asleep({})


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"])
def test_what_the_user_said_of_waiting_stays(name: str) -> None:
    said = {name: "mine"}
    be_considerate(said)
    assert said[name] == "mine"
    assert name == "OMP_WAIT_POLICY" or "OMP_WAIT_POLICY" not in said


def test_what_the_user_said_of_threads_stays(quota: Path) -> None:
    quota.write_text("100000 100000\n")
    said = {"OMP_NUM_THREADS": "7"}
    be_considerate(said)
    assert said["OMP_NUM_THREADS"] == "7"
    assert chosen_threads(said)


@pytest.fixture
def four_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(threads, "chosen_threads", lambda: False)
    monkeypatch.setattr(threads, "wait_asleep", lambda: False)
    monkeypatch.setattr(threads, "available_processors", lambda: 2)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    monkeypatch.setattr(threads, "_DEFAULT", 4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
def test_small_steps_take_one_thread_and_give_the_others_back() -> None:
    with threads.threads_for(1e6):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 4
    with threads.threads_for(1e12):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
def test_threads_that_were_asked_for_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(3)  # not what torch began with
    with threads.threads_for(1e6):
        assert torch.get_num_threads() == 3
    torch.set_num_threads(4)
    monkeypatch.setattr(threads, "chosen_threads", lambda: True)
    with threads.threads_for(1e6):
        assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
def test_threads_that_sleep_share_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "wait_asleep", lambda: True)
    with threads.threads_for(1e6):
        assert torch.get_num_threads() == 2  # as many as there are processors


@pytest.mark.usefixtures("four_threads")
def test_a_small_fit_uses_one_thread() -> None:
    seen = set()
    detector = VAE(max_epochs=1, n_members=1, random_state=0)
    X = np.random.default_rng(0).normal(size=(40, 3))
    from aloof.training import trainer

    epoch = trainer._StackRun._epoch

    def watched(self: object, *arguments: object) -> float:
        seen.add(torch.get_num_threads())
        return epoch(self, *arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer._StackRun, "_epoch", watched)
        detector.fit(X)
    assert seen == {1}


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["bench", "--help"]])
def test_help_imports_neither_torch_nor_arrow(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['aloof', *{arguments!r}]\n"
        "from aloof.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'sklearn', 'pyarrow', 'pandas', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_package_imports_what_is_asked_for() -> None:
    code = (
        "import sys, aloof\n"
        "assert 'torch' not in sys.modules\n"
        "assert aloof.DualPriorVAE.__name__ == 'DualPriorVAE'\n"
        "assert 'torch' in sys.modules and 'torch._dynamo' not in sys.modules\n"
        "assert aloof.estimators.VAE is aloof.VAE\n"
        "assert set(aloof.__all__) <= set(dir(aloof))\n"
        "[getattr(aloof, name) for name in aloof.__all__]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_where_one_thread_fails_the_others_get_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available_processors", lambda: 2)
    before, done = torch.get_num_threads(), []

    def work(numbers: Iterable[int]) -> None:
        for number in numbers:
            if number == 1:
                raise ValueError("one")
            done.append(number)
            time.sleep(0.01)

    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError, match="one"):
            threads.share_out(work, range(1000))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert len(done) < 100
