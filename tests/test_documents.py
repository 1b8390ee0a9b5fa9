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

from aloof.bench.claims import Evidence, check, documents, figures
from aloof.bench.images.specification import image_systems
from aloof.bench.methods import OURS, peers, unfair_peers
from aloof.estimators import DETECTORS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/benchmark-tables.md",
        "docs/networks.md",
        "docs/decisions.md",
        "docs/exporting.md",
        "docs/tables.md",
        "docs/images.md",
        "docs/planning.md",
        "docs/review.md",
        "docs/scaling.md",
        "docs/scikit-learn.md",
        "docs/text.md",
        "docs/tracking.md",
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


def test_every_item_of_a_list_begins_a_line() -> None:
    """Whoever wraps lines anew runs items together, and nobody sees it in the source."""
    for document in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        code = r"```.*?```|`[^`]*`|<!--.*?-->"
        prose = re.sub(code, "", document.read_text(), flags=re.DOTALL)
        found = re.search(r"^.*[.:;] \*(?:\s|$).*$", prose, re.MULTILINE)
        assert found is None, f"{document.name}: {found[0] if found else ''}"


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


@pytest.mark.filterwarnings("ignore")  # of Optuna
def test_example_tune() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed (aloof[tuning])")
    module = runpy.run_path(str(ROOT / "examples" / "tune.py"))
    study, before, after = module["main"](batches=2, size=3, max_epochs=15)
    assert len(study.trials) == 6
    values = [trial.value for trial in study.trials]
    assert study.best_value == max(values) > min(values)
    assert min(before, after) > 0.8
    # A batch trained at once scores as a detector fitted alone.
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = (np.arange(90) < 6).astype(int)
    X[:6] += 4
    alone = module["tune"](X, y, batches=1, size=1, max_epochs=5)
    both = module["tune"](X, y, batches=1, size=2, max_epochs=5)
    assert alone.trials[0].value == pytest.approx(both.trials[0].value, abs=0.01)


def test_example_cubo(tmp_path: Path) -> None:
    module = runpy.run_path(str(ROOT / "examples" / "plot_cubo_1d.py"))
    loss = module["cubo_loss"](module["MEANS"], module["SIGMAS"]).numpy()
    assert np.isfinite(loss).all()
    # Lowest away from the prior, and for small variances.
    assert (loss[:, 0] < 0.01 * loss.max(1)).all()
    assert (np.diff(loss[:, 100]) > 0).all()
    module["draw"](tmp_path / "cubo.png")
    assert (tmp_path / "cubo.png").read_bytes().startswith(b"\x89PNG")


DOCUMENTS = [path.relative_to(ROOT).as_posix() for path in documents(ROOT)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_figures_are_what_the_records_say(name: str) -> None:
    """See `aloof.bench.claims`, which also says how to tie and to update a figure."""
    found = check(ROOT / name, Evidence(ROOT / "results"), named=Path(name))
    assert [str(finding) for finding in found] == []


@pytest.mark.parametrize(
    "name", [name for name in DOCUMENTS if "<!-- figures:" in (ROOT / name).read_text()]
)
def test_other_figures_would_be_found(name: str, tmp_path: Path) -> None:
    """The last digit of some figures is changed, one at a time, or all markers go."""
    text, copy = (ROOT / name).read_text(), tmp_path / Path(name).name
    evidence = Evidence(ROOT / "results")
    claimed = [figure for figure in figures(text) if figure.claim is not None]
    for figure in claimed[:: 1 + len(claimed) // 6]:
        end = figure.start + len(figure.text)
        other = str((int(text[end - 1]) + 5) % 10)
        copy.write_text(text[: end - 1] + other + text[end:])
        (finding,) = check(copy, evidence)
        assert finding.line == text.count("\n", 0, end) + 1
        assert finding.message.startswith(f"says {figure.text[:-1]}{other} ")
    copy.write_text(re.sub(r"<!-- figures:.*?-->", "", text, flags=re.DOTALL))
    messages = [finding.message for finding in check(copy, evidence)]
    if name == "docs/reproduction.md":  # a command makes it: its figures need no markers
        assert messages == []
    else:
        assert len(messages) > 2
        assert all("without a marker" in message for message in messages)


def test_every_system_is_listed() -> None:
    text = (ROOT / "docs" / "methods.md").read_text()
    listed, every = _systems(text), {**peers(), **unfair_peers()}
    assert set(every) | set(OURS) | set(image_systems()) == set(listed)
    for name, factory in every.items():
        assert listed[name] == ("yes" if factory(random_state=0).uses_labels else "no"), name
    assert set(every) - set(_systems(re.sub(r"\n\| `dagmm`.*", "", text))) == {"dagmm"}


def test_every_folder_of_results_is_listed() -> None:
    folder = ROOT / "results"
    if not folder.is_dir():
        pytest.skip("no results beside this package")
    listed = set(re.findall(r"`([\w.-]+)`", (folder / "README.md").read_text()))
    there = {path.name for path in folder.iterdir()} - {"README.md"}
    assert sorted(there - listed) == []


def _systems(text: str) -> dict[str, str]:
    """Return the names in the table of systems, and whether they learn from labels."""
    table = text.split("<!-- systems -->")[1].split("<!-- /systems -->")[0]
    found: dict[str, str] = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        for name in re.findall(r"`([a-z0-9-]+)`", cells[1] if len(cells) > 3 else ""):
            assert name not in found, f"{name} is listed twice"
            found[name] = cells[2]
    return found
