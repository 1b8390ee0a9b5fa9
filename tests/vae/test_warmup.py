"""Warm-ups that are the same computation are trained once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from problems import CPU, architecture, config, data, problem, states

from aloof.training import EpochReport
from aloof.vae import Objective, VAEProblem, count_epochs, train
from aloof.vae.warmup import share_warmups


def compared() -> list[VAEProblem]:
    """Three methods, fewer anomalies, and others that share nothing."""
    return [
        problem([1, 2], objective=Objective("dp", jitter=0.3)),
        problem([1, 2], objective=Objective("mml", n_samples=2)),
        problem([1, 2], objective=Objective("dp", alpha=2.0), anomaly=np.arange(90, 95)),
        problem([3, 4], objective=Objective("dp")),
        problem([3, 4], objective=Objective("mml-dp")),
        problem([1, 2], objective=Objective("vae")),
        problem([1, 2], objective=Objective("dp", beta_kl=0.5)),
        problem([5, 6], objective=Objective("dp")),
    ]


def test_who_shares_with_whom() -> None:
    shared = share_warmups(compared(), config())
    assert list(shared.of) == [0, 0, 0, 1, 1, None, None, None]
    assert [one.objective.method for one in shared.problems] == ["vae", "vae"]


@pytest.mark.parametrize(
    "changes", [{"warmup_epochs": 0}, {"patience": 2}, {"separate_encoder": True}]
)
def test_nothing_is_shared_where_it_would_not_be_the_same(changes: dict[str, int]) -> None:
    assert not share_warmups(compared(), config(**changes)).problems


@pytest.mark.parametrize(
    ("lr_schedule", "milestones"),
    [("constant", ()), ("step", ()), ("step", (2, 3, 6)), ("cosine", ())],
)
def test_sharing_changes_no_result_and_saves_epochs(
    lr_schedule: str, milestones: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aloof.vae.config._STEP", 2)  # of the rate: soon enough to be seen
    problems, seen = compared(), []
    schedule = config(lr_schedule=lr_schedule, milestones=milestones)

    def note(report: EpochReport) -> None:
        seen.append((report.epoch, report.max_epochs))

    together = train([data()], problems, architecture(), schedule, device=CPU, on_epoch=note)
    total = count_epochs(problems, schedule)
    assert [epoch for epoch, _ in seen] == list(range(1, total + 1))
    assert {most for _, most in seen} == {total}
    # Six stacks of 8 epochs, four of which begin after 3 epochs that are trained once.
    alone_epochs = sum(count_epochs([one], schedule) for one in problems)
    assert total < alone_epochs
    for one, result in zip(problems, together, strict=True):
        alone = train([data()], [one], architecture(), schedule, device=CPU)[0]
        for key, value in states(alone.ensemble).items():
            torch.testing.assert_close(
                result.ensemble.state()[key], value, rtol=1e-7, atol=1e-9
            )
        for name, curve in alone.history.items():
            np.testing.assert_allclose(result.history[name], curve, rtol=1e-5, atol=1e-9)


def test_an_interrupted_run_with_shared_warm_ups_continues(tmp_path: Path) -> None:
    problems = compared()[:5]
    whole = train([data()], problems, architecture(), config(), device=CPU)

    class Stop(Exception):
        pass

    for stop_after in (2, 7, 12, 17):

        def stop(report: EpochReport, last: int = stop_after) -> None:
            if report.epoch == last:
                raise Stop

        path = tmp_path / f"fit-{stop_after}.ckpt"
        with pytest.raises(Stop):
            train(
                [data()],
                problems,
                architecture(),
                config(),
                device=CPU,
                checkpoint=path,
                on_epoch=stop,
            )
        again = train([data()], problems, architecture(), config(), device=CPU, checkpoint=path)
        for one, other in zip(whole, again, strict=True):
            for key, value in states(one.ensemble).items():
                assert torch.equal(other.ensemble.state()[key], value)
