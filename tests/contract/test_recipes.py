"""The recipes of CONTRIBUTING.md, carried out from the outside in at most 40 lines each.

Two more have tests of their own: a kind of columns in `tests/models/table/test_new_kind.py`, a
data set in `tests/datasets/test_new_dataset.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

import aloof
from aloof.baselines import BASELINES
from aloof.bench import run_study
from aloof.bench.images import ImageSpecification, image_systems, make_images
from aloof.cli.app import app
from aloof.cli.options import Data, Device, Model, passed
from aloof.datasets import ImageDataset
from aloof.estimators import DETECTORS
from aloof.models.loading import open_model
from aloof.vae import METHODS


def objective_recipe() -> type:
    from typing import ClassVar

    from torch import Tensor

    from aloof.estimators import LabelledDetector
    from aloof.vae import Anomalies, MethodRecord

    def hinge(distance: Tensor, radius: Tensor | float) -> Tensor:
        """Return how far inside a ball around the prior's mean a code lies, ``(...)``."""
        return torch.relu(radius - distance)

    def term(anomalies: Anomalies) -> Tensor:
        return hinge(anomalies.mean.norm(dim=-1), anomalies.numbers["alpha"])

    METHODS["hinge"] = MethodRecord("Hinge-VAE", (term,))

    @dataclass(kw_only=True, repr=False, eq=False)
    class HingeVAE(LabelledDetector):
        """Labelled anomalies are pushed out of a ball around the normal prior."""

        method: ClassVar[str] = "hinge"

    DETECTORS["hinge"] = HingeVAE
    return HingeVAE


def baseline_recipe() -> type:
    from torch import Tensor

    from aloof.baselines import DeepBaseline
    from aloof.baselines.classifier import LogitMembers
    from aloof.baselines.members import mixed_task
    from aloof.baselines.networks import Networks
    from aloof.labels import ANOMALY
    from aloof.problem import Problem
    from aloof.training import Setup, Task

    class SquareMembers(LogitMembers):
        def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
            target = (labels == ANOMALY).to(x.dtype)
            return (self.logit(x, training=True) - target).square()

    @dataclass(kw_only=True, repr=False, eq=False)
    class LeastSquares(DeepBaseline):
        """A network that regresses on the label; the score is its output."""

        label_use = "required"

        def _task(self, problem: Problem) -> Task:
            return mixed_task(problem)

        def _members(self, networks: Networks, setup: Setup) -> SquareMembers:
            return SquareMembers.build(networks, setup)

    BASELINES["least-squares"] = LeastSquares
    return LeastSquares


def command_recipe() -> Callable[..., None]:
    def count(
        context: typer.Context, model: Model, data: Data, device: Device = "auto"
    ) -> None:
        """Say how many are flagged.

        Example: **aloof count model new.csv**
        """
        fitted = open_model(model, device=device)
        (reading,) = passed(context, fitted.kind, fitted.read)
        scores = fitted.anomaly_score(fitted.read(data, **reading))
        typer.echo(f"{int(fitted.decide(scores).sum())} of {len(scores)} {fitted.things}")

    app.command()(count)
    return count


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """What a recipe adds is forgotten after the test."""
    registries: list[dict[str, Any]] = [METHODS, DETECTORS, BASELINES]
    before, commands = [dict(own) for own in registries], list(app.registered_commands)
    yield
    for own, entries in zip(registries, before, strict=True):
        own.clear()
        own.update(entries)
    app.registered_commands[:] = commands


RECIPES = [objective_recipe, baseline_recipe, command_recipe]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_a_recipe_takes_at_most_forty_lines(recipe: Callable[[], object]) -> None:
    assert len(inspect.getsource(recipe).splitlines()) <= 40


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(320, 5))
    X[300:, 0] += 1.5
    X[300:, 1:] *= 0.3
    return X, (np.arange(320) >= 300).astype(int)


def test_an_objective(tmp_path: Path) -> None:
    """It trains, learns from labels, is saved, loaded and refused like those of the paper."""
    HingeVAE = objective_recipe()
    (X, y), (test, truth) = rows(), rows(1)
    short = {"n_members": 2, "max_epochs": 60, "random_state": 0}
    short["beta_kl"] = 0.2
    model = HingeVAE(gamma=1.0, **short).fit(X, y)
    plain = aloof.VAE(**short).fit(X, y)
    seen, blind = (roc_auc_score(truth, m.anomaly_score(test)) for m in (model, plain))
    assert seen > blind + 0.1
    model.save(tmp_path / "model")
    same = aloof.load(tmp_path / "model")
    assert type(same) is HingeVAE
    np.testing.assert_array_equal(same.anomaly_score(test), model.anomaly_score(test))
    table = {f"x{k}": X[:, k] for k in range(5)} | {"bad": y}
    fitted = aloof.fit(
        table, label="bad", method="hinge", members=1, max_epochs=5, calibration=0.4
    )
    assert fitted.title == "Hinge-VAE with 1 member"


def test_a_baseline(tmp_path: Path) -> None:
    """One class learns tables and images, by itself and in the studies."""
    baseline_recipe()
    (X, y), (test, truth) = rows(), rows(1)
    fitted = BASELINES["least-squares"](max_epochs=60, n_members=2, random_state=0).fit(X, y)
    assert roc_auc_score(truth, fitted.anomaly_score(test)) > 0.8
    assert image_systems()["least-squares"]
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (90, 1, 28, 28), dtype=np.uint8)
    labels = np.repeat(np.arange(3), 30)
    pixels[labels == 1, :, :14] //= 4
    data = ImageDataset("three", pixels, labels, pixels, labels, ("a", "b", "c"), "0" * 64)
    options = {"methods": ["least-squares"], "gamma_l": 0.1, "members": 1, "baseline_epochs": 2}
    study = make_images(ImageSpecification(**options), data)
    records = run_study(study, tmp_path, device="cpu")
    assert [record["status"] for record in records] == ["ok"] * 3


def test_a_command(tmp_path: Path) -> None:
    command_recipe()
    X, _ = rows()
    np.save(tmp_path / "rows.npy", X)
    aloof.VAE(n_members=1, max_epochs=2, random_state=0).fit(X).save(tmp_path / "model")
    done = CliRunner().invoke(
        app, ["count", str(tmp_path / "model"), str(tmp_path / "rows.npy")]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout == "4 of 320 rows\n"
    missing = CliRunner().invoke(
        app, ["count", str(tmp_path / "no"), str(tmp_path / "rows.npy")]
    )
    assert missing.exit_code == 2
    assert "aloof count model new.csv" in CliRunner().invoke(app, ["count", "--help"]).stdout
