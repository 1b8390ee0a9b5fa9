"""A manifest with wrong content and right digests: refused in one line, or harmless.

Of each kind of model, manifests are changed at random (seeded) and signed again. Whatever
comes of it, scores are those of before, or an error of ours says what is wrong; nothing else is
raised. `ALOOF_MANIFESTS` says how many of each kind; a few thousand are a thorough check.
"""

from __future__ import annotations

import copy
import json
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aloof
from aloof.exceptions import AloofError, ModelError
from aloof.models.table import TableModel
from aloof.models.table.columns import Column
from aloof.persistence import _manifest_digest

N_EACH = int(os.environ.get("ALOOF_MANIFESTS", "100"))

GARBAGE: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    7,
    10**9,
    10**30,
    0.5,
    -2.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "other",
    "\ud800",
    [],
    [1, "a", None],
    [[]],
    {},
    {"a": {"b": [None]}},
    {"share": 0.2},
]

Scores = Callable[[Path], np.ndarray]


def signed(folder: Path, manifest: dict[str, Any]) -> None:
    manifest["manifest_sha256"] = _manifest_digest(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def size(value: Any) -> int:
    """Return how much there is to change."""
    if not isinstance(value, dict | list):
        return 1
    return 1 + sum(map(size, value.values() if isinstance(value, dict) else value))


def walk(
    manifest: Any, rng: random.Random, skip: Callable[[list[Any]], bool]
) -> tuple[list[Any], Any]:
    """Return a random place in the manifest: its path, and what it is in."""
    while True:
        at, path, within = manifest, [], None
        while isinstance(at, dict | list) and at and (not path or rng.random() < 0.9):
            keys = sorted(at) if isinstance(at, dict) else range(len(at))
            (key,) = rng.choices(keys, [min(size(at[k]), 60) for k in keys])
            within, at = at, at[key]
            path.append(key)
        if not skip(path):
            return path, within


def change(manifest: Any, rng: random.Random, skip: Callable[[list[Any]], bool]) -> list[Any]:
    """Change one thing; return where."""
    path, within = walk(manifest, rng, skip)
    key = path[-1]
    what = rng.choice(["garbage", "garbage", "garbage", "drop", "swap", "add", "wrap", "turn"])
    value = within[key]
    if what == "drop":
        del within[key]
    elif what == "swap":
        other, where = walk(manifest, rng, skip)
        within[key] = copy.deepcopy(where[other[-1]])
    elif what == "add" and isinstance(value, dict):
        value["unknown"] = rng.choice(GARBAGE)
    elif what == "add" and isinstance(value, list):
        value.append(rng.choice([*GARBAGE, *value]))
    elif what == "wrap":
        within[key] = [value]
    elif what == "turn" and isinstance(value, int | float):
        within[key] = -value if rng.random() < 0.5 else value * 1e6
    elif what == "turn" and isinstance(value, list):
        value.reverse()
    else:
        within[key] = copy.deepcopy(rng.choice(GARBAGE))
    return path


def outcomes(folder: Path, score: Scores, n: int, seed: int) -> Counter[str]:
    """Change manifests, load and score; return how often what happened."""
    original = json.loads((folder / "manifest.json").read_text())
    expected = score(folder)
    own_checks = hasattr(Column, "from_state")

    def skip(path: list[Any]) -> bool:
        digests = path[0] in ("manifest_sha256", "tensors_sha256")
        # Another embedder is looked for wherever models are; that is not about manifests.
        embedder = path[-1] == "embedder"
        learned = path[:2] == ["table", "encoder"] and len(path) > 2
        return digests or embedder or (learned and not own_checks)

    seen: Counter[str] = Counter()
    lines: list[str] = []
    rng = random.Random(seed)
    for number in range(n):
        manifest = copy.deepcopy(original)
        path = change(manifest, rng, skip)
        signed(folder, manifest)
        what = f"number {number}: {'.'.join(map(str, path))}"
        try:
            scores = score(folder)
        except AloofError as error:
            named = isinstance(error, ModelError) and str(folder) in str(error)
            seen["refused when loaded" if named else "refused when used"] += 1
            lines += str(error).splitlines()
            continue
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        same = np.allclose(scores, expected, rtol=1e-3)  # as the probe in a manifest has it
        # What a column has learned can be other than it was, and still make sense.
        assert same or path[:3] == ["table", "encoder", "columns"], what
        assert np.isfinite(scores).all(), what
        seen["same scores" if same else "another model"] += 1
    assert len(lines) == seen["refused when loaded"] + seen["refused when used"]
    return seen


def check(folder: Path, score: Scores, seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = outcomes(folder, score, N_EACH, seed)
    print(folder.name, dict(seen))
    assert seen["refused when loaded"] > N_EACH / 4
    assert seen["same scores"] > N_EACH / 10


def test_of_a_detector(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 4)), np.r_[np.ones(5), np.zeros(115)]
    model = aloof.DualPriorVAE(n_members=2, max_epochs=3, warmup_epochs=1, random_state=0)
    model.fit(X[:100], y[:100]).set_threshold(value=1.0).calibrate(X[100:])
    model.save(tmp_path / "detector")

    def score(folder: Path) -> np.ndarray:
        loaded = aloof.load(folder, device="cpu")
        assert set(np.unique(loaded.predict(X))) <= {-1, 1}
        assert loaded.p_values(X).shape == (120,)
        loaded.explain(X[:2])
        return loaded.anomaly_score(X)

    check(tmp_path / "detector", score, seed=1)


def frame() -> Any:
    """Return a table with columns of every kind."""
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 120
    words = np.array(["door", "open", "closed", "again", "fault", "pump", "valve"])
    return pd.DataFrame(
        {
            "key": [f"row{i}" for i in range(n)],
            "amount": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(2, 2, n)),
            "whole": rng.integers(0, 9, n),
            "city": rng.choice(["Oslo", "Bern", "Rome"], n),
            "paid": rng.random(n) < 0.3,
            "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), "s"),
            "note": [" ".join(rng.choice(words, 6)) for _ in range(n)],
            "same": "x",
            "dull": rng.integers(0, 9, n),
            "fraud": np.r_[np.ones(5), np.zeros(n - 5)].astype(int),
        }
    )


def test_of_a_table(tmp_path: Path) -> None:
    table = frame()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = aloof.fit(
            table,
            label="fraud",
            id="key",
            drop=["dull"],
            text=["note"],
            embedder="hashing",
            method="dp",
            members=2,
            max_epochs=2,
            seed=0,
        )
    assert {column.kind for column in model.encoder.columns} == {
        *("number", "category", "boolean", "timestamp", "text", "constant")
    }
    model.save(tmp_path / "table")

    def score(folder: Path) -> np.ndarray:
        loaded = TableModel.load(folder, device="cpu")
        repr(loaded)
        assert set(loaded.score(table[:20]).columns) >= {"anomaly_score", "is_anomaly"}
        return loaded.anomaly_score(table)

    check(tmp_path / "table", score, seed=2)


def test_of_images(tmp_path: Path) -> None:
    Image = pytest.importorskip("PIL.Image")
    from aloof.models.images import ImageModel, fit_images

    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, size=(40, 1, 8, 8), dtype=np.uint8)
    (tmp_path / "good").mkdir()
    for number, each in enumerate(pixels):
        Image.fromarray(each[0]).save(tmp_path / "good" / f"{number}.png")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit_images(
            normal=tmp_path / "good",
            method="vae",
            members=1,
            size=(8, 8),
            filters=(4,),
            hidden=(8,),
            latent_dim=2,
            max_epochs=1,
            seed=0,
        )
    model.save(tmp_path / "images")

    def score(folder: Path) -> np.ndarray:
        loaded = ImageModel.load(folder, device="cpu")
        repr(loaded)
        loaded.is_anomaly(pixels)
        return loaded.anomaly_score(pixels)

    check(tmp_path / "images", score, seed=3)
