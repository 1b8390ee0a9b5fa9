"""The image study: many problems, one stacked computation.

A case is (normal class, anomaly class, method, ratio). Cases are packed into chunks that fit
the device; within a chunk everything with the same normal class and seed shares one warm-up.
Records are written as cases are scored. A chunk that is stopped while it trains goes on from
there if it is run again; one that is stopped while it is scored trains what is left anew.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.bench.identity import Identity
from aloof.bench.images.plot import plot_images
from aloof.bench.images.shallow import Task, carried_out
from aloof.bench.images.specification import (
    Detector,
    ImageCase,
    ImageSpecification,
    is_shallow,
    with_setting,
)
from aloof.bench.images.splits import ImageSplit, make_image_split
from aloof.bench.images.systems import Asking, configuration, family, fit_cases
from aloof.bench.images.tables import csv_lines, image_grids
from aloof.bench.images.variants import IMAGE_VARIANTS
from aloof.bench.records import Record
from aloof.bench.revisions import revision
from aloof.bench.specification import Setting
from aloof.bench.statistics import summary_lines
from aloof.bench.study import Group, Outcome, Study, Tell, Where, Work, epochs
from aloof.bench.tables import Grid, Line
from aloof.datasets import ImageDataset, PublicImages, find_dataset
from aloof.exceptions import ExperimentError
from aloof.phrases import count
from aloof.report import save_figure
from aloof.training import discard_checkpoints
from aloof.vae import METHODS, Method

__all__ = ["ImageStudy", "make_images", "plan_chunks"]

_STACK = 150  # networks that a GPU trains at once, or tasks for --jobs


@dataclass(frozen=True, eq=False)
class ImageStudy(Study[ImageCase]):
    """A sweep over one image set.

    Attributes
    ----------
    spec
        What it was made from.
    data
        The images.
    cases
        In the order of the table.
    """

    case_type = ImageCase

    spec: ImageSpecification
    data: ImageDataset
    cases: list[ImageCase]
    _splits: dict[ImageCase, ImageSplit] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """Above the tables."""
        return self.spec.title or f"{self.spec.dataset}: labelled anomalies"

    def case_of(self, record: Record) -> ImageCase:
        """Return what a record is about; one of another image set is an error."""
        case = super().case_of(with_setting(record))
        if case.dataset != self.spec.dataset:
            raise ValueError(f"it is of {case.dataset}, and this is {self.spec.dataset}")
        return case

    def split(self, case: ImageCase) -> ImageSplit:
        """Return the rows of a case."""
        drawn = replace(case, method="", variant="", setting="")
        if drawn not in self._splits:
            n_classes = len(self.data.classes)
            self._splits[drawn] = make_image_split(
                self.data.train_labels,
                case.normal,
                case.anomaly if case.anomaly >= 0 else (case.normal + 1) % n_classes,
                gamma_l=case.gamma_l,
                gamma_p=case.gamma_p,
                seed=case.seed,
            )
        return self._splits[drawn]

    def identity(self, case: ImageCase) -> Identity:
        """Return the data, the rows, the configuration and the revision."""
        split = self.split(case)
        return Identity(
            configuration(self.spec, case),
            {
                "data_sha256": self.data.sha256,
                "split_sha256": split.sha256,
                "n_normal": len(split.normal),
                "n_labelled": len(split.anomaly),
                "n_hidden": split.n_hidden,
            },
            revision(case.method, images=True),
        )

    def groups(self, cases: Sequence[ImageCase], where: Where) -> Iterable[Group[ImageCase]]:
        """Return chunks that fit the device."""
        spec = self.spec
        stack = spec.stack or (None if where.device.type == "cpu" else _STACK)
        ours = [case for case in cases if case.method in METHODS]
        peers = [case for case in cases if case.method not in METHODS]
        shallow = [case for case in peers if is_shallow(case.method)]
        deep = [case for case in peers if not is_shallow(case.method)]
        chunks = chain(
            plan_chunks(ours, spec.members, stack),
            plan_chunks(deep, spec.n_baselines, stack),
            plan_chunks(shallow, 1, spec.stack or _STACK),
        )
        for chunk in chunks:

            def prepare(chunk: Sequence[ImageCase] = chunk) -> Work:
                return partial(self._run, chunk, where)

            yield Group(_describe(chunk), tuple(chunk), prepare, here=True)

    def _run(self, cases: Sequence[ImageCase], where: Where, tell: Tell) -> Iterator[Outcome]:
        """Train all cases of a chunk, then yield the outcome of each as it is scored.

        Where the memory of the GPU is too small for all at once, halves are trained in turn.
        """
        data, started = self.data, time.monotonic()
        splits = [self.split(case) for case in cases]
        checkpoint, *parts = (where.folder / _checkpoint(part) for part in _parts(cases))
        for other in where.folder.glob("training-*.ckpt*"):
            if not other.name.startswith(tuple(p.name for p in (checkpoint, *parts))):
                other.unlink(missing_ok=True)  # of cases that are run no more
        in_parts = any(any(part.parent.glob(f"{part.name}*")) for part in parts)
        asking = None if in_parts else self._fitted(cases, splits, where, checkpoint, tell)
        if asking is None:
            discard_checkpoints(checkpoint)
            for half in _halves(cases):
                yield from self._run(half, where, tell)
            return
        trained = (time.monotonic() - started) / len(cases)
        held = [np.concatenate([split.held_normal, split.held_anomaly]) for split in splits]
        asked: list[float] = []  # seconds: networks answer at once

        def tasks() -> Iterator[Task]:
            for ask, rows in zip(asking, held, strict=True):
                started = time.monotonic()
                task = ask(np.concatenate([data.test, data.train[rows]]))
                asked.append(time.monotonic() - started)
                yield task

        here = not any(Detector.of(case.method) for case in cases)  # networks have answered
        answers = carried_out(tasks(), 1 if here else where.jobs)
        for number, (case, split, rows, (found, seconds)) in enumerate(
            zip(cases, splits, held, answers, strict=True), 1
        ):
            is_test, n = data.test_labels != case.normal, len(data.test)
            is_held = np.arange(len(rows)) >= len(split.held_normal)
            yield {
                **_measures(found[:, :n], is_test, ""),
                "member_auroc": [float(roc_auc_score(is_test, own)) for own in found[:, :n]],
                **_measures(found[:, n:], is_held, "validation_"),
                "members": len(found),
                "seconds": trained + asked[number - 1] + seconds,
                "stacked": len(cases),
            }
            # One that is written down is in no chunk any more, and this state of no use.
            discard_checkpoints(checkpoint)
            tell(number, len(cases), "scoring")

    def _fitted(
        self,
        cases: Sequence[ImageCase],
        splits: Sequence[ImageSplit],
        where: Where,
        checkpoint: Path,
        tell: Tell,
    ) -> list[Asking] | None:
        """Return what scores images, for each case; None: they are too many for the GPU."""
        try:
            return fit_cases(
                self.spec, cases, splits, self.data, where.device, checkpoint, epochs(tell)
            )
        except torch.OutOfMemoryError:
            if len(cases) == 1:
                raise
        gc.collect()  # the networks that were in the way
        torch.cuda.empty_cache()
        return None

    def manifest(self) -> Mapping[str, Any]:
        """Return our methods' settings and the digest of the data."""
        settings = {
            f"{method} ({setting}){', hidden anomalies' if polluted else ''}": asdict(
                self.spec.numbers_of(
                    cast(Method, method), cast(Setting, setting), polluted=polluted
                )
            )
            for polluted in sorted({gamma_p > 0 for gamma_p in self.spec.gamma_p})
            for setting in self.spec.setting
            for method in METHODS
            if method in self.spec.methods
        }
        return {"settings": settings, "data_sha256": self.data.sha256}

    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return AUROC, what ensembles are worth, and the tests against Deep SAD."""
        spec = self.spec
        epochs = {} if spec.max_epochs is None else {"max_epochs": spec.max_epochs}
        changed = epochs | spec.numbers.model_dump(exclude_none=True)
        variants = {
            variant.name: variant.changed
            for variant in spec.variants
            if variant.name not in IMAGE_VARIANTS
        }
        return image_grids(records, changed, variants)

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each record."""
        return csv_lines(records)

    def summary(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each system and ratio, over problems."""
        by = ("dataset", "method", "variant", "setting", "gamma_l", "gamma_p", "seed")
        every = map(with_setting, records)
        return summary_lines(every, by, {"auroc": 100, "average_precision": 100})

    def draw(self, records: Sequence[Record], folder: Path) -> None:
        """Draw AUROC over the ratio, or a dot for each system."""
        save_figure(plot_images(records), folder / "curves.png")


def make_images(spec: ImageSpecification, data: ImageDataset | None = None) -> ImageStudy:
    """Load the images, unless they are given, and list the cases."""
    images = data or find_dataset(spec.dataset, PublicImages).load()
    cases = spec.cases(len(images.classes))
    if not cases:
        raise ExperimentError(
            "Nothing to run: methods that learn nothing from labels (vae, cae, ...) need a "
            "gamma_l of 0 among the ratios, the others need one above 0."
        )
    study = ImageStudy(spec, images, cases)
    for case in cases:  # what cannot be drawn is said before anything runs
        study.split(case)
    return study


def plan_chunks(
    cases: Sequence[ImageCase], members: int, stack: int | None
) -> Iterator[list[ImageCase]]:
    """Pack cases into chunks that train at most `stack` members of each method.

    A chunk has one family and one setting. Cases with the same normal class stay together as
    far as they fit: they share what is trained without labels. With no `stack`, each normal
    class is a chunk.
    """
    chunk: list[ImageCase] = []
    trained: dict[str, set[Any]] = {}
    for case in sorted(cases, key=_order):
        own = trained.get(_method(case), set()) | {_key(case)}
        if stack is None:
            full = any(case.normal != other.normal for other in chunk[-1:])
        else:
            full = members * len(own) > max(stack, members)
        if chunk and (full or _together(case) != _together(chunk[0])):
            yield chunk
            chunk, trained, own = [], {}, {_key(case)}
        chunk.append(case)
        trained[_method(case)] = own
    if chunk:
        yield chunk


def _together(case: ImageCase) -> tuple[str, str]:
    """Return what the cases of a chunk have in common."""
    return family(case.method), case.setting


def _method(case: ImageCase) -> str:
    """Return which method trains a case: that of hybrids is the autoencoder."""
    return "cae" if family(case.method) == "cae" else case.method


def _key(case: ImageCase) -> Any:
    """Return what is trained once: an autoencoder serves all with its normal rows."""
    if _method(case) != "cae":
        return case
    return replace(case, method="cae") if case.gamma_p else (case.normal, case.seed)


def _order(case: ImageCase) -> tuple[Any, ...]:
    family, setting = _together(case)
    place = case.normal, case.gamma_p, case.gamma_l, case.anomaly
    return family != "ours", family, setting, *place


def _halves(cases: Sequence[ImageCase]) -> tuple[Sequence[ImageCase], Sequence[ImageCase]]:
    middle = len(cases) // 2
    return cases[:middle], cases[middle:]


def _parts(cases: Sequence[ImageCase]) -> Iterator[Sequence[ImageCase]]:
    """Yield cases, and all that they are halved into where memory is short."""
    yield cases
    if len(cases) > 1:
        for half in _halves(cases):
            yield from _parts(half)


def _checkpoint(cases: Sequence[ImageCase]) -> str:
    digest = hashlib.sha256(repr(list(cases)).encode()).hexdigest()[:12]
    return f"training-{digest}.ckpt"


def _describe(chunk: Sequence[ImageCase]) -> str:
    methods = sorted({case.method for case in chunk})
    classes = sorted({case.normal for case in chunk})
    setting = f" ({chunk[0].setting})" if chunk[0].setting else ""
    named = ", ".join(map(str, classes))
    what = f"{count(len(chunk), 'problem')}, normal class{'es' * (len(classes) > 1)} {named}"
    return f"{', '.join(methods)}{setting}: {what}"


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
