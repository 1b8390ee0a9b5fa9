"""The paper's image experiments: many problems, one stacked computation.

A case is (normal class, anomaly class, method, ratio). Cases are packed into chunks that fit
the device; within a chunk everything with the same normal class and seed shares one warm-up.
Records are written when a chunk ends, so that stopping loses at most one chunk.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.exceptions import ExperimentError
from aloof.experiments.image_protocol import ImageSplit, class_pairs, make_image_split
from aloof.experiments.image_settings import (
    IMAGE_SETTINGS,
    ImageSetting,
    image_architecture,
    image_objective,
)
from aloof.experiments.names import did_you_mean
from aloof.experiments.records import append_lines, jsonable, read_records, write_text
from aloof.images import ImageDataset, load_image_dataset
from aloof.persistence import versions
from aloof.scoring import Scorer
from aloof.training import (
    METHODS,
    Ensemble,
    Method,
    Problem,
    ProgressCallback,
    Stream,
    derive,
    resolve_device,
    train,
)

__all__ = [
    "ImageCase",
    "ImageExperiment",
    "make_image_experiment",
    "plan_chunks",
    "run_images",
]

_RECORDS, _MANIFEST = "records.jsonl", "manifest.json"


@dataclass(frozen=True, order=True)
class ImageCase:
    """What one record is about.

    Attributes
    ----------
    dataset, method
        By name.
    normal, anomaly
        The normal class, and that of the labelled anomalies.
    gamma_l, gamma_p
        Ratios of labelled and of hidden anomalies.
    seed
        Of the split and the members.
    variant
        What is different from the paper's method, if anything.
    """

    dataset: str
    method: str
    normal: int
    anomaly: int
    gamma_l: float
    gamma_p: float
    seed: int
    variant: str = ""


@dataclass(frozen=True)
class ImageExperiment:
    """A sweep.

    Attributes
    ----------
    dataset
        By name.
    methods
        Ours; ``vae`` is the case of no labelled anomalies.
    gamma_l, gamma_p
        Ratios of labelled and of hidden anomalies.
    problems
        As many as classes, or all pairs of classes; None: as many as classes.
    members
        Of each ensemble.
    seed
        Of splits and members.
    max_epochs
        Of the training; None: what suits the data set. The warm-up keeps its share.
    separate_encoder, freeze_decoder
        The paper's ablation.
    stack
        Most members of one method to train at once.
    title
        Of the table.
    """

    dataset: str = "fashion-mnist"
    methods: tuple[str, ...] = ("vae", "mml", "dp")
    gamma_l: tuple[float, ...] = (0.0, 0.01, 0.05, 0.1, 0.2)
    gamma_p: tuple[float, ...] = (0.0,)
    problems: int | None = None
    members: int = 5
    seed: int = 0
    max_epochs: int | None = None
    separate_encoder: bool = False
    freeze_decoder: bool = True
    stack: int = 150
    title: str = ""

    @property
    def variant(self) -> str:
        """Return what is different from the paper's method."""
        parts = []
        if self.separate_encoder:
            parts.append("separate encoder")
        if not self.freeze_decoder:
            parts.append("free decoder")
        return ", ".join(parts)

    @property
    def setting(self) -> ImageSetting:
        """Return how the data set is learned."""
        setting = IMAGE_SETTINGS[self.dataset]
        if self.max_epochs is None:
            return setting
        share = self.max_epochs / setting.max_epochs
        changed = {
            "max_epochs": self.max_epochs,
            "warmup_epochs": round(share * setting.warmup_epochs),
            "annealing_epochs": max(1, round(share * setting.annealing_epochs)),
        }
        return ImageSetting(**{**asdict(setting), **changed})

    def cases(self, n_classes: int) -> list[ImageCase]:
        """Return everything there is to run, in the order of the table."""
        pairs = class_pairs(n_classes, self.problems or n_classes)
        found: dict[ImageCase, None] = {}
        for gamma_p in self.gamma_p:
            for gamma_l in self.gamma_l:
                for method in self.methods:
                    for normal, anomaly in pairs:
                        # Without labelled anomalies there is one method and no anomaly class.
                        none = gamma_l == 0.0
                        if none != (method == "vae"):
                            continue
                        case = ImageCase(
                            self.dataset,
                            method,
                            normal,
                            -1 if none and not gamma_p else anomaly,
                            gamma_l,
                            gamma_p,
                            self.seed,
                            "" if none else self.variant,
                        )
                        found[case] = None
        return list(found)

    def identity(self, case: ImageCase, sha256: str) -> str:
        """Return a digest of all that a result depends on, beside the case."""
        method = cast(Method, case.method)
        what = {
            "data": sha256,
            "setting": asdict(self.setting),
            "objective": asdict(image_objective(method, self.setting)),
            "config": asdict(self._config(method)),
            "members": self.members,
        }
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    def _config(self, method: Method, **changes: Any) -> Any:
        own = {
            "separate_encoder": self.separate_encoder and method != "vae",
            "freeze_decoder": self.freeze_decoder,
        }
        return self.setting.config(method, **own, **changes)


def make_image_experiment(options: Mapping[str, Any]) -> ImageExperiment:
    """Turn options, as a TOML file or the command line has them, into an experiment."""
    known = [field.name for field in fields(ImageExperiment)]
    for name in options:
        if name not in known:
            raise ExperimentError(f"There is no option {name!r}{did_you_mean(name, known)}")
    chosen = dict(options)
    for name in ("methods", "gamma_l", "gamma_p"):
        value = chosen.get(name)
        if value is not None:
            chosen[name] = tuple(value) if isinstance(value, list | tuple) else (value,)
    for name in ("gamma_l", "gamma_p"):
        if name in chosen:
            chosen[name] = tuple(float(value) for value in chosen[name])
    experiment = ImageExperiment(**chosen)
    if experiment.dataset not in IMAGE_SETTINGS:
        raise ExperimentError(
            f"There is no image set {experiment.dataset!r}"
            f"{did_you_mean(experiment.dataset, IMAGE_SETTINGS)}"
        )
    for method in experiment.methods:
        if method not in METHODS:
            raise ExperimentError(
                f"There is no method {method!r}{did_you_mean(method, METHODS)}"
            )
    for name in ("members", "stack"):
        if getattr(experiment, name) < 1:
            raise ExperimentError(f"{name} must be at least 1.")
    return experiment


def plan_chunks(
    cases: Sequence[ImageCase], members: int, stack: int
) -> Iterator[list[ImageCase]]:
    """Pack cases into chunks with at most `stack` members of each method.

    Cases with the same normal class stay together as far as they fit: they share a warm-up.
    """
    chunk: list[ImageCase] = []
    sizes: dict[str, int] = {}
    for case in sorted(cases, key=lambda c: (c.normal, c.gamma_p, c.gamma_l, c.anomaly)):
        if sizes.get(case.method, 0) + members > max(stack, members):
            yield chunk
            chunk, sizes = [], {}
        chunk.append(case)
        sizes[case.method] = sizes.get(case.method, 0) + members
    if chunk:
        yield chunk


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
    data = dataset or load_image_dataset(experiment.dataset)
    cases = experiment.cases(len(data.classes))
    path = folder / _RECORDS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = _latest(read_records(path, check=_case_of))
    except OSError as error:
        raise ExperimentError(
            f"{folder} cannot be used for results: {error.strerror or error}."
        ) from error
    todo = [
        case
        for case in cases
        if found.get(case, {}).get("identity") != experiment.identity(case, data.sha256)
    ]
    pixels = torch.from_numpy(data.train)
    done = len(cases) - len(todo)
    started = time.monotonic()
    for chunk in plan_chunks(todo, experiment.members, experiment.stack):
        if on_chunk is not None:
            on_chunk(done, len(cases), _describe(chunk))
        records = _run_chunk(experiment, chunk, data, pixels, place, on_epoch)
        append_lines(path, records)
        found |= _latest(records)
        done += len(chunk)
        manifest = {
            "command": command,
            "experiment": asdict(experiment),
            "setting": asdict(experiment.setting),
            "finished": _now(),
            "seconds": time.monotonic() - started,
            "device": _device_name(place),
            "platform": platform.platform(),
            "versions": versions(),
            "data_sha256": data.sha256,
        }
        write_text(folder / _MANIFEST, json.dumps(jsonable(manifest), indent=2) + "\n")
    return [found[case] for case in cases]


def _run_chunk(
    experiment: ImageExperiment,
    cases: Sequence[ImageCase],
    data: ImageDataset,
    pixels: torch.Tensor,
    device: torch.device,
    on_epoch: ProgressCallback | None,
) -> list[dict[str, Any]]:
    started = time.monotonic()
    splits = [_split(case, data) for case in cases]
    problems = [
        Problem(
            normal=split.normal,
            anomaly=split.anomaly,
            seeds=_seeds(case, experiment.members),
            objective=image_objective(cast(Method, case.method), experiment.setting),
            rows_per_epoch=_rows_per_epoch(data, case),
        )
        for case, split in zip(cases, splits, strict=True)
    ]
    architecture = image_architecture(experiment.dataset, data.train.shape[1:])
    ensembles: dict[int, Ensemble] = {}
    for numbers in _by_config(experiment, cases):
        config = experiment._config(
            cast(Method, cases[numbers[0]].method),
            precision="bfloat16" if device.type == "cuda" else "float32",
        )
        results = train(
            [pixels],
            [problems[i] for i in numbers],
            architecture,
            config,
            device=device,
            on_epoch=on_epoch,
        )
        for i, result in zip(numbers, results, strict=True):
            ensembles[i] = result.ensemble
    trained = time.monotonic() - started
    records = []
    for i, (case, split) in enumerate(zip(cases, splits, strict=True)):
        scorer = Scorer(
            ensembles.pop(i), problems[i].objective, device=device, dtype=torch.float32
        )
        held = np.concatenate([split.held_normal, split.held_anomaly])
        is_anomaly = np.arange(len(held)) >= len(split.held_normal)
        records.append(
            {
                **asdict(case),
                **_measures(scorer, data.test, data.test_labels != case.normal, ""),
                **_measures(scorer, data.train[held], is_anomaly, "validation_"),
                "n_normal": len(split.normal),
                "n_labelled": len(split.anomaly),
                "n_hidden": split.n_hidden,
                "members": experiment.members,
                "fit_seconds": trained / len(cases),
                "stacked": len(cases),
                "device": _device_name(device),
                "identity": experiment.identity(case, data.sha256),
                "finished": _now(),
            }
        )
    return [jsonable(record) for record in records]


def _by_config(experiment: ImageExperiment, cases: Sequence[ImageCase]) -> list[list[int]]:
    """Group cases that can be one call of `train`: methods of one schedule share warm-ups."""
    groups: dict[Any, list[int]] = {}
    for i, case in enumerate(cases):
        groups.setdefault(experiment._config(cast(Method, case.method)), []).append(i)
    return list(groups.values())


def _measures(
    scorer: Scorer, images: NDArray[np.uint8], is_anomaly: NDArray[np.bool_], prefix: str
) -> dict[str, Any]:
    """Return AUROC and average precision of the ensemble, and the AUROC of each member."""
    if is_anomaly.all() or not is_anomaly.any():
        return {}

    def rows(chunk: slice) -> NDArray[np.floating]:
        return images[chunk].astype(np.float32) / 255

    scores = -scorer.member_scores(rows, len(images))
    together = scores.mean(0)
    found = {
        f"{prefix}auroc": float(roc_auc_score(is_anomaly, together)),
        f"{prefix}average_precision": float(average_precision_score(is_anomaly, together)),
    }
    if not prefix:
        found["member_auroc"] = [float(roc_auc_score(is_anomaly, own)) for own in scores]  # type: ignore[assignment]
    return found


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


def _seeds(case: ImageCase, members: int) -> list[int]:
    """Return the members' seeds: the same for everything with this normal class."""
    own = 1000 * case.seed + case.normal
    return [derive(own, Stream.MEMBER, k) for k in range(members)]


def _rows_per_epoch(data: ImageDataset, case: ImageCase) -> int:
    """Return the mean size of a class's training part: all classes are one stack."""
    clean = 0.8 * len(data.train_labels) / len(data.classes)
    return round(clean / (1 - case.gamma_p))


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
