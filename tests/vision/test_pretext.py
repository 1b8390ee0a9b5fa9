"""Networks that learn from the images themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

import aloof
from aloof.cli.app import app
from aloof.exceptions import BackboneError
from aloof.metrics import roc_auc
from aloof.vision import PRETEXTS, learn_backbone, load_backbone
from aloof.vision.features import patch_features, patch_grid, whole_features
from aloof.vision.memory import distances
from aloof.vision.pretext import CutPaste, Geometric
from aloof.vision.selfmade import own_strides
from aloof.vision.transformations import N_TRANSFORMATIONS, transformations

CPU = torch.device("cpu")
pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")


def random(*shape: int, normal: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return (torch.randn if normal else torch.rand)(*shape, generator=generator)


def test_squares_are_cut_and_transformed_unless_they_are_of_anomalies() -> None:
    task = Geometric((12, 20), 8)
    images, noise = random(50, 2, 12, 20), random(50, 3, normal=True)
    squares, which = task.posed(images, noise, 40)
    assert squares.shape == (50, 2, 8, 8)
    assert len(set(which[:40].tolist())) > 20
    assert not which[40:].any()
    chances = torch.special.ndtr(noise[:, :2])
    sources = transformations(8)
    for image, chance, square, number in zip(images, chances, squares, which, strict=True):
        top, left = (chance * torch.tensor([5, 13])).floor().int().tolist()
        plain = image[:, top : top + 8, left : left + 8].reshape(2, -1)
        torch.testing.assert_close(square.reshape(2, -1), plain[:, sources[number]])


def test_the_loss_is_least_where_all_parts_of_a_transformation_are_right() -> None:
    task, which = Geometric((8, 8), 8), torch.arange(N_TRANSFORMATIONS)
    mirrored, down, right, turns = np.unravel_index(which.numpy(), (2, 3, 3, 4))
    answers = torch.zeros(N_TRANSFORMATIONS, 13)
    for n, part in enumerate((mirrored, 2 + down, 5 + right, 8 + turns)):
        assert task.loss(answers, which, 72).mean() == pytest.approx(
            np.log([2, 3, 3, 4][n:]).sum(), rel=1e-5
        )
        answers[which, torch.from_numpy(part)] = 100
    assert task.loss(answers, which, 72).max() < 1e-5
    # Labels are learned by the last answer, in the right direction.
    answers = answers.requires_grad_()
    task.loss(answers, which, 60).sum().backward()
    assert answers.grad is not None
    assert bool((answers.grad[:60, -1] > 0).all())
    assert bool((answers.grad[60:, -1] < 0).all())


def test_pieces_are_pasted_where_the_answer_says_and_nowhere_else() -> None:
    task = CutPaste((40, 40), 40)
    images, noise = random(60, 3, 40, 40), random(60, task.noise_size, normal=True)
    found, where = task.posed(images, noise, 50)
    inside = where.bool().expand(-1, 3, -1, -1)
    assert bool((found == images)[~inside].all())
    assert (found != images)[inside].float().mean() > 0.95
    assert not inside[50:].any()
    pasted = where.flatten(1).any(1)[:50].float().mean()
    assert 0.55 < pasted < 0.95
    shares = where[:50].mean((1, 2, 3))
    assert bool((shares < 0.15).all())
    assert float(found.min()) >= 0
    assert float(found.max()) <= 1
    # An anomaly must have a strange place, and normal images only where a piece is.
    answers = torch.where(where[:, 0] > 0, 20.0, -20.0)
    answers[50:, 3, 4:20] = 20
    assert float(task.loss(answers, where, 50).max()) < 0.1
    assert float(task.loss(-answers, where, 50)[:50].min()) > 5
    assert float(task.loss(torch.full_like(answers, -20.0), where, 50)[50:].min()) > 5


def glyphs(n: int, seed: int, *, mirrored: bool = False) -> NDArray[np.uint8]:
    """Return images with the letter F somewhere, and noise."""
    rng = np.random.default_rng(seed)
    letter = np.kron([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0]], np.ones((4, 3)))
    found = np.empty((n, 1, 36, 36), np.uint8)
    for image in found:
        picture, (y, x) = rng.normal(90, 20, (36, 36)), rng.integers(0, 20, 2)
        picture[y : y + 16, x : x + 12] += 100 * (letter[:, ::-1] if mirrored else letter)
        image[0] = picture.clip(0, 255)
    return found


def nearest(known: NDArray[Any], good: NDArray[Any], bad: NDArray[Any]) -> float:
    """Return the AUROC of the distance to the nearest known row."""
    mean, scale = known.mean(0), known.std(0) + 1e-6
    ready = [torch.from_numpy((part - mean) / scale).float() for part in (known, good, bad)]
    far = [distances(part, ready[0]).numpy() for part in ready[1:]]
    return roc_auc(np.repeat([0, 1], [len(good), len(bad)]), np.concatenate(far))


def test_geometric_transformations_teach_what_pixels_do_not_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Geometric, "seen", 5_000)
    known, bad = glyphs(60, 1), glyphs(5, 2, mirrored=True)
    images = np.concatenate([known, bad])
    backbone = learn_backbone(
        "geometric", images, np.arange(60), np.arange(60, 65), 0, device=CPU
    )
    sets = known, glyphs(40, 3), glyphs(40, 4, mirrored=True)
    by_pixels = nearest(*(part.reshape(len(part), -1).astype(float) for part in sets))
    by_features = nearest(*(whole_features(backbone, part) for part in sets))
    assert by_features > max(0.9, by_pixels + 0.15)


def stripes(n: int, seed: int, *, broken: bool = False) -> NDArray[np.uint8]:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:64, :64]
    found = np.empty((n, 1, 64, 64), np.uint8)
    for image in found:
        phase = np.full((64, 64), rng.uniform(0, 6))
        if broken:  # a piece goes on in another phase
            top, left = rng.integers(4, 44, 2)
            phase[top : top + 14, left : left + 14] += 2
        wave = 120 + 60 * np.sin(rng.uniform(0.4, 0.6) * x + rng.uniform(0, 0.4) * y + phase)
        image[0] = (wave + rng.normal(0, 20, wave.shape)).clip(0, 255)
    return found


def test_cut_and_paste_teaches_how_a_surface_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CutPaste, "seen", 1_000)
    images = np.concatenate([stripes(30, 1), stripes(3, 2, broken=True)])
    backbone = learn_backbone(
        "cut-paste", images, np.arange(30), np.arange(30, 33), 0, device=CPU
    )
    assert backbone.strides == (4, 8, 16)
    assert patch_grid(backbone, (64, 64)) == (16, 16)

    def patches(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        rows = np.concatenate(list(patch_features(backbone, pixels))).astype(np.float32)
        return rows.reshape(len(rows), -1, rows.shape[-1])

    known = patches(images[:30]).reshape(-1, sum(backbone.channels))
    mean, scale = known.mean(0), known.std(0) + 1e-6
    bank = torch.from_numpy((known[::3] - mean) / scale)
    scores = []
    for pixels in (stripes(20, 3), stripes(20, 4, broken=True)):
        rows = torch.from_numpy((patches(pixels) - mean) / scale)
        far = distances(rows.flatten(0, 1), bank).reshape(rows.shape[:2])
        scores.append(far.topk(3, 1).values.mean(1).numpy())
    by_features = roc_auc(np.repeat([0, 1], 20), np.concatenate(scores))
    sets = images[:30], stripes(20, 3), stripes(20, 4, broken=True)
    by_pixels = nearest(*(part.reshape(len(part), -1).astype(float) for part in sets))
    assert by_features > max(0.9, by_pixels + 0.15)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for pretext in PRETEXTS.values():
        monkeypatch.setattr(pretext, "seen", 40)


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("name", PRETEXTS)
def test_the_same_seed_gives_the_same_network(name: str) -> None:
    images, every = glyphs(8, 1), np.arange(6)
    made = [
        learn_backbone(name, pixels, every, np.arange(6, 8), seed, device=CPU)
        for pixels, seed in ((images, 0), (images, 0), (images, 1), (images / 255, 0))
    ]
    assert made[0].facts == made[1].facts
    assert made[0].facts.sha256 != made[2].facts.sha256
    maps = [backbone(random(1, 3, 64, 64))[0] for backbone in made]
    assert torch.equal(maps[0], maps[1])
    assert maps[0].shape == (1, 16, 16, 16)
    alone = learn_backbone(name, images, every, every[:0], 0, device=CPU)
    assert alone.facts.sha256 != made[0].facts.sha256


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    ("name", "way"), [("geometric", "--whole"), ("cut-paste", "--patches")]
)
def test_a_model_keeps_its_network(name: str, way: str, tmp_path: Path) -> None:
    runner = CliRunner()
    for folder, images in (("good", glyphs(12, 1)), ("bad", glyphs(3, 2, mirrored=True))):
        (tmp_path / folder).mkdir()
        for n, image in enumerate(images):
            Image.fromarray(image[0]).resize((48, 36)).save(tmp_path / folder / f"{n}.png")
    asked = ["fit", "--normal", str(tmp_path / "good"), "--anomaly", str(tmp_path / "bad")]
    asked += ["--backbone", name, way, "--members", "2", "--epochs", "2"]
    done = runner.invoke(app, [*asked, "--out", str(tmp_path / "model")])
    assert done.exit_code == 0, done.output
    assert f"with {name}" in done.output
    told = runner.invoke(app, ["info", str(tmp_path / "model")]).output
    assert name in told
    assert "learned from the training images" in told
    one, two = (aloof.load(tmp_path / "model") for _ in range(2))
    scores = one.score(tmp_path / "good").anomaly_score
    assert np.array_equal(scores, two.score(tmp_path / "good").anomaly_score)
    again = runner.invoke(app, [*asked, "--out", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    same = aloof.load(tmp_path / "again").score(tmp_path / "good").anomaly_score
    assert np.array_equal(scores, same)


def test_too_few_images_and_other_names_are_refused() -> None:
    one = glyphs(1, 1)
    with pytest.raises(BackboneError, match="learns from normal images, and there is 1"):
        learn_backbone("geometric", one, np.arange(1), np.arange(0), 0, device=CPU)
    with pytest.raises(BackboneError, match=r"no backbone 'geometrics'.*geometric"):
        load_backbone("geometrics")
    with pytest.raises(BackboneError, match="use learn_backbone"):
        load_backbone("cut-paste")


def test_maps_are_finer_for_small_images() -> None:
    assert own_strides((28, 28)) == own_strides((128, 300)) == (4, 8, 16)
    assert own_strides((129, 200)) == (8, 16, 32)
