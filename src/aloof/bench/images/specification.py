"""What to run on image sets: which methods, which ratios, which classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, NamedTuple, Self, cast

from pydantic import AfterValidator, Field, model_validator

from aloof.baselines import BASELINES, UNFAIR, DeepBaseline, Hybrid
from aloof.bench.images.settings import IMAGE_SETTINGS, ImageSetting, image_setting
from aloof.bench.images.splits import class_pairs
from aloof.bench.images.variants import (
    IMAGE_VARIANTS,
    ImageNumbers,
    ImageVariant,
    ImageVariants,
)
from aloof.bench.records import Record
from aloof.bench.specification import (
    Count,
    Names,
    Setting,
    Settings,
    Shares,
    Specification,
    Whole,
    known,
)
from aloof.bench.variants import variants_of
from aloof.vae import METHODS, Method

__all__ = [
    "ONLY_PUBLISHED",
    "SHALLOW_METHODS",
    "Detector",
    "ImageCase",
    "ImageSpecification",
    "deep_peer",
    "deep_peers",
    "image_systems",
    "is_shallow",
    "looks_at_test_labels",
    "settings_of",
    "system_label",
    "with_setting",
]

SHALLOW_METHODS = ("oc-svm", "iforest", "kde", "ssad")
_HYBRID, _UNFAIR = "-hybrid", "-unfair"

ONLY_PUBLISHED = ("ss-dgm-m1-m2", "ss-dgm-m2")
"""Peers that run as published, whatever is asked for; our reading has another name."""

# What grows with the square of the rows learns from so many.
_MAX_ROWS = 2000

# Ill-trained: pre-trained for ten epochs, as in the paper's appendix. Without labelled
# anomalies it is an ill-trained Deep SVDD, which has no other name.
_ILL, _ILL_EPOCHS = "deep-sad-ill", 10

# What the paper calls a peer on images, where that is not its name in `BASELINES`.
_CALLED = {"autoencoder": "cae"}


# The epoch is chosen with labels of test images, as the authors did.
_UNFAIR_EPOCHS = ("inclusive-nrf-unfair",)


def deep_peers() -> dict[str, str]:
    """Return the deep peers: what they are called here, and their names in `BASELINES`.

    A name may also end in ``-ill`` or ``-unfair``: see `deep_peer`.
    """
    made = {name: factory() for name, factory in BASELINES.items()}
    return {
        _CALLED.get(name, name): name
        for name, peer in made.items()
        if isinstance(peer, DeepBaseline) and not isinstance(peer, Hybrid)
    }


def deep_peer(method: str) -> str | None:
    """Return the name of a deep peer in `BASELINES`; None: it is of another kind.

    Examples
    --------
    >>> deep_peer("deep-sad-ill"), deep_peer("inclusive-nrf-unfair"), deep_peer("kde")
    ('deep-sad', 'inclusive-nrf', None)
    """
    if method in (_ILL, *_UNFAIR_EPOCHS):
        method = method.rpartition("-")[0]
    return deep_peers().get(method)


def looks_at_test_labels(method: str) -> bool:
    """Return whether a method chooses numbers, or its epoch, with labels of test images."""
    return method.endswith(_UNFAIR)


class Detector(NamedTuple):
    """What the name of a shallow peer or a hybrid says.

    Attributes
    ----------
    name
        Of the shallow method, in `BASELINES`.
    hybrid
        Whether it is shown codes of an autoencoder instead of pixels.
    unfair
        Whether its numbers are chosen with labels of test images.
    """

    name: str
    hybrid: bool
    unfair: bool

    @classmethod
    def of(cls, method: str) -> Self | None:
        """Return what a name says; None: it is of another kind of system.

        Examples
        --------
        >>> Detector.of("ssad-hybrid-unfair")
        Detector(name='ssad', hybrid=True, unfair=True)
        >>> Detector.of("deep-sad")
        """
        plain = method.removesuffix(_UNFAIR)
        name = plain.removesuffix(_HYBRID)
        found = cls(name, name != plain, plain != method)
        return found if name in SHALLOW_METHODS else None

    @property
    def key(self) -> str:
        """Its name without `unfair`."""
        return f"{self.name}{_HYBRID if self.hybrid else ''}"


def is_shallow(method: str) -> bool:
    """Return whether a method has no network: no GPU is of use to it."""
    detector = Detector.of(method)
    return detector is not None and not detector.hybrid


def image_systems() -> dict[str, bool]:
    """Return every system there is for images, and whether it learns from labels."""
    found = {name: METHODS[name].uses_labels for name in METHODS}
    found |= {own: BASELINES[name]().uses_labels for own, name in deep_peers().items()}
    found[_ILL] = True
    for name in SHALLOW_METHODS:
        found[name] = found[f"{name}-hybrid"] = BASELINES[name]().uses_labels
    unfair = (*UNFAIR, *_UNFAIR_EPOCHS)
    return found | {name: found[name.removesuffix(_UNFAIR)] for name in unfair}


@dataclass(frozen=True, order=True)
class ImageCase:
    """What one record is about.

    Attributes
    ----------
    dataset, method
        By name.
    normal, anomaly
        The normal class, and that of the labelled anomalies; -1: there are none.
    gamma_l, gamma_p
        Ratios of labelled and of hidden anomalies.
    seed
        Of the split and the members.
    variant
        Of `IMAGE_VARIANTS`.
    setting
        Whose numbers and networks; empty where there is but one way, as with shallow peers.
    """

    dataset: str
    method: str
    normal: int
    anomaly: int
    gamma_l: float
    gamma_p: float
    seed: int
    variant: str = ""
    setting: str = "ours"


def system_label(method: str, variant: str, setting: str) -> str:
    """Return what a system is called in tables and pictures.

    Examples
    --------
    >>> system_label("dp", "same-unfreeze", "paper"), system_label("kde", "", "")
    ('dp (paper, same-unfreeze)', 'kde')
    """
    details = ", ".join(part for part in (setting, variant) if part)
    return f"{method} ({details})" if details else method


def settings_of(method: str, settings: Sequence[str]) -> tuple[str, ...]:
    """Return in which of some settings a system differs.

    Shallow peers have none. Peers that bring networks of their own run as they were published,
    whatever is asked for, and so do those of `ONLY_PUBLISHED`.
    """
    if _is_shallow(method):
        return ("",)
    if method in ONLY_PUBLISHED:
        return ("paper",)
    name = deep_peer(method)
    if name is None or cast(DeepBaseline, BASELINES[name]()).takes_image_networks:
        return tuple(settings)
    return ("paper",)


def with_setting(record: Record) -> Record:
    """Return a record with its setting; older ones lack it, and are of our numbers."""
    if "setting" in record:
        return record
    return {**record, "setting": "" if _is_shallow(record["method"]) else "ours"}


def _is_shallow(method: str) -> bool:
    detector = Detector.of(method)
    return detector is not None and not detector.hybrid


def _has_variants(method: str) -> bool:
    return method in METHODS and METHODS[cast(Method, method)].uses_labels


def _methods(names: tuple[str, ...]) -> tuple[str, ...]:
    return known("method", image_systems())(names)


def _max_rows(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is None or value == "all" or (whole and value >= 2):
        return value
    raise ValueError(f"must be 'all' or a whole number from 2 on; got {value!r}.")


class ImageSpecification(Specification):
    """Options of ``aloof bench images``. One value may stand for a list of one.

    Attributes
    ----------
    dataset
        By name.
    methods
        Of `image_systems`. Those that learn nothing from labels stand for a `gamma_l` of 0,
        the others for the rest.
    setting
        ``ours``, ``paper`` or both. Shallow peers run once.
    gamma_l, gamma_p
        Ratios of labelled and of hidden anomalies.
    problems
        As many as classes, or all pairs of classes; None: as many as classes.
    members
        Of each ensemble.
    seed
        Of splits and members.
    max_epochs
        Of our methods; None: the setting's. Warm-up, annealing and steps of the rate keep their
        shares.
    numbers
        Other numbers of our methods, in place of the setting's.
    baseline_members
        Of each ensemble of a deep peer; None: as many as of our methods.
    baseline_epochs
        Of baselines, and of the autoencoders they begin with. In the setting ``paper`` only of
        those that Ruff et al. published, but for ``ss-dgm-m2`` and ``ss-dgm-m1-m2``, which have
        epochs of their own.
    max_rows
        Most normal images that kernel methods learn from, or ``all``; None: 2,000, and all
        where the method is tuned on a part of the test set (``-unfair``).
    variants
        For methods of ours that learn from labels: names of `IMAGE_VARIANTS`, or tables with
        the fields of `ImageVariant`.
    stack
        Most members of one method to train at once; None: 150 on a GPU, and on a CPU those with
        one normal class.
    """

    dataset: Annotated[str, AfterValidator(known("image set", IMAGE_SETTINGS))] = (
        "fashion-mnist"
    )
    methods: Annotated[Names, AfterValidator(_methods)] = (
        "vae",
        "mml",
        "dp",
    )
    setting: Settings = ("ours",)
    gamma_l: Shares = (0.0, 0.01, 0.05, 0.1, 0.2)
    gamma_p: Shares = (0.0,)
    problems: Count | None = None
    members: Count = 5
    seed: Whole = 0
    max_epochs: Count | None = None
    numbers: ImageNumbers = Field(default_factory=ImageNumbers)
    baseline_members: Count | None = None
    baseline_epochs: Count = 150
    max_rows: Annotated[Any, AfterValidator(_max_rows)] = None
    variants: ImageVariants = (IMAGE_VARIANTS[""],)
    stack: Count | None = None

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Refuse what does not go together, before anything runs."""
        if self.variants != (IMAGE_VARIANTS[""],):
            without = [name for name in self.methods if not _has_variants(name)]
            if without:
                raise ValueError(
                    "variants only apply to those of our methods that learn from labels; "
                    f"{without[0]!r} does not."
                )
            if self.numbers.freeze_decoder is not None:
                raise ValueError("numbers.freeze_decoder: variants say what is frozen.")
        if self.numbers.changes and not self._of_ours:
            raise ValueError("numbers only apply to our methods, and there are none here.")
        for numbers in (self.numbers, *(variant.numbers for variant in self.variants)):
            schedule = numbers.lr_schedule
            if numbers.milestones is not None and schedule not in (None, "step"):
                raise ValueError(
                    f"numbers.milestones only apply to lr_schedule 'step'; got {schedule!r}."
                )
        for setting, method in product(self.setting, self._of_ours):
            for variant in variants_of(method, self.variants):
                found = self.numbers_of(method, cast(Setting, setting), variant)
                if found.warmup_epochs > found.max_epochs:
                    raise ValueError(
                        "numbers.warmup_epochs must be at most max_epochs, "
                        f"{found.max_epochs}; got {found.warmup_epochs}."
                    )
        return self

    @property
    def _of_ours(self) -> list[Method]:
        return [cast(Method, name) for name in METHODS if name in self.methods]

    def variant(self, name: str) -> ImageVariant:
        """Return a variant by its name."""
        by_name = {variant.name: variant for variant in self.variants}
        return by_name.get(name) or IMAGE_VARIANTS[name]

    def numbers_of(
        self, method: Method, setting: Setting, variant: str = "", *, polluted: bool = False
    ) -> ImageSetting:
        """Return how one of our methods learns the data set."""
        found = image_setting(self.dataset, method, setting, polluted=polluted)
        if self.max_epochs is not None:
            found = found.lasting(self.max_epochs)
        found = replace(found, **self.numbers.changes)
        return replace(found, **self.variant(variant).numbers.changes)

    @property
    def n_baselines(self) -> int:
        """Members of each ensemble of a deep peer."""
        return self.baseline_members or self.members

    def rows_of(self, detector: Detector) -> int | None:
        """Return the most normal images that a kernel method learns from; None: all."""
        if self.max_rows is None:
            return None if detector.unfair else _MAX_ROWS
        return None if self.max_rows == "all" else int(self.max_rows)

    def pretrain_epochs(self, method: str) -> int:
        """Return how long the autoencoders are trained that a baseline begins with."""
        return _ILL_EPOCHS if method == _ILL else self.baseline_epochs

    def cases(self, n_classes: int) -> list[ImageCase]:
        """Return everything there is to run, in the order of the table."""
        pairs = class_pairs(n_classes, self.problems or n_classes)
        learns = image_systems()
        found: dict[ImageCase, None] = {}
        for gamma_p, gamma_l, method in product(self.gamma_p, self.gamma_l, self.methods):
            # Without labelled anomalies there is one method and no anomaly class.
            none = gamma_l == 0.0
            if none == learns[method] and not (none and method == _ILL):
                continue
            own = method in METHODS and not none
            variants = variants_of(method, self.variants) if own else [""]
            settings = settings_of(method, self.setting)
            for setting, variant, (normal, anomaly) in product(settings, variants, pairs):
                other = -1 if none and not gamma_p else anomaly
                place = self.dataset, method, normal, other, gamma_l, gamma_p, self.seed
                found[ImageCase(*place, variant, setting)] = None
        return list(found)
