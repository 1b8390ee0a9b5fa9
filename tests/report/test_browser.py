"""The report in a real browser: its pictures are drawn, its rows are there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import matplotlib.image
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from aloof.models.table import TableModel

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on the PATH")


def browse(page: Path, folder: Path, *options: str) -> str:
    assert BROWSER is not None
    command = [
        BROWSER,
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        *options,
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def screenshot(page: Path, folder: Path, name: str, *options: str) -> NDArray[np.float64]:
    browse(page, folder, "--window-size=1280,3600", f"--screenshot={folder / name}", *options)
    return np.asarray(matplotlib.image.imread(folder / name), np.float64)[..., :3]


@pytest.fixture(scope="module")
def page(saved: str, new: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("browser") / "report.html"
    TableModel.load(saved, device="cpu").report(new, path, top=5)
    return path


def test_rows_and_pictures_are_in_the_document(
    page: Path, model: TableModel, new: pa.Table, tmp_path: Path
) -> None:
    document = browse(page, tmp_path, "--dump-dom")
    assert len(re.findall("<svg", document)) == 6
    assert len(re.findall('<td class="n rank">', document)) == 5
    best = new["order"][int(np.argmax(model.anomaly_score(new)))].as_py()
    assert f'<span class="id">{best}</span>' in document


def test_pictures_are_drawn_in_light_and_dark(page: Path, tmp_path: Path) -> None:
    light = screenshot(page, tmp_path, "light.png")
    dark = screenshot(
        page,
        tmp_path,
        "dark.png",
        "--blink-settings=preferredColorScheme=0",
        "--force-dark-mode",
    )
    assert light.shape == dark.shape == (3600, 1280, 3)
    assert light[:, :20].mean() > 0.9  # the margin
    assert dark[:, :20].mean() < 0.15
    for picture in (light, dark):
        red, _, blue = np.moveaxis(picture, -1, 0)
        histogram = slice(300, 1100)  # the first picture of the page
        assert ((blue - red)[histogram] > 0.2).mean() > 0.02  # rows
        assert ((red - blue)[histogram] > 0.3).mean() > 0.0003  # anomalies, and the threshold
    assert not np.allclose(light, light.mean((0, 1)), atol=0.2)
