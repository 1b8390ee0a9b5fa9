"""The committed experiments cover what the paper's image tables have."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from aloof.bench import specify
from aloof.bench.images import ImageSpecification
from aloof.bench.images.paper import image_paper_figures

FOLDER = Path(__file__).parents[2] / "experiments"
FILES = sorted(FOLDER.glob("images-*.toml"))

pytestmark = pytest.mark.skipif(not FILES, reason="no experiments beside this package")


@cache
def cells(path: Path) -> frozenset[tuple[object, ...]]:
    spec = specify(ImageSpecification, file=path)
    cases = spec.cases(2 if spec.dataset == "cats-vs-dogs" else 10)
    return frozenset(
        (c.dataset, c.method, c.gamma_l, c.gamma_p, c.variant, c.setting) for c in cases
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_has_something_to_run(path: Path) -> None:
    assert cells(path)


def test_every_figure_of_the_paper_has_an_experiment() -> None:
    every = frozenset().union(*map(cells, FILES))
    missing = set()
    for figure in image_paper_figures():
        place = figure.gamma_l, figure.gamma_p, figure.variant
        found = {
            setting
            for setting in ("", "ours", "paper")
            for method in (figure.method, f"{figure.method}-unfair")
            if (figure.dataset, method, *place, setting) in every
        }
        # Shallow systems have no setting; others are run as published, whatever else is.
        if not found & {"", "paper"}:
            missing.add(figure.method)
    assert not missing


def test_kernel_methods_are_also_run_as_the_paper_tuned_them() -> None:
    every = frozenset().union(*map(cells, FILES))
    for figure in image_paper_figures():
        if figure.method.startswith(("oc-svm", "ssad")):
            place = figure.gamma_l, figure.gamma_p, figure.variant
            setting = "paper" if figure.method.endswith("-hybrid") else ""
            assert (figure.dataset, f"{figure.method}-unfair", *place, setting) in every
