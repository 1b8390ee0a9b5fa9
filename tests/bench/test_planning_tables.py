"""Tables of the planning study say how many networks each row is of."""

from __future__ import annotations

from typing import Any

from aloof.bench.planning import PlanningSpecification
from aloof.bench.planning.tables import planning_grids


def record(sampler: str, seed: int, world: int, found: bool) -> dict[str, Any]:
    plan = {"n": 8, "found": found, "seconds": 0.01, "cost": 1.0}
    own = {"collision": 0.1 + 0.01 * seed, "coverage": 0.5, "plans": [plan]}
    return {"sampler": sampler, "setting": "ours", "seed": seed, "world": world, **own}


def test_rows_of_more_and_of_fewer_networks() -> None:
    spec = PlanningSpecification(methods=("vae", "dp"), setting=("ours",), seeds=2, counts=(8,))
    records = [record("VAE", 0, world, True) for world in range(20)]
    records += [record("DP-VAE", s, w, s == 0) for s in (0, 1) for w in range(20)]
    states, alike, success, *_ = planning_grids(spec, records)
    assert [row[:2] for row in states.rows] == [("VAE (ours)", "1"), ("DP-VAE (ours)", "2")]
    assert alike.rows[0][:2] == ("DP-VAE, draws (ours)", "+0.0")  # of the seed both have
    # One network has a path or none: Wilson's interval. Of two, half have one in every world.
    assert [row[1] for row in success.rows] == ["100.0 [83.9, 100.0]", "50.0 [50.0, 50.0]"]
