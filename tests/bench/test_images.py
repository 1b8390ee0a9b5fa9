"""The image sweep: its protocol, its chunks, its records."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aloof.baselines import BASELINES, SSAD
from aloof.bench import Identity, run_study, specify, stored, write_tables
from aloof.bench.images import (
    ImageCase,
    ImageSpecification,
    ImageStudy,
    image_systems,
    make_images,
    plan_chunks,
)
from aloof.bench.images import study as module
from aloof.bench.images.settings import image_setting
from aloof.bench.images.shallow import Task
from aloof.bench.images.splits import class_pairs, make_image_split
from aloof.bench.images.systems import configuration
from aloof.bench.images.tables import image_grids
from aloof.bench.images.variants import IMAGE_VARIANTS
from aloof.bench.workers import Event
from aloof.datasets import ImageDataset
from aloof.exceptions import ExperimentError

LABELS = np.repeat(np.arange(4), [100, 120, 80, 100])


def striped(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images of three classes: where a bright stripe lies."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), n)
    pixels = rng.integers(0, 60, (3 * n, 1, 28, 28)).astype(np.uint8)
    for k in range(3):
        pixels[labels == k, :, 4 + 7 * k : 10 + 7 * k] += 150
    return pixels, labels


@pytest.fixture(scope="module")
def stripes() -> ImageDataset:
    (train, train_labels), (test, test_labels) = striped(60, 0), striped(20, 1)
    names = ("top", "middle", "bottom")
    return ImageDataset("fashion-mnist", train, train_labels, test, test_labels, names, "made")


def sweep(options: dict[str, Any], data: ImageDataset) -> ImageStudy:
    return make_images(specify(ImageSpecification, options), data)


def test_a_split_follows_the_ratios() -> None:
    split = make_image_split(LABELS, 0, 1, gamma_l=0.1, gamma_p=0.2, seed=3)
    assert len(split.held_normal) == 20
    clean = split.normal[LABELS[split.normal] == 0]
    assert len(clean) == 80
    assert split.n_hidden == len(split.normal) - 80 == 20  # a fifth of all unlabelled rows
    assert len(split.anomaly) == round(80 / 9)
    assert set(LABELS[split.anomaly]) == set(LABELS[split.held_anomaly]) == {1}
    parts = [split.normal, split.anomaly, split.held_normal, split.held_anomaly]
    everyone = np.concatenate(parts)
    assert len(np.unique(everyone)) == len(everyone), "no row has two roles"


def test_ratios_are_nested_and_leave_the_normal_rows_alone() -> None:
    few, many = (make_image_split(LABELS, 2, 3, gamma_l=g) for g in (0.05, 0.2))
    assert np.array_equal(few.normal, many.normal)
    assert set(few.anomaly) < set(many.anomaly)
    assert set(few.held_anomaly) < set(many.held_anomaly)
    other = make_image_split(LABELS, 2, 0, gamma_l=0.05)
    assert np.array_equal(few.normal, other.normal), "whatever the anomalies' class"


def test_too_many_labelled_anomalies_are_counted() -> None:
    with pytest.raises(ExperimentError, match=r"needs 100 labelled anomalies.* has 80 rows"):
        make_image_split(LABELS, 0, 2, gamma_l=0.5)


def test_ninety_problems_are_all_pairs() -> None:
    pairs = class_pairs(10, 90)
    assert len(set(pairs)) == 90
    assert all(normal != anomaly for normal, anomaly in pairs)
    with pytest.raises(ExperimentError, match=r"10 problems .* or 90 .* got 7"):
        class_pairs(10, 7)


def test_a_vae_is_run_once_a_class_and_others_for_every_ratio() -> None:
    cases = ImageSpecification(problems=90, gamma_l=(0.0, 0.05), methods=("vae", "dp")).cases(
        10
    )
    vae = [case for case in cases if case.method == "vae"]
    assert len(vae) == 10
    assert {case.gamma_l for case in vae} == {0.0}
    assert sum(case.method == "dp" and case.gamma_l == 0.05 for case in cases) == 90


def test_chunks_hold_every_case_once_and_no_more_members_than_fit() -> None:
    cases = ImageSpecification(problems=90, methods=("vae", "dp", "mml", "deep-sad")).cases(10)
    chunks = list(plan_chunks(cases, 5, 100))
    assert sorted(c for chunk in chunks for c in chunk) == sorted(cases)
    for chunk in chunks:
        for method in {case.method for case in chunk}:
            assert 5 * sum(case.method == method for case in chunk) <= 100
    mixed = [chunk for chunk in chunks if {"deep-sad"} < {case.method for case in chunk}]
    assert not mixed, "baselines are fitted apart from our methods"


def test_hybrids_and_their_autoencoder_are_one_chunk() -> None:
    methods = ("cae", "kde-hybrid", "ssad-hybrid", "deep-svdd", "deep-sad", "deep-sad-ill")
    spec = ImageSpecification(methods=methods)
    chunks = list(plan_chunks(spec.cases(10), 5, 250))
    assert [{case.method for case in chunk} for chunk in chunks] == [
        {"cae", "kde-hybrid", "ssad-hybrid"},
        {"deep-svdd", "deep-sad"},
        {"deep-sad-ill"},
    ]
    small = [c for c in plan_chunks(spec.cases(10), 5, 20) if c[0].method == "cae"]
    assert [len({case.normal for case in chunk}) for chunk in small] == [4, 4, 2]
    polluted = ImageSpecification(gamma_l=(0.05,), gamma_p=(0.1,), methods=("ssad-hybrid",))
    sizes = [len(chunk) for chunk in plan_chunks(polluted.cases(10), 5, 20)]
    assert sizes == [4, 4, 2], "hidden anomalies are another autoencoder's"


def test_systems_of_a_family_are_what_they_are_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    train, test = (rng.integers(0, 255, (3 * n, 1, 28, 28)).astype(np.uint8) for n in (30, 20))
    labels, test_labels = (np.repeat(np.arange(3), n) for n in (30, 20))
    noise = ImageDataset("fashion-mnist", train, labels, test, test_labels, tuple("abc"), "")
    methods = ["cae", "oc-svm-hybrid", "ssad-hybrid", "deep-svdd", "deep-sad"]
    options = {"members": 2, "gamma_l": [0.0, 0.1], "baseline_epochs": 1}

    def found(
        methods: list[str], folder: str, stack: int, jobs: int = 1
    ) -> dict[tuple[str, int], float]:
        study = sweep({**options, "methods": methods, "stack": stack}, noise)
        records = run_study(study, tmp_path / folder, device="cpu", jobs=jobs)
        return {(record["method"], record["normal"]): record["auroc"] for record in records}

    together = found(methods, "together", 100, jobs=2)
    assert len({round(auroc, 3) for auroc in together.values()}) > 12, "no two are mistaken"
    for method in methods[1:]:
        alone = found([method], method, 2)  # one problem at a time
        assert len(alone) == 3
        assert alone == pytest.approx({place: together[place] for place in alone}, abs=2e-3)


def test_records_are_written_as_cases_are_scored(
    stripes: ImageDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(_: ImageSpecification, cases: list[ImageCase], *__: object) -> list[object]:
        def score(images: np.ndarray) -> Task:
            return lambda: images.mean((1, 2, 3))[None]

        def stop(_: np.ndarray) -> Task:
            raise KeyboardInterrupt

        return [score] * (len(cases) - 1) + [stop]

    monkeypatch.setattr(module, "fit_cases", fit)
    study = sweep({**SMALL, "methods": ["vae"]}, stripes)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path, device="cpu")
    assert len(stored(study, tmp_path)) == 2


def test_what_is_too_much_for_a_gpu_is_trained_by_halves(
    stripes: ImageDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, fits = [], 1

    def fit(_: ImageSpecification, cases: list[ImageCase], *__: object) -> list[object]:
        if len(cases) > fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        trained.append(len(cases))
        return [lambda images: lambda: images.mean((1, 2, 3))[None]] * len(cases)

    monkeypatch.setattr(module, "fit_cases", fit)
    study = sweep({**SMALL, "methods": ["vae"], "stack": 150}, stripes)
    records = run_study(study, tmp_path, device="cpu")
    assert sorted(record["normal"] for record in records) == [0, 1, 2]
    assert trained == [1, 1, 1]
    fits = 0
    with pytest.raises(torch.OutOfMemoryError):
        run_study(study, tmp_path / "none", device="cpu")


def test_a_half_of_what_does_not_fit_goes_on_where_it_was_stopped(
    stripes: ImageDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def fit(*args: Any) -> list[object]:
        cases, checkpoint = args[1], args[5]
        tried.append(len(cases))
        if len(cases) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if not checkpoint.exists():
            checkpoint.touch()
            raise KeyboardInterrupt
        return [lambda images: lambda: images.mean((1, 2, 3))[None]]

    monkeypatch.setattr(module, "fit_cases", fit)
    study = sweep({**SMALL, "methods": ["vae"], "stack": 150}, stripes)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path, device="cpu")
    (tmp_path / "training-of-others.ckpt").touch()
    assert tried == [3, 1]
    tried.clear()
    with pytest.raises(KeyboardInterrupt):  # of the next case
        run_study(study, tmp_path, device="cpu")
    assert tried[0] == 1, "all three were not tried once more"
    assert len(stored(study, tmp_path)) == 1
    assert len(list(tmp_path.glob("*.ckpt"))) == 1


def test_on_a_cpu_a_chunk_is_a_normal_class(stripes: ImageDataset) -> None:
    study = sweep({**SMALL, "methods": ["vae", "dp"], "gamma_l": [0.0, 0.1, 0.2]}, stripes)
    chunks = list(plan_chunks(study.cases, 5, None))
    assert [{case.normal for case in chunk} for chunk in chunks] == [{0}, {1}, {2}]
    assert sum(map(len, chunks)) == len(study.cases) > 3


def test_known_systems() -> None:
    learns = image_systems()
    assert learns["ssad-hybrid"]
    assert not learns["cae"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dataset": "fashion"}, "no image set 'fashion'; did you mean 'fashion-mnist'"),
        ({"methods": ["deepsad"]}, "no method 'deepsad'; did you mean 'deep-sad'"),
        ({"ratio": 1}, "ratio is unknown"),
        ({"members": 0}, "members must be at least 1"),
        ({"variants": ["same-unfrozen"]}, "no variant .*; did you mean 'same-unfreeze'"),
        ({"variants": {"name": "a", "numbers": {"rate": 1}}}, "rate"),
        ({"variants": {"name": "a", "methods": "vae"}}, "no method with labels 'vae'"),
        (
            {
                "variants": [
                    {"name": "a", "numbers": {"gamma": 2}},
                    {"name": "a", "separate_encoder": True},
                ]
            },
            "called 'a'",
        ),
        (
            {"variants": {"name": "same-unfreeze", "separate_encoder": True}},
            "'same-unfreeze' is the paper's",
        ),
        ({"variants": {"name": "a"}}, "variant 'a' changes nothing"),
        (
            {
                "methods": ["dp"],
                "variants": {
                    "name": "a",
                    "numbers": {"milestones": [5], "lr_schedule": "cosine"},
                },
            },
            "milestones only apply to lr_schedule 'step'",
        ),
        (
            {
                "methods": ["dp"],
                "variants": {"name": "a", "numbers": {"warmup_epochs": 999}},
            },
            "warmup_epochs must be at most max_epochs",
        ),
    ],
)
def test_bad_options_say_what_is_known(options: dict[str, object], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        specify(ImageSpecification, options)


SMALL = {"members": 1, "max_epochs": 6, "stack": 3, "gamma_l": [0.0, 0.1]}


def test_a_sweep_learns_and_resumes(stripes: ImageDataset, tmp_path: Path) -> None:
    study = sweep({**SMALL, "methods": ["vae", "dp"]}, stripes)
    events: list[Event] = []
    records = run_study(study, tmp_path, device="cpu", on_event=events.append)
    assert len(records) == 6
    assert sum(event.kind == "started" for event in events) == 1, "one chunk"
    by_method = {
        method: np.mean([r["auroc"] for r in records if r["method"] == method])
        for method in ("vae", "dp")
    }
    assert by_method["vae"] > 0.6
    for record in records:
        assert record["auroc"] == pytest.approx(np.mean(record["member_auroc"]))
        assert (record["n_labelled"] > 0) == (record["method"] == "dp")
    path = tmp_path / "records.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]))  # as if it had been killed
    kept = stored(study, tmp_path)
    assert [r["auroc"] for r in kept] == [r["auroc"] for r in records if r in kept]
    assert len(kept) == 4
    longer = sweep({**SMALL, "methods": ["vae", "dp"], "max_epochs": 7}, stripes)
    assert stored(longer, tmp_path) == []
    again = run_study(study, tmp_path, device="cpu")
    timeless = [{k: v for k, v in r.items() if k not in _TIMES} for r in (*records, *again)]
    assert timeless[:6] == timeless[6:]
    write_tables(study, records, tmp_path, command="aloof bench images")
    text = (tmp_path / "table.md").read_text()
    assert "the paper's dp" in text
    assert "| the paper's vae | 90.8 ± 4.6 |  |" in text
    assert "records of cpu, the last of 20" in text
    with (tmp_path / "summary.csv").open() as file:
        means = {row["method"]: row for row in csv.DictReader(file)}
    values = [100 * r["auroc"] for r in records if r["method"] == "dp"]
    assert means["dp"]["n"] == "3"
    assert float(means["dp"]["auroc_mean"]) == pytest.approx(np.mean(values), abs=1e-3)
    error = np.std(values, ddof=1) / np.sqrt(3)
    assert float(means["dp"]["auroc_sem"]) == pytest.approx(error, abs=1e-3)


_TIMES = ("finished", "seconds", "stacked")


@pytest.mark.parametrize("methods", [["vae", "dp"], ["deep-sad"], ["cae", "iforest-hybrid"]])
def test_a_chunk_that_is_stopped_goes_on(
    stripes: ImageDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, methods: list[str]
) -> None:
    told: list[int] = []
    last = [1000]

    def stopping(tell: Any) -> Any:
        def report(epoch: Any) -> None:
            told.append(epoch.epoch)
            if len(told) == last[0]:
                raise KeyboardInterrupt

        return report

    monkeypatch.setattr(module, "epochs", stopping)
    options = {"methods": methods, "gamma_l": [0.0, 0.1], "members": 2}
    options |= {"max_epochs": 9} if "dp" in methods else {"baseline_epochs": 6}
    study = make_images(specify(ImageSpecification, options), stripes)
    whole = run_study(study, tmp_path / "whole", device="cpu")
    n_epochs = len(told)
    told.clear()
    last[0] = n_epochs - 2
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        run_study(study, folder, device="cpu")
    assert list(folder.glob("training-*.ckpt*"))
    (folder / "training-of-others.ckpt.0").touch()
    told.clear()
    last[0] = 1000
    again = run_study(study, folder, device="cpu")
    assert len(told) < n_epochs / 2, "what was learned is not learned again"
    assert [r["auroc"] for r in again] == [r["auroc"] for r in whole]
    assert not list(folder.glob("*.ckpt*"))


def test_a_chunk_that_is_stopped_while_it_is_scored_leaves_no_state_behind(
    stripes: ImageDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"methods": ["cae"], "gamma_l": [0.0], "members": 1, "baseline_epochs": 2}
    study = make_images(specify(ImageSpecification, options | {"stack": 3}), stripes)

    def stop(event: Event) -> None:
        if event.what == "scoring" and event.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path, device="cpu", on_event=stop)
    assert 0 < len(stored(study, tmp_path)) < 3
    assert not list(tmp_path.glob("*.ckpt*")), "its chunk is another one now"


def test_the_folder_of_another_image_set_is_refused(
    stripes: ImageDataset, tmp_path: Path
) -> None:
    record = {"dataset": "mnist", "method": "vae", "normal": 0, "anomaly": -1, "gamma_l": 0.0}
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({**record, "gamma_p": 0.0, "seed": 0, "variant": ""}) + "\n")
    before = path.read_bytes()
    with pytest.raises(
        ExperimentError, match=r"it is of mnist, and this is fashion-mnist.*Nothing was changed"
    ):
        run_study(sweep({**SMALL, "methods": ["vae"]}, stripes), tmp_path, device="cpu")
    assert [p.name for p in tmp_path.iterdir()] == ["records.jsonl"]
    assert path.read_bytes() == before


def test_a_killed_plan_of_all_pairs_resumes_to_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(folder: Path) -> None:
        monkeypatch.setattr(sys, "argv", ["", str(folder)])
        exec(_SCRIPT, {})

    run(whole)
    process = subprocess.Popen([sys.executable, "-c", _SCRIPT, str(killed)], env=environment)
    records = killed / "records.jsonl"
    while process.poll() is None and not (records.exists() and records.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(records.read_text().splitlines()) < 90
    run(killed)
    first, second = (_sorted(folder / "records.jsonl") for folder in (whole, killed))
    assert len(first) == 90
    assert first == second


def _sorted(path: Path) -> list[str]:
    import json

    found = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        place = (record["normal"], record["anomaly"])
        found[place] = json.dumps({k: v for k, v in record.items() if k not in _TIMES})
    return [found[place] for place in sorted(found)]


_SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from aloof.bench import run_study, specify
from aloof.bench.images import ImageSpecification, make_images
from aloof.datasets import ImageDataset

rng = np.random.default_rng(0)
pixels = rng.integers(0, 255, (100, 1, 28, 28)).astype(np.uint8)
labels = np.repeat(np.arange(10), 10)
data = ImageDataset(
    "fashion-mnist", pixels, labels, pixels, labels, tuple("0123456789"), "noise"
)
options = {"methods": ["iforest", "oc-svm", "ssad"], "problems": 90, "gamma_l": [0.1]}
spec = specify(ImageSpecification, {**options, "stack": 15, "members": 5})
run_study(make_images(spec, data), Path(sys.argv[1]), device="cpu")
"""


def test_an_ablation_stands_beside_the_method(stripes: ImageDataset, tmp_path: Path) -> None:
    variants = ["", "same-unfreeze", "separate-freeze"]
    options = {**SMALL, "methods": ["dp"], "variants": variants, "gamma_l": [0.0, 0.1]}
    options |= {"max_epochs": 3}
    records = run_study(sweep(options, stripes), tmp_path, device="cpu")
    assert len(records) == 3 * 3
    auroc = {v: [r["auroc"] for r in records if r["variant"] == v] for v in variants}
    assert len(set(map(tuple, auroc.values()))) == 3, "each of them learns something else"
    labels = [row[0] for row in image_grids(records)[0].rows]
    expected = {"dp (ours)", "dp (ours, same-unfreeze)", "dp (ours, separate-freeze)"}
    assert expected <= set(labels)


def test_a_reading_changes_its_numbers_and_is_explained_below_the_table(
    stripes: ImageDataset, tmp_path: Path
) -> None:
    slow = {"name": "slow", "methods": "mml", "numbers": {"learning_rate": 1e-5}}
    options = {**SMALL, "methods": ["mml", "dp"], "variants": ["", slow], "gamma_l": 0.1}
    study = sweep(options | {"max_epochs": 3}, stripes)
    records = run_study(study, tmp_path, device="cpu")
    rates = {
        (r["method"], r["variant"]): r["config"]["training"]["learning_rate"] for r in records
    }
    assert set(rates) == {("mml", ""), ("mml", "slow"), ("dp", "")}
    assert rates["mml", "slow"] == 1e-5 < rates["mml", ""]
    (grid, *_) = study.grids(records)
    assert "mml (ours, slow)" in [row[0] for row in grid.rows]
    assert "slow: learning_rate = 1e-05, in place of the setting's." in grid.notes
    assert run_study(sweep(options | {"max_epochs": 3}, stripes), tmp_path) == records
    slow["numbers"] = {"learning_rate": 1e-4}
    changed = sweep(options | {"max_epochs": 3}, stripes)
    again = run_study(changed, tmp_path, device="cpu")
    assert [a != b for a, b in zip(again, records, strict=True)] == [
        r["variant"] == "slow" for r in records
    ]


def test_hidden_anomalies_have_the_papers_setting() -> None:
    clean, polluted = (image_setting("fashion-mnist", "mml", polluted=p) for p in (False, True))
    assert (clean.beta_cubo, polluted.beta_cubo) == (0.005, 0.25)
    assert image_setting("fashion-mnist", "dp", polluted=True) == image_setting(
        "fashion-mnist", "dp"
    )
    spec = specify(
        ImageSpecification, {"methods": ["mml"], "gamma_l": 0.05, "gamma_p": [0, 0.1]}
    )
    found = {
        case.gamma_p: configuration(spec, case)["objective"].beta_cubo
        for case in spec.cases(10)
    }
    assert found == {0.0: 0.005, 0.1: 0.25}


def test_deep_sad_stands_beside_ours(stripes: ImageDataset, tmp_path: Path) -> None:
    options = {**SMALL, "methods": ["vae", "dp", "deep-sad"], "baseline_epochs": 3}
    records = run_study(sweep({**options, "max_epochs": 2}, stripes), tmp_path, device="cpu")
    titles = [grid.title for grid in image_grids(records)]
    assert titles[-1] == "fashion-mnist: difference to Deep SAD"


def test_cases_are_ordered_by_what_they_are() -> None:
    one = ImageCase("mnist", "dp", 0, 1, 0.05, 0.0, 0)
    assert one == ImageCase("mnist", "dp", 0, 1, 0.05, 0.0, 0, "")


def test_ill_trained_deep_sad_without_labels(stripes: ImageDataset, tmp_path: Path) -> None:
    """The paper has a figure for it: an ill-trained Deep SVDD."""
    options = {**SMALL, "methods": ["deep-svdd", "deep-sad-ill"], "baseline_epochs": 2}
    study = sweep(options, stripes)
    ratios = [case.gamma_l for case in study.cases if case.method == "deep-sad-ill"]
    assert sorted(ratios) == [0.0] * 3 + [0.1] * 3
    records = run_study(study, tmp_path, device="cpu")
    ill = [r for r in records if r["method"] == "deep-sad-ill" and r["gamma_l"] == 0.0]
    assert [record["n_labelled"] for record in ill] == [0, 0, 0]
    assert {record["config"]["baseline"]["pretrain_epochs"] for record in ill} == {10}
    row = next(row for row in study.grids(records)[0].rows if row[0] == "deep-sad-ill (ours)")
    assert all("[3]" in cell for cell in row[1:]), "a result for each ratio"


def test_rows_that_another_numpy_drew_are_run_again(stripes: ImageDataset) -> None:
    study = sweep({**SMALL, "methods": ["dp"], "gamma_l": [0.1]}, stripes)
    identity = study.identity(study.cases[0])
    record = {**asdict(study.cases[0]), **identity.record}
    assert identity.holds(record)
    assert not identity.holds({**record, "split_sha256": "0" * 64})
    assert not identity.holds({**record, "revision": record["revision"] - 1})
    old = {key: value for key, value in record.items() if key != "split_sha256"}
    assert identity.holds(old), "records from before there was a digest are taken as they are"
    split = study.split(study.cases[0])
    moved = replace(split, anomaly=split.anomaly + 1)
    assert split.sha256 == record["split_sha256"] != moved.sha256


def test_every_number_of_a_peer_is_part_of_its_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = ImageSpecification(methods=("deep-sad", "ssad", "ssad-hybrid"), gamma_l=(0.1,))
    cases = {case.method: case for case in spec.cases(3)}
    found = {name: Identity(configuration(spec, case)) for name, case in cases.items()}
    for identity in found.values():
        assert identity.holds(identity.record)
    slower = {"cae": {"learning_rate": 1e-5}, "deep-sad": {"learning_rate": 1e-5}}
    monkeypatch.setattr("aloof.bench.images.systems._PUBLISHED", slower)
    monkeypatch.setitem(BASELINES, "ssad", partial(SSAD, kappa=2.0))
    for name, case in cases.items():
        assert not Identity(configuration(spec, case)).holds(found[name].record), name
    hybrid = found["ssad-hybrid"].record["config"]
    assert hybrid["detector"] == found["ssad"].record["config"]["detector"]


def test_a_method_that_no_variant_names_runs_as_it_is() -> None:
    slow = {"name": "slow", "methods": "mml", "numbers": {"learning_rate": 1e-6}}
    options = {**SMALL, "methods": ["mml", "dp"], "variants": slow, "gamma_l": 0.1}
    cases = specify(ImageSpecification, options).cases(10)
    assert {(case.method, case.variant) for case in cases} == {("mml", "slow"), ("dp", "")}


def test_a_variant_is_part_of_the_configuration() -> None:
    spec = ImageSpecification(methods=("dp",), gamma_l=(0.1,), variants=tuple(IMAGE_VARIANTS))
    cases = {case.variant: case for case in spec.cases(3)}
    plain = Identity(configuration(spec, cases[""]))
    for variant, case in cases.items():
        other = Identity(configuration(spec, case))
        assert plain.holds(other.record) == (variant == "")
