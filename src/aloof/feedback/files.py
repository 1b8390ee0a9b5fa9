"""Answers from tables as people write them, and answers as a table again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from aloof.exceptions import AnswerError, LabelError
from aloof.feedback.answer import UNSURE, WORDS, Answer, Standing
from aloof.labels import ANOMALY, NORMAL
from aloof.models.table import TableModel
from aloof.models.table.columns.reading import one_array, read_text
from aloof.models.table.files import open_source
from aloof.models.table.labelling import check_column

__all__ = ["as_table", "history_table", "plain_values", "read_answers", "source_of"]

_MEANINGS = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "y", "anomaly"), ANOMALY),
    **dict.fromkeys(("0", "0.0", "false", "no", "n", "normal"), NORMAL),
    **dict.fromkeys(("-1", "-1.0", "unsure", "?", "unknown"), UNSURE),
}
# What is no answer; the latter is what an export says where reviewers disagree.
_NOTHING = ("", "conflict")
# Names of a column of answers, the first that is there, where nobody says which.
_ANSWER, _ROW, _BY, _NOTE, _SOURCE = "answer", "row", "by", "note", "source"


def read_answers(
    data: str | os.PathLike[str],
    model: Any,
    *,
    id: str | None = None,
    label: str | None = None,
    by: str = "",
    source: str | None = None,
) -> list[Answer]:
    """Read answers from a table.

    Parameters
    ----------
    data
        A file of any format. Rows without an answer, or in conflict, are passed over. A column
        ``note`` is kept, and so is ``by``, who said it, where it is there. Where the table has
        all columns of the model, the rows themselves are kept with the answers.
    model
        Whose rows they are about.
    id
        The column that names the rows; None: the model's id column, or ``row``.
    label
        The column of answers: 1, anomaly or yes; 0, normal or no; unsure or ?. None:
        ``answer``, ``label``, or the column of labels of the training table.
    by
        Who says so, where the table does not.
    source
        The file that rows are numbered in, where they have no ids; the folder of images.
    """
    table = open_source(data).read()
    names = table.column_names
    own_id, own_label = getattr(model, "id", None), getattr(model, "label", None)
    key = str(id or own_id or _key(model))
    check_column(key, names, "rows' names (--id)")
    wanted = [name for name in (_ANSWER, "label", own_label) if name in names]
    if label is None and not wanted:
        raise AnswerError(
            f"{data} has no column of answers. Add a column {_ANSWER!r} with 1 for anomalies "
            "and 0 for normal rows, or say which column it is: --label COLUMN."
        )
    column = str(label or wanted[0])
    check_column(column, names, "answers (--label)")
    rows = read_text(key, one_array(table[key])).to_pylist()
    given = read_text(column, one_array(table[column])).to_pylist()
    who = _texts(table, _BY) if column != _BY else [None] * len(rows)
    notes = _texts(table, _NOTE)
    placed = own_id is None  # numbers and names of files say little without where they are
    sources = _texts(table, _SOURCE) if placed else [None] * len(rows)
    kept = [None] * len(rows) if not _is_whole(model, names) else table
    found = []
    for place, (row, text) in enumerate(zip(rows, given, strict=True)):
        if text is None or text.strip().lower() in _NOTHING:
            continue
        if row is None or not row.strip():
            raise AnswerError(f"Row {place + 1:,} of {data} has an answer and no {key!r}.")
        meaning = _meaning(text, model)
        if meaning is None:
            raise LabelError(
                f"The answer {text[:40]!r} in column {column!r} cannot be read. Write 1 or "
                "anomaly, 0 or normal, unsure, or nothing."
            )
        found.append(
            Answer(
                row=row.strip(),
                label=meaning,
                by=who[place] or by,
                note=notes[place] or "",
                source="" if not placed else sources[place] or source or "",
                values=plain_values(kept, place, model) if isinstance(kept, pa.Table) else None,
            )
        )
    return found


def _key(model: Any) -> str:
    """Return what names the rows where they have no ids."""
    return _ROW if getattr(model, "things", "rows") == "rows" else "file"


def _meaning(text: str, model: Any) -> int | None:
    value = text.strip()
    anomaly = getattr(model, "anomaly_value", None)
    if anomaly is not None and value == anomaly:
        return ANOMALY
    return _MEANINGS.get(value.lower())


def _texts(table: pa.Table, name: str) -> list[str | None]:
    if name not in table.column_names:
        return [None] * table.num_rows
    found: list[str | None] = read_text(name, one_array(table[name])).to_pylist()
    return found


def _is_whole(model: Any, names: Sequence[str]) -> bool:
    return isinstance(model, TableModel) and set(model.columns) <= set(names)


def plain_values(table: pa.Table, place: int, model: TableModel) -> dict[str, Any]:
    """Return one row of a table as JSON can hold it: the columns that the model reads."""
    row = table.select(list(model.columns)).slice(place, 1).to_pylist()[0]
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def source_of(model: Any, data: str) -> str:
    """Return what rows without ids are numbered in: the name of the file or folder."""
    return "" if getattr(model, "id", None) is not None else os.path.basename(data.rstrip("/"))


def as_table(found: Iterable[Standing], model: Any) -> pa.Table:
    """Return how the answers stand, one row for each that was answered.

    A column of 1 and 0 for `aloof fit` (empty: unsure, or reviewers disagree), how many
    answered, who and when, and whether they disagree.
    """
    standing = list(found)
    key = getattr(model, "id", None) or _key(model)
    columns: dict[str, Any] = {key: [each.last.row for each in standing]}
    if getattr(model, "id", None) is None:
        columns[_SOURCE] = [each.last.source for each in standing]
    columns["label"] = pa.array(
        [None if each.label == UNSURE else each.label for each in standing], pa.int64()
    )
    columns[_ANSWER] = [
        "conflict" if each.in_conflict else WORDS[each.label] for each in standing
    ]
    columns[_BY] = [", ".join(answer.by for answer in each.answers) for each in standing]
    columns["at"] = [_time(each.last) for each in standing]
    notes = (" | ".join(a.note for a in each.answers if a.note) for each in standing)
    columns[_NOTE] = list(notes)
    return pa.table(columns)


def history_table(events: Iterable[Answer]) -> pa.Table:
    """Return everything that was said, in order."""
    said = list(events)
    return pa.table(
        {
            "number": [event.number for event in said],
            "at": [_time(event) for event in said],
            _BY: [event.by for event in said],
            "what": ["answer" if event.undoes is None else "undo" for event in said],
            "undoes": pa.array([event.undoes for event in said], pa.int64()),
            _SOURCE: [event.source for event in said],
            _ROW: [event.row for event in said],
            _ANSWER: [event.word for event in said],
            _NOTE: [event.note for event in said],
            "anomaly_score": pa.array([event.score for event in said], pa.float64()),
        }
    )


def _time(answer: Answer) -> str:
    return "" if answer.at is None else answer.at.isoformat(timespec="seconds")
