"""The image sets of the paper: what must be in their files, and reading them as arrays."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from math import prod
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from aloof.datasets.files import DataFile, LocalFile
from aloof.datasets.registry import Dataset, register
from aloof.exceptions import DatasetError, ImageError
from aloof.phrases import count

__all__ = ["ImageDataset", "PublicImages"]

# Images and labels to train with, images and labels to test with.
_Arrays = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Images with the classes that they belong to.

    Attributes
    ----------
    name
        Of the data set.
    train, test
        Images ``(n, channels, height, width)``, bytes.
    train_labels, test_labels
        Their classes, as indices of `classes`, int64.
    classes
        The names of the classes.
    sha256
        Of the files, one after the other.
    """

    name: str
    train: NDArray[np.uint8] = field(repr=False)
    train_labels: NDArray[np.int64] = field(repr=False)
    test: NDArray[np.uint8] = field(repr=False)
    test_labels: NDArray[np.int64] = field(repr=False)
    classes: tuple[str, ...]
    sha256: str


@dataclass(frozen=True, kw_only=True)
class PublicImages(Dataset):
    """One public set of images, with a training and a test part.

    The files are either four idx files, training images and labels first, or one zip archive
    of ``train|test/<class>/<image>``.

    Attributes
    ----------
    classes
        Their names; the label of an image is an index of this list.
    shape
        Of one image, ``(channels, height, width)``.
    n_train, n_test
        How many images there are.
    """

    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    n_train: int
    n_test: int

    @property
    def n_values(self) -> int:
        """How many values an image has."""
        return prod(self.shape)

    @property
    def content(self) -> str:
        """What the files hold, in a few words."""
        channels, height, width = self.shape
        size = f"{width} x {height}{' x 3' if channels == 3 else ''}"
        return f"{self.n_train} + {self.n_test} images, {size}, in {len(self.classes)} classes"

    def load(self) -> ImageDataset:
        """Read the images and their classes, and check their shape."""
        files = self.fetch()
        try:
            arrays = self._of_archive(files[0]) if len(files) == 1 else _of_idx(files)
        except ImageError as error:
            raise DatasetError(str(error)) from error
        train, train_labels, test, test_labels = arrays
        for pixels, labels in ((train, train_labels), (test, test_labels)):
            if pixels.shape != (len(labels), *self.shape):
                raise DatasetError(
                    f"The files of {self.name} hold {len(labels)} labels and images of shape "
                    f"{pixels.shape}; the shape should be (n, {str(self.shape)[1:]}."
                )
            if len(labels) == 0 or labels.max() >= len(self.classes):
                raise DatasetError(f"The files of {self.name} do not hold its classes.")
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.content)
        return ImageDataset(self.name, *arrays, self.classes, digest.hexdigest())

    def _of_archive(self, file: LocalFile) -> _Arrays:
        from aloof.models.images import open_images, read_images

        found = read_images(
            open_images(file.path),
            size=self.shape[1:],
            channels=1 if self.shape[0] == 1 else 3,
        )
        if found.skipped:
            raise DatasetError(
                f"{file.path} holds {count(len(found.skipped), 'file')} that cannot be used. "
                f"The first: {found.skipped[0]}."
            )
        parts = [PurePosixPath(name).parts[0] for name in found.names]
        if unknown := sorted({*found.folders} - {*self.classes} | {*parts} - {"train", "test"}):
            raise DatasetError(
                f"{file.path} holds a folder {unknown[0]!r}; images must be in train/<class>/ "
                f"and test/<class>/, with classes {', '.join(self.classes)}."
            )
        labels = np.array([self.classes.index(folder) for folder in found.folders], np.int64)
        train, test = (np.flatnonzero(np.array(parts) == part) for part in ("train", "test"))
        return found.pixels[train], labels[train], found.pixels[test], labels[test]


def _of_idx(files: list[LocalFile]) -> _Arrays:
    from aloof.models.images.idx import parse_idx

    train, train_labels, test, test_labels = (
        parse_idx(file.content, str(file.path)) for file in files
    )
    # A copy: what was read cannot be written to, and torch warns of that.
    return (
        train[:, None].copy(),
        train_labels.astype(np.int64),
        test[:, None].copy(),
        test_labels.astype(np.int64),
    )


def _idx_files(folder: str, url: str, *known: tuple[str, str]) -> tuple[DataFile, ...]:
    """Return the four files of an idx set: of each two SHA-256.

    The second is that of the same content compressed again, and for MNIST of the same images
    in another order: the files of the results in this project.
    """
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(
        DataFile(
            path=f"{folder}/{name}-ubyte.gz",
            sha256=sha256,
            urls=(f"{url}/{name}-ubyte.gz",),
        )
        for name, sha256 in zip(names, known, strict=True)
    )


_TASK = "one class is normal, all others are anomalies; those with labels are of one class"
_CATS_HOME = "https://www.kaggle.com/c/dogs-vs-cats"
_CIFAR_HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"

register(
    PublicImages(
        name="cats-vs-dogs",
        title="CatsVsDogs",
        home=_CATS_HOME,
        files=(
            DataFile(
                path="cats-vs-dogs/cats-vs-dogs-64.zip",
                sha256=("c5588df3e4928bba2897d9c864a77757f301d1b4230211d4e27aac8a3be36884",),
                size=54_593_091,
            ),
        ),
        task="cats are normal and dogs anomalies, or the other way round",
        making=(
            f"take the pictures of {_CATS_HOME}, resize them to 64 x 64 pixels and pack them "
            "as train/cats/*.jpg, train/dogs/*.jpg, test/cats/*.jpg and test/dogs/*.jpg "
            "(10,000 and 2,500 of each; the results of this project lack 11 dogs of train/)"
        ),
        citation="Elson et al., Asirra, CCS 2007",
        classes=("cats", "dogs"),
        shape=(3, 64, 64),
        n_train=19_989,
        n_test=5_000,
    )
)
register(
    PublicImages(
        name="cifar10",
        title="CIFAR-10",
        home=_CIFAR_HOME,
        files=(
            DataFile(
                path="cifar10/cifar10.zip",
                sha256=("bfa753816865cb3112685df4a3144afc779fc3fec89b84c87a3f6745adfd9841",),
                size=51_984_702,
            ),
        ),
        task=_TASK,
        making=(
            f"take the images of {_CIFAR_HOME} and pack them as train/<class>/*.png and "
            "test/<class>/*.png, with classes airplane, automobile, bird, cat, deer, dog, "
            "frog, horse, ship and truck (the results of this project are of JPEG, quality 75)"
        ),
        citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        classes=(
            *("airplane", "automobile", "bird", "cat", "deer"),
            *("dog", "frog", "horse", "ship", "truck"),
        ),
        shape=(3, 32, 32),
        n_train=50_000,
        n_test=10_000,
    )
)
register(
    PublicImages(
        name="fashion-mnist",
        title="Fashion-MNIST",
        home="https://github.com/zalandoresearch/fashion-mnist",
        files=_idx_files(
            "fashion-mnist",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            (
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
            ),
            (
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
            ),
            (
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
            ),
            (
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
            ),
        ),
        task=_TASK,
        citation="Xiao, Rasul and Vollgraf, Fashion-MNIST, 2017",
        licence="MIT",
        classes=(
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
        shape=(1, 28, 28),
        n_train=60_000,
        n_test=10_000,
    )
)
register(
    PublicImages(
        name="mnist",
        title="MNIST",
        home="http://yann.lecun.com/exdb/mnist/",
        files=_idx_files(
            "mnist",
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "db8f937d487057fb14a9f0fbe97f0bc8d311ab41b750d41e1ff37c43b9e55e19",
            ),
            (
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "51fc562b6747b666fbf6e84ce29d43c3cb5f9c388c664d43b33f02095313405a",
            ),
            (
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "cfeddb84311ecf044fc6a5b0f6ee8a24d265d4e83e388400186eb114082f4209",
            ),
            (
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                "e41c74e484045d39b462a7790a4af51301bd9b0b24f0154798d713ec68c45920",
            ),
        ),
        task=_TASK,
        citation="LeCun, Bottou, Bengio and Haffner, Proceedings of the IEEE, 1998",
        classes=tuple("0123456789"),
        shape=(1, 28, 28),
        n_train=60_000,
        n_test=10_000,
    )
)
