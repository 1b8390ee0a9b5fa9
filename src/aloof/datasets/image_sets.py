"""The image sets of the paper: where each lives and what must be in its files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from aloof.datasets.files import place, read_bytes
from aloof.datasets.registry import PublicFile
from aloof.exceptions import DatasetError

__all__ = [
    "IMAGE_SETS",
    "PublicImages",
    "fetch_images",
    "find_image_dataset",
    "list_image_datasets",
]


@dataclass(frozen=True, kw_only=True)
class PublicImages:
    """One public set of images, with a training and a test part.

    Attributes
    ----------
    name
        As on the command line.
    home
        The page that describes it.
    files
        Either the four idx files, training images and labels first, or one zip archive of
        ``train|test/<class>/<image>``.
    classes
        Their names; the label of an image is a place in this list.
    shape
        Of one image, ``(channels, height, width)``.
    n_train, n_test
        How many images there are.
    """

    name: str
    home: str
    files: tuple[PublicFile, ...]
    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    n_train: int
    n_test: int

    @property
    def path(self) -> Path:
        """Where the files are looked for: the archive, or the folder of the idx files."""
        first = place(self.files[0])
        return first if len(self.files) == 1 else first.parent

    @property
    def present(self) -> bool:
        """Whether all files are on this machine."""
        return all(place(file).is_file() for file in self.files)

    @property
    def n_values(self) -> int:
        """How many values an image has."""
        return prod(self.shape)


_PARTS = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def _idx(
    name: str, home: str, folders: tuple[str, ...], *hashes: tuple[str, ...]
) -> tuple[PublicFile, ...]:
    return tuple(
        PublicFile(
            name=name,
            file=f"{name}/{part}-ubyte.gz",
            home=home,
            urls=tuple(f"{folder}/{part}-ubyte.gz" for folder in folders),
            sha256=known,
        )
        for part, known in zip(_PARTS, hashes, strict=True)
    )


_MNIST_HOME = "http://yann.lecun.com/exdb/mnist/"
_FASHION_HOME = "https://github.com/zalandoresearch/fashion-mnist"
_CIFAR_HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
_CATS_HOME = "https://www.kaggle.com/c/dogs-vs-cats"

# The second hash of each file is that of the same content compressed again, and for MNIST of
# the same images in another order: the files of the results in this project.
IMAGE_SETS: Mapping[str, PublicImages] = {
    entry.name: entry
    for entry in (
        PublicImages(
            name="cats-vs-dogs",
            home=_CATS_HOME,
            files=(
                PublicFile(
                    name="cats-vs-dogs",
                    file="cats-vs-dogs/cats-vs-dogs-64.zip",
                    home=_CATS_HOME,
                    urls=(),
                    sha256=(
                        "c5588df3e4928bba2897d9c864a77757f301d1b4230211d4e27aac8a3be36884",
                    ),
                    making=(
                        f"take the pictures of {_CATS_HOME}, resize them to 64 x 64 pixels and "
                        "pack them as train/cats/*.jpg, train/dogs/*.jpg, test/cats/*.jpg and "
                        "test/dogs/*.jpg (10,000 and 2,500 of each)"
                    ),
                ),
            ),
            classes=("cats", "dogs"),
            shape=(3, 64, 64),
            n_train=19_989,  # 11 dogs are missing
            n_test=5_000,
        ),
        PublicImages(
            name="cifar10",
            home=_CIFAR_HOME,
            files=(
                PublicFile(
                    name="cifar10",
                    file="cifar10/cifar10.zip",
                    home=_CIFAR_HOME,
                    urls=(),
                    sha256=(
                        "bfa753816865cb3112685df4a3144afc779fc3fec89b84c87a3f6745adfd9841",
                    ),
                    making=(
                        f"take the images of {_CIFAR_HOME} and pack them as "
                        "train/<class>/*.png and test/<class>/*.png, with classes airplane, "
                        "automobile, bird, cat, deer, dog, frog, horse, ship and truck"
                    ),
                ),
            ),
            classes=(
                *("airplane", "automobile", "bird", "cat", "deer"),
                *("dog", "frog", "horse", "ship", "truck"),
            ),
            shape=(3, 32, 32),
            n_train=50_000,
            n_test=10_000,
        ),
        PublicImages(
            name="fashion-mnist",
            home=_FASHION_HOME,
            files=_idx(
                "fashion-mnist",
                _FASHION_HOME,
                ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",),
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
            classes=(
                *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
                *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
            ),
            shape=(1, 28, 28),
            n_train=60_000,
            n_test=10_000,
        ),
        PublicImages(
            name="mnist",
            home=_MNIST_HOME,
            files=_idx(
                "mnist",
                _MNIST_HOME,
                ("https://ossci-datasets.s3.amazonaws.com/mnist",),
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
            classes=tuple("0123456789"),
            shape=(1, 28, 28),
            n_train=60_000,
            n_test=10_000,
        ),
    )
}


def list_image_datasets() -> tuple[PublicImages, ...]:
    """Return every set of images there is, by name."""
    return tuple(IMAGE_SETS[name] for name in sorted(IMAGE_SETS))


def find_image_dataset(name: str) -> PublicImages:
    """Return the set of images called `name`; where there is none, suggest the nearest.

    Examples
    --------
    >>> find_image_dataset("mnist").shape
    (1, 28, 28)
    >>> find_image_dataset("cifar-10")
    Traceback (most recent call last):
    aloof.exceptions.DatasetError: There is no set of images 'cifar-10'; did you mean...
    """
    if name in IMAGE_SETS:
        return IMAGE_SETS[name]
    nearest = difflib.get_close_matches(str(name).lower(), IMAGE_SETS, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    raise DatasetError(
        f"There is no set of images {name!r}{hint} Known are {', '.join(sorted(IMAGE_SETS))}."
    )


def fetch_images(name: str) -> Path:
    """Make sure that the files of a set of images are there.

    Parameters
    ----------
    name
        See `list_image_datasets`.

    Returns
    -------
    The archive, or the folder of the idx files.
    """
    entry = find_image_dataset(name)
    for file in entry.files:
        read_bytes(file)
    return entry.path
