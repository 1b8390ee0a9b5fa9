"""What a refit learns from: the rows of a table or images, with their names and labels."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import ImageError, TableError
from aloof.feedback.answer import Key, Standing
from aloof.labels import ANOMALY, UNLABELLED
from aloof.models import Model
from aloof.models.images import ImageModel
from aloof.models.images.drift import ImageProfile
from aloof.models.images.fitting import read_labelled
from aloof.models.images.labels import ImageLabels, LabelOptions
from aloof.models.images.masks import read_masks
from aloof.models.images.reading import ImageSet, take
from aloof.models.table import TableModel
from aloof.models.table.columns.reading import one_array, read_text
from aloof.models.table.drift import Profile
from aloof.models.table.files import Source
from aloof.models.table.labelling import read_label_column
from aloof.models.table.sampling import sample

__all__ = [
    "Material",
    "encode_kept",
    "features_and_keys",
    "gather",
    "image_keys",
    "row_keys",
    "source_of",
]

_CALIBRATION = 0.2
_NAME_THEM = (
    ". Name them, or others to learn from: data='images', on the command line aloof refit "
    "MODEL images/."
)


def source_of(data: Source | pa.Table) -> str:
    """Return what answers call the file of rows that are numbered: its name, in any folder."""
    return os.path.basename(data.name) if isinstance(data, Source) else ""


def row_keys(model: TableModel, table: pa.Table, source: str, first: int = 1) -> list[Key]:
    """Return how answers name the rows of a table.

    Parameters
    ----------
    model
        Whose id column names them, if there is one.
    table
        The rows.
    source
        From `source_of`, where they are numbered.
    first
        The number of the first row.
    """
    if model.id is None:
        return [(source, str(first + place)) for place in range(table.num_rows)]
    if model.id not in table.column_names:
        raise TableError(f"There is no column {model.id!r}, which names the rows.")
    return [
        ("", name or "") for name in read_text(model.id, one_array(table[model.id])).to_pylist()
    ]


def image_keys(found: ImageSet) -> list[Key]:
    """Return how answers name images: by the folder or archive they are from, and the file."""
    if not found.paths:
        return [("", name) for name in found.names]
    names = [path.name for path in found.paths]
    return [
        (names[origin], name) for origin, name in zip(found.origins, found.names, strict=True)
    ]


def features_and_keys(model: Model, data: Any) -> tuple[NDArray[Any], list[Key]]:
    """Read rows or images as the detector takes them, and say how answers name them."""
    if isinstance(model, ImageModel):
        found = model.read(data)
        return model.features(found.pixels), image_keys(found)
    assert isinstance(model, TableModel)
    opened = model.read(data)
    name = source_of(opened)
    parts: list[NDArray[np.float32]] = []
    keys: list[Key] = []
    for batch in model.batches(opened):
        table = pa.Table.from_batches([batch])
        keys += row_keys(model, table, name, len(keys) + 1)
        parts.append(model.encode(table, warn=lambda words: None))
    return np.concatenate(parts), keys


@dataclass(frozen=True)
class Material(ABC):
    """What to learn from.

    Attributes
    ----------
    features
        All of it, as the detector takes it.
    keys
        How answers name each.
    labels
        1, 0 and -1, by what was known at the fit, without answers.
    name
        Of the file or folder; None: it is in memory.
    is_training
        Whether it is what the model was fitted to.
    share, seed
        What part is held out to calibrate with.
    """

    features: NDArray[Any]
    keys: Sequence[Key]
    labels: NDArray[np.int64]
    name: str | None
    is_training: bool
    share: float
    seed: int

    @cached_property
    def names(self) -> frozenset[Key]:
        """How answers may name one of these."""
        return frozenset(self.keys)

    def joined(self, answers: Mapping[Key, int]) -> dict[int, int]:
        """Return what is answered about which places; several may have one name."""
        return {place: answers[key] for place, key in enumerate(self.keys) if key in answers}

    @property
    @abstractmethod
    def remedy(self) -> str:
        """What to do if all answers are about others."""

    @abstractmethod
    def profile(self, model: Any, train: NDArray[np.int64]) -> Any:
        """Return what later data is compared with, where these were learned from."""

    def masks(self, model: Any) -> Mapping[int, NDArray[np.bool_]]:
        """Return where the defects of some images are, by their place; of rows nothing."""
        return {}

    @abstractmethod
    def elsewhere(
        self, model: Any, standing: Mapping[Key, Standing], compare: Any
    ) -> tuple[list[Key], NDArray[Any]]:
        """Return answered rows or images that are not among these, as far as they are known.

        Parameters
        ----------
        model
            The model.
        standing
            The answers.
        compare
            What rankings are compared on: features and keys; None: nothing else.
        """


def gather(model: Model, data: Any, max_rows: int) -> Material:
    """Read what to learn from, and find out what is known about it.

    Parameters
    ----------
    model
        Of a table, or of images.
    data
        In place of what the model was fitted to; None: that, if it is still there.
    max_rows
        Where a table has more rows, that many are drawn at random.
    """
    if isinstance(model, TableModel):
        return _rows(model, data, max_rows)
    assert isinstance(model, ImageModel)
    return _images(model, data)


@dataclass(frozen=True)
class _Rows(Material):
    table: pa.Table

    @property
    def remedy(self) -> str:
        """Rows are kept with their answers if these have all columns."""
        return (
            "To learn from rows of another table, give aloof label all their columns next to "
            "the answers (aloof score --keep-all writes such a table), or name that table in "
            "place of the training table: aloof refit MODEL DATA."
        )

    def profile(self, model: TableModel, train: NDArray[np.int64]) -> Profile:
        rows = train[train < self.table.num_rows]
        return Profile.of(model.encoder, self.table.take(pa.array(rows)))

    def elsewhere(
        self, model: TableModel, standing: Mapping[Key, Standing], compare: Any
    ) -> tuple[list[Key], NDArray[Any]]:
        """Rows are kept with their answers."""
        keys = [k for k, e in standing.items() if k not in self.names and e.values is not None]
        return keys, encode_kept(model, standing, keys)


@dataclass(frozen=True)
class _Images(Material):
    found: ImageSet

    @property
    def remedy(self) -> str:
        """Images are read where they were reviewed."""
        return "Name the folder that has them: compare=FOLDER (--compare FOLDER)."

    def masks(self, model: ImageModel) -> Mapping[int, NDArray[np.bool_]]:
        path = (model.training.get("made") or {}).get("options", {}).get("masks")
        if path is None or not self.is_training:
            return {}
        if not Path(path).exists():
            raise ImageError(f"The masks are not at hand: there is no {path}" + _NAME_THEM)
        wanted = self.labels == ANOMALY
        words = "are learned from where they look strangest"
        return read_masks(path, self.found, wanted, otherwise=words)

    def profile(self, model: ImageModel, train: NDArray[np.int64]) -> ImageProfile:
        return ImageProfile.of(self.found, train[train < len(self.found)])

    def elsewhere(
        self, model: ImageModel, standing: Mapping[Key, Standing], compare: Any
    ) -> tuple[list[Key], NDArray[Any]]:
        """Images are read again where they were reviewed."""
        pixels, keys = (self.features[:0], []) if compare is None else compare
        known = [
            place for place, key in enumerate(keys) if key in standing and key not in self.names
        ]
        return [keys[place] for place in known], take(pixels, np.array(known, np.int64))


def _rows(model: TableModel, data: Any, max_rows: int) -> _Rows:
    made = model.training.get("made") or {}
    options = made.get("options", {})
    given = data
    if data is None:
        given = made.get("data")
        if given is None or given == "-" or not _is_there(given):
            raise TableError(
                "The training table is not at hand"
                + (f": there is no {given}" if given not in (None, "-") else "")
                + ". Name it, or another to learn from: data='train.csv', on the command "
                "line aloof refit MODEL train.csv."
            )
    opened = model.read(given)
    n_rows, name = None, None
    if isinstance(opened, Source):
        name = opened.name
        drawn = sample(
            opened,
            options.get("max_rows", max_rows),
            model.training["seed"],
            keep=_labelled(model) if model.label in opened.names else None,
        )
        table, n_rows = drawn.table, drawn.n_rows
    else:
        table = opened
    labels = np.full(table.num_rows, UNLABELLED)
    if model.label is not None and model.label in table.column_names:
        labels = read_label_column(model.label, table[model.label], model.anomaly_value)
    source = os.path.basename(name or "")
    keys: Sequence[Key] = (
        row_keys(model, table, source)
        if model.id is not None or n_rows in (None, table.num_rows)
        else [("", "")] * table.num_rows  # of a sample nobody knows the numbers
    )
    return _Rows(
        model.encode(table, warn=lambda words: None),
        keys,
        labels,
        name,
        data is None or (name is not None and name == made.get("data")),
        float(options.get("calibration", _CALIBRATION)),
        int(model.training["seed"]),
        table,
    )


def _images(model: ImageModel, data: Any) -> _Images:
    made = model.training.get("made") or {}
    options = made.get("options", {})
    about = {name: options[name] for name in LabelOptions.__annotations__ if name in options}
    paths = [about.get("normal"), about.get("anomaly")]
    given = made.get("data") if data is None else data
    if data is None:
        wanted = [given] if given is not None else [path for path in paths if path is not None]
        if not wanted or not all(isinstance(path, str) for path in wanted):
            raise ImageError("The training images are not at hand" + _NAME_THEM)
        if gone := [path for path in wanted if not Path(path).exists()]:
            raise ImageError(
                f"The training images are not at hand: there is no {gone[0]}" + _NAME_THEM
            )
    channels, height, width = model.shape
    if given is None:
        found, labels, _ = read_labelled(
            None,
            ImageLabels(**about),
            (height, width),
            1 if channels == 1 else 3,
            keeps_proportions=model.view is not None,
        )
    else:
        found = model.read(given)
        labels = np.full(len(found), UNLABELLED)
        if data is None and about:
            labels, _ = ImageLabels(**about).of(found)
    return _Images(
        model.features(found.pixels),
        image_keys(found),
        labels,
        found.name,
        data is None or (found.name is not None and found.name == made.get("data")),
        float(options.get("calibration", _CALIBRATION)),
        int(model.training["seed"]),
        found,
    )


def _labelled(model: TableModel) -> Any:
    def keep(batch: pa.RecordBatch) -> NDArray[np.bool_]:
        label = str(model.label)
        labels = read_label_column(label, batch[label], model.anomaly_value)
        return np.equal(labels, ANOMALY)

    return keep


def _is_there(name: str) -> bool:
    return any(sign in name for sign in "*?[") or Path(name).exists()


def encode_kept(
    model: TableModel, standing: Mapping[Key, Standing], keys: Sequence[Key]
) -> NDArray[np.float32]:
    """Return rows that were kept with their answers, as the detector takes them."""
    if not keys:
        return np.empty((0, model.encoder.n_features), np.float32)
    rows = [standing[key].values or {} for key in keys]
    columns = {}
    for name in model.columns:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except pa.ArrowException:  # a number here, a text there
            columns[name] = pa.array([None if v is None else str(v) for v in values])
    accepting = model._accepting("fill")
    return accepting.encode(pa.table(columns), warn=lambda words: None)
