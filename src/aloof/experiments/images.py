"""The paper's image experiments: many problems, one stacked computation.

A case is (normal class, anomaly class, method, ratio). Cases are packed into chunks that fit
the device; within a chunk everything with the same normal class and seed shares one warm-up.
Records are written as cases are scored, so that stopping loses at most one chunk.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.datasets import ImageDataset, PublicImages, find_dataset
from aloof.exceptions import ExperimentError
from aloof.experiments.image_experiment import ImageCase, ImageExperiment
from aloof.experiments.image_protocol import ImageSplit, make_image_split
from aloof.experiments.image_systems import family, fit_cases
from aloof.experiments.records import append_lines, jsonable, read_records, write_text
from aloof.persistence import versions
from aloof.training import METHODS, ProgressCallback, resolve_device

__all__ = ["plan_chunks", "run_images", "stored_images"]

_RECORDS, _MANIFEST = "records.jsonl", "manifest.json"


def plan_chunks(
    cases: Sequence[ImageCase], members: int, stack: int
) -> Iterator[list[ImageCase]]:
    """Pack cases into chunks that train at most `stack` members of each method.

    Cases with the same normal class stay together as far as they fit: they share what is
    trained without labels.
    """
    chunk: list[ImageCase] = []
    trained: dict[str, set[Any]] = {}
    for case in sorted(cases, key=_place):
        own = trained.get(_method(case), set()) | {_key(case)}
        full = members * len(own) > max(stack, members)
        if chunk and (full or family(case.method) != family(chunk[0].method)):
            yield chunk
            chunk, trained, own = [], {}, {_key(case)}
        chunk.append(case)
        trained[_method(case)] = own
    if chunk:
        yield chunk


def _method(case: ImageCase) -> str:
    """Return which method trains a case: that of hybrids is the autoencoder."""
    return "cae" if family(case.method) == "cae" else case.method


def _key(case: ImageCase) -> Any:
    """Return what is trained once: an autoencoder serves all with its normal rows."""
    if _method(case) != "cae":
        return case
    return replace(case, method="cae") if case.gamma_p else (case.normal, case.seed)


def run_images(
    experiment: ImageExperiment,
    folder: Path,
    *,
    device: str = "auto",
    command: str = "",
    on_chunk: Callable[[int, int, str], None] | None = None,
    on_epoch: ProgressCallback | None = None,
    dataset: ImageDataset | None = None,
) -> list[dict[str, Any]]:
    """Run what the folder does not hold yet, and return the record of every case.

    Parameters
    ----------
    experiment
        What to run.
    folder
        Where records are and go.
    device
        Where to train.
    command
        What the user typed, for the manifest.
    on_chunk
        Called with the cases done, all cases, and what comes next.
    on_epoch
        Called after each epoch of a chunk.
    dataset
        The images; None: they are loaded by name.
    """
    place = resolve_device(device)
    data = dataset or find_dataset(experiment.dataset, PublicImages).load()
    cases = experiment.cases(len(data.classes))
    if not cases:
        raise ExperimentError(
            "There is nothing to run: methods that learn nothing from labels (vae, cae, ...) "
            "need a gamma_l of 0 among the ratios, the others one above 0."
        )
    path = folder / _RECORDS
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error
    found = _held(experiment, cases, path, data)
    todo = [case for case in cases if case not in found]
    done = len(cases) - len(todo)
    started = time.monotonic()
    for chunk in plan_chunks(todo, experiment.members, experiment.stack):
        if on_chunk is not None:
            on_chunk(done, len(cases), _describe(chunk))
        for record in _run_chunk(experiment, chunk, data, place, on_epoch):
            append_lines(path, [record])
            found |= _latest([record])
        done += len(chunk)
        manifest = {
            "command": command,
            "experiment": asdict(experiment),
            "settings": {
                f"{method}, hidden anomalies" if polluted else method: asdict(
                    experiment.setting(method, polluted=polluted)
                )
                for polluted in sorted({gamma_p > 0 for gamma_p in experiment.gamma_p})
                for method in experiment.methods
                if method in METHODS
            },
            "finished": _now(),
            "seconds": time.monotonic() - started,
            "device": _device_name(place),
            "platform": platform.platform(),
            "versions": versions(),
            "data_sha256": data.sha256,
        }
        write_text(folder / _MANIFEST, json.dumps(jsonable(manifest), indent=2) + "\n")
    return [found[case] for case in cases]


def stored_images(
    experiment: ImageExperiment, folder: Path, *, dataset: ImageDataset | None = None
) -> list[dict[str, Any]]:
    """Return the records of an experiment that a folder holds, and run nothing.

    Parameters
    ----------
    experiment, folder, dataset
        As in `run_images`.
    """
    data = dataset or find_dataset(experiment.dataset, PublicImages).load()
    cases = experiment.cases(len(data.classes))
    found = _held(experiment, cases, folder / _RECORDS, data)
    return [found[case] for case in cases if case in found]


def _held(
    experiment: ImageExperiment, cases: Sequence[ImageCase], path: Path, data: ImageDataset
) -> dict[ImageCase, dict[str, Any]]:
    """Return the records of cases that were run as the experiment would run them now."""
    try:
        found = _latest(read_records(path, check=_case_of))
    except OSError as error:
        raise _unusable(path.parent, error) from error
    return {
        case: record
        for case in cases
        if (record := found.get(case, {})).get("identity")
        == experiment.identity(case, data.sha256)
    }


def _unusable(folder: Path, error: OSError) -> ExperimentError:
    return ExperimentError(f"{folder} cannot be used for results: {error.strerror or error}.")


def _run_chunk(
    experiment: ImageExperiment,
    cases: Sequence[ImageCase],
    data: ImageDataset,
    device: torch.device,
    on_epoch: ProgressCallback | None,
) -> Iterator[dict[str, Any]]:
    """Train all cases of a chunk, then yield the record of each as it is scored."""
    started = time.monotonic()
    splits = [_split(case, data) for case in cases]
    scores = fit_cases(experiment, cases, splits, data, device, on_epoch)
    trained = (time.monotonic() - started) / len(cases)
    for case, split, score in zip(cases, splits, scores, strict=True):
        held = np.concatenate([split.held_normal, split.held_anomaly])
        started = time.monotonic()
        found = score(np.concatenate([data.test, data.train[held]]))
        # Shallow systems are fitted when they are asked.
        seconds = trained + time.monotonic() - started
        is_test, n = data.test_labels != case.normal, len(data.test)
        is_held = np.arange(len(held)) >= len(split.held_normal)
        record = {
            **asdict(case),
            **_measures(found[:, :n], is_test, ""),
            "member_auroc": [float(roc_auc_score(is_test, own)) for own in found[:, :n]],
            **_measures(found[:, n:], is_held, "validation_"),
            "n_normal": len(split.normal),
            "n_labelled": len(split.anomaly),
            "n_hidden": split.n_hidden,
            "members": len(found),
            "seconds": seconds,
            "stacked": len(cases),
            "device": _device_name(device),
            "identity": experiment.identity(case, data.sha256),
            "finished": _now(),
        }
        yield jsonable(record)


def _measures(
    scores: NDArray[np.float64], is_anomaly: NDArray[np.bool_], prefix: str
) -> dict[str, float]:
    """Return AUROC and average precision of the mean score."""
    if is_anomaly.all() or not is_anomaly.any():
        return {}
    together = scores.mean(0)
    return {
        f"{prefix}auroc": float(roc_auc_score(is_anomaly, together)),
        f"{prefix}average_precision": float(average_precision_score(is_anomaly, together)),
    }


def _split(case: ImageCase, data: ImageDataset) -> ImageSplit:
    anomaly = case.anomaly if case.anomaly >= 0 else (case.normal + 1) % len(data.classes)
    return make_image_split(
        data.train_labels,
        case.normal,
        anomaly,
        gamma_l=case.gamma_l,
        gamma_p=case.gamma_p,
        seed=case.seed,
    )


def _place(case: ImageCase) -> tuple[Any, ...]:
    return (family(case.method) != "ours", family(case.method), *_order(case))


def _order(case: ImageCase) -> tuple[Any, ...]:
    return case.normal, case.gamma_p, case.gamma_l, case.anomaly


def _describe(chunk: Sequence[ImageCase]) -> str:
    methods = sorted({case.method for case in chunk})
    classes = sorted({case.normal for case in chunk})
    return f"{', '.join(methods)}: {len(chunk)} problems, normal classes {classes}"


def _case_of(record: Mapping[str, Any]) -> ImageCase:
    return ImageCase(**{field.name: record[field.name] for field in fields(ImageCase)})


def _latest(records: Sequence[Mapping[str, Any]]) -> dict[ImageCase, dict[str, Any]]:
    return {_case_of(record): dict(record) for record in records}


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
