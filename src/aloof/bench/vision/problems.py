"""What is told apart: normal images to learn from, some labelled ones, and others to score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aloof.bench.vision.collections import COLLECTIONS, Listed, list_collection
from aloof.bench.vision.defects import KINDS, LABELLED, SIZES, damage
from aloof.bench.vision.surfaces import SURFACES, draw
from aloof.datasets import PublicImages, find_dataset
from aloof.exceptions import DatasetError
from aloof.models.images import decode

__all__ = ["CLASSES", "Problem", "check_name", "make_problem"]

# Sets of photographs by class, as in the paper: one is normal, another is labelled.
CLASSES = ("cifar10", "cats-vs-dogs", "fashion-mnist")
_LABELLED_OF_COLLECTIONS = 2  # kinds, the first by name, of which some are labelled


@dataclass(frozen=True, eq=False)
class Problem:
    """One of them.

    Attributes
    ----------
    normal, labelled
        Images ``(n, channels, height, width)`` to learn from; the latter are anomalies.
    test, kinds, sizes
        Images to score; the kind of each ("" is normal), and how large its defect is.
    seen
        Kinds that the labelled ones are of.
    masks
        ``(n, height, width)``; None: nobody knows where something is wrong.
    """

    normal: NDArray[np.uint8]
    labelled: NDArray[np.uint8]
    test: NDArray[np.uint8]
    kinds: tuple[str, ...]
    sizes: tuple[str, ...]
    seen: tuple[str, ...]
    masks: NDArray[np.bool_] | None

    def labelled_first(self, n: int) -> NDArray[np.uint8]:
        """Return the first n of the labelled ones."""
        if n > len(self.labelled):
            raise DatasetError(f"There are {len(self.labelled)} anomalies to label, not {n}.")
        return self.labelled[:n]


def check_name(name: str) -> str:
    """Return the name of a problem; raise a ValueError where there is none of this name."""
    first, _, rest = name.partition(":")
    if (name in SURFACES) or (first in (*CLASSES, *COLLECTIONS) and rest):
        return name
    raise ValueError(
        f"There is no problem {name!r}. Choose from {', '.join(SURFACES)}; a class of "
        f"{', '.join(CLASSES)}, as in cifar10:0; or a category of "
        f"{', '.join(COLLECTIONS)}, as in mvtec:bottle, with root."
    )


def make_problem(
    name: str, seed: int, *, normal: int, labelled: int, test: int, side: int, root: Path | None
) -> Problem:
    """Return a problem.

    Parameters
    ----------
    name
        A surface; or a set and what is normal, such as ``cifar10:3`` or ``mvtec:bottle``.
    seed
        The same seed, the same problem.
    normal, labelled
        How many to learn from, at most; the latter are anomalies.
    test
        How many normal ones to score, and how many anomalies of each class; of each kind and
        size of defects a tenth.
    side
        In pixels; photographs by class keep their own size.
    root
        The folder of a collection.
    """
    first, _, rest = name.partition(":")
    if name in SURFACES:
        return _surface(name, seed, normal, labelled, test, side)
    if first in CLASSES:
        return _class(first, rest, seed, normal, labelled, test)
    if root is None:
        raise DatasetError(f"Say where {first} is: root = 'FOLDER' (--root FOLDER).")
    listed = list_collection(first, root, rest)
    return _listed(listed, seed, normal, labelled, side)


def _surface(name: str, seed: int, normal: int, labelled: int, test: int, side: int) -> Problem:
    base = 1000 * (seed + 1)
    good = draw(name, base + 1, normal, side)
    fresh = draw(name, base + 2, test, side)
    each = max(1, test // 10)
    wanted = [(kind, size) for kind in KINDS for size in SIZES for _ in range(each)]
    canvas = draw(name, base + 3, len(wanted), side)
    spoilt = [
        damage(image, kind, size, [base, 4, place])
        for place, (image, (kind, size)) in enumerate(zip(canvas, wanted, strict=True))
    ]
    known = [(LABELLED[k % 2], list(SIZES)[k % 3]) for k in range(labelled)]
    bad = [
        damage(image, kind, size, [base, 5, place])[0]
        for place, (image, (kind, size)) in enumerate(
            zip(draw(name, base + 6, labelled, side), known, strict=True)
        )
    ]
    masks = np.zeros((len(fresh) + len(spoilt), side, side), bool)
    masks[len(fresh) :] = [mask for _, mask in spoilt]
    return Problem(
        good,
        np.stack(bad) if bad else good[:0],
        np.concatenate([fresh, np.stack([image for image, _ in spoilt])]),
        ("",) * len(fresh) + tuple(kind for kind, _ in wanted),
        ("",) * len(fresh) + tuple(size for _, size in wanted),
        LABELLED,
        masks,
    )


def _class(name: str, number: str, seed: int, normal: int, labelled: int, test: int) -> Problem:
    found = find_dataset(name, PublicImages).load()
    n_classes = len(found.classes)
    if not number.isdecimal() or int(number) >= n_classes:
        raise DatasetError(f"{name} has the classes 0 to {n_classes - 1}; got {number!r}.")
    own = int(number)
    other = (own + 1 + seed % (n_classes - 1)) % n_classes  # the class that is labelled
    rng = np.random.default_rng([seed, own])

    def drawn(labels: NDArray[np.int64], chosen: int, n: int) -> NDArray[np.int64]:
        return np.sort(rng.permutation(np.flatnonzero(labels == chosen))[:n])

    good = found.train[drawn(found.train_labels, own, normal)]
    bad = found.train[drawn(found.train_labels, other, labelled)]
    places = [drawn(found.test_labels, k, test) for k in range(n_classes)]
    kinds = ["" if k == own else found.classes[k] for k in range(n_classes) for _ in places[k]]
    seen = (found.classes[other],)
    tests = found.test[np.concatenate(places)]
    return Problem(good, bad, tests, tuple(kinds), ("",) * len(kinds), seen, None)


def _listed(listed: Listed, seed: int, normal: int, labelled: int, side: int) -> Problem:
    rng = np.random.default_rng(seed)
    train = rng.permutation(len(listed.train))[:normal]
    known = sorted({kind for kind in listed.kinds if kind})[:_LABELLED_OF_COLLECTIONS]
    pool = [place for place, kind in enumerate(listed.kinds) if kind in known]
    chosen = [int(place) for place in rng.permutation(pool)[:labelled]]
    rest = [place for place in range(len(listed.test)) if place not in chosen]
    masks = np.zeros((len(rest), side, side), bool)
    for row, place in enumerate(rest):
        if (path := listed.masks[place]) is not None:
            masks[row] = decode(path.read_bytes(), (side, side), 1)[0] > 0
    return Problem(
        _pixels([listed.train[k] for k in sorted(train)], side),
        _pixels([listed.test[k] for k in chosen], side),
        _pixels([listed.test[k] for k in rest], side),
        tuple(listed.kinds[k] for k in rest),
        ("",) * len(rest),
        tuple(known),
        masks if masks.any() else None,
    )


def _pixels(paths: Sequence[Path], side: int) -> NDArray[np.uint8]:
    found = np.empty((len(paths), 3, side, side), np.uint8)
    for place, path in enumerate(paths):
        found[place] = decode(path.read_bytes(), (side, side), 3)
    return found
