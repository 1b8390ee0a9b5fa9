"""The rows or images that may be asked about: the strangest of the data, with reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.feedback.answer import Key
from aloof.feedback.files import plain_values
from aloof.feedback.guide import BACKGROUND_SIZE
from aloof.feedback.material import image_keys, row_keys, source_of
from aloof.models import Model
from aloof.models.table import TableModel
from aloof.models.table.harmless import shown_texts
from aloof.models.table.lowest import Lowest, Rows

__all__ = ["Item", "Pool", "make_pool"]

_REASONS = 4
_DRAWN = 1024  # pixels on the longer side of a picture
_ALIKE = 0.95  # cosine between what the columns of two rows contribute


@dataclass(frozen=True)
class Item:
    """A row or an image that may be asked about.

    Attributes
    ----------
    key
        How answers name it.
    score, p_value, is_flagged
        What the model says; the p-value may be unknown.
    rank
        Its place among all rows of the data, from 1 on.
    reasons
        Words, with what they contribute to the score.
    values
        Columns and their values as text, those that matter first; nothing for an image.
    kept
        What to keep with an answer.
    group
        Items of the same number look strange for the same reasons.
    """

    key: Key
    score: float
    p_value: float | None
    is_flagged: bool
    rank: int
    reasons: tuple[tuple[str, float], ...]
    values: tuple[tuple[str, str], ...]
    kept: dict[str, Any] | None = field(repr=False)
    group: int


@dataclass(frozen=True, eq=False)
class Pool:
    """The strangest of some data.

    Attributes
    ----------
    items
        The highest score first.
    scores, member_scores
        Anomaly scores of the items, of the ensemble and ``(members, n)`` of its members.
    level
        The score from which on rows are flagged.
    n_rows, n_flagged
        How many rows the data has, and how many are flagged.
    things
        What they are, in the plural.
    features, background
        The items as numbers, and so rows of the data drawn at random; see
        `aloof.feedback.guide.Guide`.
    pictures
        PNG of each item, for images; None for rows.
    """

    items: tuple[Item, ...]
    scores: NDArray[np.float64]
    member_scores: NDArray[np.float64]
    level: float
    n_rows: int
    n_flagged: int
    things: str
    features: NDArray[np.floating] = field(repr=False)
    background: NDArray[np.floating] = field(repr=False)
    pictures: tuple[bytes, ...] | None = None


def make_pool(model: Model, data: str, size: int) -> Pool:
    """Score data, and gather the strangest.

    Parameters
    ----------
    model
        Of a table or of images.
    data
        As the user wrote it.
    size
        How many at most.
    """
    if isinstance(model, TableModel):
        return _of_table(model, data, size)
    if model.section == "images":
        return _of_images(model, data, size)
    raise TableError(
        "A detector of arrays has no page; make a model of a table with aloof fit."
    )


def _of_table(model: TableModel, data: str, size: int) -> Pool:
    source = model.read(data)
    highest, every, n_rows = Lowest(size), [], 0
    some, rng = Lowest(BACKGROUND_SIZE), np.random.default_rng(0)
    for batch, scores in model.scored(source):
        places = n_rows + np.arange(len(scores))
        rows = Rows(pa.Table.from_batches([batch]), {"scores": scores, "places": places})
        highest.add(rows, -scores)
        some.add(rows, rng.random(len(scores)))
        every.append(scores)
        n_rows += len(scores)
    found, everything = highest.rows(), np.concatenate(every)
    flags = model.decide(everything)
    table, places = found.table, found["places"]
    name = source_of(source)
    keys = (
        row_keys(model, table, name)
        if model.id is not None
        else [(name, str(place + 1)) for place in places]
    )
    encoded = model.encode(table, warn=lambda words: None)
    explanation = model.explain_encoded(encoded, model._used(table))
    order, words = explanation.order(), explanation.reasons(_REASONS)
    groups = _groups(explanation.contributions)
    shown = {column: shown_texts(table[column]) for column in table.column_names}
    rest = [c for c in table.column_names if c not in model.columns and c != model.label]
    p = model.detector.decision_.p_values(found["scores"])
    items = []
    for i, key in enumerate(keys):
        first = [model.columns[column] for column in order[i]]
        contributions = explanation.contributions[i][order[i][: len(words[i])]]
        items.append(
            Item(
                key=key,
                score=float(found["scores"][i]),
                p_value=None if p is None else float(p[i]),
                is_flagged=bool(flags[places[i]]),
                rank=i + 1,
                reasons=tuple(zip(words[i], map(float, contributions), strict=True)),
                values=tuple((c, shown[c][i]) for c in [*first, *rest] if c in shown),
                kept=plain_values(table, i, model) if _has_all(model, table) else None,
                group=groups[i],
            )
        )
    return Pool(
        tuple(items),
        found["scores"],
        _member_scores(model, encoded),
        -float(model.detector.offset_),
        n_rows,
        int(flags.sum()),
        model.things,
        encoded,
        model.encode(some.rows().table, warn=lambda words: None),
    )


def _has_all(model: TableModel, table: pa.Table) -> bool:
    return set(model.columns) <= set(table.column_names)


def _member_scores(model: Model, rows: NDArray[Any]) -> NDArray[np.float64]:
    detector = model.detector
    return -detector._scorer.member_scores(detector._reader(rows), len(rows))


def _groups(contributions: NDArray[np.float64]) -> list[int]:
    """Return the number of each row's group: rows that are strange for the same reasons."""
    norms = np.linalg.norm(contributions, axis=1, keepdims=True)
    directions = contributions / np.where(norms > 0, norms, 1.0)
    leaders: list[int] = []
    groups: list[int] = []
    for row in directions:
        near = [k for k, leader in enumerate(leaders) if row @ directions[leader] >= _ALIKE]
        if not near:
            leaders.append(len(groups))
            near = [len(leaders) - 1]
        groups.append(near[0])
    return groups


def _of_images(model: Any, data: str, size: int) -> Pool:
    from aloof.models.images.panels import explained_small, joined, png

    found = model.read(data)
    keys, scores = image_keys(found), model.anomaly_score(found)
    flags = model.decide(scores)
    order = np.argsort(-scores, kind="stable")[:size]
    pixels = found.pixels[order]
    panels = explained_small(model, pixels, _DRAWN)
    scale = max(1, 192 // max(model.shape[1:]))
    p = model.detector.decision_.p_values(scores[order])
    items = tuple(
        Item(
            key=keys[place],
            score=float(scores[place]),
            p_value=None if p is None else float(p[i]),
            is_flagged=bool(flags[place]),
            rank=i + 1,
            reasons=(),
            values=(),
            kept=None,
            group=i,
        )
        for i, place in enumerate(order)
    )
    return Pool(
        items,
        scores[order],
        # Members of a model of patches share a memory: they are asked as one.
        scores[order][None]
        if model.learns_patches
        else _member_scores(model, model.features(pixels)),
        -float(model.detector.offset_),
        len(scores),
        int(flags.sum()),
        model.things,
        model.codes(pixels),
        model.codes(found.pixels[_some(len(scores))]),
        tuple(png(joined([row], scale)) for row in panels),
    )


def _some(n: int) -> NDArray[np.int64]:
    """Return places of rows drawn at random."""
    order = np.random.default_rng(0).permutation(n)[:BACKGROUND_SIZE]
    return np.sort(order).astype(np.int64)
