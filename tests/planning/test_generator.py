"""Training, drawing, and what the anomalies are good for."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planning_settings import SHORT, SMALL

from aloof import VAE
from aloof.exceptions import ModelError, PlanningError
from aloof.persistence import _manifest_digest
from aloof.planning import (
    StateGenerator,
    Trajectories,
    World,
    collision_share,
    coverage,
    default_objective,
    make_worlds,
    mixed_states,
    state_stream,
    train_generators,
)
from aloof.planning.generator import scale_states


def measure(model: StateGenerator, unseen: Trajectories) -> tuple[float, float]:
    shares, covered = [], []
    for number, world in enumerate(unseen.worlds):
        states = model.draw(world, 96, seed=number, screen=True)
        shares.append(collision_share(world, states))
        covered.append(coverage(world, unseen.states[number], states))
    return float(np.mean(shares)), float(np.mean(covered))


def test_anomalies_teach_where_not_to_sample(
    trajectories: Trajectories, unseen: Trajectories
) -> None:
    """Fails when the anomaly term is switched off: then both are one and the same VAE."""
    collisions, covered = {}, {}
    for method in ("vae", "dp"):
        [model] = train_generators(
            trajectories,
            replace(default_objective(method), alpha=5.0),  # type: ignore[arg-type]
            config=SHORT,
            networks=SMALL,
            device="cpu",
        )
        collisions[method], covered[method] = measure(model, unseen)
    assert collisions["dp"] < 0.7 * collisions["vae"]  # 0.5 here; 1.0 without the term
    assert covered["dp"] > covered["vae"] - 0.1


def test_one_seed_one_answer(untrained: StateGenerator, open_world: World) -> None:
    for screen in (False, True):
        one = untrained.draw(open_world, 20, seed=3, screen=screen)
        assert one.shape == (20, 4)
        assert np.array_equal(one, untrained.draw(open_world, 20, seed=3, screen=screen))
        assert not np.array_equal(one, untrained.draw(open_world, 20, seed=4, screen=screen))


def test_noise_is_that_of_the_likelihood(untrained: StateGenerator, open_world: World) -> None:
    """Half the KL weight for each number that the squared error is a mean of."""
    means, drawn = (untrained.draw(open_world, 4000, noise=noise) for noise in (False, True))
    units = [scale_states(states, untrained.size) for states in (means, drawn)]
    noise = (units[1] - units[0]).std(0)
    expected = np.sqrt(4 * untrained.objective.beta_kl / 2)
    assert untrained.objective.reduction == "mean"
    np.testing.assert_allclose(noise, expected, rtol=0.05)
    summed = replace(untrained, objective=replace(untrained.objective, reduction="sum"))
    assert summed.spread == pytest.approx(expected / 2)


def test_screened_states_are_those_below_the_threshold(
    untrained: StateGenerator, open_world: World
) -> None:
    scores = untrained.anomaly_score(open_world, untrained.draw(open_world, 200))
    model = replace(untrained, threshold=float(np.median(scores)))
    screened = model.draw(open_world, 100, screen=True)
    assert (model.anomaly_score(open_world, screened) <= model.threshold).all()
    nothing = replace(untrained, threshold=-np.inf)
    best = nothing.draw(open_world, 10, screen=True)  # the best there are
    assert (nothing.anomaly_score(open_world, best) < np.median(scores)).all()


def test_save_and_load(untrained: StateGenerator, open_world: World, tmp_path: Path) -> None:
    untrained.save(tmp_path / "model")
    again = StateGenerator.load(tmp_path / "model", device="cpu")
    assert again.objective == untrained.objective
    for screen in (False, True):
        drawn = (m.draw(open_world, 9, seed=1, screen=screen) for m in (untrained, again))
        assert np.array_equal(*drawn)
    X = np.random.default_rng(0).normal(size=(64, 3))
    VAE(n_members=1, max_epochs=1, random_state=0).fit(X).save(tmp_path / "other")
    with pytest.raises(ModelError, match="not one that proposes states"):
        StateGenerator.load(tmp_path / "other")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"networks": {"channels": [3]}}, r"networks\.channels is unknown"),
        ({"networks": {"hidden": "8"}}, r"networks\.hidden must be a list; got '8'"),
        ({"networks": {"dropout": 5.0}}, "dropout probability"),
        ({"objective": {"method": "vea"}}, r"objective\.method must be 'vae'"),
        ({"objective": {"beta_kl": -1.0}}, r"objective\.beta_kl is less than 0"),
        ({"size": "8"}, "size must be a whole number"),
        ({"size": 10**9}, "size must be less than or equal"),
        ({"threshold": None}, "threshold must be a number"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(
    change: dict[str, Any], words: str, untrained: StateGenerator, tmp_path: Path
) -> None:
    untrained.save(tmp_path / "model")
    file = tmp_path / "model" / "manifest.json"
    manifest = json.loads(file.read_text())
    for key, value in change.items():
        manifest[key] = {**manifest[key], **value} if isinstance(value, dict) else value
    manifest["manifest_sha256"] = _manifest_digest(manifest)
    file.write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=f"manifest.json: {words}"):
        StateGenerator.load(tmp_path / "model")


def test_save_and_load_with_convolutions(
    trajectories: Trajectories, open_world: World, tmp_path: Path
) -> None:
    some = replace(trajectories, worlds=trajectories.worlds[:8], states=trajectories.states[:8])
    [model] = train_generators(
        some,
        config=replace(SHORT, max_epochs=1, warmup_epochs=0),
        networks=replace(SMALL, filters=(3, 4)),
        device="cpu",
    )
    model.save(tmp_path / "model")
    again = StateGenerator.load(tmp_path / "model", device="cpu")
    assert again.networks == model.networks
    assert np.array_equal(*(m.draw(open_world, 9, seed=1) for m in (model, again)))


def test_a_grid_of_another_size(untrained: StateGenerator) -> None:
    [world] = make_worlds(1, size=16, seed=0)
    with pytest.raises(PlanningError, match=r"trained on grids of 8 x 8 .* 16 x 16"):
        untrained.draw(world, 3)


def test_mixed_states(untrained: StateGenerator, open_world: World) -> None:
    uniform = mixed_states(None, open_world, 40, seed=5)
    assert uniform.shape == (40, 2)
    mixed = mixed_states(untrained, open_world, 40, learned=0.25, seed=5)
    learned = (mixed != uniform).any(1)
    assert learned.sum() == 10
    assert learned[:20].sum() == 5  # any beginning is mixed
    drawn = untrained.draw(open_world, 10, seed=5)
    assert np.array_equal(mixed[learned], drawn[:, :2])
    assert np.array_equal(
        mixed_states(untrained, open_world, 8, learned=1.0, seed=5),
        untrained.draw(open_world, 8, seed=5)[:, :2],
    )
    with pytest.raises(PlanningError, match="share between 0 and 1"):
        mixed_states(untrained, open_world, 4, learned=50)


def test_a_stream_never_ends_and_repeats(untrained: StateGenerator, open_world: World) -> None:
    one, other = (
        np.array(list(islice(state_stream(untrained, open_world, seed=2, chunk=8), 20)))
        for _ in range(2)
    )
    assert np.array_equal(one, other)
    assert len(np.unique(one, axis=0)) == 20
