"""
Where not to sample: motion planning with negative examples
===========================================================

A planner looks for a path on a roadmap of states. A conditional VAE that was trained on optimal
paths proposes states near the optimal path of a world it has never seen, but some of them lie
in walls. A few points on the boundaries of walls, as anomalies, teach it where not to sample:
the plain VAE is on the left, DP-VAE on the right. Both redraw states that their own anomaly
score rejects; only DP-VAE has learned to reject walls. ``docs/planning.md`` shows what a
planner makes of such states.

Run it with ``python examples/plot_planning.py``; it takes about a minute and writes
``planning.png``. The whole experiment is ``aloof bench planning``.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from aloof.bench.planning.pictures import planning_figure
from aloof.planning import (
    NetworkConfig,
    collision_share,
    coverage,
    default_config,
    default_objective,
    make_trajectories,
    mirrored,
    train_generators,
)
from aloof.report import save_figure


def draw(path: Path, *, n_train: int = 400, max_epochs: int = 12) -> dict[str, float]:
    """Train both, write the picture, and return the share of states in collision."""
    known = mirrored(make_trajectories(n_train, size=8, n_walls=1, n_states=16, seed=1))
    unseen = make_trajectories(50, size=8, n_walls=1, n_states=16, seed=2)
    config = replace(default_config(max_epochs), batch_size=128, anomaly_batch_size=32)
    states, shares = {}, {}
    for title, method in (("VAE", "vae"), ("DP-VAE", "dp")):
        [model] = train_generators(
            known,
            default_objective(method),  # type: ignore[arg-type]
            config=config,
            networks=NetworkConfig((64, 64), dropout=0.0, latent_dim=16, filters=(8, 16)),
            device="cpu",
        )
        drawn = [model.draw(world, 128, screen=True) for world in unseen.worlds]
        pairs = list(zip(unseen.worlds, drawn, strict=True))
        shares[title] = float(np.mean([collision_share(*pair) for pair in pairs]))
        covered = [
            coverage(world, path, own)
            for (world, own), path in zip(pairs, unseen.states, strict=True)
        ]
        print(
            f"{title}: {100 * shares[title]:.1f} % of the states in collision, "
            f"{100 * np.mean(covered):.1f} % of the optimal path covered"
        )
        states[f"{title}, screened"] = drawn[:3]
    shown = replace(unseen, worlds=unseen.worlds[:3], states=unseen.states[:3])
    save_figure(planning_figure(shown, states), path)
    return shares


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw where two VAEs sample.")
    parser.add_argument("--out", type=Path, default=Path("planning.png"))
    target = parser.parse_args().out
    draw(target)
    print(f"wrote {target}")
