"""Models of images: they learn, they are saved, they say where."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pictures import disc, parts, save
from sklearn.metrics import roc_auc_score

import aloof
from aloof.exceptions import (
    CalibrationWarning,
    ImageError,
    ImageWarning,
    LabelError,
    ModelError,
    TableError,
)
from aloof.models.images import ImageModel, ImageSet, fit_images, read_images

TINY = {"members": 1, "filters": (4,), "hidden": (8,), "latent_dim": 2, "max_epochs": 3}
pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")


def bad(found: ImageSet) -> np.ndarray:
    return np.array([folder == "bad" for folder in found.folders])


def test_scratches_are_found_in_images_never_seen(home: Path, model: ImageModel) -> None:
    found = model.read(home / "new")
    scores = model.score(found)
    assert roc_auc_score(bad(found), scores.anomaly_score) > 0.95
    assert scores.names == found.names
    assert np.array_equal(scores.is_anomaly, scores.anomaly_score > -model.detector.offset_)
    assert np.array_equal(scores.p_value, model.p_values(found))
    assert np.array_equal(scores.is_anomaly, model.is_anomaly(home / "new"))
    assert list(scores.columns()) == ["file", "anomaly_score", "p_value", "is_anomaly"]


def test_what_it_was_made_from_is_kept(home: Path, model: ImageModel) -> None:
    training = model.training
    assert model.shape == (3, 16, 16)
    assert training["n_images"] == 118
    assert training["n_anomalies"] == 8
    assert training["n_labelled_normal"] == 110
    assert training["n_training"] + training["n_calibration"] == 110
    assert training["n_calibration"] == 22
    assert "DualPriorVAE of colour images, 16 x 16" in repr(model)


def test_a_saved_model_is_the_same(home: Path, model: ImageModel, tmp_path: Path) -> None:
    model.set_threshold(share=0.2).save(tmp_path / "again")
    again = aloof.load(tmp_path / "again")
    assert isinstance(again, ImageModel)
    assert again.training == model.training
    assert str(again.threshold) == str(model.threshold)
    assert np.array_equal(again.anomaly_score(home / "new"), model.anomaly_score(home / "new"))
    with pytest.raises(ModelError, match="without encoder and decoder"):
        aloof.load(tmp_path / "again", encoder=len, decoder=len)


def test_the_difference_lies_where_the_scratch_is(home: Path, model: ImageModel) -> None:
    """A disc and the same disc with a mark: the mark is what differs."""
    clean = disc(np.random.default_rng(3)).transpose(2, 0, 1)
    marked = clean.copy()
    marked[:, 7:9, 5:11] = np.array([20, 10, 120])[:, None, None]
    found = model.explain(marked[None])
    mark = np.zeros((16, 16), bool)
    mark[7:9, 5:11] = True
    difference = found.difference[0]
    inside, outside = difference[mark].mean(), difference[~mark].mean()
    assert inside > 4 * outside
    error = np.abs(found.expected[0] - clean / 255)[:, mark].mean()
    assert error < 0.15  # what is expected there is the disc
    assert found.expected.shape == (1, 3, 16, 16)
    np.testing.assert_allclose(found.heat.sum((1, 2)), found.score, rtol=1e-6)
    np.testing.assert_allclose(found.score, model.anomaly_score(marked[None]))


def test_three_ways_to_say_what_is_bad_make_one_model(tmp_path: Path) -> None:
    parts(tmp_path / "all", good=30, bad=4)
    names = read_images(tmp_path / "all").names
    labels = {name: int(name.startswith("bad")) for name in names}
    inside = fit_images(tmp_path / "all", normal="good", anomaly="bad/", **TINY)
    outside = fit_images(
        tmp_path / "all",
        normal=tmp_path / "all" / "good",
        anomaly=tmp_path / "all" / "bad",
        **TINY,
    )
    table = fit_images(tmp_path / "all", labels=labels, **TINY)
    scores = [model.anomaly_score(tmp_path / "all") for model in (inside, outside, table)]
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])
    assert inside.training["n_anomalies"] == 4


def test_images_without_a_label_count_as_normal(tmp_path: Path) -> None:
    parts(tmp_path, good=20, bad=3)
    labels = {f"bad/{i:03}.png": 1 for i in range(2)}
    with pytest.warns(ImageWarning, match=r"1 label for files that do not exist"):
        model = fit_images(tmp_path, labels=labels | {"bad/999.png": 1}, **TINY)
    assert model.training["n_unlabelled"] == 21
    assert model.training["n_anomalies"] == 2


def test_a_table_may_list_the_bad_images_alone(tmp_path: Path) -> None:
    """Most images must be normal to learn from, but a table need not name them."""
    parts(tmp_path / "all", good=20, bad=3)
    table = tmp_path / "bad.csv"
    table.write_text("file,label\n" + "".join(f"bad/{i:03}.png,1\n" for i in range(3)))
    model = fit_images(tmp_path / "all", labels=table, **TINY)
    assert model.training["n_anomalies"] == 3
    assert model.training["n_unlabelled"] == 20
    table.write_text(f"{table.read_text()}good/000.png,0\n")
    found = model.evaluate(tmp_path / "all", labels=table)  # of these, most are bad
    assert (found.n_anomalies, found.n_normal) == (3, 1)
    table.write_text("file\nbad/000.png\n")
    with pytest.raises(TableError, match=r"no column of labels beside 'file'\. Add one"):
        fit_images(tmp_path / "all", labels=table, **TINY)


def test_names_without_folders_must_be_clear(tmp_path: Path) -> None:
    parts(tmp_path, good=20, bad=3)
    with pytest.raises(ImageError, match=r"Several images are called '000.png'"):
        fit_images(tmp_path, labels={"000.png": 1}, **TINY)
    model = fit_images(tmp_path, labels={"019.png": 1}, **TINY)
    assert model.training["n_anomalies"] == 1


def test_more_than_memory_makes_the_same_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts(tmp_path, good=30, bad=4)
    within = fit_images(tmp_path, anomaly="bad", **TINY)
    real = read_images
    kinds = []

    def from_disk(*arguments, **options):
        found = real(*arguments, **options, memory_budget=100)
        kinds.append(type(found.pixels))
        return found

    monkeypatch.setattr("aloof.models.images.fitting.read_images", from_disk)
    beyond = fit_images(tmp_path, anomaly="bad", **TINY)
    assert kinds == [np.memmap]
    assert np.array_equal(beyond.anomaly_score(tmp_path), within.anomaly_score(tmp_path))


def test_skipped_files_are_told_and_counted(tmp_path: Path) -> None:
    parts(tmp_path, good=20, bad=2)
    (tmp_path / "good" / "broken.jpg").write_text("no picture")
    with pytest.warns(ImageWarning, match=r"1 file skipped; the first is .*broken"):
        model = fit_images(tmp_path, anomaly="bad", **TINY)
    assert model.training["n_skipped"] == 1
    assert any("broken" in words for words in model.training["warnings"])


def test_one_image_is_too_few(tmp_path: Path) -> None:
    save(tmp_path / "good" / "x.png", disc(np.random.default_rng(0)))
    with pytest.raises(
        ImageError, match=r"at least 2 images not labelled .*better 200.* got 1 image\."
    ):
        fit_images(normal=tmp_path / "good")


def test_two_images_are_enough_to_begin_with(tmp_path: Path) -> None:
    for i in range(2):
        save(tmp_path / f"{i}.png", disc(np.random.default_rng(i)))
    with pytest.warns(CalibrationWarning, match="too few images to hold any out"):
        model = fit_images(tmp_path, method="vae", **TINY)
    assert model.score(tmp_path).p_value is None
    with pytest.raises(ImageError, match="no calibration images"):
        model.p_values(tmp_path)
    with pytest.raises(ImageError, match="no calibration images"):
        model.set_threshold(fdr=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "svm"}, "must be one of vae, mml"),
        ({"method": "committee"}, "method='committee' needs features of a backbone"),
        ({"n_members": 3}, "here it is called members"),
        ({"nonsense": 3}, "has no parameter 'nonsense'"),
        ({"calibration": 1.0}, "less than 1"),
        ({"anomaly": "ugly"}, "no images in a folder 'ugly'. It has bad, good"),
        ({"labels": {"x.png": 1}}, "No label matches an image"),
        ({"labels": {}, "anomaly": "bad"}, "Give either labels, or the folders"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, options: dict, words: str) -> None:
    parts(tmp_path, good=4, bad=2)
    with pytest.raises(ImageError, match=words):
        fit_images(tmp_path, **options)


def test_labels_of_another_convention_are_refused(tmp_path: Path) -> None:
    parts(tmp_path, good=4, bad=2)
    with pytest.raises(LabelError, match="got 2"):
        fit_images(tmp_path, labels={"good/000.png": 2})


@pytest.mark.parametrize(
    ("good", "bad", "error", "words"),
    [
        ("one", "two", LabelError, "6 of 8 images are labelled as anomalies.*swap them back"),
        ("bad", "good", ImageError, "You gave 'bad' as the normal images .*Swap them"),
        ("good", "good", ImageError, "also in 'good', given as normal images"),
        ("good", "good/inner", ImageError, "two folders that share no image"),
    ],
)
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "beside"])
def test_folders_the_wrong_way_round_are_refused(
    good: str,
    bad: str,
    error: type[Exception],
    words: str,
    inside: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts(tmp_path / "all", good=6, bad=2)
    shutil.copytree(tmp_path / "all" / "good", tmp_path / "all" / "two")
    shutil.copytree(tmp_path / "all" / "bad", tmp_path / "all" / "one")
    shutil.copytree(tmp_path / "all" / "bad", tmp_path / "all" / "good" / "inner")
    if (good, bad) == ("one", "two"):
        shutil.rmtree(tmp_path / "all" / "good")
        shutil.rmtree(tmp_path / "all" / "bad")
    monkeypatch.chdir(tmp_path / "all")
    with pytest.raises(error, match=words):
        fit_images("." if inside else None, normal=good, anomaly=bad, **TINY)


def test_an_evaluation_needs_two_folders(home: Path, model: ImageModel) -> None:
    with pytest.raises(ImageError, match="that share no image"):
        model.evaluate(home / "new", normal="bad", anomaly="bad")


def test_nothing_to_learn_from_is_said(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="There are no images"):
        fit_images()
    with pytest.raises(ImageError, match="Name the folder that holds the images"):
        fit_images(labels={"x": 1})


def test_arrays_of_another_shape_are_refused(model: ImageModel) -> None:
    with pytest.raises(ImageError, match=r"shape \(n, 3, 16, 16\); these have shape \(2, 1"):
        model.anomaly_score(np.zeros((2, 1, 16, 16), np.uint8))


def test_another_kind_of_model_is_refused(home: Path, tmp_path: Path) -> None:
    aloof.VAE(n_members=1, max_epochs=1).fit(np.eye(8)).save(tmp_path / "rows")
    with pytest.raises(ModelError, match="does not hold a model of images"):
        ImageModel.load(tmp_path / "rows")
    ImageModel.load(home / "model").save(tmp_path / "images")
    path = tmp_path / "images" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["images"] = {}
    path.write_text(json.dumps(manifest))
    with pytest.raises(ModelError):
        ImageModel.load(tmp_path / "images")


def test_arrays_are_images_too(home: Path, tmp_path: Path) -> None:
    """One model from files and from what is in them, in each of the ways to say it."""
    found = read_images(home / "train")
    y = bad(found).astype(int)
    files = fit_images(home / "train", normal="good", anomaly="bad", **TINY)
    labelled = aloof.fit(found.pixels, labels=y, **TINY)
    pairs = aloof.fit(normal=found.pixels[y == 0], anomaly=found.pixels[y == 1], **TINY)
    assert isinstance(labelled, ImageModel)
    scores = files.anomaly_score(home / "new")
    assert np.array_equal(labelled.anomaly_score(home / "new"), scores)
    assert pairs.training["n_anomalies"] == y.sum()
    assert labelled.training["made"]["options"]["labels"] == "..."
    shares = aloof.fit(found.pixels / 255, labels=y, **TINY).anomaly_score(home / "new")
    np.testing.assert_allclose(shares, scores, rtol=1e-4)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (np.zeros((4, 8, 8), np.uint8), {}, r"shape \(n, channels, height, width\)"),
        (np.zeros((4, 2, 8, 8), np.uint8), {}, "1 or 3 channels"),
        (np.full((4, 1, 8, 8), 200.0), {}, "bytes, or numbers from 0 to 1"),
        (np.zeros((0, 1, 8, 8), np.uint8), {}, "array of images is empty"),
        (np.zeros((4, 1, 8, 8), np.uint8), {"size": 4}, "Leave out size and channels"),
        (np.zeros((4, 1, 8, 8), np.uint8), {"anomaly": "bad"}, "in no folder"),
        (None, {"normal": np.zeros((4, 1, 8, 8), np.uint8), "anomaly": "bad"}, "or folders"),
        (np.zeros((4, 1, 8, 8), np.uint8), {"max_rows": 4}, "'max_rows' cannot be used"),
    ],
)
def test_arrays_that_are_no_images_are_refused(data, options: dict, words: str) -> None:
    with pytest.raises(ImageError, match=words):
        aloof.fit(data, **options)


def test_evaluations_agree_however_labels_are_given(home: Path, model: ImageModel) -> None:
    found = model.read(home / "new")
    y = bad(found)
    by_folder = model.evaluate(home / "new", normal="good", anomaly="bad")
    assert by_folder.auroc == roc_auc_score(y, model.anomaly_score(found))
    assert by_folder.n_anomalies == y.sum() == 6
    assert by_folder.true_positives == (model.is_anomaly(found) & y).sum()
    assert model.evaluate(found, labels=y.astype(int)) == by_folder
    named = dict(zip(found.names, map(int, y), strict=True))
    assert model.evaluate(found, labels=named) == by_folder
    with pytest.raises(LabelError, match="Say which images are anomalies"):
        model.evaluate(found)
    with pytest.raises(LabelError, match="no images labelled as normal,"):
        model.evaluate(found, anomaly="bad")


def test_calibration_takes_levels_from_new_images(home: Path, model: ImageModel) -> None:
    found = model.read(home / "new")
    scores = model.anomaly_score(found)
    assert model.calibrate(found, anomaly="bad") is model
    np.testing.assert_array_equal(
        model.detector.calibration_scores_, np.sort(scores[~bad(found)])
    )
    assert model.training["n_calibration"] == 20
    model.set_threshold(share=0.2)
    assert model.is_anomaly(found)[~bad(found)].sum() <= 4
    with pytest.raises(ImageError, match="All images are labelled as anomalies"):
        model.calibrate(found, labels=dict.fromkeys(found.names, 1))


def test_a_model_describes_itself(home: Path, model: ImageModel) -> None:
    found = model.describe()
    assert json.loads(json.dumps(found)) == found
    assert found["models"] == "images"
    assert found["shape"] == [3, 16, 16]
    assert found["versions"]["aloof"] == aloof.__version__
    # `filters` cannot be chosen on the command line.
    assert "aloof.fit(normal=" in found["again"][2]
