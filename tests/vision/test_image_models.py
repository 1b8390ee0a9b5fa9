from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import aloof
from aloof.cli.app import app
from aloof.exceptions import ImageError, ImageWarning, ModelError
from aloof.feedback import Answer
from aloof.feedback.answer import standings
from aloof.feedback.refitting import refit
from aloof.metrics import region_overlap, roc_auc
from aloof.models.images import ImageModel, read_images
from aloof.models.images.choosing import worth_features
from aloof.models.images.lessons import LabelledPatches, Lessons, learn_direction
from aloof.models.images.patches import PatchView, top_mean
from aloof.models.images.views import WholeView, view_from
from aloof.vision import PACKAGED

SIDE = 64
FAST: dict[str, Any] = {"members": 2, "max_epochs": 4, "seed": 0}
pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")


def surface(n: int, seed: int) -> NDArray[np.uint8]:
    """Return stripes with noise, in colour."""
    rng = np.random.default_rng(seed)
    x = np.mgrid[:SIDE, :SIDE][1]
    found = np.empty((n, 3, SIDE, SIDE), np.uint8)
    for image in found:
        stripes = 120 + 50 * np.sin(0.7 * x + rng.uniform(0, 6)) + rng.normal(0, 6, x.shape)
        image[:] = (stripes * np.array([1, 0.8, 0.6])[:, None, None]).clip(0, 255)
    return found


def spoilt(images: NDArray[np.uint8], seed: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return images with a dark spot in each, and masks."""
    rng = np.random.default_rng(seed)
    images, masks = images.copy(), np.zeros((len(images), SIDE, SIDE), bool)
    for image, mask in zip(images, masks, strict=True):
        top, left = rng.integers(12, 40, 2)
        mask[top : top + 10, left : left + 10] = True
        image[:, mask] = 20
    return images, masks


def write(folder: Path, images: NDArray[np.uint8], prefix: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images):
        Image.fromarray(image.transpose(1, 2, 0)).save(folder / f"{prefix}{number:03}.png")


def write_masks(folder: Path, masks: NDArray[np.bool_]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, mask in enumerate(masks):
        Image.fromarray(255 * mask.astype(np.uint8)).save(folder / f"{number:03}_mask.png")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return folders good, bad, masks, test/good, test/bad and test-masks."""
    root = tmp_path_factory.mktemp("images")
    write(root / "good", surface(16, 1))
    bad, masks = spoilt(surface(4, 2), 3)
    write(root / "bad", bad)
    write_masks(root / "masks", masks)
    write(root / "test" / "good", surface(8, 4))
    bad, masks = spoilt(surface(8, 5), 6)
    write(root / "test" / "bad", bad)
    write_masks(root / "test-masks", masks)
    return root


KNOWS = PACKAGED["efficientnet-lite0"].path is not None  # the extra vision is installed


@pytest.fixture(scope="module")
def backbone(weights: Path) -> str:
    """Return a network that knows the world, or a random one, which finds little."""
    return "efficientnet-lite0" if KNOWS else str(weights)


@pytest.fixture(scope="module")
def patches(tree: Path, backbone: str) -> ImageModel:
    return aloof.fit(
        normal=tree / "good",
        anomaly=tree / "bad",
        masks=tree / "masks",
        backbone=backbone,
        method="dp",  # beside a direction
        **FAST,
    )


@pytest.fixture(scope="module")
def whole(tree: Path, backbone: str) -> ImageModel:
    return aloof.fit(
        normal=tree / "good",
        anomaly=tree / "bad",
        backbone=backbone,
        patches=False,
        **(FAST | {"max_epochs": 60}),
    )


def test_patches_find_spots_and_show_where_they_are(patches: ImageModel, tree: Path) -> None:
    assert isinstance(patches.view, PatchView)
    found = patches.evaluate(
        tree / "test", normal="good", anomaly="bad", masks=tree / "test-masks"
    )
    assert found.pixel_auroc is not None
    assert found.pro is not None
    assert 0 <= found.pro <= 1
    if KNOWS:
        assert found.auroc > 0.95
        assert found.pixel_auroc > 0.9
        assert found.pro > 0.5
    why = patches.explain(tree / "test" / "bad")
    assert why.heat.shape == (8, SIDE, SIDE)
    assert why.expected is None
    with pytest.raises(ImageError, match="cannot draw them"):
        patches.reconstruct(tree / "test")


def test_a_model_says_all_that_judges(patches: ImageModel, whole: ImageModel) -> None:
    assert isinstance(patches.view, PatchView)
    n = len(patches.view.memory)
    said = dict(patches.facts())["Beside it"]
    wanted = rf"memory of {n:,} patches, direction in .*, DP-VAE with \d members?, which knows"
    assert re.match(wanted, said), said
    assert "Beside it" not in dict(whole.facts())


def test_the_score_of_an_image_is_the_mean_of_its_worst_patches(
    patches: ImageModel, tree: Path
) -> None:
    assert isinstance(patches.view, PatchView)
    pixels = patches.read(tree / "test" / "bad").pixels
    maps = patches.view.maps(patches.detector, pixels)
    np.testing.assert_allclose(
        patches.anomaly_score(pixels), top_mean(maps, patches.view.n_top), rtol=1e-6
    )
    alone = patches.anomaly_score(pixels[3:4])
    np.testing.assert_allclose(alone, patches.anomaly_score(pixels)[3:4], rtol=1e-3)


def test_labels_add_to_the_scores_of_patches_and_never_take_away(
    patches: ImageModel, tree: Path, backbone: str
) -> None:
    alone = aloof.fit(normal=tree / "good", backbone=backbone, patches=True, **FAST)
    assert isinstance(patches.view, PatchView)
    assert isinstance(alone.view, PatchView)
    assert alone.view.lessons is None
    assert patches.view.lessons is not None
    assert patches.view.lessons.detector is not None
    assert 0 < patches.view.lessons.share <= 1
    torch.testing.assert_close(patches.view.memory, alone.view.memory)
    pixels = patches.read(tree / "test").pixels
    with_labels = patches.view.maps(patches.detector, pixels)
    without = alone.view.maps(alone.detector, pixels)
    gained = with_labels - without
    assert gained.min() > -1e-3
    assert gained.max() > 0.1
    blank = replace(patches.view, lessons=None)
    np.testing.assert_allclose(blank.maps(patches.detector, pixels), without, atol=1e-3)


def labelled(seed: int, *, bad: bool) -> LabelledPatches:
    """Return an image of 50 patches; five count as bad, and perhaps are."""
    rng = torch.Generator().manual_seed(seed)
    vectors = torch.randn(50, 8, generator=rng)
    vectors[:5, 0] += 6 * bad
    return LabelledPatches(vectors[:5], vectors)


@pytest.mark.parametrize("alike", [True, False])
def test_labels_count_as_far_as_they_help_to_recognise_one_another(alike: bool) -> None:
    bad = [labelled(seed, bad=alike) for seed in range(4)]
    normal = torch.randn(40, 50, 8, generator=torch.Generator().manual_seed(9))
    odd = normal.square().mean(2).double().numpy()
    lessons = learn_direction(bad, [normal[:25], normal[25:]], odd, 3)
    if not alike:
        assert lessons is None
        return
    assert lessons is not None
    assert lessons.share == 1
    assert lessons.direction.argmax() == 0  # where the bad ones are different
    assert lessons.direction[0] > 0.9 * lessons.direction.norm()
    gained = lessons.gained(lessons.along(normal.flatten(0, 1)), None).numpy()
    assert gained.min() == 0
    new = labelled(99, bad=True)
    of_new = lessons.gained(lessons.along(new.vectors), None).numpy()
    assert of_new[:5].min() > np.quantile(gained, 0.999)
    halved = lessons.measured(2.0).gained(lessons.along(new.vectors), None).numpy()
    np.testing.assert_allclose(halved, of_new / 2)
    few = learn_direction(bad[:2], [normal], odd, 3)  # too few to leave one out
    assert few is not None
    assert few.share == pytest.approx(0.2)
    assert learn_direction([], [normal], odd, 3) is None
    assert learn_direction(bad, [normal[:1]], odd[:1], 3) is None  # one image: no spread


def test_defects_are_told_from_odd_patches_of_normal_images() -> None:
    random = torch.Generator().manual_seed(9)
    normal = torch.randn(40, 50, 8, generator=random)
    normal[:, :6, 1] += 6  # odd, but normal
    bad = []
    for seed in range(4):
        image = labelled(seed, bad=True)
        image.bad[:, 1] += 6  # defects share that
        bad.append(image)
    odd = normal.square().mean(2).double().numpy()
    lessons = learn_direction(bad, [normal], odd, 3)
    assert lessons is not None
    assert lessons.direction[0] > 2 * lessons.direction[1].abs()


def test_a_model_without_the_spread_of_its_memory_is_of_an_older_version(
    patches: ImageModel,
) -> None:
    view = patches.view
    assert isinstance(view, PatchView)
    state, kept = view.state(), {k: v for k, v in view.tensors().items() if k != "spread"}
    with pytest.raises(ValueError, match="older version"):
        view_from(state, kept, "cpu")
    with pytest.raises(ValueError, match="not of distances"):
        view_from(state, {**kept, "spread": -view.spread}, "cpu")


def test_whole_images_are_told_apart(whole: ImageModel, tree: Path) -> None:
    assert isinstance(whole.view, WholeView)
    found = whole.evaluate(tree / "test", normal="good", anomaly="bad")
    assert found.auroc > (0.9 if KNOWS else 0.5)
    assert whole.explain(tree / "test" / "bad").heat.shape == (8, SIDE, SIDE)


@pytest.mark.parametrize("kind", ["patches", "whole"])
def test_a_model_is_the_same_after_saving_without_the_file_of_weights(
    kind: str, tree: Path, tmp_path: Path, backbone: str, request: pytest.FixtureRequest
) -> None:
    model: ImageModel = request.getfixturevalue(kind)
    model.save(tmp_path / "model")
    again = aloof.load(tmp_path / "model")
    assert isinstance(again, ImageModel)
    np.testing.assert_array_equal(
        again.anomaly_score(tree / "test"), model.anomaly_score(tree / "test")
    )
    assert again.describe()["view"] == model.describe()["view"]
    facts = dict(again.facts())
    assert facts["Backbone"] == dict(model.facts())["Backbone"]
    assert ("Apache-2.0" if KNOWS else "unknown") in facts["Backbone"]
    assert again.training["made"]["options"]["backbone"] == backbone


def test_tensors_of_a_view_that_were_changed_are_refused(
    patches: ImageModel, tmp_path: Path
) -> None:
    patches.save(tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    tensors["images.memory"] += 1
    save_file(tensors, path)
    with pytest.raises(ModelError, match="was changed"):
        aloof.load(tmp_path / "model")


def test_lessons_that_cannot_be_are_refused(patches: ImageModel) -> None:
    assert isinstance(patches.view, PatchView)
    lessons = patches.view.lessons
    assert lessons is not None
    (size,) = lessons.direction.shape
    state, tensors = lessons.state(), lessons.tensors()
    assert Lessons.taken(None, {"memory": lessons.direction}, size, "cpu") is None
    for change, wrong in (
        ({"lessons.direction": lessons.direction[1:]}, "another shape"),
        ({"lessons.direction": lessons.direction / 0}, "not of numbers"),
        ({"lessons.numbers": torch.zeros(5, dtype=torch.float64)}, "out of range"),
    ):
        with pytest.raises(ValueError, match=wrong):
            Lessons.taken(state, {**tensors, **change}, size, "cpu")
    with pytest.raises(ValueError, match="no method"):
        Lessons.taken({"method": "other"}, dict(tensors), size, "cpu")


def test_the_same_seed_gives_the_same_model(tree: Path, weights: Path) -> None:
    options = {"backbone": weights, "patches": True, "method": "vae", **FAST}
    one, two = (aloof.fit(tree / "good", **options) for _ in range(2))
    np.testing.assert_array_equal(
        one.anomaly_score(tree / "test"), two.anomaly_score(tree / "test")
    )


def test_reports_and_pictures(patches: ImageModel, tree: Path, tmp_path: Path) -> None:
    patches.report(tree / "test", tmp_path / "page.html", top=2)
    assert "what is strange" in (tmp_path / "page.html").read_text()
    patches.most_anomalous(tree / "test", 3, out=f"{tmp_path}/heatmaps/")
    pictures = sorted((tmp_path / "heatmaps").iterdir())
    assert len(pictures) == 3
    with Image.open(pictures[0]) as picture:
        assert picture.size[0] > 2 * picture.size[1]


def test_the_command_line_goes_all_the_way(tree: Path, weights: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = str(tmp_path / "model")
    done = run(
        app,
        ["fit", "--normal", str(tree / "good"), "--anomaly", str(tree / "bad"), "--backbone",
         str(weights), "--members", "2", "--epochs", "3", "--out", out],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Read images with random.safetensors, as" in done.output
    info = json.loads(run(app, ["info", out, "--json"]).stdout)
    assert info["view"]["architecture"] == "mobilenet_v2"
    done = run(
        app,
        ["evaluate", out, str(tree / "test"), "--normal", "good", "--anomaly", "bad",
         "--masks", str(tree / "test-masks")],
    )  # fmt: skip
    assert "overlap (PRO)" in done.output, done.output


def test_masks_that_do_not_belong_are_refused(
    tree: Path, weights: Path, tmp_path: Path
) -> None:
    def fit(masks: Path, **options: Any) -> ImageModel:
        return aloof.fit(
            normal=tree / "good", anomaly=tree / "bad", masks=masks, **(FAST | options)
        )

    masks = tmp_path / "masks"
    shutil.copytree(tree / "masks", masks)
    Image.new("L", (SIDE, 40), 255).save(masks / "001_mask.png")
    with pytest.raises(ImageError, match="64 x 40 pixels, and its image 64 x 64"):
        fit(masks, backbone=weights)
    Image.new("L", (SIDE // 2, SIDE // 2), 255).save(masks / "001_mask.png")
    (masks / "002_mask.png").unlink()
    with pytest.warns(ImageWarning) as said:
        fit(masks, backbone=weights)
    assert [w for w in map(str, (each.message for each in said)) if "mask" in w] == [
        "1 mask resized to the size of the image, such as: 001_mask.png has 32 x 32 pixels, "
        "and its image 64 x 64 pixels.",
        "1 of 4 anomalies without a mask, such as '002.png'; they are learned from where they "
        "look strangest.",
    ]
    Image.new("L", (SIDE, SIDE), 0).save(masks / "001_mask.png")
    with pytest.raises(ImageError, match="marks no defect"):
        fit(masks, backbone=weights)
    (masks / "001_mask.png").rename(masks / "nobody.png")
    with pytest.raises(ImageError, match=r"no anomaly that the mask 'nobody\.png'"):
        fit(masks, backbone=weights)
    with pytest.raises(ImageError, match="Masks are for patches"):
        fit(tree / "masks", backbone=weights, patches=False)
    with pytest.raises(ImageError, match="needs features of a backbone"):
        fit(tree / "masks", backbone="none")


def test_images_that_are_all_the_same_are_refused(weights: Path) -> None:
    same = np.repeat(surface(1, 0), 6, 0)
    with pytest.raises(ImageError, match="All 6 images are the same"):
        aloof.fit(same, backbone=weights, **FAST)


def test_one_image_is_not_enough(weights: Path) -> None:
    with pytest.raises(ImageError, match="at least"):
        aloof.fit(surface(1, 0), backbone=weights, **FAST)


def test_equal_and_swapped_folders_are_refused(tree: Path, weights: Path) -> None:
    with pytest.raises(ImageError, match="Swap them"):
        aloof.fit(normal=tree / "bad", anomaly=tree / "good", backbone=weights, **FAST)
    with pytest.raises(ImageError):
        aloof.fit(normal=tree / "good", anomaly=tree / "good", backbone=weights, **FAST)


def test_images_of_many_sizes_and_a_damaged_one(
    tree: Path, weights: Path, tmp_path: Path
) -> None:
    shutil.copytree(tree / "good", tmp_path / "good")
    content = (tmp_path / "good" / "003.png").read_bytes()
    (tmp_path / "good" / "003.png").write_bytes(content[: len(content) // 2])
    for number, size in enumerate([(200, 80), (31, 90), (64, 63), (400, 12)]):
        Image.new("RGB", size, (200, 30, 30)).save(tmp_path / "good" / f"odd{number}.png")
    deep = Image.fromarray(np.full((SIDE, SIDE), 40_000, np.uint16))
    deep.save(tmp_path / "good" / "deep.tiff")
    Image.new("RGBA", (SIDE, SIDE), (9, 9, 9, 128)).save(tmp_path / "good" / "alpha.png")
    pages = [Image.new("L", (SIDE, SIDE), grey) for grey in (10, 200)]
    pages[0].save(tmp_path / "good" / "pages.tif", save_all=True, append_images=pages[1:])
    with pytest.warns(ImageWarning, match=r"003\.png is cut off"):
        model = aloof.fit(
            tmp_path / "good", backbone=weights, patches=True, method="vae", **FAST
        )
    assert model.shape == (3, SIDE, SIDE)
    assert model.training["n_skipped"] == 1
    assert model.training["n_images"] == 16 - 1 + 4 + 2 + 2


def test_images_keep_their_proportions(tmp_path: Path) -> None:
    Image.new("RGB", (100, 50), (255, 0, 0)).save(tmp_path / "wide.png")
    Image.new("RGB", (60, 60), (0, 0, 255)).save(tmp_path / "square.png")
    for number in range(2):
        Image.new("RGB", (60, 60), (0, 99, 0)).save(tmp_path / f"green{number}.png")
    found = read_images(tmp_path, size=30, keeps_proportions=True, fill=0)
    wide = found.pixels[found.names.index("wide.png")]
    assert wide.shape == (3, 30, 30)
    rows = np.flatnonzero(wide[0].max(1) > 128)
    assert (rows.min(), rows.max()) == (7, 21)
    assert (found.pixels[found.names.index("square.png")][2] == 255).all()
    lined = read_images(tmp_path, size=30, keeps_proportions=True)
    assert (lined.pixels[lined.names.index("wide.png")][0] == 255).all()


def test_panoramas_are_made_small_and_larger_ones_are_refused(tmp_path: Path) -> None:
    Image.new("L", (20_000, 200), 50).save(tmp_path / "long.png")
    found = read_images(tmp_path, size=256, keeps_proportions=True)
    assert found.shape == (1, 3, 256)
    Image.new("1", (20_000, 20_000)).save(tmp_path / "huge.png")
    found = read_images(tmp_path, size=(64, 256), keeps_proportions=True)
    assert found.names == ("long.png",)
    assert "the limit is" in found.skipped[0].reason


def test_small_images_are_learned_from_by_their_pixels() -> None:
    assert not worth_features((1, 28, 28))
    assert worth_features((3, 32, 32))
    assert not worth_features((3, 16, 64))


def test_a_model_of_patches_is_refitted_with_answers(
    patches: ImageModel, tree: Path, tmp_path: Path
) -> None:
    write(tmp_path / "new", np.concatenate([spoilt(surface(3, 11), 12)[0], surface(3, 13)]))
    answers = [
        Answer(row=f"{k:03}.png", source="new", label=int(k < 3), by="eve", number=k + 1)
        for k in range(4)
    ]
    done = refit(patches, standings(answers), compare=str(tmp_path / "new"))
    assert (done.n_anomalies, done.n_normal, done.n_elsewhere, done.n_lost) == (3, 1, 4, 0)
    assert isinstance(done.model, ImageModel)
    assert done.model.training["n_anomalies"] == 7
    assert isinstance(done.model.view, PatchView)
    assert done.model.threshold == patches.threshold
    assert done.comparison.alerts is not None
    before, after = (m.anomaly_score(tmp_path / "new") for m in (patches, done.model))
    assert not np.array_equal(before, after)
    done.model.save(tmp_path / "again")
    np.testing.assert_array_equal(
        aloof.load(tmp_path / "again").anomaly_score(tmp_path / "new"), after
    )
    with pytest.raises(ImageError, match="equally often"):
        refit(patches, standings(answers), confirmed_weight=3)


def test_a_server_gives_the_scores_of_the_model(
    patches: ImageModel, tree: Path, tmp_path: Path
) -> None:
    pytest.importorskip("fastapi")
    from aloof.serve.images import ServedImages
    from aloof.serve.limits import Limits
    from aloof.serve.served import Asked, Scored

    served = ServedImages(patches, Limits())
    Image.new("RGB", (120, 60), (200, 90, 10)).save(tmp_path / "wide.png")
    rows = served._decoded([(tmp_path / "wide.png").read_bytes()], None, Asked())
    (answer,) = served.score([rows])
    assert isinstance(answer, Scored)
    np.testing.assert_allclose(
        answer.scores, patches.anomaly_score(tmp_path / "wide.png"), rtol=1e-6
    )
    pages = [Image.new("L", (SIDE, SIDE), grey) for grey in (10, 200)]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(ImageError, match="Image 1 has 2 pages; send each as an image"):
        served._decoded([(tmp_path / "pages.tif").read_bytes()], None, Asked())


def test_whole_images_take_a_committee(tree: Path, weights: Path) -> None:
    model = aloof.fit(
        normal=tree / "good",
        anomaly=tree / "bad",
        backbone=weights,
        method="committee",
        **FAST,
    )
    assert isinstance(model.view, WholeView)
    with pytest.raises(ImageError, match="committee"):
        aloof.fit(
            normal=tree / "good",
            anomaly=tree / "bad",
            backbone=weights,
            method="committee",
            patches=True,
            **FAST,
        )


def test_the_overlap_counts_every_region_the_same() -> None:
    masks = np.zeros((2, 20, 20), bool)
    masks[0, :10, :10] = True
    masks[1, 3, 3] = True
    maps = np.random.default_rng(0).uniform(0, 0.1, masks.shape)
    found_large = maps.copy()
    found_large[0][masks[0]] = 1
    half = region_overlap(masks, found_large)
    assert 0.5 <= half < 0.75
    found_large[1][masks[1]] = 1
    assert region_overlap(masks, found_large) == pytest.approx(1)
    assert region_overlap(masks, -found_large) == pytest.approx(0, abs=0.01)
    assert roc_auc(masks.ravel().astype(np.int64), found_large.ravel()) == 1
