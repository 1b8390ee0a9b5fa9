"""Columns of free text: what it means, as a vector."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from aloof.exceptions import ModelError
from aloof.models.table.columns.base import (
    LIMIT,
    Choice,
    Column,
    Note,
    Share,
    Values,
    flag_weight,
)
from aloof.models.table.columns.constant import ConstantColumn
from aloof.models.table.columns.reading import read_text
from aloof.models.table.words import short
from aloof.text import Components, load_embedder

__all__ = ["TextColumn"]

# So many documents are enough to know how vectors vary.
_ENOUGH = 2048
# Of a vector: so large that no model makes it, and no number overflows.
_Length = Annotated[float, Field(ge=0, le=1e30)]


@dataclass(frozen=True)
class TextColumn(Column):
    """Components of a document's vector, each to mean 0, all together of variance 1.

    A missing or empty document has the mean vector, and a feature of its own as a flag.

    Attributes
    ----------
    name
        The name in the table.
    embedder
        What makes vectors of documents; see `aloof.text.load_embedder`.
    centre, axes, scale, rest, rest_scale
        Of the components, see `aloof.text.Components`; vectors as base64 of float32.
    missing_share
        Share of the training rows.
    """

    kinds = ("text",)
    reads_text = True

    name: str
    embedder: str
    centre: str
    axes: str
    scale: tuple[Annotated[float, Field(ge=1e-6, le=1e30)], ...]
    rest: _Length
    rest_scale: _Length
    missing_share: Share

    @classmethod
    def claim(cls, values: Values) -> Choice | None:
        """Take what the user says is text; where it all means the same, as a constant."""
        if values.kind is None:
            return None
        column = cls.fit(values.name, values.text, values.embedder)
        if column.varies:
            return Choice(column)
        first = values.text.drop_null()[0].as_py()
        return ConstantColumn.choice(values.name, first, column.missing_share)

    @classmethod
    def fit(cls, name: str, text: pa.Array, embedder: str) -> TextColumn:
        """Learn from documents, of which there is at least one."""
        there = _documents(text)
        known = [document for document in there if document]
        some = np.linspace(0, len(known) - 1, min(len(known), _ENOUGH)).astype(int)
        found = Components.fit(load_embedder(embedder).embed([known[i] for i in some]))
        return cls(
            name=name,
            embedder=embedder,
            centre=_packed(found.centre),
            axes=_packed(found.axes),
            scale=tuple(found.scale.tolist()),
            rest=found.rest,
            rest_scale=found.rest_scale,
            missing_share=1 - len(known) / len(there),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """What each feature stands for."""
        meanings = (f"meaning {i + 1}" for i in range(len(self.scale)))
        return (*meanings, "other meaning", "missing")

    @property
    def varies(self) -> bool:
        """Whether documents differ."""
        return bool(self.scale)

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write the scaled vectors and the flag into `out`."""
        documents = _documents(read_text(self.name, array))
        there = np.array([bool(document) for document in documents], bool)
        out[:] = 0
        out[~there, -1] = flag_weight(self.missing_share)
        if there.any():
            vectors = load_embedder(self.embedder).embed([d for d in documents if d])
            if vectors.shape[1] != len(self._components.centre):
                raise ModelError(
                    f"Column {self.name!r} was learned from vectors of "
                    f"{len(self._components.centre)} numbers, but {self.embedder!r} makes "
                    f"vectors of {vectors.shape[1]} here. It is a different text model with "
                    "the same name."
                )
            scaled = np.clip(self._components(vectors), -LIMIT, LIMIT)
            out[there, :-1] = scaled / np.sqrt(self._components.size)

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the documents, None where there is none."""
        documents = _documents(read_text(self.name, array))
        values = np.empty(len(documents), dtype=object)
        values[:] = [document or None for document in documents]
        return values

    def reason(self, value: Any, expected: Any) -> str:
        """Say the document."""
        return f"'{short(value)}' does not read like normal text"

    def check(self) -> None:
        """Raise where vectors are not finite or of other lengths."""
        centre, axes = _unpacked(self.centre), _unpacked(self.axes)
        if not self.scale or len(axes) != len(self.scale) * len(centre):
            raise ValueError("the lengths of centre, axes and scale do not match")
        if not (np.isfinite(centre).all() and np.isfinite(axes).all()):
            raise ValueError("centre and axes must be finite")

    @cached_property
    def _components(self) -> Components:
        centre = _unpacked(self.centre)
        axes = _unpacked(self.axes).reshape(len(self.scale), len(centre))
        return Components(centre, axes, np.array(self.scale), self.rest, self.rest_scale)


def _packed(numbers: NDArray[np.float64]) -> str:
    return b64encode(numbers.astype("<f4").tobytes()).decode("ascii")


def _unpacked(text: str) -> NDArray[np.float64]:
    return np.frombuffer(b64decode(text), "<f4").astype(np.float64)


def _documents(text: pa.Array) -> list[str]:
    """Return documents without the space around them; nothing where there is none."""
    trimmed = pc.utf8_trim_whitespace(pc.fill_null(text, ""))
    documents: list[str] = trimmed.to_pylist()
    return documents
