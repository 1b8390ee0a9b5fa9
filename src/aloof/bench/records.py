"""Results on disk: one JSON object a line, only ever appended to.

What identifies a record are the fields of its case; `status` is ``ok`` (also where it is
absent), ``error`` (with the reason in `message`) or ``infeasible`` (said in `message`). Figures
that do not exist are absent, never a placeholder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from aloof.bench.identity import jsonable
from aloof.exceptions import ExperimentError

__all__ = ["Record", "append_records", "good", "grouped", "latest", "read_records"]

_C = TypeVar("_C")
Record = Mapping[str, Any]


def append_records(path: Path, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Add records to a file in one write, so that a reader or a crash never sees a part.

    Returns
    -------
    The records as they can be read back.
    """
    written = [jsonable(record) for record in records]
    text = "".join(json.dumps(record, allow_nan=False) + "\n" for record in written)
    path.parent.mkdir(parents=True, exist_ok=True)
    _drop_torn_line(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        content = text.encode()
        while content:
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return written


def read_records(path: Path, case_of: Callable[[Record], object]) -> list[dict[str, Any]]:
    """Read every record of a file; none if it does not exist.

    A last line without its end, left by a machine that stopped while writing, is ignored.

    Parameters
    ----------
    path
        The file.
    case_of
        Raises a `KeyError`, `TypeError` or `ValueError` for what is no record.
    """
    if not path.exists():
        return []
    *lines, _ = path.read_text(encoding="utf-8").split("\n")
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            case_of(record)
        except (ValueError, KeyError, TypeError) as error:
            raise ExperimentError(
                f"Line {number} of {path} is not a record of aloof. Repair or remove the line, "
                "or choose another folder."
            ) from error
        records.append(record)
    return records


def latest(records: Sequence[Record], case_of: Callable[[Record], _C]) -> dict[_C, Record]:
    """Return the last record of each case: a case that was run again has several."""
    return {case_of(record): record for record in records}


def good(records: Iterable[Record]) -> list[Record]:
    """Return the records that have figures."""
    return [record for record in records if record.get("status", "ok") == "ok"]


def grouped(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Return records by the values of some fields, in their order."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        found.setdefault(tuple(record[name] for name in names), []).append(record)
    return found


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line that was not written to its end."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
