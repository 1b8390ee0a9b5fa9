"""Imports go downwards only, the base install is enough for the core, names are honest."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import aloof

SOURCE = Path(aloof.__file__).parent
ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "docs" / "architecture.md"


def layers() -> list[dict[str, bool]]:
    """Read the diagram: names of each layer, the lowest first, and whether they have a star."""
    text = ARCHITECTURE.read_text()
    (diagram,) = re.findall(
        r"<!-- layers -->\n```\n(.*?)```\n<!-- /layers -->", text, re.DOTALL
    )
    found = []
    for line in diagram.splitlines():
        names = re.match(r"(?:[a-z_]+(?:/|\.py)\*?(?:\s+|$))*", line)
        assert names
        parts = re.findall(r"([a-z_]+)(?:/|\.py)(\*?)", names[0])
        assert parts or line.startswith(" "), f"No name of a layer in {line!r}"
        if parts:
            found.append({name: star == "*" for name, star in parts})
    return found[::-1]


RANK = {name: level for level, names in enumerate(layers()) for name in names}
CORE = {name for names in layers() for name, star in names.items() if star}
BASE_PACKAGES = {"numpy", "pydantic", "scipy", "sklearn", "torch"}
# Imported where there is a GPU, and with it Triton.
GPU_ONLY = [SOURCE / "networks" / "_kernels", SOURCE / "training" / "_fused_adam.py"]


def unit(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def files() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def imported(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative import"
        return [node.module or ""]
    return []


def test_every_layer_exists_once() -> None:
    assert set(RANK) == {unit(path) for path in files()}
    assert sum(len(names) for names in layers()) == len(RANK)


def test_files_and_names_of_the_architecture_exist() -> None:
    named = re.findall(r"`([\w./]+/|[\w./]+\.(?:py|md))(?:::(\w+))?`", ARCHITECTURE.read_text())
    assert len(named) > 50
    for path, name in named:
        place = SOURCE / path if (SOURCE / path).exists() else ROOT / path
        assert place.exists(), f"There is no {path}"
        if name:
            defined = rf"^\s*(?:def|class) {name}\b"
            assert re.search(defined, place.read_text(), re.MULTILINE), f"{path} has no {name}"


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_downwards(path: Path) -> None:
    own = unit(path)
    assert own in RANK, f"{own} has no layer in {ARCHITECTURE.name}"
    for node in ast.walk(ast.parse(path.read_text())):
        for name in imported(node):  # type: ignore[arg-type]
            parts = name.split(".")
            if parts[0] == "aloof":
                assert len(parts) > 1, f"{path} imports the package itself"
                other = parts[1]
                below = RANK[other] < RANK[own] or other == own
                assert below, f"{own} imports {other}, which is not below it"


@pytest.mark.parametrize(
    "path",
    [p for p in files() if unit(p) in CORE and not any(map(p.is_relative_to, GPU_ONLY))],
    ids=lambda p: str(p.relative_to(SOURCE)),
)
def test_core_needs_no_extra(path: Path) -> None:
    for node in ast.parse(path.read_text()).body:
        for name in imported(node):
            package = name.split(".")[0]
            known = package in sys.stdlib_module_names | BASE_PACKAGES | {"aloof"}
            assert known, f"{path} imports {package} at the top"


def test_core_imports_where_only_the_base_packages_are() -> None:
    """With everything else made unimportable, a detector still fits and scores.

    And without torch's compiler, which takes seconds to import.
    """
    script = """
import sys

for name in ("pydantic", "safetensors", "rich", "typer", "matplotlib"):
    sys.modules[name] = None  # importing it now fails as if it were not installed
import numpy as np
from aloof import VAE
X = np.random.default_rng(0).normal(size=(64, 3))
print(VAE(n_members=2, max_epochs=2, random_state=0).fit(X).predict(X).shape)
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["(64,)", "False", ""]


def test_all_names_what_there_is_and_all_there_is() -> None:
    for path in SOURCE.rglob("*.py"):
        relative = path.relative_to(SOURCE).with_suffix("")
        name = ".".join(["aloof", *relative.parts]).removesuffix(".__init__")
        if path.name.startswith("__main__"):
            continue
        module = importlib.import_module(name)
        if not hasattr(module, "__all__"):
            assert name == "aloof._version", f"{name} has no __all__"
            continue
        for public in module.__all__:
            assert hasattr(module, public), f"{name}.{public} does not exist"
        if path.name != "__init__.py":
            tree = ast.parse(path.read_text())
            defined = {
                node.name
                for node in tree.body
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
            } | {
                target.id
                for node in tree.body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            defined = {name for name in defined if not name.startswith("_")}
            missing = defined - set(module.__all__)
            assert not missing, f"{name} defines public names outside __all__: {missing}"


def test_public_names_of_the_package() -> None:
    public = {
        name
        for name in dir(aloof)
        if not name.startswith("_") and not isinstance(getattr(aloof, name), type(sys))
    }
    assert public == set(aloof.__all__) - {"__version__"}
