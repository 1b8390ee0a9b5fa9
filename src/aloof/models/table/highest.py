"""The rows of a table that stand out most, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.models.results import MostAnomalous, Progress
from aloof.models.table.columns import one_array
from aloof.models.table.columns.reading import read_text
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.files import Source, column_names, joined_table
from aloof.models.table.labelling import check_column
from aloof.models.table.locating import Spot
from aloof.models.table.lowest import Lowest, Rows
from aloof.phrases import count

if TYPE_CHECKING:
    from aloof.models.table.model import TableModel

__all__ = ["most_anomalous"]


def most_anomalous(
    model: TableModel,
    data: Any,
    top: int = 20,
    *,
    reasons: int = 3,
    ids: Sequence[Any] = (),
    rows: Sequence[int] = (),
    lines: Sequence[int] = (),
    missing_columns: MissingColumns = "refuse",
    progress: Progress | None = None,
) -> MostAnomalous:
    """Return the rows with the highest scores, or the rows you ask for, and why.

    Parameters
    ----------
    model
        What scores.
    data
        A frame, a path or a `Source`.
    top
        How many rows.
    reasons
        How many reasons for each.
    ids, rows, lines
        Rows to return instead of the highest: by their values in the id column, by their
        numbers, counted from 1, and by the lines of the file in which they begin. They
        come in the order of the table.
    missing_columns
        See `TableModel.score`.
    progress
        Called with the number of rows done and the total.
    """
    model, source = model._accepting(missing_columns), model.read(data)
    if model.id is not None:
        check_column(model.id, column_names(source), "id")
    numbers = [*rows, *_rows_at(source, lines)]
    asked = _Asked(model.id, list(map(str, ids)), numbers) if ids or numbers else None
    highest, every, done = Lowest(top), [], 0
    for batch, scores in model.scored(source, progress):
        places = done + np.arange(len(scores))
        part = Rows(pa.Table.from_batches([batch]), {"scores": scores, "places": places})
        if asked is None:
            highest.add(part, -scores)
        else:
            asked.add(part)
        every.append(scores)
        done += len(scores)
    found = highest.rows() if asked is None else asked.rows(done)
    flagged = model.decide(np.concatenate(every))[found["places"]]
    spots: Mapping[int, Spot] = {}
    if isinstance(source, Source):
        spots = source.lines_at((found["places"] + 1).tolist())
    told = _told(model, found, flagged, reasons, spots)
    called = [_called(row, model.id, spots.get(row["row"])) for row in told]
    return MostAnomalous(done, called, told)


def _called(row: Mapping[str, Any], id: str | None, spot: Spot | None) -> str:
    """Return the name of a row: its number, its place in the file, its id."""
    place = "" if spot is None else f" ({spot})"
    return f"row {row['row']:,}{place}" + ("" if id is None else f"  {id} {row['id']}")


def _rows_at(source: Source | pa.Table, lines: Sequence[int]) -> list[int]:
    """Return the numbers of the rows in lines of a file."""
    if not lines:
        return []
    if not isinstance(source, Source) or not source.lines_at([1]):
        raise TableError("The rows of this table have no lines. Name them by number (--row).")
    found = source.rows_at(lines)
    if missing := [line for line in lines if line not in found]:
        raise TableError(f"No row of the table begins in line {missing[0]:,}.")
    return [found[line] for line in lines]


class _Asked:
    """Finds rows by their ids and numbers."""

    def __init__(self, id: str | None, ids: Sequence[str], numbers: Sequence[int]) -> None:
        if ids and id is None:
            raise TableError(
                "The model has no id column, so it cannot find a row by its id. Give the "
                "row's number (--row 12), or fit with --id COLUMN."
            )
        if wrong := [number for number in numbers if number < 1]:
            raise TableError(f"Rows are counted from 1, so there is no row {wrong[0]}.")
        self._id, self._ids, self._numbers = id, list(dict.fromkeys(ids)), list(numbers)
        self._found: list[Rows] = []
        self._seen: set[str] = set()

    def add(self, rows: Rows) -> None:
        """Take the rows that are asked for."""
        wanted = np.isin(rows["places"] + 1, self._numbers)
        if self._ids:
            texts = read_text(str(self._id), one_array(rows.table[self._id]))
            is_id = pc.is_in(texts, value_set=pa.array(self._ids, pa.string()))
            self._seen.update(texts.filter(is_id).to_pylist())
            wanted |= is_id.to_numpy(zero_copy_only=False)
        if wanted.any() or not self._found:
            self._found.append(rows.take(np.flatnonzero(wanted)))

    def rows(self, n_rows: int) -> Rows:
        """Return them in the order of the table; one that is not there is an error."""
        missing = [id for id in self._ids if id not in self._seen]
        if missing:
            raise TableError(f"No row has {missing[0]!r} in the column {self._id!r}.")
        if beyond := [number for number in self._numbers if number > n_rows]:
            raise TableError(
                f"There is no row {beyond[0]:,}; the table has {count(n_rows, 'row')}."
            )
        keys = ("scores", "places")
        return Rows(
            joined_table([b for rows in self._found for b in rows.table.to_batches()]),
            {key: np.concatenate([rows[key] for rows in self._found]) for key in keys},
        )


def _told(
    model: TableModel,
    rows: Rows,
    flagged: NDArray[np.bool_],
    n_reasons: int,
    spots: Mapping[int, Spot],
) -> list[dict[str, Any]]:
    explanation = model.explain(rows.table)
    ids = [None] * len(rows) if model.id is None else rows.table[model.id].to_pylist()
    order, words = explanation.order(n_reasons), explanation.reasons(n_reasons)
    told: list[dict[str, Any]] = [
        {
            **_place(int(rows["places"][i]) + 1, spots),
            "id": ids[i] if isinstance(ids[i], int | str | None) else str(ids[i]),
            **said,
            "reasons": [
                {
                    "column": explanation.columns[column],
                    "contribution": float(explanation.contributions[i, column]),
                    "words": reason,
                }
                for column, reason in zip(order[i], words[i], strict=False)
            ],
        }
        for i, said in enumerate(model.verdicts(rows["scores"], flagged))
    ]
    for text in model.texts:
        passages = model.passages(rows.table, text, n_reasons)
        for row, own in zip(told, passages, strict=True):
            for reason in row["reasons"]:
                if reason["column"] == text:
                    reason["passages"] = [asdict(passage) for passage in own]
    return told


def _place(number: int, spots: Mapping[int, Spot]) -> dict[str, Any]:
    """Return the number of a row, and where it is in its file, if that is known."""
    spot = spots.get(number)
    if spot is None:
        return {"row": number}
    return {"row": number, "line": spot.line} | ({"file": spot.file} if spot.file else {})
