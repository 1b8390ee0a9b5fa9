"""Score rows as they come, line by line, and remember where it stopped.

A row in is a line of JSON out. With a file for the state, a process that is killed and started
again neither scores a row twice nor leaves one out: the state says how far was read and how
long the output was then; what was written after that is cut off and written again.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow.compute as pc

from aloof._version import __version__
from aloof.exceptions import AloofError, TableError, TableWarning, once_of_each
from aloof.io import write_file, writing
from aloof.io.growing import GrowingFile, PipedLines, Position
from aloof.io.remote import check_here
from aloof.models.results import Drift
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.events import Event, EventFormat, EventReader, event_tables
from aloof.models.table.formats import ENDINGS, ending_of
from aloof.models.table.harmless import Harmless
from aloof.models.table.labelling import check_column
from aloof.models.table.scores import PartScores, Verdict
from aloof.models.table.watching import WINDOW, DriftWatch

if TYPE_CHECKING:
    from aloof.models.table.model import TableModel

__all__ = ["Followed", "follow"]

# Rows that are scored at a time, and seconds until a look for more, and between two states.
_ROWS, _WAIT, _COMMIT = 4096, 0.25, 1.0
_ASK = 1.0  # seconds between two questions for what is harmless
# So few that a column of which no value can be read is no reason to refuse them.
_FEW = 16
_STATE_VERSION = 1
_OWN = ("line", "anomaly_score", "p_value", "is_anomaly", "suppressed_by", "reasons", "error")


@dataclass(frozen=True)
class Followed:
    """What `follow` did.

    Attributes
    ----------
    n_rows
        How many rows were scored, since the first start.
    n_anomalies
        How many of them are flagged.
    n_suppressed
        How many would be flagged, but are known to be harmless.
    n_failed
        How many lines could not be read.
    drift
        In which ways the last rows do not look like those that were learned from.
    """

    n_rows: int
    n_anomalies: int
    n_suppressed: int
    n_failed: int
    drift: tuple[Drift, ...] = ()


def follow(
    model: TableModel,
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    reasons: int = 3,
    keep: Sequence[str] = (),
    keep_all: bool = False,
    flagged_only: bool = False,
    missing_columns: MissingColumns = "refuse",
    harmless: Sequence[Harmless] | Callable[[], Sequence[Harmless]] = (),
    state: str | os.PathLike[str] | None = None,
    drift_every: int = WINDOW,
    force: bool = False,
    format: EventFormat | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    stop: threading.Event | None = None,
    say: Callable[[str], None] | None = None,
) -> Followed:
    """Score the rows of a file as they are written, until told to stop.

    The file may be renamed and begun anew, or cut; a line that is not whole yet waits. Every
    row becomes one line of JSON: its ``line`` (of all that were read), what is kept of it,
    ``anomaly_score``, ``p_value``, ``is_anomaly`` and ``reasons``; a line that cannot be read
    has an ``error`` instead.

    Parameters
    ----------
    model
        What scores. A false discovery rate needs all rows at once, and is refused.
    data
        A file, which need not exist yet; "-" for standard input, to its end.
    out
        A file to append to; "-" for standard output.
    reasons
        How many reasons to give for rows that are flagged.
    keep, keep_all
        What to copy from a row, besides the id.
    flagged_only
        Write the rows that are flagged, and lines that cannot be read.
    missing_columns
        See `TableModel.score`.
    harmless
        Rows that are not flagged, whatever their scores; see `aloof.models.table.harmless`.
        A function is asked for them again every second.
    state
        A file that remembers how far this got. It is written every second; the next run with
        it goes on there, and cuts off what was written to the output after it.
    drift_every
        How many rows are compared with the training rows at a time.
    force
        Without a state: replace an output that is there.
    format, delimiter, encoding, header
        See `EventReader`.
    stop
        Set it to end after the rows at hand; None: only the end of standard input ends it.
    say
        Called with what there is to say: drift, files that were renamed, values that cannot
        be read.
    """
    if model.threshold.fdr is not None:
        raise TableError(
            f"The model flags by {model.threshold}, which needs all rows at once; of a stream, "
            "they never are. Choose another rule: aloof threshold MODEL --share 0.01"
        )
    model = model._accepting(missing_columns)
    source, target = os.fspath(data), os.fspath(out)
    for name in (source, target, *(() if state is None else (state,))):
        check_here(name, TableError, "Only files here are followed. Leave out --follow.")
    _check_names(model, keep, target)
    if source == "-" and state is not None:
        raise TableError(
            "Standard input cannot be read again from where it stopped, so it has no state. "
            "Name a file, or leave out state (--state)."
        )
    path = None if state is None else Path(state)
    before = _read_state(path, source, target)
    position = None if before is None else before["position"]
    lines: GrowingFile | PipedLines
    if source == "-":
        lines = PipedLines(sys.stdin.fileno(), _WAIT)
    else:
        lines = GrowingFile(
            Path(source), None if position is None else Position(**before["position"])
        )
    reader = EventReader(
        model.columns,
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        header=header,
        preferred=model.reading.get("delimiter"),
        state=None if before is None else before["reader"],
    )
    output = _Output(target, before, force=force)
    run = _Follower(
        PartScores(model, (), reasons),
        harmless if callable(harmless) else lambda: harmless,
        reader,
        output,
        model.copied((), keep, keep_all=False),
        keep_all,
        flagged_only,
        say or (lambda words: None),
        DriftWatch(model, drift_every, None if before is None else _drift(before)),
        path,
        source,
        position=None if position is None else Position(**position),
    )
    if before is not None:
        run.n_rows, run.n_anomalies, run.n_suppressed, run.n_failed = before["counts"]
        run.n_lines = run.reader.n_lines
    with output:
        return run.until(lines, stop or threading.Event())


@dataclass
class _Follower:
    scores: PartScores
    harmless: Callable[[], Sequence[Harmless]]
    reader: EventReader
    output: _Output
    keep: tuple[str, ...]
    keep_all: bool
    flagged_only: bool
    say: Callable[[str], None]
    watch: DriftWatch
    state: Path | None
    source: str
    position: Position | None = None
    n_rows: int = 0
    n_anomalies: int = 0
    n_suppressed: int = 0
    n_failed: int = 0
    n_lines: int = 0
    is_checked: bool = False
    asked: float = -math.inf
    warn: Callable[[TableWarning], None] = field(init=False)

    def __post_init__(self) -> None:
        self.warn = once_of_each(lambda warning: self.say(str(warning)))

    def until(self, lines: GrowingFile | PipedLines, stop: threading.Event) -> Followed:
        """Score what comes, until it ends or is to stop."""
        self.commit()  # from now on the output belongs to the state
        committed, is_behind = time.monotonic(), False
        while True:
            try:
                found = lines.lines()
            except OSError as error:
                raise TableError(
                    f"{self.source} cannot be read: {error.strerror or error}."
                ) from error
            for words in lines.news():
                self.say(words)
            events = self.reader.events(found, is_end=lines.has_ended)
            for first in range(0, len(events), _ROWS):
                self.take(events[first : first + _ROWS])
                if stop.is_set():
                    break
            is_behind |= bool(events)
            if is_behind and (not found or time.monotonic() - committed > _COMMIT):
                self.commit()
                committed, is_behind = time.monotonic(), False
            if lines.has_ended or stop.is_set():
                break
            if not found:
                stop.wait(_WAIT)
        self._look()
        self.commit()
        lines.close()
        counts = self._counts()
        return Followed(*counts, drift=self.watch.drift)

    def _ask(self) -> None:
        """Ask again what is harmless, if that is a while ago."""
        if time.monotonic() - self.asked < _ASK:
            return
        self.asked = time.monotonic()
        try:
            rules = tuple(self.harmless())
        except AloofError as error:
            self.warn(TableWarning(f"The rules of before hold: {error}"))
            return
        if rules != self.scores.harmless:
            self.scores = replace(self.scores, harmless=rules)

    def take(self, events: Sequence[Event]) -> None:
        """Score rows and write them, in their order."""
        self._ask()
        good = [event for event in events if event.values is not None]
        if good and not self.is_checked:
            self.check(good[0].values or {})
        results: dict[int, dict[str, Any]] = {}
        for event in events:
            if event.values is None:
                results[event.line] = {"error": event.error}
        if good:
            results |= self.scored(good)
        written = []
        for event in events:
            result = results[event.line]
            self.n_failed += "error" in result
            if not self.flagged_only or result.get("is_anomaly", True):
                written.append({"line": event.line, **self.kept(event.values), **result})
        self.output.write(written)
        self.position, self.n_lines = events[-1].after, events[-1].n_lines

    def scored(self, events: Sequence[Event]) -> dict[int, dict[str, Any]]:
        """Return what there is to say about rows, by their lines."""
        try:
            return self._scored(events)
        except TableError as error:
            if len(events) == 1:
                return {events[0].line: {"error": str(error)}}
        found: dict[int, dict[str, Any]] = {}
        few = 1 if len(events) <= _FEW else _FEW
        for first in range(0, len(events), few):  # some are at fault, and others are not
            found |= self.scored(events[first : first + few])
        return found

    def _scored(self, events: Sequence[Event]) -> dict[int, dict[str, Any]]:
        encoder = self.scores.model.encoder
        found: dict[int, dict[str, Any]] = {}
        parts = []
        also = [rule.column for rule in self.scores.harmless]
        for places, table in event_tables(events, encoder, fills=encoder.fills, also=also):
            part = self.scores.score(table, self.warn)
            level = self.scores.decision.least
            verdict = Verdict(self.scores.schema(()), level)
            rows = self.scores.settle(part.replace_schema_metadata(None), verdict)
            for place, row in zip(places, rows.to_pylist(), strict=True):
                found[events[place].line] = self._words(row)
            scores = rows["anomaly_score"].to_numpy()
            names = [(1, self.reader.names or tuple(events[k].values or ())) for k in places]
            parts.append((table, names, scores > level, rows["is_anomaly"]))
        for table, names, decided, flagged in parts:
            n_flagged = int(pc.sum(flagged).as_py() or 0)
            self.n_rows += table.num_rows
            self.n_anomalies += n_flagged
            self.n_suppressed += int(decided.sum()) - n_flagged
            self.watch.add(table, names, decided, self._look)
        return found

    def _look(self) -> None:
        """Say which differences from the training rows are new, and which are over."""
        for words in self.watch.look():
            self.say(words)

    def _words(self, row: dict[str, Any]) -> dict[str, Any]:
        names = self.scores.reason_names
        told = [row.pop(name) for name in names]
        return {**row, "reasons": [words for words in told if words is not None]}

    def kept(self, values: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return what is copied from a row."""
        if values is None:
            return {}
        if self.keep_all:
            return {name: value for name, value in values.items() if name not in _OWN}
        return {name: values.get(name) for name in self.keep}

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise if the columns do not fit, before anything is written."""
        names = self.reader.names or tuple(values)
        if self.reader.names is not None:  # objects may each have other keys
            for name in self.keep:
                check_column(name, names, "output")
            self.scores.check(names, self.warn)
        self.is_checked = True

    def _counts(self) -> tuple[int, int, int, int]:
        return self.n_rows, self.n_anomalies, self.n_suppressed, self.n_failed

    def commit(self) -> None:
        """Make sure that what was done is on the disk, and remember it."""
        length = self.output.commit()
        if self.state is None:
            return
        # Where nothing was read, the header is still to come.
        reader = {**self.reader.state(), "lines": self.n_lines} if self.position else None
        content = {
            "version": _STATE_VERSION,
            "aloof": __version__,
            "source": self.source,
            "out": self.output.name,
            "position": None if self.position is None else self.position.as_dict(),
            "length": length,
            "reader": reader,
            "counts": self._counts(),
            "drift": [asdict(each) for each in self.watch.drift],
        }
        write_file(self.state, json.dumps(content, indent=1) + "\n", TableError)


class _Output:
    """A file that lines are appended to, or standard output."""

    def __init__(self, name: str, before: Mapping[str, Any] | None, *, force: bool) -> None:
        self.name, self._file, self._is_file = name, None, name != "-"
        self._stream: BinaryIO
        if not self._is_file:
            self._stream = sys.stdout.buffer
            return
        path = Path(name)
        self._is_file = not path.exists() or path.is_file()
        with writing(name, TableError):
            self._stream = self._file = path.open("ab")
        _lock(self._file, name)
        if not self._is_file:
            return
        size = path.stat().st_size
        length = 0 if before is None else int(before["length"])
        if before is None and size and not force:
            self._file.close()
            raise TableError(
                f"{name} already exists. Choose another name, replace it with force=True "
                "(--force), or go on with the state (--state) it was written with."
            )
        if size > length:
            os.truncate(path, length)

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write lines; they can be read at once."""
        text = "".join(f"{json.dumps(row, default=str)}\n" for row in rows)
        with writing(self.name, TableError):
            self._stream.write(text.encode())
            self._stream.flush()

    def commit(self) -> int:
        """Return how long the file is, once that is on the disk."""
        if self._file is None or not self._is_file:
            return 0
        with writing(self.name, TableError):
            os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size


def _lock(file: BinaryIO, name: str) -> None:
    """Keep others from writing the same lines, where the system can."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise TableError(
            f"{name} is being written by another process. Stop it, or choose another name."
        ) from None
    except OSError:  # not on this disk
        return


def _check_names(model: TableModel, keep: Sequence[str], out: str) -> None:
    for name in keep:
        if name in _OWN:
            raise TableError(
                f"Cannot keep column {name!r}: the scores have a column of that name. Rename "
                "it."
            )
    if out != "-" and ENDINGS.get(ending_of(Path(out)) or "", "jsonl") != "jsonl":
        raise TableError(
            f"Rows that are followed become JSON lines, which {Path(out).name} is no name for. "
            "Name a file that ends in .jsonl."
        )


def _read_state(path: Path | None, source: str, out: str) -> Any:
    if path is None:
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TableError(
            f"{path} cannot be read as a state: {error}. Remove it to start anew."
        ) from error
    if not isinstance(content, dict) or content.get("version") != _STATE_VERSION:
        raise TableError(f"{path} is not a state that this version of aloof wrote.")
    for word, given in (("source", source), ("out", out)):
        if content[word] != given:
            raise TableError(
                f"{path} is the state of {content['source']} scored into {content['out']}. "
                "Name another file with state=... (--state), or the same data and output."
            )
    return content


def _drift(before: Mapping[str, Any]) -> list[Drift]:
    found = []
    with suppress(TypeError):
        found = [Drift(**each) for each in before.get("drift", ())]
    return found
