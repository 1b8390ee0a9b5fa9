"""The page about images: in the file, and in a real browser."""

from __future__ import annotations

import base64
import io
import re
import shutil
import subprocess
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from pictures import disc, parts
from PIL import Image

from aloof.exceptions import TableError
from aloof.models.images import ImageModel, fit_images
from aloof.models.images.panels import heat_colours, heat_scale, joined, shown

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("images")
    parts(home / "train", good=100, bad=6)
    parts(home / "new", good=12, bad=4, seed=1)
    (home / "new" / "<b>text.png").write_text("no picture")
    return home


@pytest.fixture(scope="module")
def model(home: Path) -> ImageModel:
    with pytest.warns(UserWarning, match="calibration rows"):
        return fit_images(
            normal=home / "train" / "good",
            anomaly=home / "train" / "bad",
            members=1,
            filters=(8,),
            max_epochs=15,
        )


@pytest.fixture(scope="module")
def page(home: Path, model: ImageModel) -> Path:
    model.report(home / "new", home / "report.html", top=4, title="Parts & <co>")
    return home / "report.html"


def test_the_page_holds_its_pictures_and_loads_nothing(page: Path) -> None:
    text = page.read_text()
    sources = re.findall(r'<img src="([^"]*)"', text)
    assert len(sources) == 16 + 3 * 4
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert "Parts &amp; &lt;co&gt;" in text
    assert "&lt;b&gt;text.png" in text
    assert "<b>text" not in text


def test_the_contact_sheet_is_in_order_and_shows_the_images(
    page: Path, home: Path, model: ImageModel
) -> None:
    text = page.read_text()
    found = model.read(home / "new")
    scores = model.anomaly_score(found)
    order = np.argsort(-scores, kind="stable")
    listed = re.findall(r'alt="Number \d+: ([^"]+)"', text)
    assert listed == [found.names[place] for place in order]
    first = re.findall(r'<img src="data:image/png;base64,([^"]*)"', text)[0]
    with Image.open(io.BytesIO(base64.b64decode(first))) as image:
        assert np.array_equal(np.asarray(image).transpose(2, 0, 1), found.pixels[order[0]])


def test_a_page_that_is_there_is_kept(page: Path, home: Path, model: ImageModel) -> None:
    before = page.read_bytes()
    with pytest.raises(TableError, match="exists"):
        model.report(home / "new", page)
    assert page.read_bytes() == before


def test_heat_is_bright_where_the_difference_is() -> None:
    image = disc(np.random.default_rng(0)).transpose(2, 0, 1)
    difference = np.zeros((16, 16))
    difference[4, 5] = 1.0
    colours = heat_colours(image, difference, heat_scale(difference[None]))
    assert colours[4, 5].sum() == colours.sum(-1).max()
    assert colours[4, 5].sum() > 2 * colours[8, 8].sum()
    assert np.array_equal(shown(image / 255), shown(image))
    assert shown(image[:1]).shape == (16, 16, 3)
    sheet = joined([[shown(image)] * 3] * 2, 2)
    assert sheet.shape == (2 * 32 + 4, 3 * 32 + 2 * 4, 3)


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on the PATH")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_draws_the_pictures(page: Path, tmp_path: Path, scheme: str) -> None:
    assert BROWSER is not None
    dark = ("--blink-settings=preferredColorScheme=0", "--force-dark-mode")
    command = [
        BROWSER,
        *FLAGS,
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1280,1800",
        f"--screenshot={tmp_path / 'page.png'}",
        *(dark if scheme == "dark" else ()),
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    picture = np.asarray(matplotlib.image.imread(tmp_path / "page.png"), float)[..., :3]
    margin = picture[:, :20].mean()
    assert margin > 0.9 if scheme == "light" else margin < 0.15
    gold = np.abs(picture - np.array([200, 170, 90]) / 255).max(-1) < 0.12  # the discs
    rows = np.flatnonzero(gold.mean(1) > 0.02)
    assert len(rows) > 100
    # Three panels lie side by side: discs as they came in, and as they would be.
    left, right = gold[:, :640].sum(), gold[:, 640:].sum()
    assert min(left, right) > 5_000
    glow = (picture[..., 0] > 0.9) & (picture[..., 1] > 0.75) & (picture[..., 2] < 0.75)
    assert glow.sum() > 300  # the brightest differences
