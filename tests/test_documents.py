"""Code in the documents and examples runs, and says what it claims."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from aloof.estimators import DETECTORS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/networks.md",
        "docs/decisions.md",
        "docs/tables.md",
        "docs/images.md",
        "docs/planning.md",
        "docs/scikit-learn.md",
        "docs/text.md",
    ],
)
@pytest.mark.filterwarnings("ignore::aloof.exceptions.LabelWarning")
def test_python_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    assert blocks
    source = "\n".join(blocks)
    # Numbers are drawn by networks built outside of a fit; keep that from the fixtures.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_links_of_the_documents_lead_somewhere() -> None:
    for document in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith("http"):
                path = document.parent / target
                assert path.exists(), f"{document.name}: {target}"
                assert path.is_dir() or path.stat().st_size > 200, f"{target} is empty"


def test_docstrings_name_all_parameters_and_no_others() -> None:
    """A parameter that ``help`` does not show is a parameter nobody finds."""
    for detector in DETECTORS.values():
        section = (detector.__doc__ or "").split("Parameters\n")[1].split("Attributes\n")[0]
        names = re.findall(r"^([a-z_]+(?:, [a-z_]+)*)$", section, re.MULTILINE)
        shown = [name for line in names for name in line.split(", ")]
        assert sorted(shown) == sorted(field.name for field in fields(detector)), detector


def test_example_own_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    module = runpy.run_path(str(ROOT / "examples" / "own_networks.py"))
    assert module["main"]() > 0.9


def test_example_cubo(tmp_path: Path) -> None:
    module = runpy.run_path(str(ROOT / "examples" / "plot_cubo_1d.py"))
    loss = module["cubo_loss"](module["MEANS"], module["SIGMAS"]).numpy()
    assert np.isfinite(loss).all()
    # Lowest away from the prior, and for small variances.
    assert (loss[:, 0] < 0.01 * loss.max(1)).all()
    assert (np.diff(loss[:, 100]) > 0).all()
    module["draw"](tmp_path / "cubo.png")
    assert (tmp_path / "cubo.png").read_bytes().startswith(b"\x89PNG")
