"""Changes to our methods on images: other numbers than a setting's, and what has a name."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from aloof.bench.specification import Count, Positive, Weight, Whole, known, several
from aloof.io.sections import Section
from aloof.objectives import Reduction
from aloof.vae import METHODS, LearningRateSchedule

__all__ = ["IMAGE_VARIANTS", "ImageNumbers", "ImageVariant", "ImageVariants"]


def _milestones(value: tuple[int, ...]) -> tuple[int, ...]:
    if not value or value[0] < 1 or any(a >= b for a, b in pairwise(value)):
        raise ValueError(f"must be epochs from 1 on, each later than the last; got {value!r}.")
    return value


class ImageNumbers(Section):
    """Numbers of our methods, in place of those of their setting; None: that one.

    Attributes
    ----------
    warmup_epochs, annealing_epochs, anomaly_interval, batch_size, anomaly_batch_size
        As in `aloof.bench.images.settings.ImageSetting`, like the next lines.
    learning_rate, lr_schedule, milestones, max_grad_norm, freeze_decoder
        Milestones are those of the schedule ``step``, which they imply.
    beta_kl, alpha, gamma, beta_cubo, n_samples, reduction
        Of the objective.
    """

    warmup_epochs: Whole | None = None
    annealing_epochs: Whole | None = None
    anomaly_interval: Count | None = None
    batch_size: Count | None = None
    anomaly_batch_size: Count | None = None
    learning_rate: Positive | None = None
    lr_schedule: (
        Annotated[str, AfterValidator(known("schedule", get_args(LearningRateSchedule)))] | None
    ) = None
    milestones: (
        Annotated[tuple[int, ...], BeforeValidator(several), AfterValidator(_milestones)] | None
    ) = None
    max_grad_norm: Positive | None = None
    freeze_decoder: bool | None = None
    beta_kl: Weight | None = None
    alpha: float | None = None
    gamma: Weight | None = None
    beta_cubo: Weight | None = None
    n_samples: Count | None = None
    reduction: (
        Annotated[str, AfterValidator(known("reduction", get_args(Reduction)))] | None
    ) = None

    @property
    def changes(self) -> dict[str, Any]:
        """What is given, as changes of an `ImageSetting`."""
        given = self.model_dump(exclude_none=True)
        if self.milestones is not None:
            return {"lr_schedule": "step", **given}
        return {"milestones": (), **given} if self.lr_schedule is not None else given


class ImageVariant(Section):
    """A change to our methods that a study is about.

    Attributes
    ----------
    name
        Empty for the methods as they are.
    numbers
        In place of the setting's.
    separate_encoder
        Whether anomalies have an encoder of their own.
    methods
        Which of ours it is of; none: all that learn from labels.
    """

    name: str
    numbers: ImageNumbers = Field(default_factory=ImageNumbers)
    separate_encoder: bool = False
    methods: Annotated[
        tuple[str, ...],
        BeforeValidator(several),
        AfterValidator(
            known("method with labels", [name for name in METHODS if METHODS[name].uses_labels])
        ),
    ] = ()

    @property
    def changed(self) -> dict[str, Any]:
        """What differs from the setting, by name."""
        given = self.numbers.model_dump(exclude_none=True)
        return given | ({"separate_encoder": True} if self.separate_encoder else {})

    def concerns(self, method: str) -> bool:
        """Return whether a method has this variant."""
        return not self.methods or method in self.methods


_FREE = ImageNumbers(freeze_decoder=False)

# The paper's ablation: whether anomalies have an encoder of their own, and whether they teach
# the decoder. The method itself, with one encoder and a frozen decoder, has no name.
IMAGE_VARIANTS: Mapping[str, ImageVariant] = {
    variant.name: variant
    for variant in (
        ImageVariant(name=""),
        ImageVariant(name="same-unfreeze", numbers=_FREE),
        ImageVariant(name="separate-freeze", separate_encoder=True),
        ImageVariant(name="separate-unfreeze", separate_encoder=True, numbers=_FREE),
    )
}


def _named(values: Any) -> Any:
    """Put the variants of the ablation where their names are."""
    find = known("variant", IMAGE_VARIANTS)
    return tuple(
        IMAGE_VARIANTS[find(value)] if isinstance(value, str) else value
        for value in several(values)
    )


def _distinct(variants: tuple[ImageVariant, ...]) -> tuple[ImageVariant, ...]:
    by_name: dict[str, ImageVariant] = {}
    for variant in variants:
        if by_name.setdefault(variant.name, variant) != variant:
            raise ValueError(f"Two variants are called {variant.name!r}.")
        if variant.name and not variant.changed:
            raise ValueError(f"The variant {variant.name!r} changes nothing.")
        if IMAGE_VARIANTS.get(variant.name, variant) != variant:
            raise ValueError(f"{variant.name!r} is the paper's: choose another name.")
    if not by_name:
        raise ValueError("must be one or more; got none.")
    return tuple(by_name.values())


ImageVariants = Annotated[
    tuple[ImageVariant, ...], BeforeValidator(_named), AfterValidator(_distinct)
]
