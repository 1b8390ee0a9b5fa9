"""Models of images with a backbone as ONNX files: files in, the same scores out."""

from __future__ import annotations

import csv
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import aloof
from aloof.exceptions import ModelError
from aloof.models.images import ImageModel
from aloof.models.images.patches import PatchView
from aloof.vision.inverted import MOBILENET_V2, Inverted

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("PIL")

from PIL import Image

from aloof.export import export
from aloof.export.graph import Graph
from aloof.export.traced import trace
from aloof.lite import load
from aloof.lite.cli import main


@pytest.fixture(autouse=True, scope="module")
def few() -> Iterator[None]:
    """Try exported files with fewer images, which takes less time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aloof.export.writing._TRIED_IMAGES", 4)
        yield


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = Inverted(MOBILENET_V2)
        for module in network.modules():
            if isinstance(module, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(module.weight)
    path = tmp_path_factory.mktemp("weights") / "random.safetensors"
    save_file({k: v.contiguous() for k, v in network.state_dict().items()}, path)
    return path


def pictures(n: int, seed: int, size: tuple[int, int] = (40, 48), *, bad: bool = False):
    rng = np.random.default_rng(seed)
    # Images that are too much alike have features that differ in the last digits only.
    light, rough = rng.uniform(80, 160, (n, 1, 1, 1)), rng.uniform(5, 30, (n, 1, 1, 1))
    found = (light + rough * rng.normal(size=(n, 3, *size))).clip(0, 255).astype(np.uint8)
    if bad:
        found[..., 8:20, 10:22] = 20
    return found


def fitted(weights: Path, size: tuple[int, int] = (40, 48), **options) -> ImageModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return aloof.fit(
            normal=pictures(12, 0, size),
            anomaly=pictures(4, 1, size, bad=True),
            backbone=weights,
            members=2,
            max_epochs=2,
            seed=0,
            **options,
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Path:
    """Return a folder with a model of patches, its export, and image files."""
    root = tmp_path_factory.mktemp("vision")
    model = fitted(weights, patches=True, method="dp")
    assert isinstance(model.view, PatchView)
    assert model.view.lessons is not None  # what labels teach is in the file, too
    assert model.view.lessons.detector is not None
    model.save(root / "model")
    export(model, root / "model.onnx")
    (root / "new").mkdir()
    for number, image in enumerate(pictures(3, 2)):
        Image.fromarray(image.transpose(1, 2, 0)).save(root / "new" / f"{number}.png")
    Image.new("L", (90, 30), 80).save(root / "new" / "wide.png")
    pages = [Image.new("RGBA", (48, 40), (grey, 9, 9, 200)) for grey in (10, 200)]
    pages[0].save(root / "new" / "pages.tif", save_all=True, append_images=pages[1:])
    (root / "new" / "cut.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return root


def test_files_have_the_scores_of_the_model_without_torch(folder: Path) -> None:
    out = folder / "scores.csv"
    without = (
        "import sys\n"
        "for name in ('torch', 'sklearn', 'scipy', 'pyarrow', 'pydantic'):\n"
        "    sys.modules[name] = None\n"
        "from aloof.lite.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    given = ["score", str(folder / "model.onnx"), str(folder / "new"), "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", without, *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "6 images scored" in done.stderr
    assert "cut.png is not an image" in done.stderr
    with out.open() as file:
        rows = list(csv.DictReader(file))
    wanted = aloof.load(folder / "model").score(folder / "new")
    assert tuple(row["file"] for row in rows) == wanted.names
    assert "pages.tif#2" in wanted.names
    found = np.array([float(row["anomaly_score"]) for row in rows])
    # Random weights make features that are much alike: their last digits count.
    np.testing.assert_allclose(found, wanted.anomaly_score, rtol=1e-4)
    assert [row["is_anomaly"] == "true" for row in rows] == wanted.is_anomaly.tolist()


def test_an_empty_folder_and_a_column_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.png").write_bytes(b"nothing")
    model, out = str(folder / "model.onnx"), str(tmp_path / "s.csv")
    assert main(["score", model, str(tmp_path), "--out", out]) == 2
    assert "holds no image that can be read: bad.png is not an image" in capsys.readouterr().err
    assert main(["score", model, str(folder / "new"), "--keep", "x", "--out", out]) == 2
    assert "Images have no columns to keep" in capsys.readouterr().err
    assert main(["score", model, str(tmp_path / "nowhere"), "--out", out]) == 2
    assert "There is no folder or file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "size"),
    [({"patches": False}, (40, 48)), ({"patches": True, "method": "vae"}, (20, 1030))],
    ids=["whole", "tiles"],
)
def test_every_view_has_the_scores_of_the_model(
    options: dict, size: tuple[int, int], weights: Path, tmp_path: Path
) -> None:
    model = fitted(weights, size, **options)
    done = export(model, tmp_path / "model.onnx")
    assert done.off < 1e-4  # random weights make features that are much alike
    new = pictures(3, 5, size)
    found = load(tmp_path / "model.onnx").score(new)
    wanted = model.score(new)
    # Whole images have a committee, whose evidence is steeper than scores.
    np.testing.assert_allclose(found["anomaly_score"], wanted.anomaly_score, rtol=1e-4)
    assert (found["is_anomaly"] == wanted.is_anomaly).all()


def attention(x: torch.Tensor) -> torch.Tensor:
    query, key, value = x.reshape(len(x), 4, 3, 2, -1).permute(2, 0, 3, 1, 4)
    seen = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    normed = torch.nn.functional.layer_norm(seen, seen.shape[-1:], torch.ones(2), torch.ones(2))
    return torch.nn.functional.gelu(normed).flatten(1)


def pooled(x: torch.Tensor) -> torch.Tensor:
    image = torch.nn.functional.pad(x.reshape(-1, 3, 4, 4), (1, 1, 0, 2))
    larger = torch.nn.functional.interpolate(image, (9, 11), mode="bicubic")
    return torch.nn.functional.max_pool2d(larger, 3, 2, 1).flatten(1).topk(4, 1).values


@pytest.mark.parametrize("function", [attention, pooled])
def test_what_is_traced_is_computed_for_any_number_of_rows(function) -> None:
    import onnxruntime

    graph = Graph()
    rows = graph.input("rows", np.float32, (48,))
    (found,) = trace(function, rows, shape=(48,))
    graph.output("found", found.sum(1))
    content = graph.model("a test", ("aloof", "0"), {}).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for n in (1, 5):
        x = np.random.default_rng(n).normal(size=(n, 48)).astype(np.float32)
        (computed,) = session.run(None, {"rows": x})
        wanted = function(torch.from_numpy(x)).sum(1).numpy()
        np.testing.assert_allclose(computed, wanted, rtol=1e-4, atol=1e-5)


def test_what_nobody_has_written_in_onnx_is_named() -> None:
    graph = Graph()
    rows = graph.input("rows", np.float32, (4,))
    with pytest.raises(ModelError, match=r"uses aten\.erfinv"):
        trace(torch.erfinv, rows, shape=(4,))
