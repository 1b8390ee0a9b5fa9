from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from aloof.bench.deadline import Deadline
from aloof.bench.revisions import is_newer, vision_revision
from aloof.bench.runner import run_study, write_tables
from aloof.bench.specification import specify
from aloof.bench.study import Outcome, Where
from aloof.bench.vision import VisionSpecification, make_vision
from aloof.bench.vision.collections import list_collection
from aloof.bench.vision.defects import KINDS, LABELLED, SIZES, UNSEEN, damage
from aloof.bench.vision.problems import Problem, make_problem
from aloof.bench.vision.surfaces import DEVELOPMENT, SURFACES, draw
from aloof.bench.vision.systems import SYSTEMS, Bench, run_systems
from aloof.exceptions import DatasetError, ExperimentError
from aloof.vision import PACKAGED

DRAWN = (*DEVELOPMENT, "brushed", "tiles", "nuts")


@pytest.mark.parametrize("surface", DRAWN)
def test_a_surface_is_the_same_for_the_same_seed_and_varies_within(surface: str) -> None:
    images = draw(surface, 1, 2, 48)
    np.testing.assert_array_equal(images, draw(surface, 1, 2, 48))
    assert images.shape == (2, 3, 48, 48)
    assert (images[0] != images[1]).mean() > 0.5
    assert images.std() > 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_defect_is_where_its_mask_says_and_grows_with_its_size(kind: str) -> None:
    (image,) = draw("tiles", 2, 1, 96)
    areas = []
    for size in SIZES:
        found, mask = damage(image, kind, size, [1, 2])
        changed = np.abs(found.astype(int) - image).max(0) > 25
        assert mask.any()
        assert changed[mask].mean() > 0.2
        far = ~np.asarray(Image.fromarray(mask).resize((24, 24)).resize((96, 96)))
        assert changed[far & ~mask].mean() < 0.05
        areas.append(mask.sum())
    assert areas == sorted(areas)
    again, _ = damage(image, kind, "large", [1, 2])
    np.testing.assert_array_equal(again, found)


def test_unseen_kinds_are_never_labelled_and_development_is_not_reported() -> None:
    assert not set(LABELLED) & set(UNSEEN)
    assert not set(VisionSpecification().problems) & set(DEVELOPMENT)
    assert set(DEVELOPMENT) < set(SURFACES)
    problem = make_problem("tiles", 0, normal=3, labelled=4, test=4, side=48, root=None)
    assert problem.seen == LABELLED
    assert problem.masks is not None
    assert [bool(kind) for kind in problem.kinds] == problem.masks.any((1, 2)).tolist()
    with pytest.raises(DatasetError, match="4 anomalies to label, not 5"):
        problem.labelled_first(5)


def picture(path: Path, grey: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), (grey, grey, grey)).save(path)


def mvtec(root: Path) -> None:
    for n in range(3):
        picture(root / "bottle" / "train" / "good" / f"{n:03}.png", 100 + n)
    for kind in ("good", "broken", "stain", "zebra"):
        for n in range(2):
            picture(root / "bottle" / "test" / kind / f"{n:03}.png", 50 + n)
            if kind != "good":
                place = root / "bottle" / "ground_truth" / kind / f"{n:03}_mask.png"
                picture(place, 255)


def visa(root: Path) -> None:
    lines = ["object,split,label,image,mask"]
    for split, label, n in (
        ("train", "normal", 3),
        ("test", "normal", 2),
        ("test", "anomaly", 2),
    ):
        for k in range(n):
            image = f"candle/Data/Images/{label.title()}/{split}{k}.JPG"
            mask = f"candle/Data/Masks/Anomaly/{k}.png" if label == "anomaly" else ""
            picture(root / image.replace(".JPG", ".png"), 90)
            lines.append(f"candle,{split},{label},{image.replace('.JPG', '.png')},{mask}")
            if mask:
                picture(root / mask, 1)
    (root / "split_csv").mkdir()
    (root / "split_csv" / "1cls.csv").write_text("\n".join(lines))


def btad(root: Path) -> None:
    for n in range(3):
        picture(root / "01" / "train" / "ok" / f"{n}.bmp", 80)
    for n in range(2):
        picture(root / "01" / "test" / "ok" / f"{n}.bmp", 80)
        picture(root / "01" / "test" / "ko" / f"{n}.bmp", 10)
        picture(root / "01" / "ground_truth" / "ko" / f"{n}.png", 255)


@pytest.mark.parametrize(
    ("name", "category", "make", "n_bad"),
    [("mvtec", "bottle", mvtec, 6), ("visa", "candle", visa, 2), ("btad", "01", btad, 2)],
)
def test_collections_are_read_from_the_folders_their_publishers_ship(
    name: str, category: str, make: object, n_bad: int, tmp_path: Path
) -> None:
    make(tmp_path)  # type: ignore[operator]
    listed = list_collection(name, tmp_path, category)
    assert len(listed.train) == 3
    assert sum(kind != "" for kind in listed.kinds) == n_bad
    assert sum(mask is not None for mask in listed.masks) == n_bad
    assert all(path.is_file() for path in (*listed.train, *listed.test))
    problem = make_problem(
        f"{name}:{category}", 0, normal=9, labelled=1, test=9, side=32, root=tmp_path
    )
    assert len(problem.test) == n_bad + 2 - 1
    assert problem.labelled.shape == (1, 3, 32, 32)
    assert problem.masks is not None
    with pytest.raises(DatasetError, match="no category 'lamp'"):
        list_collection(name, tmp_path, "lamp")


def test_kinds_beyond_the_first_two_are_not_labelled(tmp_path: Path) -> None:
    mvtec(tmp_path)
    problem = make_problem(
        "mvtec:bottle", 0, normal=9, labelled=9, test=9, side=32, root=tmp_path
    )
    assert problem.seen == ("broken", "stain")
    assert set(problem.kinds) == {"", "zebra"}


def test_a_problem_that_is_not_there_is_named() -> None:
    with pytest.raises(ExperimentError, match="no problem 'tile'"):
        specify(VisionSpecification, {"problems": ["tile"]})
    with pytest.raises(DatasetError, match="Say where mvtec is"):
        make_problem("mvtec:bottle", 0, normal=1, labelled=0, test=1, side=32, root=None)


def test_a_study_runs_and_continues(tmp_path: Path) -> None:
    options = {
        "problems": ["nuts"],
        "systems": ["pixels"],
        "labels": [0, 2],
        "normal": 12,
        "test": 10,
        "side": 32,
        "members": 1,
        "max_epochs": 2,
    }
    study = make_vision(specify(VisionSpecification, options))
    records = run_study(study, tmp_path, device="cpu")
    assert [record["status"] for record in records] == ["ok", "ok"]
    assert all(0 <= record["auroc_unseen"] <= 1 for record in records)
    assert run_study(study, tmp_path, device="cpu") == records
    grids = write_tables(study, records, tmp_path)
    assert grids[0].rows[1][0] == "pixels, 2 labels"


@pytest.mark.skipif(
    PACKAGED["efficientnet-lite0"].path is None, reason="needs the extra vision"
)
def test_systems_share_features_and_learn_in_one_stack() -> None:
    options = {"backbone": "efficientnet-lite0", "members": 2, "max_epochs": 2, "seed": 0}
    made = [
        make_problem(name, 0, normal=6, labelled=3, test=10, side=48, root=None)
        for name in ("nuts", "tiles")
    ]
    told: list[str] = []

    def run(problems: list[Problem], wanted: list[tuple[int, str, int]]) -> list[Outcome]:
        benches = [Bench(problem, {**options, "device": "cpu"}) for problem in problems]
        return list(run_systems(benches, wanted, lambda done, total, what: told.append(what)))

    systems = [("patches", 0), ("patches", 3), ("memory", 0), ("whole-knn", 0), ("whole-dp", 3)]
    wanted = [(place, *each) for each in systems for place in (0, 1)]
    together = run(made, wanted)
    alone = run(made[1:], [(0, "patches", 3)])
    assert len(together) == len(wanted)
    assert all(0 <= found["auroc_unseen"] <= 1 for found in together)
    assert [("pixel_auroc" in found) for found in together] == [
        name in ("patches", "memory") for _, name, _ in wanted
    ]
    assert alone[0]["auroc"] == pytest.approx(together[3]["auroc"], abs=0.02)
    assert "patches" in told


def test_a_gpu_takes_one_system_after_the_other_and_processes_take_images(
    tmp_path: Path,
) -> None:
    options = {"problems": ["nuts", "tiles"], "systems": ["memory", "patches"], "seeds": 2}
    study = make_vision(specify(VisionSpecification, options))

    def labels(device: str) -> list[str]:
        where = Where(torch.device(device), tmp_path, 4)
        groups = list(study.groups(study.cases, where))
        assert all(group.here == (device == "cuda") for group in groups)
        assert sum(len(group.cases) for group in groups) == len(study.cases)
        return [group.label for group in groups]

    assert labels("cuda") == ["memory", "patches"]
    assert labels("cpu") == ["nuts, seed 0", "tiles, seed 0", "nuts, seed 1", "tiles, seed 1"]


def test_a_run_stops_when_its_time_is_up(tmp_path: Path) -> None:
    options = {"problems": ["nuts", "tiles"], "systems": ["pixels"], "labels": [0]}
    study = make_vision(specify(VisionSpecification, options))
    assert run_study(study, tmp_path, device="cpu", deadline=Deadline(0.0)) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_records_of_a_system_are_continued_and_newer_ones_are_refused(system: str) -> None:
    now = vision_revision(system)
    assert not is_newer({"system": system, "revision": now})
    assert is_newer({"system": system, "revision": now + 1})
