"""Development tasks: public tables and images that choices may be made on.

No set that `aloof bench odds` reports on is among them, so that nothing is chosen there. Each
is a fixed function of its files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from aloof.bench.tabular.corruptions import CORRUPTIONS
from aloof.bench.tabular.tasks import TableTask, digest
from aloof.datasets import ImageDataset, KeelTables, PublicImages, find_dataset

__all__ = ["DEVELOPMENT", "GROUPS", "CorruptedImages", "DevelopmentTask", "ImageRows", "Keel"]

_MOST_NORMAL, _MOST_ANOMALIES = 4000, 1700  # of a table of KEEL
_IMAGES_NORMAL, _IMAGES_ANOMALIES, _CORRUPTED = 3000, 1700, 600
_PCA_ROWS, _COMPONENTS, _BLOCK, _PIXELS, _NOISE = 10_000, 30, 4, 40, 20


class DevelopmentTask(ABC):
    """How one task is made."""

    @property
    @abstractmethod
    def name(self) -> str:
        """In records and tables."""

    @abstractmethod
    def load(self) -> TableTask:
        """Read the data and make the task."""


@dataclass(frozen=True)
class Keel(DevelopmentTask):
    """A table of KEEL.

    Attributes
    ----------
    table
        Its name there.
    n_normal, n_anomalous
        How many classes are normal and anomalous; 0: the rarest is the anomaly.
    seed
        Of the draw of the classes.
    """

    table: str
    n_normal: int = 0
    n_anomalous: int = 0
    seed: int = 0

    @property
    def name(self) -> str:
        """The table's, with the numbers of classes where they were drawn."""
        return (
            f"{self.table}-{self.n_normal}v{self.n_anomalous}" if self.n_normal else self.table
        )

    def load(self) -> TableTask:
        """Read the table, and keep at most 4,000 normal rows and 1,700 anomalies."""
        table = find_dataset("keel", KeelTables).read(self.table)
        if self.n_normal:
            order = np.random.default_rng(self.seed).permutation(np.unique(table.classes))
            normal = np.isin(table.classes, order[: self.n_normal])
            chosen = order[self.n_normal : self.n_normal + self.n_anomalous]
            anomalous = np.isin(table.classes, chosen)
        else:
            values, counts = np.unique(table.classes, return_counts=True)
            anomalous = table.classes == values[counts.argmin()]
            normal = ~anomalous
        kept, y = _drawn(normal, anomalous, _MOST_NORMAL, _MOST_ANOMALIES)
        sha256 = digest(self, table.sha256)
        return TableTask(self.name, table.X[kept], y, sha256, table.classes[kept], table.notes)


@dataclass(frozen=True)
class ImageRows(DevelopmentTask):
    """Images as rows of numbers.

    Attributes
    ----------
    images
        The data set.
    columns
        What they are: ``pca``, principal components of all classes; ``blocks``, means over
        4 x 4 pixels, which are strongly correlated; ``pixels``, random ones among columns of
        noise.
    n_normal
        How many classes are normal; all others are anomalous, each a kind.
    seed
        Of the draw of the classes.
    """

    images: str
    columns: Literal["pca", "blocks", "pixels"]
    n_normal: int
    seed: int

    @property
    def name(self) -> str:
        """Data set, columns and numbers of classes."""
        return f"{self.images}-{self.columns}-{self.n_normal}v{10 - self.n_normal}"

    def load(self) -> TableTask:
        """Read the training images, and keep 3,000 normal ones and 1,700 anomalies."""
        data = _images(self.images)
        order = np.random.default_rng(self.seed).permutation(len(data.classes))
        normal = np.isin(data.train_labels, order[: self.n_normal])
        kept, y = _drawn(normal, ~normal, _IMAGES_NORMAL, _IMAGES_ANOMALIES)
        pixels = data.train[:, 0] / 255.0
        X = _COLUMNS[self.columns](pixels[:_PCA_ROWS], pixels[kept])
        kinds = np.array(data.classes)[data.train_labels[kept]]
        return TableTask(self.name, X, y, digest(self, data.sha256), kinds)


@dataclass(frozen=True)
class CorruptedImages(DevelopmentTask):
    """Images as rows of numbers; anomalies are images like the normal ones that went wrong.

    Attributes
    ----------
    images
        The data set.
    columns
        As in `ImageRows`.
    n_normal
        How many classes there are; each way to go wrong is a kind.
    seed
        Of the draw of the classes, and of what goes wrong.
    """

    images: str
    columns: Literal["pca", "blocks"]
    n_normal: int
    seed: int

    @property
    def name(self) -> str:
        """Data set and columns."""
        return f"{self.images}-{self.columns}-corrupted"

    def load(self) -> TableTask:
        """Read the training images, keep 3,000 of them, and let 600 others go wrong."""
        data = _images(self.images)
        rng = np.random.default_rng(self.seed)
        chosen = rng.permutation(len(data.classes))[: self.n_normal]
        places = rng.permutation(np.flatnonzero(np.isin(data.train_labels, chosen)))
        pixels = data.train[:, 0] / 255.0
        n = min(_IMAGES_NORMAL, 5 * len(places) // 6)
        images, kinds = [pixels[places[:n]]], ["normal"] * n
        others = np.array_split(places[n : n + _CORRUPTED], len(CORRUPTIONS))
        for (kind, corrupt), own in zip(CORRUPTIONS.items(), others, strict=True):
            images.append(corrupt(pixels[own], rng))
            kinds += [kind] * len(own)
        X = _COLUMNS[self.columns](pixels[:_PCA_ROWS], np.concatenate(images))
        y = np.array([kind != "normal" for kind in kinds]).astype(np.int64)
        return TableTask(self.name, X, y, digest(self, data.sha256), np.array(kinds))


def _drawn(
    normal: NDArray[np.bool_], anomalous: NDArray[np.bool_], *most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return at most so many rows of each, in random order, and their labels."""
    rng = np.random.default_rng(0)
    kept = [
        rng.permutation(np.flatnonzero(rows))[:number]
        for rows, number in zip((normal, anomalous), most, strict=True)
    ]
    return np.concatenate(kept), np.repeat([0, 1], [len(rows) for rows in kept])


@lru_cache(maxsize=2)
def _images(name: str) -> ImageDataset:
    return find_dataset(name, PublicImages).load()


def _components(known: NDArray[np.float64], images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project on the directions of most variance among images of all classes."""
    pca = PCA(_COMPONENTS, svd_solver="covariance_eigh").fit(known.reshape(len(known), -1))
    return np.asarray(pca.transform(images.reshape(len(images), -1)), np.float64)


def _blocks(known: NDArray[np.float64], images: NDArray[np.float64]) -> NDArray[np.float64]:
    n, side = len(images), images.shape[1] // _BLOCK
    blocks = images.reshape(n, side, _BLOCK, side, _BLOCK).mean((2, 4))
    return _varying(blocks.reshape(n, -1))


def _some_pixels(
    known: NDArray[np.float64], images: NDArray[np.float64]
) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    flat = _varying(images.reshape(len(images), -1))
    chosen = rng.permutation(flat.shape[1])[:_PIXELS]
    return np.concatenate([flat[:, chosen], rng.normal(size=(len(images), _NOISE))], 1)


def _varying(X: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ascontiguousarray(X[:, X.std(0) > 0])


# From some images of all classes, and those that are the rows.
_COLUMNS = {"pca": _components, "blocks": _blocks, "pixels": _some_pixels}

_MULTI = (
    Keel("texture", 3, 3, 1),
    Keel("texture", 8, 3, 2),
    Keel("optdigits", 3, 3, 1),
    Keel("optdigits", 9, 1, 2),
    Keel("penbased", 3, 3, 1),
    Keel("penbased", 5, 4, 3),
    Keel("letter", 3, 3, 1),
    Keel("letter", 13, 13, 2),
    Keel("segment", 3, 3, 1),
    Keel("segment", 4, 3, 2),
    Keel("vehicle", 2, 2, 1),
    Keel("vowel", 6, 5, 1),
    Keel("movement_libras", 8, 7, 1),
    Keel("splice", 1, 2, 0),
    Keel("contraceptive", 1, 2, 0),
)
_RAREST = (
    *("magic", "spambase", "ring", "phoneme", "ionosphere", "sonar", "wdbc", "pima"),
    *("page-blocks0", "vowel0", "yeast1", "yeast3", "abalone9-18", "winequality-red-4"),
    *("twonorm", "banana", "chess", "mushroom", "german", "wisconsin", "mammographic"),
    *("car-vgood", "flare-F", "kr-vs-k-zero-one_vs_draw", "kddcup-guess_passwd_vs_satan"),
    *("yeast5", "abalone-17_vs_7-8-9-10", "ecoli1", "dermatology-6"),
)
_KEEL: tuple[DevelopmentTask, ...] = (*_MULTI, *map(Keel, _RAREST))
_IMAGES: tuple[DevelopmentTask, ...] = (
    ImageRows("mnist", "pca", 3, 1),
    ImageRows("mnist", "blocks", 1, 2),
    ImageRows("mnist", "pixels", 4, 3),
    ImageRows("fashion-mnist", "pca", 3, 1),
    ImageRows("fashion-mnist", "blocks", 1, 2),
    ImageRows("fashion-mnist", "pixels", 5, 3),
)

_CORRUPTIONS: tuple[DevelopmentTask, ...] = (
    CorruptedImages("mnist", "pca", 3, 1),
    CorruptedImages("mnist", "blocks", 3, 2),
    CorruptedImages("fashion-mnist", "pca", 3, 1),
    CorruptedImages("fashion-mnist", "blocks", 3, 2),
)

DEVELOPMENT: Mapping[str, DevelopmentTask] = {
    task.name: task for task in (*_KEEL, *_IMAGES, *_CORRUPTIONS)
}
"""By name."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "development": tuple(task.name for task in (*_KEEL, *_IMAGES)),
    "keel": tuple(task.name for task in _KEEL),
    "images": tuple(task.name for task in _IMAGES),
    "corruptions": tuple(task.name for task in _CORRUPTIONS),
}
"""Names that stand for many. The choices of this package were made on ``development``."""
