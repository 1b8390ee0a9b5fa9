"""Reasons: how often the column that was changed is the first one given.

    python benchmarks/reasons.py [--out FILE]

With the defaults of each detector. *Arrays*: a column of a normal row is moved by 3, 4 or 6
standard deviations. `factors`: columns with d / 3 common causes; `groups`: three clusters with
correlations of their own, and some long tails; `cancer`: the logarithms of scikit-learn's
breast-cancer data, whose columns nearly repeat each other. *Payments*: the table of
examples/payments.py, with a value that does not belong there, and what the model of it finds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_breast_cancer

import aloof
from aloof import VAE, Committee, DualPriorVAE, MaxMinVAE
from aloof.bench.provenance import provenance
from aloof.models.table import TableExplanation

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from payments import payments, write

Draw = Callable[[int], np.ndarray]
DETECTORS = {"vae": VAE, "dp": DualPriorVAE, "mml": MaxMinVAE, "committee": Committee}
N_TRAIN, N_LABELLED, N_MOVED = 800, 12, 400


def factors(d: int, rng: np.random.Generator) -> Draw:
    loadings = rng.normal(size=(d // 3, d))
    loadings /= np.linalg.norm(loadings, axis=0)

    def draw(n: int) -> np.ndarray:
        return rng.normal(size=(n, d // 3)) @ loadings + 0.4 * rng.normal(size=(n, d))

    return draw


def groups(d: int, rng: np.random.Generator) -> Draw:
    loadings = rng.normal(size=(3, d // 2, d)) / np.sqrt(d // 2)
    centers = 2 * rng.normal(size=(3, d))

    def draw(n: int) -> np.ndarray:
        kind = rng.integers(3, size=n)
        spread = np.einsum("nk,nkd->nd", rng.normal(size=(n, d // 2)), loadings[kind])
        rows = centers[kind] + spread + 0.3 * rng.normal(size=(n, d))
        rows[:, ::4] = np.exp(0.5 * rows[:, ::4])
        return rows

    return draw


def cancer(d: int, rng: np.random.Generator) -> Draw:
    rows = np.log(load_breast_cancer().data + 1e-3)
    order, taken = rng.permutation(len(rows)), 0

    def draw(n: int) -> np.ndarray:
        nonlocal taken
        part = rows[order[taken : taken + n]]
        taken += len(part)
        return part

    return draw


def moved(rows: np.ndarray, scale: np.ndarray, rng: np.random.Generator, size: float) -> Any:
    changed, index = rows.copy(), np.arange(len(rows))
    column = index % rows.shape[1]
    changed[index, column] += size * scale[column] * rng.choice([-1, 1], len(rows))
    return changed, column


def shares(contributions: np.ndarray, column: np.ndarray) -> dict[str, float]:
    ranks = (contributions > contributions[np.arange(len(column)), column][:, None]).sum(1)
    return {"first": float((ranks == 0).mean()), "first_three": float((ranks < 3).mean())}


def of_arrays() -> Iterator[dict[str, Any]]:
    for make, d, n_train, n_labelled, n_moved in (
        (factors, 8, N_TRAIN, N_LABELLED, N_MOVED),
        (factors, 20, N_TRAIN, N_LABELLED, N_MOVED),
        (groups, 12, N_TRAIN, N_LABELLED, N_MOVED),
        (groups, 20, N_TRAIN, N_LABELLED, N_MOVED),
        (cancer, 30, 350, 8, 200),
    ):
        rng = np.random.default_rng(d)
        draw = make(d, rng)
        X = draw(n_train)
        scale = X.std(0)
        bad, _ = moved(draw(n_labelled), scale, rng, 4.0)
        fresh = draw(n_moved)
        y = np.r_[np.zeros(len(X)), np.ones(len(bad))]
        for method, detector in DETECTORS.items():
            model = detector(random_state=0).fit(np.r_[X, bad], y)
            for size in (3, 4, 6):
                changed, column = moved(fresh, scale, np.random.default_rng(size), size)
                found = shares(model.explain(changed).contributions, column)
                place = {"data": make.__name__, "columns": d, "sd": size, "method": method}
                yield {**place, "n": len(fresh), **found}


def put(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """Return what puts a value, or a function of the values that are there, into a column."""

    def change(table: pa.Table) -> pa.Table:
        old = table[name].to_pylist()
        new = [value(entry) for entry in old] if callable(value) else [value] * len(old)
        return table.set_column(
            table.schema.get_field_index(name), name, pa.array(new, table[name].type)
        )

    return change


def far(currency: str) -> str:
    return "USD" if currency != "USD" else "PLN"


CHANGES: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "amount x 100": ("amount", put("amount", lambda v: v * 100)),
    "amount missing": ("amount", put("amount", None)),
    "fee x 20": ("fee", put("fee", lambda v: v * 20)),
    "fee / 20": ("fee", put("fee", lambda v: v / 20)),
    "payments_last_hour 12": ("payments_last_hour", put("payments_last_hour", 12.0)),
    "age 150": ("age", put("age", 150.0)),
    "country never seen": ("country", put("country", "ZZ")),
    "currency never seen": ("currency", put("currency", "XXX")),
    "terminal never seen": ("terminal", put("terminal", "T9")),
    "shop never seen": ("shop", put("shop", "casino")),
    "currency of another country": ("currency", put("currency", far)),
    "time at 3 o'clock": ("time", put("time", lambda v: v.replace(hour=3))),
    "time seven years later": ("time", put("time", lambda v: v.replace(year=v.year + 7))),
}


def of_payments(folder: Path) -> Iterator[dict[str, Any]]:
    train, new = write(folder)
    fresh = payments(400, ("stolen",), 0.0, 20_000, 7).drop_columns(["fraud"])
    for method in ("dp", "vae"):
        model = aloof.fit(train, label="fraud", id="payment", method=method, seed=0)
        found = model.evaluate(pq.read_table(new), label="fraud")
        names = ("auroc", "average_precision", "precision", "recall")
        measures = {name: getattr(found, name) for name in names}
        yield {"data": "payments", "method": method, **measures}
        for changed, (column, change) in CHANGES.items():
            explained: TableExplanation = model.explain(change(fresh))
            index = np.full(len(fresh), explained.columns.index(column))
            place = {"data": "payments", "method": method, "changed": changed}
            yield {**place, "n": len(fresh), **shares(explained.contributions, index)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    options = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for make in (of_arrays, partial(of_payments, Path(folder))):
            for record in make():
                runs.append(record)
                print(json.dumps(record), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps({**provenance(), "runs": runs}, indent=2) + "\n")


if __name__ == "__main__":
    main()
