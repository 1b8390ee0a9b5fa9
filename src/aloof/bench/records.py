"""Results on disk: one JSON object a line, only ever appended to.

What identifies a record are the fields of its case, which come first; `status` is ``ok`` (also
where it is absent), ``error`` (with the reason in `message`) or ``infeasible`` (said in
`message`). Figures that do not exist are absent, never a placeholder.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from aloof.bench.identity import jsonable
from aloof.exceptions import AloofWarning, ExperimentError

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
    _end_last_line(path)
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

    A last line that stops in the middle, left by a machine that stopped while writing, is left
    out with a warning; the next record that is added takes its place.

    Parameters
    ----------
    path
        The file.
    case_of
        Raises a `KeyError`, `TypeError` or `ValueError` for what is no record.
    """
    if not path.exists():
        return []
    *lines, last = _text(path).split("\n")
    if _whole(last):
        lines.append(last)
    elif last:
        warnings.warn(
            f"The last line of {path} is cut off: the machine stopped while writing it. The "
            "line is ignored, and its case counts as not run.",
            AloofWarning,
            stacklevel=2,
        )
    return [_record(path, number, line, case_of) for number, line in enumerate(lines, 1)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ExperimentError(f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ExperimentError(
            f"{path} does not hold records. Choose another folder."
        ) from error


def _record(
    path: Path, number: int, line: str, case_of: Callable[[Record], object]
) -> dict[str, Any]:
    try:
        record = json.loads(line)
        if not isinstance(record, dict):
            raise TypeError("no object")
    except (ValueError, TypeError) as error:
        raise ExperimentError(
            f"Line {number} of {path} is not an aloof record. Repair or remove the line, or "
            "choose another folder."
        ) from error
    try:
        case_of(record)
    except (ValueError, KeyError, TypeError) as error:
        raise ExperimentError(
            f"Line {number} of {path} is not a record of this experiment: {_reason(error)}. "
            "The folder holds results of another experiment, or of another version of aloof. "
            "Choose another folder. Nothing was changed."
        ) from error
    return record


def _reason(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")


def _whole(line: str) -> bool:
    """Return whether a line is a record, though nothing ends it."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


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


def _end_last_line(path: Path) -> None:
    """End a last line that has no end; cut it off if it is not a whole record."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() == b"\n":
            return
        file.seek(0)
        content = file.read()
        start = content.rfind(b"\n") + 1
        if _whole(content[start:].decode(errors="replace")):
            file.write(b"\n")
        else:
            file.truncate(start)
