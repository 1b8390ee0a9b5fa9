"""What to compare: on which images, which systems, with how many labels."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from aloof.bench.specification import Count, Names, Specification, distinct, known, several
from aloof.bench.vision.problems import check_name
from aloof.bench.vision.surfaces import DEVELOPMENT, SURFACES
from aloof.bench.vision.systems import OPTIONAL, SYSTEMS

__all__ = ["VisionSpecification"]

_Labels = Annotated[
    tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(several), AfterValidator(distinct)
]


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(check_name(name) for name in names)


class VisionSpecification(Specification):
    """Options of ``aloof bench vision``.

    Attributes
    ----------
    problems
        Surfaces; classes of photographs (``cifar10:0``); categories of a collection
        (``mvtec:bottle``). The surfaces of ``DEVELOPMENT`` are for choosing by.
    systems
        What is compared; anomalib's PatchCore only if it is named.
    labels
        Numbers of labelled anomalies. Systems that learn nothing from them run without.
    seeds
        Of images, defects and networks, from 0 on.
    normal, test
        Normal images to learn from, and to score. As many anomalies of each class are scored,
        and a tenth as many of each kind and size of defects.
    side
        In pixels.
    backbone
        A name, or a file with weights.
    members, max_epochs
        Of an ensemble; None: as many as the images ask for.
    root
        The folder of a collection.
    """

    title: str = "Images people have"
    problems: Annotated[Names, AfterValidator(_known)] = tuple(
        name for name in SURFACES if name not in DEVELOPMENT
    )
    systems: Annotated[Names, AfterValidator(known("system", SYSTEMS))] = tuple(
        name for name in SYSTEMS if name not in OPTIONAL
    )
    labels: _Labels = (0, 3, 9)
    seeds: Count = 1
    normal: Count = 100
    test: Count = 20
    side: Annotated[int, Field(ge=32, le=1024)] = 256
    backbone: str = "efficientnet-lite0"
    members: Count = 5
    max_epochs: Count | None = None
    root: str | None = None
