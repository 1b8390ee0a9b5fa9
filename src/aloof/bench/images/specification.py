"""What to run on image sets: which methods, which ratios, which classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated

from pydantic import AfterValidator

from aloof.baselines import BASELINES, DeepBaseline, Hybrid
from aloof.bench.images.settings import IMAGE_SETTINGS, ImageSetting, image_setting
from aloof.bench.images.splits import class_pairs
from aloof.bench.specification import Count, Names, Shares, Specification, known
from aloof.vae import METHODS, Method

__all__ = [
    "IMAGE_VARIANTS",
    "SHALLOW_METHODS",
    "ImageCase",
    "ImageSpecification",
    "deep_peers",
    "image_systems",
    "system_label",
]

SHALLOW_METHODS = ("oc-svm", "iforest", "kde", "ssad")

# Ill-trained: pre-trained for ten epochs, as in the paper's appendix. Without labelled
# anomalies it is an ill-trained Deep SVDD, which has no other name.
_ILL, _ILL_EPOCHS = "deep-sad-ill", 10

# What the paper calls a peer on images, where that is not its name in `BASELINES`.
_CALLED = {"autoencoder": "cae"}


def deep_peers() -> dict[str, str]:
    """Return the deep peers: what they are called here, and their names in `BASELINES`."""
    made = {name: factory() for name, factory in BASELINES.items()}
    return {
        _CALLED.get(name, name): name
        for name, peer in made.items()
        if isinstance(peer, DeepBaseline) and not isinstance(peer, Hybrid)
    }


def image_systems() -> dict[str, bool]:
    """Return every system there is for images, and whether it learns from labels."""
    found = {name: METHODS[name].uses_labels for name in METHODS}
    found |= {own: BASELINES[name]().uses_labels for own, name in deep_peers().items()}
    found[_ILL] = True
    for name in SHALLOW_METHODS:
        found[name] = found[f"{name}-hybrid"] = BASELINES[name]().uses_labels
    return found


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
        The normal class, and that of the labelled anomalies; -1: there are none.
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


def _methods(names: tuple[str, ...]) -> tuple[str, ...]:
    return known("method", image_systems())(names)


class ImageSpecification(Specification):
    """Options of ``aloof bench images``. One value may stand for a list of one.

    Attributes
    ----------
    dataset
        By name.
    methods
        Of `image_systems`. Those that learn nothing from labels stand for a `gamma_l` of 0,
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
    """

    dataset: Annotated[str, AfterValidator(known("image set", IMAGE_SETTINGS))] = (
        "fashion-mnist"
    )
    methods: Annotated[Names, AfterValidator(_methods)] = (
        "vae",
        "mml",
        "dp",
    )
    gamma_l: Shares = (0.0, 0.01, 0.05, 0.1, 0.2)
    gamma_p: Shares = (0.0,)
    problems: Count | None = None
    members: Count = 5
    seed: int = 0
    max_epochs: Count | None = None
    baseline_epochs: Count = 150
    variants: Annotated[Names, AfterValidator(known("variant", IMAGE_VARIANTS))] = ("",)
    stack: Count = 150

    def setting(self, method: Method, *, polluted: bool = False) -> ImageSetting:
        """Return how one of our methods learns the data set."""
        setting = image_setting(self.dataset, method, polluted=polluted)
        return setting if self.max_epochs is None else setting.lasting(self.max_epochs)

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
            variants = self.variants if method in METHODS and not none else ("",)
            for variant, (normal, anomaly) in product(variants, pairs):
                other = -1 if none and not gamma_p else anomaly
                case = ImageCase(
                    self.dataset, method, normal, other, gamma_l, gamma_p, self.seed, variant
                )
                found[case] = None
        return list(found)
