"""A sweep over image problems: which methods, which ratios, which classes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any, cast

from aloof.baselines.images import IMAGE_METHODS, SHALLOW_METHODS, ImageSchedule
from aloof.exceptions import ExperimentError
from aloof.experiments.image_protocol import class_pairs
from aloof.experiments.image_settings import IMAGE_SETTINGS, ImageSetting, image_setting
from aloof.experiments.names import did_you_mean
from aloof.networks import PAPER_NETWORKS
from aloof.training import METHODS, Method, Objective, TrainingConfig

__all__ = [
    "IMAGE_SYSTEMS",
    "IMAGE_VARIANTS",
    "UNSUPERVISED",
    "ImageCase",
    "ImageExperiment",
    "make_image_experiment",
    "system_label",
]

_HYBRIDS = tuple(f"{name}-hybrid" for name in SHALLOW_METHODS)

# Ill-trained: pre-trained for ten epochs, as in the paper's appendix.
_ILL = "deep-sad-ill"

IMAGE_SYSTEMS: tuple[str, ...] = (
    *METHODS,
    *IMAGE_METHODS,
    _ILL,
    *SHALLOW_METHODS,
    *_HYBRIDS,
)

# To be raised when the same options lead to other results, beyond rounding: splits, scores.
_PROTOCOL = 2

# They learn nothing from labels: there is one result, without labelled anomalies.
UNSUPERVISED = frozenset(
    ["vae", "cae", "deep-svdd"]
    + [name for name in (*SHALLOW_METHODS, *_HYBRIDS) if not name.startswith("ssad")]
)


# The paper's ablation: whether anomalies have an encoder of their own, and whether they teach
# the decoder. The method itself, with one encoder and a frozen decoder, has no name.
IMAGE_VARIANTS: Mapping[str, Mapping[str, bool]] = {
    "": {},
    "same-unfreeze": {"freeze_decoder": False},
    "separate-freeze": {"separate_encoder": True},
    "separate-unfreeze": {"separate_encoder": True, "freeze_decoder": False},
}


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
        Of `IMAGE_VARIANTS`.
    """

    dataset: str
    method: str
    normal: int
    anomaly: int
    gamma_l: float
    gamma_p: float
    seed: int
    variant: str = ""


def system_label(method: str, variant: str) -> str:
    """Return what a method or a variant of it is called in tables and pictures."""
    return f"{method} ({variant})" if variant else method


@dataclass(frozen=True)
class ImageExperiment:
    """A sweep.

    Attributes
    ----------
    dataset
        By name.
    methods
        Of `IMAGE_SYSTEMS`. Those that learn nothing from labels stand for a `gamma_l` of 0,
        the others for the rest.
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
    baseline_epochs
        Of baselines, and of the autoencoders they begin with.
    variants
        Of `IMAGE_VARIANTS`, for methods of ours that learn from labels.
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
    baseline_epochs: int = 150
    variants: tuple[str, ...] = ("",)
    stack: int = 150
    title: str = ""

    def setting(self, method: Method, *, polluted: bool = False) -> ImageSetting:
        """Return how one of our methods learns the data set."""
        setting = image_setting(self.dataset, method, polluted=polluted)
        return setting if self.max_epochs is None else setting.lasting(self.max_epochs)

    def cases(self, n_classes: int) -> list[ImageCase]:
        """Return everything there is to run, in the order of the table."""
        pairs = class_pairs(n_classes, self.problems or n_classes)
        found: dict[ImageCase, None] = {}
        for gamma_p, gamma_l, method in product(self.gamma_p, self.gamma_l, self.methods):
            # Without labelled anomalies there is one method and no anomaly class.
            none = gamma_l == 0.0
            if none != (method in UNSUPERVISED):
                continue
            variants = self.variants if method in METHODS and not none else ("",)
            for variant, (normal, anomaly) in product(variants, pairs):
                other = -1 if none and not gamma_p else anomaly
                case = ImageCase(
                    self.dataset, method, normal, other, gamma_l, gamma_p, self.seed, variant
                )
                found[case] = None
        return list(found)

    def identity(self, case: ImageCase, sha256: str) -> str:
        """Return a digest of all that a result depends on, beside the case."""
        what: dict[str, Any] = {
            "protocol": _PROTOCOL,
            "data": sha256,
            # "channels" is the word that results were made with.
            "network": {
                "channels" if name == "filters" else name: value
                for name, value in PAPER_NETWORKS[self.dataset].items()
            },
        }
        if case.method in SHALLOW_METHODS:
            pass  # one detector, and nothing to train
        elif case.method in METHODS:
            what["members"] = self.members
            what["objective"] = asdict(self.objective(case))
            what["config"] = asdict(self.config(case))
        else:
            what["members"] = self.members
            what["schedule"] = asdict(self.schedule(case.method))
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    def config(self, case: ImageCase, **changes: Any) -> TrainingConfig:
        """Return the schedule of a case of ours."""
        return self._setting_of(case).config(**IMAGE_VARIANTS[case.variant], **changes)

    def objective(self, case: ImageCase) -> Objective:
        """Return what a case of ours minimises."""
        return self._setting_of(case).objective(cast(Method, case.method))

    def _setting_of(self, case: ImageCase) -> ImageSetting:
        return self.setting(cast(Method, case.method), polluted=case.gamma_p > 0)

    def schedule(self, method: str, **changes: Any) -> ImageSchedule:
        """Return the schedule of a baseline."""
        epochs = self.baseline_epochs
        return ImageSchedule(
            max_epochs=epochs, pretrain_epochs=10 if method == _ILL else epochs, **changes
        )


def _ratios(name: str, values: tuple[Any, ...]) -> tuple[float, ...]:
    try:
        return tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise ExperimentError(f"{name} must be numbers; got {list(values)!r}.") from None


def make_image_experiment(options: Mapping[str, Any]) -> ImageExperiment:
    """Turn options, as a TOML file or the command line has them, into an experiment."""
    known = [field.name for field in fields(ImageExperiment)]
    for name in options:
        if name not in known:
            raise ExperimentError(f"There is no option {name!r}{did_you_mean(name, known)}")
    chosen = dict(options)
    for name in ("methods", "gamma_l", "gamma_p", "variants"):
        value = chosen.get(name)
        if value is not None:
            chosen[name] = tuple(value) if isinstance(value, list | tuple) else (value,)
    for name in ("gamma_l", "gamma_p"):
        if name in chosen:
            chosen[name] = _ratios(name, chosen[name])
    experiment = ImageExperiment(**chosen)
    if experiment.dataset not in IMAGE_SETTINGS:
        raise ExperimentError(
            f"There is no image set {experiment.dataset!r}"
            f"{did_you_mean(experiment.dataset, IMAGE_SETTINGS)}"
        )
    for method in experiment.methods:
        if method not in IMAGE_SYSTEMS:
            raise ExperimentError(
                f"There is no method {method!r}{did_you_mean(method, IMAGE_SYSTEMS)}"
            )
    if not experiment.variants:
        raise ExperimentError('variants is empty; leave it out, or give [""] for the method.')
    for variant in experiment.variants:
        if variant not in IMAGE_VARIANTS:
            raise ExperimentError(
                f"There is no variant {variant!r}{did_you_mean(str(variant), IMAGE_VARIANTS)}"
            )
    for name in ("members", "stack", "baseline_epochs", "max_epochs", "problems"):
        number = getattr(experiment, name)
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ExperimentError(f"{name} must be at least 1; got {number!r}.")
    return experiment
