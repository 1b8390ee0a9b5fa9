"""Columns of free text: what it means, as a vector."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.tabular.columns.base import LIMIT, Kind, Note, column_state, flag_weight
from aloof.tabular.columns.reading import read_text
from aloof.text import Components, load_embedder

__all__ = ["TextColumn"]

# So many documents are enough to know how vectors vary.
_ENOUGH = 2048


@dataclass(frozen=True)
class TextColumn:
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

    kind: ClassVar[Kind] = "text"

    name: str
    embedder: str
    centre: str
    axes: str
    scale: tuple[float, ...]
    rest: float
    rest_scale: float
    missing_share: float

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
    def parts(self) -> tuple[str, ...]:
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
            scaled = np.clip(self._components(vectors), -LIMIT, LIMIT)
            out[there, :-1] = scaled / np.sqrt(self._components.size)

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the documents, None where there is none."""
        documents = _documents(read_text(self.name, array))
        values = np.empty(len(documents), dtype=object)
        values[:] = [document or None for document in documents]
        return values

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return None: nobody can tell which words a vector stands for."""
        return np.full(len(features), None, dtype=object)

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return column_state(self)

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
