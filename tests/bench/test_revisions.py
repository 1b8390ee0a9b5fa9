"""A change of a system's results must raise its revision: scores of tiny fits, in a file.

``ALOOF_GOLDEN=1 python -m pytest tests/bench/test_revisions.py`` writes the file anew. Do that
together with raising the revision of what changed. A new system goes into `REVISIONS` first.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aloof.baselines import BASELINES, DeepBaseline, Hybrid
from aloof.bench.methods import OURS
from aloof.bench.revisions import REVISIONS

GOLDEN = Path(__file__).with_name("golden_scores.json")
# Of the spread of the scores. Rounding of other machines and libraries is far below.
TOLERANCE = 0.05


@cache
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, their labels, and test rows; from the raw stream alone."""
    raw = np.random.PCG64(7).random_raw(170 * 5).astype(np.float64) / 2.0**64
    table = np.sqrt(12) * (raw.reshape(170, 5) - 0.5)
    table[:, 1] += 0.8 * table[:, 0]
    table[120:130] += [2.0, -2.0, 0.0, 1.0, 0.0]
    table[150:] *= 2.0
    labels = (np.arange(130) >= 120).astype(np.int64)
    return table[:130], labels, table[130:]


@cache
def images() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same for images: stripes that run across, in tests also down."""
    raw = np.random.PCG64(7).random_raw(100).astype(np.float64) / 2.0**64
    waves = np.sin(2 * np.pi * (np.arange(8) / 4 + raw[:, None]))
    stripes = np.repeat(0.5 + 0.5 * waves[:, None, :, None], 8, 3)
    stripes[80:] = stripes[80:].swapaxes(2, 3)
    return stripes[:60], np.zeros(60), stripes[60:]


def scores(name: str, seed: int = 0) -> np.ndarray:
    """Return the scores of a tiny fit, centred and in units of their spread."""
    factory: Any = {**BASELINES, **OURS}[name]
    system = factory(random_state=seed)
    X, y, test = images() if getattr(system, "images_only", False) else rows()
    names = system.get_params(deep=False)
    brief = {
        "max_epochs": 12,
        "pretrain_epochs": 6,
        "warmup_epochs": 4,
        "annealing_epochs": 3,
        "n_members": 2,
        "n_starts": 2,
        "widen": 1,
        "device": "cpu",
    }
    system.set_params(**{key: value for key, value in brief.items() if key in names})
    found = np.asarray(system.fit(X, y).anomaly_score(test), np.float64)
    return (found - np.median(found)) / (found.std() or 1.0)


def regenerate() -> None:
    content = {
        name: {"revision": number, "scores": np.round(scores(name), 2).tolist()}
        for name, number in REVISIONS.items()
    }
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in content.items())
    GOLDEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    if os.environ.get("ALOOF_GOLDEN"):
        regenerate()
    content: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("name", REVISIONS)
def test_results_are_those_of_the_revision(name: str, golden: dict[str, Any]) -> None:
    stored = golden.get(name, {"revision": 0, "scores": []})
    again = "write the file anew: ALOOF_GOLDEN=1 python -m pytest tests/bench/test_revisions.py"
    assert stored["revision"] == REVISIONS[name], f"the revision of {name} changed: {again}"
    far = np.abs(scores(name) - np.array(stored["scores"])).max()
    assert far < TOLERANCE, (
        f"{name} has other scores now: raise the revision of {name} in "
        f"src/aloof/bench/revisions.py, then {again}"
    )


def test_another_result_would_be_noticed(golden: dict[str, Any]) -> None:
    for name in ("dp", "deep-sad"):
        other = np.abs(scores(name, seed=1) - np.array(golden[name]["scores"])).max()
        assert other > 2 * TOLERANCE


def test_every_system_that_trains_a_network_has_a_revision() -> None:
    made = {name: factory() for name, factory in BASELINES.items()}
    deep = {type(m) for m in made.values() if isinstance(m, DeepBaseline)} - {Hybrid}
    assert deep == {type(made[name]) for name in REVISIONS if name in made}
    assert set(OURS) <= set(REVISIONS)
