"""Every option of every command is honoured or refused, whatever the model is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from pictures import parts
from typer.testing import CliRunner, Result

import aloof
from aloof.cli.app import app
from aloof.cli.options import _NAMES
from aloof.models import kinds
from aloof.models.arrays import ArrayModel
from aloof.models.images import ImageModel, fit_images
from aloof.models.kinds import KINDS
from aloof.models.table import TableModel
from aloof.models.table import fit as fit_table

pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")

# What each command asks a model to do, and what it does with a file of its own.
METHODS = {
    "score": "score_file",
    "explain": "most_anomalous",
    "evaluate": "evaluate",
    "calibrate": "calibrate",
    "report": "report",
}
# What else a command may ask of it, and the option that says so.
OTHERS = {
    "score": {"follow": {"follow"}, "score_folder": {"ray", "workers"}},
}
OUT = {"score": "s.csv", "report": "r.html"}
MODELS = {"table": TableModel, "images": ImageModel, "array": ArrayModel}
# What a command does by itself, and ``--help``.
EVERY = {"model", "data", "device", "as_json", "help"}


def options_of(function: Any) -> set[str]:
    """Return the options that a method is given; rules of what is harmless are two of them."""
    taken = set(kinds.options_of(function))
    return taken | {"store", "ignore_rules"} if "harmless" in taken else taken


def taken_by(model: Any, command: str) -> set[str]:
    """Return the options that a model has a use for."""
    taken = options_of(model.read) | options_of(getattr(model, METHODS[command]))
    for method, flags in OTHERS.get(command, {}).items():
        if hasattr(model, method):
            taken |= options_of(getattr(model, method)) | flags
    return taken


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def parameters(command: str) -> list[Any]:
    group: Any = typer.main.get_command(app)
    return group.get_command(None, command).params  # type: ignore[no-any-return]


def name_of(parameter: Any) -> str:
    return str(_NAMES.get(parameter.name, parameter.name))


def words_for(parameter: Any) -> list[str]:
    """Return an option as it is written, with its default where there is one."""
    if parameter.is_flag:
        return [parameter.opts[0]]
    value = parameter.default if isinstance(parameter.default, int | str | float) else 2
    return [parameter.opts[0], str(value)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(0)
    tiny = {"members": 1, "max_epochs": 1, "hidden": (4,), "latent_dim": 2}
    fit_table({"a": rng.normal(size=40)}, method="vae", **tiny).save(home / "table")
    parts(home / "parts", good=8, bad=0)
    fit_images(home / "parts", method="vae", **tiny).save(home / "images")
    aloof.VAE(n_members=1, max_epochs=1).fit(rng.normal(size=(40, 2))).save(home / "array")
    return home


CASES = [
    pytest.param(command, kind, parameter, id=f"{command} {kind} {parameter.opts[0]}")
    for command in METHODS
    for parameter in parameters(command)
    for kind in MODELS
    if parameter.name not in EVERY
]


@pytest.mark.parametrize(("command", "kind", "parameter"), CASES)
def test_what_a_model_does_not_take_is_refused_even_with_its_default(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    kind: str,
    parameter: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    model = MODELS[kind]
    if name_of(parameter) in taken_by(model, command):
        return
    out = ["--out", OUT[command]] if command in OUT else []
    done = run(command, home / kind, "nothing", *out, *words_for(parameter))
    assert done.exit_code == 2, done.output
    assert f"{parameter.opts[0]} cannot be used with {model.kind}." in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", METHODS)
def test_every_option_is_one_of_some_model(command: str) -> None:
    taken = set(EVERY)
    for model in MODELS.values():
        taken |= taken_by(model, command)
    assert {name_of(parameter) for parameter in parameters(command)} <= taken


@pytest.mark.parametrize(
    "parameter", [p for p in parameters("fit") if p.name not in EVERY], ids=lambda p: p.opts[0]
)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.section)
def test_fit_takes_or_refuses_every_option(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, parameter: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("a,b\n1,2\n")
    name = name_of(parameter)
    assert any(name in options_of(one.fit) for one in KINDS) or name in ("out", "force")
    if name in options_of(kind.fit) or name in ("out", "force"):
        return
    data = home / "parts" if kind.section == "images" else "table.csv"
    done = run("fit", data, "--out", "m", *words_for(parameter))
    assert done.exit_code == 2, done.output
    assert f"{parameter.opts[0]} cannot be used with {kind.model.kind}." in done.stderr
    with pytest.raises(kind.model.error, match=f"'{name}' cannot be used"):
        aloof.fit(data, **{name: 1})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.section)
def test_the_command_has_all_that_the_function_has(kind: Any) -> None:
    options = {name_of(parameter) for parameter in parameters("fit")}
    here_only = {"checkpoint", "verbose", "progress", "frame", "images"}
    assert options_of(kind.fit) - here_only <= options
    assert kind.model.section == kind.section


def test_defaults_are_the_same_on_both_sides() -> None:
    """What the help of a command says is what the function does."""
    import inspect

    pairs = [("fit", kind.fit) for kind in KINDS]
    pairs += [(c, getattr(m, METHODS[c])) for c in METHODS for m in MODELS.values()]
    checked = 0
    for command, function in pairs:
        known = inspect.signature(function).parameters
        for parameter in parameters(command):
            default = parameter.default
            if isinstance(default, int | float | str) and name_of(parameter) in known:
                assert known[name_of(parameter)].default == default, (command, parameter.name)
                checked += 1
    assert checked > 25


def test_a_detector_takes_part(home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    X = np.r_[rng.normal(size=(30, 2)), [[9.0, -9.0]]]
    np.save("X.npy", X)
    np.save("y.npy", np.r_[np.zeros(30), 1])
    aloof.load(home / "array").save("model")
    for words in (
        ["score", "model", "X.npy", "--out", "s.csv"],
        ["score", "model", "X.npy", "--top", 2, "--flagged-only", "--sort", "--out", "t.csv"],
        ["explain", "model", "X.npy", "--top", 2, "--reasons", 1],
        ["explain", "model", "X.npy", "--row", 31],
        ["evaluate", "model", "X.npy", "--labels", "y.npy"],
        ["calibrate", "model", "X.npy", "--labels", "y.npy"],
        ["threshold", "model", "--share", "0.1"],
        ["report", "model", "X.npy", "--labels", "y.npy", "--out", "r.html"],
        ["info", "model"],
    ):
        done = run(*words)
        assert done.exit_code == 0, (words, done.output, done.exception)
    first, second = Path("t.csv").read_text().splitlines()[1:]
    assert first.startswith("31,")
    assert float(first.split(",")[1]) > float(second.split(",")[1])
    loaded = aloof.load("model")
    assert isinstance(loaded, aloof.VAE)
    assert loaded.calibration_scores_ is not None
    assert len(loaded.calibration_scores_) == 30
    assert "30 rows" in run("info", "model").stdout
    done = run("evaluate", "model", "table.csv", "--labels", "y.npy")
    assert done.exit_code == 2
    assert "not for tables" in done.stderr
