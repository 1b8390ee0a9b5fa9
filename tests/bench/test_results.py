"""The committed records still are what the committed tables say, and count as done."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from aloof.bench import Identity, Study, specify, stored
from aloof.bench.images import ImageCase, ImageSpecification
from aloof.bench.images.specification import with_setting
from aloof.bench.images.systems import configuration
from aloof.bench.images.tables import image_grids
from aloof.bench.odds import OddsSpecification, make_odds
from aloof.bench.planning import PlanningSpecification, make_planning
from aloof.bench.records import latest, read_records
from aloof.bench.tables import to_markdown
from aloof.bench.text import TextSpecification, make_text, read_reviews

ROOT = Path(__file__).parents[2]
REAL = Path(os.environ.get("ALOOF_DATA") or ROOT.parent / "shared" / "data")
real_data = pytest.mark.skipif(
    not (REAL / "odds").is_dir(), reason="no folder with real data; ALOOF_DATA can name one"
)


def planning() -> Study[Any]:
    path = ROOT / "experiments" / "planning.toml"
    return make_planning(specify(PlanningSpecification, file=path))


def text() -> Study[Any]:
    pytest.importorskip("sentencex")
    path = ROOT / "experiments" / "text.toml"
    reviews, vectors = REAL / "imdb" / "imdb.csv.gz", REAL / "glove" / "glove.6B.100d.txt.gz"
    return make_text(specify(TextSpecification, file=path), read_reviews(reviews, vectors))


def odds(name: str) -> Study[Any]:
    return make_odds(specify(OddsSpecification, file=ROOT / "experiments" / f"{name}.toml"))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("planning", planning),
        pytest.param("text", text, marks=real_data, id="text"),
        *(
            pytest.param(name, lambda name=name: odds(name), marks=real_data, id=name)
            for name in (
                "odds-complete",
                "odds-gamma-05",
                "odds-pollution",
                "odds-ensemble",
                "odds-ablation",
                "odds-paper",
                "odds-readings",
            )
        ),
    ],
)
def test_tables_are_made_again_from_the_records(
    name: str, make: Callable[[], Study[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ROOT / "results" / name
    if not folder.is_dir():
        pytest.skip("no results beside this package")
    monkeypatch.setenv("ALOOF_DATA", str(REAL))
    study = make()
    written = (folder / "table.md").read_text()
    text = to_markdown(study.grids(stored(study, folder)), title=study.title)
    assert written.startswith(text)
    assert written.removeprefix(text).startswith("\nMade with `aloof bench")


def image_case(record: Any) -> ImageCase:
    whole = with_setting(record)
    return ImageCase(**{field.name: whole[field.name] for field in fields(ImageCase)})


# Their bandwidths are none that anybody published.
_TO_BE_RUN_AGAIN = {
    ("images-fashion-mnist", "kde-hybrid", "ours"),
    ("images-pollution-fashion-mnist", "kde-hybrid", "paper"),
}


@pytest.mark.parametrize(
    "name",
    [
        "images-90-fashion-mnist",
        "images-ablation",
        "images-cats-vs-dogs",
        "images-cifar10",
        "images-fashion-mnist",
        "images-ill-trained",
        "images-mnist",
        "images-pollution-fashion-mnist",
    ],
)
def test_image_records_have_the_configuration_of_today(name: str) -> None:
    """Their rows cannot be checked without the images."""
    folder = ROOT / "results" / name
    if not folder.is_dir():
        pytest.skip("no results beside this package")
    spec = specify(ImageSpecification, file=ROOT / "experiments" / f"{name}.toml")
    records = read_records(folder / "records.jsonl", image_case)
    found = {
        case: record
        for case, record in latest(records, image_case).items()
        if (name, case.method, case.setting) not in _TO_BE_RUN_AGAIN
    }
    for case, record in found.items():
        assert "config" in record
        assert Identity(configuration(spec, case)).describes(record), case
    cases = spec.cases(2 if spec.dataset == "cats-vs-dogs" else 10)
    shown = [found[case] for case in cases if case in found]
    assert len(shown) == len(found)
    title = spec.title or f"{spec.dataset}: labelled anomalies"
    assert (
        (folder / "table.md")
        .read_text()
        .startswith(to_markdown(image_grids(shown), title=title))
    )
