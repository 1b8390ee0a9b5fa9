"""A kind of columns from outside: one class, registered, from the fit to the report."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv
from typer.testing import CliRunner

import aloof
from aloof.cli.app import app
from aloof.exceptions import CalibrationWarning, ModelError, TableError
from aloof.models.table import TableEncoder
from aloof.models.table.columns import Choice, Column, Note, Values, register, registry


def recipe() -> type[Column]:
    @register
    @dataclass(frozen=True)
    class Address(Column):
        """IPv4 addresses: the four bytes, each to about mean 0, together of variance 1."""

        kinds = ("address",)
        name: str
        low: str
        missing_share: float

        @classmethod
        def claim(cls, values: Values) -> Choice | None:
            known = [text for text in values.text.to_pylist() if text]
            if values.is_text and all(text.count(".") == 3 for text in known):
                return Choice(cls(values.name, min(known), values.missing_share))
            return None

        @property
        def features(self) -> tuple[str, ...]:
            return ("byte 1", "byte 2", "byte 3", "byte 4")

        def encode(self, array: pa.Array, out: np.ndarray, note: Note) -> None:
            for row, text in zip(out, self.read(array), strict=True):
                row[:] = 0 if text is None else [int(b) / 16 - 1 for b in text.split(".")]

        def reason(self, value: Any, expected: Any) -> str:
            return f"comes from {value}, an odd place"

        def summary(self) -> str:
            return f"from {self.low} on"

        def check(self) -> None:
            if self.low.count(".") != 3:
                raise ValueError("low must be an address")

    return Address


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))


def visits(n: int, seed: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    return {
        "ip": [f"10.0.{a}.{b}" for a, b in rng.integers(0, 30, (n, 2))],
        "ms": rng.normal(20, 3, n).tolist(),
    }


def test_it_takes_at_most_forty_lines() -> None:
    assert len(inspect.getsource(recipe).splitlines()) <= 40


def test_it_works_from_the_fit_to_the_report(tmp_path: Path) -> None:
    recipe()
    short = {"members": 2, "max_epochs": 8, "hidden": (16,), "latent_dim": 3}
    with pytest.warns(CalibrationWarning):
        model = aloof.fit(visits(400, 0), method="vae", **short)
    assert [column.kind for column in model.encoder.columns] == ["address", "number"]
    rows = visits(50, 1)
    rows["ip"][7] = "250.250.250.250"
    scores = model.anomaly_score(rows)
    assert int(scores.argmax()) == 7
    reason = "`ip` comes from 250.250.250.250, an odd place"
    rows["ip"][8] = None
    assert model.reasons(rows, 1)[7] == [reason]
    missing = "`ip` is missing, which it never was in training"
    assert missing in model.reasons(rows, 2)[8]
    scores = model.anomaly_score(rows)
    model.save(tmp_path / "model")
    again = aloof.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.anomaly_score(rows), scores)
    folder, data, report = (str(tmp_path / n) for n in ("model", "rows.csv", "report.html"))
    shown = CliRunner().invoke(app, ["info", folder, "--json"])
    assert json.loads(shown.stdout)["columns"][0]["values"].startswith("from 10.0.")
    write_csv(pa.table(rows), data)
    CliRunner().invoke(app, ["report", folder, data, "--out", report])
    page = Path(report).read_text(encoding="utf8")
    assert "address" in page
    assert "an odd place" in page


def test_it_can_be_asked_for_and_refuse() -> None:
    with pytest.raises(TableError, match=r"of the kind 'adress'\. Choose from category"):
        TableEncoder.fit({"ip": ["10.0.0.1", "b"]}, kinds={"ip": "adress"})
    recipe()
    with pytest.raises(TableError, match="of the kind 'adress'; did you mean 'address'"):
        TableEncoder.fit({"ip": ["10.0.0.1", "b"]}, kinds={"ip": "adress"})
    with pytest.raises(TableError, match="'ip' cannot be read as 'address'"):
        TableEncoder.fit({"ip": ["10.0.0.1", "b"]}, kinds={"ip": "address"})


def test_its_state_is_checked_like_that_of_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    unknowing = dict(registry._KINDS)
    recipe()
    state = TableEncoder.fit(visits(40, 0)).state()
    ip, ms = state["columns"]
    for change, words in (
        ({"low": 5}, r"column 'ip': low must be text; got 5"),
        ({"low": "x"}, "low must be an address"),
        ({"high": "x"}, "high is unknown"),
        ({"missing_share": float("nan")}, "missing_share must be a finite number"),
    ):
        with pytest.raises(ModelError, match=words):
            TableEncoder.from_state({**state, "columns": [{**ip, **change}, ms]})
    monkeypatch.setattr(registry, "_KINDS", unknowing)
    with pytest.raises(ModelError, match="there is no kind 'address'"):
        TableEncoder.from_state(state)


def test_what_is_no_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a dataclass and a Column"):
        register(int)  # type: ignore[type-var]
    with pytest.raises(TypeError, match=r"^Half has no claim and no encode and no features\.$"):

        @register
        @dataclass(frozen=True)
        class Half(Column):
            name: str
            missing_share: float

    whole = recipe()
    for kinds in ("address", (), (1,)):
        with pytest.raises(TypeError, match="kinds must be a tuple of names"):
            register(dataclass(frozen=True)(type("Odd", (whole,), {"kinds": kinds})))
