"""Results on disk: one JSON object a line, only ever appended to.

A record is flat but for `config`, `versions` and `warnings`. What identifies it are the fields
of `Case`; `status` is ``ok``, ``error`` (with the reason in `message`) or ``infeasible`` (too
few anomalies, said in `message`). Figures that do not exist are absent, never a placeholder.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from aloof.exceptions import ExperimentError
from aloof.experiments.experiment import System

__all__ = [
    "Case",
    "append_lines",
    "append_records",
    "case_of",
    "jsonable",
    "latest",
    "read_records",
    "write_text",
]


@dataclass(frozen=True, order=True)
class Case:
    """What one record is about.

    Attributes
    ----------
    dataset, method
        By name.
    setting, variant
        Of our methods; empty for the others.
    gamma_l, gamma_p, seed
        What the split was made from; `seed` is also the method's random state.
    """

    dataset: str
    method: str
    setting: str
    variant: str
    gamma_l: float
    gamma_p: float
    seed: int

    @property
    def system(self) -> System:
        """The row of a table it belongs to."""
        return System(self.method, self.setting, self.variant)

    @property
    def place(self) -> tuple[str, float, float, int]:
        """The split it is run on."""
        return self.dataset, self.gamma_l, self.gamma_p, self.seed


def case_of(record: Mapping[str, Any]) -> Case:
    """Return what a record is about."""
    return Case(**{field.name: record[field.name] for field in fields(Case)})


def append_records(
    path: Path, items: Iterable[tuple[Case, Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Add records to a file in one write, so that a reader or a crash never sees a part.

    Returns
    -------
    The records as they can be read back.
    """
    records = [jsonable({**asdict(case), **outcome}) for case, outcome in items]
    if records:
        append_lines(path, records)
    return records


def append_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Add records of any kind to a file in one write, after a last line that is whole."""
    text = "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
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


def read_records(
    path: Path, *, check: Callable[[Mapping[str, Any]], object] | None = None
) -> list[dict[str, Any]]:
    """Read every record of a file; none if it does not exist.

    A last line without its end, left by a machine that stopped while writing, is ignored.

    Parameters
    ----------
    path
        The file.
    check
        Raises a `KeyError`, `TypeError` or `ValueError` for what is no record; None: `case_of`.
    """
    if not path.exists():
        return []
    *lines, _ = path.read_text(encoding="utf-8").split("\n")
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            (check or case_of)(record)
        except (ValueError, KeyError, TypeError) as error:
            raise ExperimentError(
                f"Line {number} of {path} is not a record of aloof. Repair or remove the line, "
                "or choose another folder."
            ) from error
        records.append(record)
    return records


def latest(records: Sequence[Mapping[str, Any]]) -> dict[Case, Mapping[str, Any]]:
    """Return the last record of each case: a case that was run again has several."""
    return {case_of(record): record for record in records}


def write_text(path: Path, text: str) -> None:
    """Write a file in one piece."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def jsonable(value: Any) -> Any:
    """Return a value as JSON gives it back; estimators become their class and parameters."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "get_params"):
        return {"class": type(value).__name__, **jsonable(value.get_params(deep=False))}
    return getattr(value, "__qualname__", None) or str(value)


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line that was not written to its end."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
