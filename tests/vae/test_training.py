"""Laws of training VAEs, in float64 where equality is meant."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from problems import (
    CPU,
    LATENT,
    N_FEATURES,
    OBJECTIVES,
    architecture,
    config,
    data,
    problem,
    states,
)
from torch import nn

from aloof.exceptions import CheckpointError, DivergenceError
from aloof.networks import Architecture, MLPDecoder, MLPEncoder
from aloof.training import EpochReport, discard_checkpoints
from aloof.training.replay import Replay
from aloof.vae import Ensemble, Objective, train
from aloof.vae.loss import batch_loss, member_numbers


class NormedEncoder(nn.Module):
    """An ordinary user's network: batch normalisation and no promise about stacking."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(N_FEATURES, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.mean, self.log_var = nn.Linear(8, LATENT), nn.Linear(8, LATENT)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x)
        return self.mean(hidden), self.log_var(hidden)


class NormedDecoder(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Linear(LATENT, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, N_FEATURES)
        )


class DropoutEncoder(NormedEncoder):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(N_FEATURES, 8), nn.Dropout(0.3), nn.ReLU())


NORMED = Architecture(NormedEncoder, NormedDecoder, LATENT)
_OPTIONS: dict[str, Any] = {"hidden": (8, 5), "normalise": True, "bias": False, "slope": 0.01}
PUBLISHED = Architecture(
    partial(MLPEncoder, (N_FEATURES,), LATENT, **_OPTIONS),
    partial(MLPDecoder, (N_FEATURES,), LATENT, **_OPTIONS),
    LATENT,
)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(
    "networks", [architecture(), NORMED, PUBLISHED], ids=["mlp", "batch-norm", "published"]
)
def test_member_equals_the_model_trained_alone(name: str, networks: Architecture) -> None:
    x, seeds = data(), [11, 22, 33]
    objective = OBJECTIVES[name]
    together = train(
        [x], [problem(seeds, objective=objective)], networks, config(), device=CPU
    )[0]
    for k, seed in enumerate(seeds):
        alone = train(
            [x], [problem([seed], objective=objective)], networks, config(), device=CPU
        )[0]
        for key, value in states(alone.ensemble).items():
            torch.testing.assert_close(
                together.ensemble.state()[key][k], value[0], rtol=1e-7, atol=1e-9
            )
        np.testing.assert_allclose(
            together.history["loss"][:, k], alone.history["loss"][:, 0], rtol=1e-5
        )


@pytest.mark.parametrize("engine", ["vmap", "loop"])
@pytest.mark.parametrize("name", ["dp", "mml"])
@pytest.mark.parametrize("networks", [architecture(), PUBLISHED], ids=["mlp", "published"])
def test_engines_agree(engine: str, name: str, networks: Architecture) -> None:
    x, one = data(), problem([1, 2], objective=OBJECTIVES[name])
    reference = train([x], [one], networks, config(engine="stacked"), device=CPU)[0]
    other = train([x], [one], networks, config(engine=engine), device=CPU)[0]
    for key, value in reference.ensemble.state().items():
        torch.testing.assert_close(other.ensemble.state()[key], value, rtol=1e-7, atol=1e-9)


def test_batch_normalised_engines_agree_in_training_and_in_eval_mode() -> None:
    x, one = data(), problem([1, 2], objective=OBJECTIVES["dp"])
    results = [
        train([x], [one], NORMED, config(engine=engine), device=CPU)[0]
        for engine in ("vmap", "loop")
    ]
    stacked = x.expand(2, *x.shape)
    for left, right in zip(*(states(r.ensemble).values() for r in results), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-7, atol=1e-9)
    left, right = (r.ensemble.encode([stacked])[0] for r in results)
    torch.testing.assert_close(left, right)
    running = states(results[0].ensemble)["encoder.body.1.running_mean"]
    assert (running.abs() > 1e-3).all(), "running statistics were not updated"


def test_many_problems_of_several_shapes_equal_one_at_a_time() -> None:
    x = data(120, 12)
    problems = [
        problem([1, 2], 120, objective=Objective("dp", alpha=2.0)),
        problem([3], 120, objective=Objective("dp", alpha=6.0, beta_kl=0.2)),
        problem([4], 50, objective=Objective("dp")),  # other batches: a stack of its own
        problem([5], 120, objective=Objective("mml")),
        problem([6], 120, anomaly=np.arange(0), objective=Objective("dp")),
    ]
    together = train([x], problems, architecture(), config(), device=CPU)
    for one, result in zip(problems, together, strict=True):
        alone = train([x], [one], architecture(), config(), device=CPU)[0]
        for key, value in alone.ensemble.state().items():
            torch.testing.assert_close(
                result.ensemble.state()[key], value, rtol=1e-7, atol=1e-9
            )


def test_members_differ_and_everything_moves() -> None:
    one = problem([1, 2], objective=OBJECTIVES["mml-dp"])
    before = train([data()], [one], architecture(), config(max_epochs=1), device=CPU)[0]
    after = train([data()], [one], architecture(), config(max_epochs=6), device=CPU)[0]
    for key, value in after.ensemble.state().items():
        assert (value != before.ensemble.state()[key]).any(), f"{key} never moved"
        assert (value[0] != value[1]).any(), f"{key} is the same in both members"


def test_loss_falls() -> None:
    one = problem([1, 2, 3])
    long = train(
        [data()], [one], architecture(), config(max_epochs=60, learning_rate=0.01), device=CPU
    )[0]
    curve = long.history["reconstruction"]
    assert (curve[-5:].mean(0) < 0.6 * curve[:3].mean(0)).all()


def joint_gradient(
    part: str,
    gamma: float,
    *,
    networks: Architecture,
    freeze: bool = True,
    separate: bool = False,
) -> torch.Tensor:
    """Return the gradient of one joint batch with respect to the encoder or the decoder."""
    x, objective = data(), Objective("dp", gamma=gamma)
    ensemble = Ensemble.build(
        networks, [7], [x], device=CPU, dtype=torch.float64, separate_encoder=separate
    )
    numbers = member_numbers([objective], device=CPU, dtype=torch.float64)
    terms = batch_loss(
        ensemble,
        objective,
        numbers,
        numbers["beta_kl"],
        [torch.cat([x[:20], x[90:98]])[None]],
        torch.zeros(1, 20, LATENT).double(),
        torch.zeros(1, 1, 8, LATENT).double(),
        n_normal=20,
        freeze_decoder=freeze,
    )
    leaves = list(getattr(ensemble, part).parameters.values())
    gradients = torch.autograd.grad(terms.total.sum(), leaves)
    return torch.cat([gradient.flatten() for gradient in gradients])


@pytest.mark.parametrize("freeze", [True, False])
@pytest.mark.parametrize(
    "networks", [architecture(), NORMED, PUBLISHED], ids=["mlp", "batch-norm", "published"]
)
def test_frozen_decoder_learns_nothing_from_anomalies(
    networks: Architecture, freeze: bool
) -> None:
    """The decoder's gradient is the same whatever the anomalies' weight, and only then."""
    gradient = partial(joint_gradient, networks=networks, freeze=freeze)
    assert torch.allclose(gradient("decoder", 0.0), gradient("decoder", 5.0)) == freeze
    assert not torch.allclose(gradient("encoder", 0.0), gradient("encoder", 5.0))


@pytest.mark.parametrize("part", ["encoder", "decoder"])
@pytest.mark.parametrize("networks", [NORMED, PUBLISHED], ids=["batch-norm", "published"])
def test_a_batch_is_decoded_once_with_the_gradients_of_twice(
    part: str, networks: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiled loss decodes rows that influence each other a second time, parameters held."""
    gradient = partial(joint_gradient, part, 5.0, networks=networks, freeze=True)
    once = gradient()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(once, gradient())


class ConstantSpread(NormedDecoder):
    """Rows influence each other, and a part of the output depends on nothing."""

    def forward(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        mean = super().forward(z)
        return mean, torch.zeros_like(mean)


def test_a_decoder_may_have_a_constant_output() -> None:
    networks = Architecture(NormedEncoder, ConstantSpread, LATENT)
    gaussian = Objective("dp", likelihood="gaussian")
    one = replace(problem([1, 2]), objective=gaussian)
    [result] = train([data()], [one], networks, config(), device=CPU)
    assert np.isfinite(result.history["loss"]).all()


@pytest.mark.parametrize("separate", [True, False])
def test_separate_encoder_keeps_anomalies_from_the_first(separate: bool) -> None:
    """The scoring encoder's gradient does not depend on the anomalies' weight."""
    gradient = partial(joint_gradient, "encoder", networks=architecture(), separate=separate)
    assert torch.allclose(gradient(gamma=0.0), gradient(gamma=5.0)) == separate


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "vae"])
def test_gamma_zero_leaves_the_plain_vae(name: str) -> None:
    """Anomalies that weigh nothing change nothing: not a bit of the loss of normal rows."""
    x, n = data(), 20
    ensemble = Ensemble.build(architecture(), [7], [x], device=CPU, dtype=torch.float64)
    noise = torch.zeros(1, n, LATENT).double()

    def terms(objective: Objective, n_anomaly: int) -> Any:
        numbers = member_numbers([objective], device=CPU, dtype=torch.float64)
        shape = (objective.n_samples, 1, n_anomaly, LATENT)
        return batch_loss(
            ensemble,
            objective,
            numbers,
            numbers["beta_kl"],
            [torch.cat([x[:n], x[-5:][:n_anomaly]])[None]],
            noise,
            torch.ones(shape).double() if n_anomaly else None,
            n_normal=n,
            freeze_decoder=True,
        )

    off = terms(replace(OBJECTIVES[name], gamma=0.0), 5)
    plain = terms(replace(OBJECTIVES[name], method="vae"), 0)
    assert (off.anomaly == 0).all()
    torch.testing.assert_close(off.total, plain.total)
    assert (terms(OBJECTIVES[name], 5).anomaly != 0).all()


def test_warm_up_decides_when_anomalies_join() -> None:
    one = problem([1])
    result = train([data()], [one], architecture(), config(warmup_epochs=4), device=CPU)[0]
    assert (result.history["anomaly"][:4] == 0).all()
    assert (result.history["anomaly"][4:] > 0).all()


def test_dropout_is_seeded_and_leaves_no_trace() -> None:
    """The global generators are checked by the fixture of every test."""
    networks = Architecture(DropoutEncoder, NormedDecoder, LATENT)
    seeds = [5, 6]
    first, second = (
        states(train([data()], [problem(seeds)], networks, config(), device=CPU)[0].ensemble)
        for _ in range(2)
    )
    for key, value in first.items():
        assert torch.equal(value, second[key])
    alone = train([data()], [problem([6])], networks, config(), device=CPU)[0]
    for key, value in states(alone.ensemble).items():
        torch.testing.assert_close(first[key][1], value[0], rtol=1e-7, atol=1e-9)


def test_recurrent_networks_train_in_a_loop() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(1, 6, batch_first=True)
            self.head = nn.Linear(6, 2 * LATENT)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            _, (hidden, _) = self.lstm(x.unsqueeze(-1))
            mean, log_var = self.head(hidden[-1]).chunk(2, -1)
            return mean, log_var

    networks = Architecture(Recurrent, NormedDecoder, LATENT)
    result = train([data()], [problem([1, 2])], networks, config(), device=CPU)[0]
    assert result.ensemble.encoder.engine == "loop"
    assert np.isfinite(result.history["loss"]).all()


def test_context_reaches_both_networks() -> None:
    """A conditional VAE: the rows' context is an input of encoder and decoder."""

    class Conditional(nn.Module):
        def __init__(self, n_in: int, n_out: int, pair: bool) -> None:
            super().__init__()
            self.layer, self.pair = nn.Linear(n_in + 2, n_out), pair

        def forward(self, x: torch.Tensor, context: torch.Tensor) -> object:
            out = self.layer(torch.cat([x, context], -1))
            return tuple(out.chunk(2, -1)) if self.pair else out

    networks = Architecture(
        partial(Conditional, N_FEATURES, 2 * LATENT, True),
        partial(Conditional, LATENT, N_FEATURES, False),
        LATENT,
    )
    x = data()
    context = torch.zeros(len(x), 2).double()
    results = [
        train([x, c], [problem([1])], networks, config(), device=CPU)[0].history["loss"][-1]
        for c in (context, context + 1)
    ]
    assert np.isfinite(results).all()
    assert results[0] != results[1]


def test_early_stopping_restores_the_best_state_of_each_member() -> None:
    x = data(60, 12)
    held = problem(
        [1, 2, 3],
        normal=np.arange(40),
        anomaly=np.arange(60, 70),
        validation_normal=np.arange(40, 60),
        validation_anomaly=np.arange(70, 72),
    )
    settings = config(max_epochs=400, patience=8, learning_rate=0.02)
    result = train([x], [held], architecture((32,)), settings, device=CPU)[0]
    curve = result.history["validation"]
    assert len(curve) < 400
    counted = curve[settings.first_full_epoch :]
    for k, best in enumerate(result.best_epoch):
        stop = next(
            e for e in range(len(counted)) if e - int(np.argmin(counted[: e + 1, k])) >= 8
        )
        expected = settings.first_full_epoch + int(np.argmin(counted[: stop + 1, k])) + 1
        assert best == expected
    short = train(
        [x],
        [replace(held, seeds=[2])],
        architecture((32,)),
        replace(settings, max_epochs=int(result.best_epoch[1])),
        device=CPU,
    )[0]
    for key, value in states(short.ensemble).items():
        torch.testing.assert_close(
            result.ensemble.state()[key][1], value[0], rtol=1e-6, atol=1e-8
        )


def test_batch_normalisation_of_one_row_is_refused() -> None:
    with pytest.raises(ValueError, match="Raise batch_size"):
        train([data()], [problem([1])], NORMED, config(batch_size=1), device=CPU)


def test_a_subclass_does_not_inherit_the_promise_to_stack() -> None:
    """It may have added layers that cannot be stacked, or that draw random numbers."""

    class Noisy(MLPEncoder):
        def __init__(self) -> None:
            super().__init__((N_FEATURES,), LATENT, (8,))
            self.body.append(nn.Dropout(0.5))

    class Promising(Noisy):
        stackable = True

    for encoder in (Noisy, Promising):
        networks = Architecture(encoder, partial(MLPDecoder, (N_FEATURES,), LATENT), LATENT)
        first, second = (
            train([data()], [problem([1, 2])], networks, config(), device=CPU)[0] for _ in "ab"
        )
        assert first.ensemble.encoder.engine == "loop"
        for key, value in states(first.ensemble).items():
            assert torch.equal(value, second.ensemble.state()[key])


def test_divergence_is_an_error_that_says_what_to_do() -> None:
    settings = config(learning_rate=1e30, max_grad_norm=None)
    with pytest.raises(DivergenceError, match=r"(?s)not finite.*learning_rate"):
        train([data()], [problem([1, 2])], architecture(), settings, device=CPU)


def test_progress_is_reported_every_epoch() -> None:
    reports: list[EpochReport] = []
    train(
        [data()], [problem([1])], architecture(), config(), device=CPU, on_epoch=reports.append
    )
    assert [r.epoch for r in reports] == list(range(1, 9))
    assert {r.max_epochs for r in reports} == {8}


class Killed(Exception):
    pass


@pytest.mark.parametrize("patience", [None, 5])
def test_interrupted_fit_continues_to_the_same_bits(
    tmp_path: Path, patience: int | None
) -> None:
    x = data(60, 12).float()
    held = problem(
        [1, 2],
        normal=np.arange(40),
        anomaly=np.arange(60, 72),
        validation_normal=np.arange(40, 60),
    )
    settings = config(max_epochs=26, patience=patience)
    whole = train([x], [held], NORMED, settings, device=CPU)[0]
    path = tmp_path / "fit.checkpoint"

    def kill(report: EpochReport) -> None:
        if report.epoch == 23:
            raise Killed

    with pytest.raises(Killed):
        train([x], [held], NORMED, settings, device=CPU, checkpoint=path, on_epoch=kill)
    assert path.exists()
    seen: list[EpochReport] = []
    resumed = train(
        [x], [held], NORMED, settings, device=CPU, checkpoint=path, on_epoch=seen.append
    )[0]
    assert seen[0].epoch == 24, "it did not go on after the last epoch that was told"
    again: list[EpochReport] = []
    finished = train(
        [x], [held], NORMED, settings, device=CPU, checkpoint=path, on_epoch=again.append
    )[0]
    assert len(again) == 1, "a finished fit was trained again"
    np.testing.assert_array_equal(finished.best_epoch, whole.best_epoch)
    assert torch.equal(
        finished.ensemble.state()["decoder.0.weight"],
        whole.ensemble.state()["decoder.0.weight"],
    )
    discard_checkpoints(path)
    assert not path.exists()
    for key, value in states(whole.ensemble).items():
        assert torch.equal(resumed.ensemble.state()[key], value)
    for name, curve in whole.history.items():
        np.testing.assert_array_equal(resumed.history[name], curve)


def test_killed_process_continues_to_the_same_bits(tmp_path: Path) -> None:
    """kill -9 in the middle of a fit, as a machine would."""
    script = """
import numpy as np
from aloof import DualPriorVAE
def scores(checkpoint):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(60, 4)), rng.normal(size=(5, 4)) + 3]
    y = np.r_[np.zeros(60), np.ones(5)]
    model = DualPriorVAE(n_members=2, max_epochs=25, warmup_epochs=5, random_state=0,
                         checkpoint=checkpoint).fit(X, y)
    return model.anomaly_score(X).tobytes()
"""
    killed = """
import os, signal, sys
from aloof.training.checkpoint import CheckpointFile
write = CheckpointFile.write
def write_then_die(file, checkpoint):
    write(file, checkpoint)
    if checkpoint.epoch == 20:
        os.kill(os.getpid(), signal.SIGKILL)
CheckpointFile.write = write_then_die
scores(sys.argv[1])
"""
    here: dict[str, Any] = {}
    exec(script, here)
    undisturbed, checkpoint = here["scores"](tmp_path / "a"), tmp_path / "b"
    died = subprocess.run([sys.executable, "-c", script + killed, str(checkpoint)])
    assert died.returncode == -signal.SIGKILL
    assert checkpoint.exists()
    assert here["scores"](checkpoint) == undisturbed


def test_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"

    def kill(report: EpochReport) -> None:
        if report.epoch == 11:
            raise Killed

    settings = config(max_epochs=20)
    with pytest.raises(Killed):
        train(
            [data()],
            [problem([1])],
            architecture(),
            settings,
            device=CPU,
            checkpoint=path,
            on_epoch=kill,
        )
    for other in (problem([2]), problem([1], objective=Objective("dp", alpha=1.0))):
        with pytest.raises(CheckpointError, match="other data, settings or seed"):
            train([data()], [other], architecture(), settings, device=CPU, checkpoint=path)
    stepped = config(max_epochs=20, lr_schedule="step", milestones=(15,))
    with pytest.raises(CheckpointError, match="other data, settings or seed"):
        train([data()], [problem([1])], architecture(), stepped, device=CPU, checkpoint=path)
    wider = architecture((9,))
    with pytest.raises(CheckpointError, match="other data, settings or seed"):
        train([data()], [problem([1])], wider, settings, device=CPU, checkpoint=path)
    with pytest.raises(CheckpointError, match="is a folder"):
        train([data()], [problem([1])], wider, settings, device=CPU, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="is not a folder"):
        train([data()], [problem([1])], wider, settings, device=CPU, checkpoint=path / "inside")
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match="Delete it"):
        train([data()], [problem([1])], architecture(), settings, device=CPU, checkpoint=path)


def test_bfloat16_training_is_another_path_to_the_same_place() -> None:
    x = data().float()
    one = problem([1, 2])
    result = train([x], [one], architecture(), config(precision="bfloat16"), device=CPU)[0]
    exact = train([x], [one], architecture(), config(), device=CPU)[0]
    assert np.abs(result.history["loss"] - exact.history["loss"]).max() > 0
    np.testing.assert_allclose(result.history["loss"], exact.history["loss"], rtol=0.1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_agrees_with_itself_alone() -> None:
    cuda = torch.device("cuda", 0)
    x = data()
    both = train([x], [problem([1, 2])], NORMED, config(), device=cuda)[0]
    alone = train([x], [problem([2])], NORMED, config(), device=cuda)[0]
    for key, value in states(alone.ensemble).items():
        torch.testing.assert_close(
            both.ensemble.state()[key][1], value[0], rtol=1e-6, atol=1e-8
        )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", OBJECTIVES)
def test_on_a_gpu_every_method_replays_its_steps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that cannot be recorded still trains, but several times as slowly."""
    made = []

    class Watched(Replay):
        def __init__(self, step: Any) -> None:
            super().__init__(step)
            made.append(self)

    monkeypatch.setattr("aloof.training.trainer.Replay", Watched)
    one = problem([1], objective=OBJECTIVES[name])
    train([data()], [one], architecture(), config(), device=torch.device("cuda", 0))
    assert made
    assert all(replay._works and replay._recorded for replay in made)


def test_default_networks_are_stacked_and_a_single_model_is_an_ensemble_of_one() -> None:
    networks = Architecture(
        partial(MLPEncoder, (N_FEATURES,), LATENT),
        partial(MLPDecoder, (N_FEATURES,), LATENT),
        LATENT,
    )
    result = train([data()], [problem([9])], networks, config(), device=CPU)[0]
    assert result.ensemble.encoder.engine == "stacked"
    assert result.ensemble.n_members == 1
