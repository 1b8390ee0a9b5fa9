"""An exported model, opened: values in, scores and decisions out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof._version import __version__
from aloof.exceptions import ModelError, TableError
from aloof.lite.columns import InputColumn, Unread, column_of
from aloof.lite.format import NOTES, SAME, VERSION, digest_of
from aloof.phrases import count
from aloof.suggestion import closest

__all__ = ["CLOSE", "LiteModel", "distance", "load", "opened", "probe_array"]

# Rows that go through the graph at a time, and the numbers in them.
_ROWS, _NUMBERS = 1024, 2**21
# How far exported scores may be from the model's; and probe rows, on another machine, from the
# scores that they had when the model was exported.
CLOSE, _ENOUGH = 1e-5, 1e-4

_SCORE, _P, _FLAG = "anomaly_score", "p_value", "is_anomaly"


@dataclass(frozen=True, eq=False)
class LiteModel:
    """A model in a file that `aloof export` wrote; `load` opens one.

    Attributes
    ----------
    path
        The file.
    notes
        What it says about itself, as JSON holds it: ``kind`` ("table", "images" or "arrays"),
        ``title``, ``threshold``, ``columns`` or ``shape``, ``aloof`` (the version that wrote
        it), and so on.
    columns
        Of a model of a table, what its inputs are.

    Examples
    --------
    >>> model = load("model.onnx")  # doctest: +SKIP
    >>> model.score({"amount": ["12.50"], "country": ["NO"]})  # doctest: +SKIP
    {'anomaly_score': array([0.31]), 'p_value': array([0.4]), 'is_anomaly': array([False])}
    """

    path: Path
    notes: Mapping[str, Any]
    columns: tuple[InputColumn, ...]
    _session: Any

    @property
    def kind(self) -> str:
        """What is modelled: "table", "images" or "arrays"."""
        return str(self.notes["kind"])

    @property
    def answers(self) -> tuple[str, ...]:
        """What there is of each row: ``anomaly_score``, ``is_anomaly`` and perhaps more."""
        return tuple(self.notes["outputs"])

    @property
    def inputs(self) -> dict[str, str]:
        """Names of what the graph takes, and in which form."""
        return {each.name: each.type for each in self._session.get_inputs()}

    @property
    def decides_together(self) -> bool:
        """Whether the decision on a row depends on the other rows: a false discovery rate."""
        return "fdr" in self.notes["threshold"]["rule"]

    def score(
        self,
        rows: Mapping[str, Sequence[Any]] | NDArray[Any],
        *,
        unread: dict[str, Unread] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return the answers for some rows.

        Parameters
        ----------
        rows
            Of a table: its columns by name, as text from a CSV file or as numbers, booleans,
            dates and times; None where there is nothing. Otherwise an array ``(n, *shape)``;
            images are bytes.
        unread
            Takes what could not be read, by column; such values count as missing.

        Returns
        -------
        ``anomaly_score`` (higher is worse), ``p_value`` and ``probability`` if there are any,
        and ``is_anomaly``, each ``(n,)``.
        """
        if isinstance(rows, Mapping):
            inputs = self._inputs(rows, {} if unread is None else unread)
        else:
            inputs = {"rows": self._array(np.asarray(rows))}
        return self.decided(self.run(inputs))

    def decided(self, found: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return answers with decisions over all rows, where they depend on each other."""
        if not self.decides_together or not len(found[_SCORE]):
            return found
        ordered, n = np.sort(found[_P]), len(found[_P])
        target = self.notes["threshold"]["rule"]["fdr"]
        discovered = ordered[ordered * (n / np.arange(1, n + 1)) <= target]
        limit = discovered[-1] if len(discovered) else -1.0
        return {**found, _FLAG: found[_P] <= limit}

    def check_names(self, names: Sequence[str]) -> None:
        """Raise where a table with these columns lacks one that the model needs."""
        missing = [column.name for column in self.columns if column.name not in names]
        if missing:
            more = f" and {count(len(missing) - 1, 'other')}" if len(missing) > 1 else ""
            raise TableError(
                f"The table has no column {missing[0]!r}{more}, which the model was trained "
                f"with{closest(missing[0], names)}."
            )

    def score_batch(
        self, columns: Mapping[str, Sequence[Any]], unread: dict[str, Unread]
    ) -> dict[str, NDArray[Any]]:
        """Return the answers for a part of a table, before rows decide about each other."""
        return self.run(self._inputs(columns, unread))

    def _inputs(
        self, rows: Mapping[str, Sequence[Any]], unread: dict[str, Unread]
    ) -> dict[str, NDArray[Any]]:
        if self.kind != "table":
            raise TableError(f"The model takes an array of {self.kind}, not columns by name.")
        self.check_names(list(rows))
        lengths = {len(rows[column.name]) for column in self.columns}
        if len(lengths) > 1:
            raise TableError("The columns have different lengths.")
        inputs = {}
        for column in self.columns:
            what = "times" if column.kind == "timestamp" else "numbers"
            note = unread.get(column.name, Unread(column.name, what))
            inputs[column.name] = column.read(rows[column.name], note)
            if note.n:
                unread[column.name] = note
        return inputs

    def _array(self, rows: NDArray[Any]) -> NDArray[Any]:
        if self.kind == "table":
            names = ", ".join(column.name for column in self.columns[:3])
            raise TableError(f"The model takes a table: columns by name ({names}, ...).")
        shape = tuple(self.notes["shape"])
        if rows.shape[1:] != shape or rows.dtype.kind not in "fiu":
            raise TableError(
                f"The model takes numbers of shape (n, {', '.join(map(str, shape))}); got "
                f"{rows.dtype} of shape {rows.shape}."
            )
        if self.kind == "images":
            if rows.dtype != np.uint8:
                raise TableError(f"Images must hold bytes (uint8); these are {rows.dtype}.")
            return rows
        if rows.dtype == np.uint8 and len(shape) == 3:
            return rows / 255.0
        numbers = rows.astype(np.float64)
        if not np.isfinite(numbers).all():
            raise TableError("The rows hold NaN or infinity. Fill in missing values first.")
        return numbers

    def run(self, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return what the graph makes of its inputs, some rows at a time."""
        n, size = len(next(iter(inputs.values()))), int(np.prod(self.notes.get("shape", ())))
        step = max(1, min(_ROWS, _NUMBERS // size))
        parts = [
            self._session.run(self.answers, {k: v[at : at + step] for k, v in inputs.items()})
            for at in range(0, n, step)
        ]
        if not parts:
            kinds = {_FLAG: np.bool_}
            return {name: np.empty(0, kinds.get(name, np.float64)) for name in self.answers}
        arrays = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return dict(zip(self.answers, arrays, strict=True))

    def check(self) -> float:
        """Score the probe rows that came with the model; return how far off they are at most.

        Raises
        ------
        ModelError
            They are too far off: this machine does not compute what the model means.
        """
        probes = self.notes["probes"]
        wanted = np.array(probes[_SCORE])
        if probes["rows"] is None:
            rows = probe_array(self.kind, self.notes["shape"], len(wanted))
            found = self.run({"rows": rows})
        else:
            found = self.run({name: _typed(rows) for name, rows in probes["rows"].items()})
        found = self.decided(found)
        off = float(distance(found[_SCORE], wanted).max())
        level = np.full(len(wanted), self.notes["threshold"]["anomaly_score"])
        clear = distance(wanted, level) > _ENOUGH
        differ = (found[_FLAG] != np.array(probes[_FLAG])) & clear & (not self.decides_together)
        if not off <= _ENOUGH or differ.any():
            raise ModelError(
                f"{self.path} gives other scores here than where it was exported (off by "
                f"{off:.1e}). Export it again, or install another version of onnxruntime."
            )
        return off


def load(path: str | os.PathLike[str], *, threads: int | None = None) -> LiteModel:
    """Open a model that `aloof export` wrote.

    The file must be as it was written, and its probe rows must have the scores that they had.

    Parameters
    ----------
    path
        The file.
    threads
        How many threads score; None: one for each processor.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror or error}.") from error
    model = opened(file, content, threads)
    model.check()
    return model


def opened(file: Path, content: bytes, threads: int | None = None) -> LiteModel:
    """Open the bytes of a file; `load` checks its probe rows as well."""
    digests = digest_of(content)
    if digests is None:
        raise ModelError(f"{file} was not written by aloof export, so nothing is known of it.")
    if digests[0] != digests[1]:
        raise ModelError(f"{file} was changed or only partly copied. Copy or export it again.")
    session = _session(content, threads)
    notes = json.loads(session.get_modelmeta().custom_metadata_map[NOTES])
    if notes["format"] > VERSION:
        raise ModelError(
            f"{file} was written by aloof {notes['aloof']}, which is newer than this one "
            f"({__version__}). Install that version."
        )
    columns = tuple(map(column_of, notes.get("columns", ())))
    return LiteModel(file, notes, columns, session)


def _session(content: bytes, threads: int | None) -> Any:
    # Some versions report to their makers, from the import on, unless told not to.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise ModelError(
            "Scoring with an exported model needs onnxruntime, which is not installed. Install "
            "it with: pip install onnxruntime"
        ) from error
    ort.disable_telemetry_events()
    options = ort.SessionOptions()
    options.log_severity_level = 3
    # Threads that wait actively are a disaster where others work, too.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has classes of its own for everything
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"onnxruntime {ort.__version__} cannot open the model. It takes 1.20 or later. "
            f"({reason})"
        ) from error


def probe_array(kind: str, shape: Sequence[int], n: int) -> NDArray[Any]:
    """Return rows that are the same everywhere: from a counter, without a random generator."""
    size = n * int(np.prod(shape))
    numbers = (np.arange(size, dtype=np.uint64) * np.uint64(2654435761)) >> np.uint64(7)
    if kind == "images":
        return (numbers % 256).astype(np.uint8).reshape(n, *shape)
    unit = (numbers % 10_007).astype(np.float64).reshape(n, *shape) / 10_007
    return unit if len(shape) == 3 else 4.0 * unit - 2.0


def _typed(values: list[Any]) -> NDArray[Any]:
    """Return values of JSON as the graph takes them."""
    if values and isinstance(values[0], str):
        return np.array(values, object)
    return np.array(values, np.float64)  # None is NaN


def distance(found: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far scores are off, as a share of them, or of a typical one if smaller."""
    typical = float(np.median(np.abs(wanted))) if len(wanted) else 1.0
    size = np.maximum(np.maximum(np.abs(wanted), typical), SAME)
    share: NDArray[np.float64] = np.abs(found - wanted) / size
    return share
