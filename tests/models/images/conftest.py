from __future__ import annotations

from pathlib import Path

import pytest
from pictures import parts

from aloof.exceptions import CalibrationWarning
from aloof.models.images import ImageModel, fit_images

QUICK = {"members": 2, "filters": (8,), "hidden": (16,), "latent_dim": 4}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders train/ and new/ with good/ and bad/ inside, and a model that knows the first."""
    home = tmp_path_factory.mktemp("parts")
    parts(home / "train", good=110, bad=8)
    parts(home / "new", good=20, bad=6, seed=1)
    with pytest.warns(CalibrationWarning):
        model = fit_images(
            normal=home / "train" / "good",
            anomaly=home / "train" / "bad",
            max_epochs=40,
            **QUICK,
        )
    model.save(home / "model")
    return home


@pytest.fixture
def model(home: Path) -> ImageModel:
    """A model of its own for every test, because thresholds change it."""
    return ImageModel.load(home / "model", device="cpu")
