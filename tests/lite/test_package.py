"""The package aloof-lite: just what `aloof.lite` imports, and nothing that needs more."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import aloof

SOURCE = Path(aloof.__file__).parent
PACKAGING = Path(__file__).parents[2] / "packaging" / "lite" / "pyproject.toml"


def files_of(name: str) -> set[str]:
    """Return the files that importing a module of aloof runs, its packages among them."""
    parts, found = name.split("."), {"__init__.py"}
    for depth in range(2, len(parts) + 1):
        path = SOURCE.joinpath(*parts[1:depth])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.exists():
            found.add(str(file.relative_to(SOURCE)))
    return found


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf8"))
    nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name for name in names if name.startswith("aloof.")}


def test_it_holds_all_that_the_scorer_imports_and_no_more() -> None:
    needed, left = set(), {f"lite/{path.name}" for path in (SOURCE / "lite").glob("*.py")}
    while left:
        needed |= left
        named = {name for file in left for name in imported(SOURCE / file)}
        left = {file for name in named for file in files_of(name)} - needed
    given = tomllib.loads(PACKAGING.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    held: set[str] = set()
    for target in given["force-include"].values():
        path = SOURCE / target.removeprefix("aloof/")
        files = path.rglob("*.py") if path.is_dir() else [path]
        held |= {str(file.relative_to(SOURCE)) for file in files}
    assert held - {"py.typed", "_version.py"} == (needed | {"__init__.py"}) - {"_version.py"}
    assert all((SOURCE / file).exists() for file in held)


def test_it_depends_on_numpy_and_onnx_runtime_alone() -> None:
    project = tomllib.loads(PACKAGING.read_text())["project"]
    names = [dependency.partition(">")[0] for dependency in project["dependencies"]]
    assert names == ["numpy", "onnxruntime"]
    assert project["scripts"] == {"aloof-lite": "aloof.lite.cli:command"}
