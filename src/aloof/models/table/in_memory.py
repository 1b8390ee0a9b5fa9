"""Score a table that is in memory, all rows at once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from aloof.exceptions import TableWarning
from aloof.models.results import Drift, ScoredFile
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.files import Source
from aloof.models.table.frames import like
from aloof.models.table.harmless import Harmless
from aloof.models.table.scores import PartScores, Settled, chosen_places

if TYPE_CHECKING:
    from aloof.models.table.model import TableModel

__all__ = ["score", "scored_table"]


def score(
    model: TableModel,
    data: Any,
    *,
    reasons: int = 3,
    keep: Sequence[str] = (),
    keep_all: bool = False,
    top: int | None = None,
    flagged_only: bool = False,
    sort: bool = False,
    missing_columns: MissingColumns = "refuse",
) -> Any:
    """Return the score, verdict and reasons of each row, as the same kind of frame.

    Warns if the rows do not look like the training rows; see `TableModel.drift`.

    Parameters
    ----------
    model
        What scores.
    data
        A frame of any flavour, with the id column if the model has one.
    reasons
        How many reasons to give for rows that are flagged.
    keep, keep_all, top, flagged_only, sort
        See `TableModel.score_file`.
    missing_columns
        What to do with a table that lacks columns of the training table: "refuse" it, or
        "fill" them. Filled values count as missing, or as typical if none were missing in
        training. A `DriftWarning` names the columns.

    Returns
    -------
    The id column if the model has one, ``anomaly_score``, ``p_value`` if the detector is
    calibrated, ``is_anomaly``, and ``reason_1``, ... in words, None for rows not flagged.
    """
    table = model._table(data)
    kept = model.copied(table.column_names, keep, keep_all)
    rows, _ = scored_table(model._accepting(missing_columns), table, kept, reasons, top)
    places = chosen_places(rows, flagged_only=flagged_only, sort=sort)
    rows = rows.take(pa.array(places))
    flavour = table if isinstance(data, str | os.PathLike | Source) else data
    return like(flavour, {name: rows[name] for name in rows.column_names}, places)


def scored_table(
    model: TableModel,
    table: pa.Table,
    kept: tuple[str, ...],
    reasons: int,
    top: int | None,
    harmless: Sequence[Harmless] = (),
) -> tuple[pa.Table, ScoredFile]:
    """Return all rows with their scores, and what there is to say about all."""
    parts = PartScores(model, kept, reasons, top, tuple(harmless))
    parts.check(table.column_names, _issue)
    part = parts.score(table, _issue)
    settled = Settled(parts, parts.verdict([part]))
    rows = settled.add(part)
    drift: tuple[Drift, ...] = ()
    if table.num_rows:
        names, n_decided = table.column_names, settled.n_decided
        drift = model.drift_in(settled.sample, names, n_decided, _issue)
    return rows, settled.done(drift)


def _issue(warning: TableWarning) -> None:
    warnings.warn(warning, stacklevel=5)
