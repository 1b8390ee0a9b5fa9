"""Public collections of defects, from the folders that their publishers ship.

Their licences do not let anybody else ship them: whoever has one names its folder.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aloof.exceptions import DatasetError

__all__ = ["COLLECTIONS", "Listed", "list_collection"]

_IMAGES = frozenset((".png", ".jpg", ".jpeg", ".bmp"))


@dataclass(frozen=True)
class Listed:
    """The files of one category.

    Attributes
    ----------
    train
        Normal images to learn from.
    test, kinds, masks
        Images to score; the kind of defect of each ("" is none), and its mask, if it has one.
    """

    train: tuple[Path, ...]
    test: tuple[Path, ...]
    kinds: tuple[str, ...]
    masks: tuple[Path | None, ...]


def list_collection(name: str, root: Path, category: str) -> Listed:
    """Return the files of a category, by the official division.

    Parameters
    ----------
    name
        A key of `COLLECTIONS`.
    root
        The folder of the collection, with a folder for each category.
    category
        Its name.
    """
    if not (root / category).is_dir():
        known = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
        there = f" It has {', '.join(known[:20])}." if known else ""
        raise DatasetError(f"{root} has no category {category!r}.{there}")
    found = COLLECTIONS[name](root, category)
    if not found.train or not any(found.kinds) or all(found.kinds):
        raise DatasetError(
            f"{root / category} does not look like {name}: it needs normal images to learn "
            "from, and normal and bad ones to score."
        )
    return found


def _mvtec(root: Path, category: str) -> Listed:
    """``train/good``, ``test/KIND``, ``ground_truth/KIND/NAME_mask.png``."""
    home = root / category
    test, kinds, masks = [], [], []
    for folder in sorted(path for path in (home / "test").glob("*") if path.is_dir()):
        for path in _images(folder):
            good = folder.name == "good"
            test.append(path)
            kinds.append("" if good else folder.name)
            marked = home / "ground_truth" / folder.name / f"{path.stem}_mask.png"
            masks.append(marked if not good and marked.is_file() else None)
    return Listed(_images(home / "train" / "good"), tuple(test), tuple(kinds), tuple(masks))


def _btad(root: Path, category: str) -> Listed:
    """``train/ok``, ``test/ok``, ``test/ko``, ``ground_truth/ko/NAME.*``."""
    home = root / category
    good, bad = _images(home / "test" / "ok"), _images(home / "test" / "ko")
    marked = {path.stem: path for path in _images(home / "ground_truth" / "ko")}
    masks = [None] * len(good) + [marked.get(path.stem) for path in bad]
    kinds = ("",) * len(good) + ("ko",) * len(bad)
    return Listed(_images(home / "train" / "ok"), (*good, *bad), kinds, tuple(masks))


def _visa(root: Path, category: str) -> Listed:
    """``split_csv/1cls.csv`` names images and masks; it is the division for one class."""
    table = root / "split_csv" / "1cls.csv"
    try:
        with table.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["object"] == category]
    except (OSError, KeyError) as error:
        raise DatasetError(f"{table} cannot be read: VisA comes with it.") from error
    train = [root / row["image"] for row in rows if row["split"] == "train"]
    test = [row for row in rows if row["split"] == "test"]
    return Listed(
        tuple(train),
        tuple(root / row["image"] for row in test),
        tuple("" if row["label"] == "normal" else "anomaly" for row in test),
        tuple(root / row["mask"] if row["mask"] else None for row in test),
    )


COLLECTIONS: dict[str, Callable[[Path, str], Listed]] = {
    "btad": _btad,
    "mvtec": _mvtec,
    "visa": _visa,
}


def _images(folder: Path) -> tuple[Path, ...]:
    found = folder.glob("*") if folder.is_dir() else ()
    return tuple(sorted(path for path in found if path.suffix.lower() in _IMAGES))
