"""Models of images as ONNX files: bytes in, the same scores out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import aloof
from aloof.exceptions import TableError

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from aloof.export import export
from aloof.lite import load


@pytest.mark.parametrize("channels", [1, 3])
def test_images_have_the_scores_that_the_model_gives_them(channels, tmp_path):
    pytest.importorskip("PIL")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (70, channels, 16, 16)).astype(np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = aloof.fit(
            normal=pixels[:60], anomaly=pixels[60:], members=2, seed=0, max_epochs=2
        )
    done = export(model, tmp_path / "model.onnx")
    assert done.off < 1e-5
    assert done.inputs == {"rows": "tensor(uint8)"}
    lite = load(tmp_path / "model.onnx")
    found, wanted = lite.score(pixels), model.score(pixels)
    np.testing.assert_allclose(found["anomaly_score"], wanted.anomaly_score, rtol=1e-5)
    assert (found["is_anomaly"] == wanted.is_anomaly).all()
    with pytest.raises(TableError, match=r"must hold bytes \(uint8\)"):
        lite.score(pixels / 255.0)
    with pytest.raises(TableError, match=r"numbers of shape \(n, \d, 16, 16\)"):
        lite.score(pixels[:, :, :8])
