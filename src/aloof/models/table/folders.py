"""Score the files of a folder into files of another, on one machine or on many.

Each file, or piece of a large one, is a task of its own, and its scores a file of their own,
which is there when it is whole. A note beside it says what it was made from. So a run that was
killed, whatever part of it, goes on with what has no note, and a run after new files came does
these. Who carries the tasks out makes no difference to what is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from aloof._version import __version__
from aloof.exceptions import AloofError, TableError
from aloof.io import write_file
from aloof.io.remote import FilePath, RemotePath, is_remote, path_of, sending
from aloof.models import Drift, Progress
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.files import Source
from aloof.models.table.formats import Parquet, ending_of, first_line
from aloof.models.table.harmless import Harmless
from aloof.models.table.outputs import can_be_written, write_table
from aloof.models.table.scores import PartScores
from aloof.models.table.streaming import score_whole
from aloof.phrases import count

if TYPE_CHECKING:
    from aloof.models.table.model import TableModel

__all__ = [
    "FileDone",
    "FileTask",
    "FolderPool",
    "FolderWork",
    "ScoredFolder",
    "is_folder",
    "score_folder",
]

# Files of more bytes are done in pieces of about so many rows.
_LARGE, _PIECE = 512 * 2**20, 4_000_000
_NOTES, _RUN = "_aloof", "run.json"
_SHOWN = 3  # files that are named in an error


@dataclass(frozen=True)
class FileTask:
    """One file, or piece of one, to be scored.

    Attributes
    ----------
    source
        What to read.
    out
        Where its scores go.
    name
        Of the output within its folder.
    notes
        The folder of notes.
    """

    source: Source
    out: str
    name: str
    notes: str

    def fingerprint(self) -> str:
        """Return a text that changes when what is read does."""
        return str(self.source.fingerprint())

    def note(self, what: str) -> FilePath:
        """Return the file that says what came of it."""
        kind = "counts" if what == "counts" else "done"
        return path_of(self.notes) / f"{self.name}.{kind}.json"


@dataclass(frozen=True)
class FileDone:
    """What came of a task, as JSON can hold it.

    Attributes
    ----------
    n_rows, n_anomalies, n_suppressed
        How many rows there were, how many are flagged, and would be but are harmless.
    drift
        In which ways they do not look like the training rows.
    remarks
        What else there is to say about them.
    """

    n_rows: int
    n_anomalies: int
    drift: tuple[Drift, ...] = ()
    remarks: tuple[str, ...] = ()
    n_suppressed: int = 0


@dataclass(frozen=True)
class ScoredFolder:
    """What `score_folder` did.

    Attributes
    ----------
    n_files, n_rows, n_anomalies
        How many files of scores there are, and what is in them.
    n_resumed
        How many of the rows an earlier run had scored.
    drift
        In which ways rows do not look like the training rows, by the name of their file.
    remark
        Why nothing is flagged, in words.
    remarks
        What else there is to say about the rows, by the name of their file.
    n_suppressed
        How many rows would be flagged, but are known to be harmless.
    """

    n_files: int
    n_rows: int
    n_anomalies: int
    n_resumed: int = 0
    drift: Mapping[str, tuple[Drift, ...]] = field(default_factory=dict)
    remark: str = ""
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    n_suppressed: int = 0


# What a pool gives of a task: what came of it, or what went wrong.
_Outcome = tuple[int, Any]


class FolderPool(Protocol):
    """Who carries tasks out."""

    def __call__(self, work: FolderWork, tasks: Sequence[FileTask]) -> Iterator[_Outcome]:
        """Yield the place of each task and what came of it, or an exception, in any order.

        Parameters
        ----------
        work
            Can be sent to other processes; there, `FolderWork.start` loads the model, once.
        tasks
            What to do.
        """
        ...


@dataclass(frozen=True)
class FolderWork:
    """What a worker has to know: the model and how to score with it.

    Attributes
    ----------
    model
        The files of the model folder, by name.
    options
        Of `aloof.models.table.streaming.score_file`.
    missing_columns
        See `TableModel.score`.
    level
        See there as well; with "count", rows are not written, their p-values are counted.
    """

    model: Mapping[str, bytes]
    options: Mapping[str, Any]
    missing_columns: MissingColumns = "refuse"
    level: float | str | None = None

    @classmethod
    def of(cls, model: TableModel, **more: Any) -> FolderWork:
        """Return work with a model."""
        with tempfile.TemporaryDirectory(prefix="aloof-") as place:
            folder = Path(place) / "model"
            model.save(folder)
            return cls({path.name: path.read_bytes() for path in folder.iterdir()}, **more)

    @property
    def key(self) -> str:
        """What tells this work from others."""
        digest = hashlib.sha256(repr((self.options, self.missing_columns)).encode())
        for name in sorted(self.model):
            digest.update(self.model[name])
        return digest.hexdigest()

    def open_model(self, device: str = "auto") -> TableModel:
        """Return the model."""
        from aloof.models.table.model import TableModel

        with tempfile.TemporaryDirectory(prefix="aloof-") as place:
            for name, content in self.model.items():
                (Path(place) / name).write_bytes(content)
            return TableModel.load(place, device=device)

    def start(self, model: TableModel | None = None) -> Callable[[FileTask], Any]:
        """Load the model, and return what carries out a task."""
        opened = (model or self.open_model())._accepting(self.missing_columns)

        def carry_out(task: FileTask) -> Any:
            read = task.fingerprint()
            if self.level == "count":
                done = _counts(opened, task)
            else:
                level = None if self.level is None else float(self.level)
                done = _scored(opened, task, dict(self.options), level)
            # Here, not where the work came from: that may be gone.
            note = {"what": self.what, "input": read, "done": done}
            _write(task.note(self.what), note)
            return done

        return carry_out

    @property
    def what(self) -> str:
        """What comes of a task, in a word that notes are told apart by."""
        return f"scores {self.level!r}" if self.level != "count" else "counts"


def is_folder(out: str | os.PathLike[str]) -> bool:
    """Say whether a name is that of a folder to write to: it ends in a slash, or is one."""
    name = os.fspath(out)
    if name == "-":
        return False
    return name.endswith(("/", os.sep)) or (not is_remote(name) and Path(name).is_dir())


def score_folder(
    model: TableModel,
    data: Any,
    out: str | os.PathLike[str],
    *,
    reasons: int = 3,
    keep: Sequence[str] = (),
    keep_all: bool = False,
    flagged_only: bool = False,
    missing_columns: MissingColumns = "refuse",
    harmless: Sequence[Harmless] = (),
    resume: bool = False,
    force: bool = False,
    pool: FolderPool | None = None,
    progress: Progress | None = None,
) -> ScoredFolder:
    """Score each file of a folder into a file of the same name in another.

    Parquet files of more than 512 MiB are done in pieces of about 4 million rows. A false
    discovery rate is decided over the rows of all files, which are then scored twice.

    Parameters
    ----------
    model
        What scores.
    data
        A folder, a glob, a file or a `Source`.
    out
        The folder. It may be elsewhere, as s3://bucket/scores.
    reasons, keep, keep_all, flagged_only, missing_columns, harmless
        See `TableModel.score_file`.
    resume
        Keep the files of an earlier run that are done, unless their input has changed since.
        It must have been a run of the same model with the same options.
    force
        Replace files that are there.
    pool
        Who scores; None: this process, one file after the other.
    progress
        Called with how many files are done, and how many there are.
    """
    source = model.read(data)
    if not isinstance(source, Source):
        raise TableError("A frame in memory has no files. Use score, or score_file.")
    if not source.paths:
        raise TableError("Standard input has no files. Name a folder, or write to one file.")
    place = path_of(os.fspath(out).rstrip("/" + os.sep) or os.sep)
    tasks = list(_tasks(source, place))
    options = {"reasons": reasons, "keep": tuple(keep), "keep_all": keep_all}
    options |= {"flagged_only": flagged_only, "harmless": tuple(harmless)}
    work = FolderWork.of(model, options=options, missing_columns=missing_columns)
    notes = _Notes(place, _dependencies(model, work), resume=resume, force=force)
    run = _FolderRun(model, work, tasks, notes, pool or _Here(model), progress)
    if model.threshold.fdr is None:
        return run.score(None, "")
    counts = run.count()
    decision = model.detector.decision_
    return run.score(decision.level(counts), decision.why_none(counts))


@dataclass(frozen=True)
class _FolderRun:
    model: TableModel
    work: FolderWork
    tasks: list[FileTask]
    notes: _Notes
    pool: FolderPool
    progress: Progress | None

    def count(self) -> Any:
        """Return how many rows of all files have which p-value."""
        done = self._carried_out(replace(self.work, level="count"))
        return sum((np.asarray(each["counts"]) for each, _ in done), self._no_counts())

    def score(self, level: float | None, remark: str) -> ScoredFolder:
        """Write the scores of all files."""
        found = self._carried_out(replace(self.work, level=level))
        results = [(FileDone(**_read_done(each)), was_there) for each, was_there in found]
        names = [task.name for task in self.tasks]
        told = list(zip(names, results, strict=True))
        return ScoredFolder(
            len(results),
            sum(done.n_rows for done, _ in results),
            sum(done.n_anomalies for done, _ in results),
            sum(done.n_rows for done, was_there in results if was_there),
            {name: done.drift for name, (done, _) in told if done.drift},
            remark,
            {name: done.remarks for name, (done, _) in told if done.remarks},
            sum(done.n_suppressed for done, _ in results),
        )

    def _no_counts(self) -> Any:
        return self.model.detector.decision_.counts(())

    def _carried_out(self, work: FolderWork) -> list[tuple[Any, bool]]:
        """Return what came of each task, and whether that was known before."""
        known = [self.notes.read(task, work.what) for task in self.tasks]
        todo = [place for place, note in enumerate(known) if note is None]
        results: list[Any] = list(known)
        failed: dict[str, str] = {}
        self._tell(len(known) - len(todo))
        outcomes = self.pool(work, [self.tasks[place] for place in todo]) if todo else ()
        for n, (number, outcome) in enumerate(outcomes, start=1):
            task = self.tasks[todo[number]]
            if isinstance(outcome, BaseException):
                failed[task.name] = _reason(outcome)
            else:
                results[todo[number]] = outcome
            self._tell(len(known) - len(todo) + n)
        if failed:
            raise TableError(_failure(failed, len(self.tasks)))
        return [(result, note is not None) for result, note in zip(results, known, strict=True)]

    def _tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, len(self.tasks))


class _Here:
    """Scores in this process, one file after the other."""

    def __init__(self, model: TableModel) -> None:
        self._model = model

    def __call__(self, work: FolderWork, tasks: Sequence[FileTask]) -> Iterator[_Outcome]:
        score = work.start(self._model)
        for place, task in enumerate(tasks):
            try:
                yield place, score(task)
            except AloofError as error:
                yield place, error


class _Notes:
    """What is known of finished tasks, in a folder beside their files."""

    def __init__(
        self, place: FilePath, run: Mapping[str, str], *, resume: bool, force: bool
    ) -> None:
        self._place, self._run = place, dict(run)
        there = _content(place)
        if there and not resume and not force:
            raise TableError(
                f"{place} is not empty. Choose another folder, continue an earlier run with "
                "resume=True (--resume), or replace files of the same names with force=True "
                "(--force)."
            )
        before = _read_json(place / _NOTES / _RUN) if there and resume else None
        self._is_used = before is not None
        if before is not None and not force:
            other = [word for word in self._run if before.get(word) != self._run[word]]
            if other:
                raise TableError(
                    f"The earlier run into {place} had another {' and another '.join(other)}, "
                    "so it cannot continue. Use the same again, or score into another folder."
                )
        self._is_used &= before == self._run
        if resume and there and before is None:
            raise TableError(
                f"{place} holds files, but no run to continue. Choose another folder, or "
                "replace files of the same names with force=True (--force)."
            )
        _write(place / _NOTES / _RUN, self._run)

    def read(self, task: FileTask, what: str) -> Any:
        """Return what came of a task, if that was done and holds; None: it was not."""
        if not self._is_used:
            return None
        note = _read_json(task.note(what))
        if note is None or note.get("input") != task.fingerprint() or note["what"] != what:
            return None
        if what != "counts" and not path_of(task.out).exists():
            return None
        return note["done"]


def _tasks(source: Source, out: FilePath) -> Iterator[FileTask]:
    """Yield what to do: the files of a source, large ones in pieces."""
    root, notes = _root(source), str(out / _NOTES)
    for path in source.paths:
        name = str(path).replace(os.sep, "/").removeprefix(root).lstrip("/")
        one = replace(source, paths=(path,), name=str(path))
        is_table = can_be_written(path) and ending_of(path) != ".txt"
        target = name if is_table else f"{name}.parquet"
        pieces: list[tuple[int, int]] = []
        if isinstance(source.format, Parquet) and path.stat().st_size > _LARGE:
            pieces = source.format.pieces(path, _PIECE)
        if len(pieces) < 2:
            yield FileTask(one, str(out / target), target, notes)
            continue
        ending = ending_of(path) or ""
        for number, groups in enumerate(pieces):
            piece = f"{target.removesuffix(ending)}-{number:05}{ending}"
            part = replace(one, format=Parquet(groups))
            yield FileTask(part, str(out / piece), piece, notes)


def _root(source: Source) -> str:
    """Return the folder that names of files are said from: what the user wrote, if it is one.

    It must not depend on which files there are: more may come.
    """
    text = str(path_of(source.name)).replace(os.sep, "/").rstrip("/")
    if any(str(path).replace(os.sep, "/") == text for path in source.paths):
        return text.rpartition("/")[0]
    parts = text.split("/")
    magic = (place for place, part in enumerate(parts) if has_magic(part))
    return "/".join(parts[: next(magic, len(parts))])


def _scored(
    model: TableModel, task: FileTask, options: dict[str, Any], level: float | None
) -> dict[str, Any]:
    """Score a file into another; return what `FileDone` holds, as JSON can."""
    remarks: list[str] = []
    target = path_of(task.out)
    if isinstance(target, Path):
        target.parent.mkdir(parents=True, exist_ok=True)
    if task.source.n_rows == 0:
        _write_empty(model, task, options)
        return asdict(FileDone(0, 0))
    try:
        done = score_whole(
            model,
            task.source,
            task.out,
            **options,
            level=level,
            warn=lambda warning: remarks.append(str(warning)),
        )
    except pa.ArrowException as error:
        raise TableError(
            f"{task.source.name}: a column has values of several types ({first_line(error)}). "
            "Score it into a file of its own."
        ) from error
    said = {each.words for each in done.drift}
    told = tuple(words for words in remarks if words not in said)
    return asdict(FileDone(done.n_rows, done.n_anomalies, done.drift, told, done.n_suppressed))


def _write_empty(model: TableModel, task: FileTask, options: Mapping[str, Any]) -> None:
    """Write a table without rows, as engines do for parts of which nothing is left."""
    source = task.source
    assert isinstance(source.format, Parquet)  # others do not say how many rows they have
    names = model.copied(source.names, options["keep"], options["keep_all"])
    there = source.format.schema(source.paths[0])
    scores = PartScores(model, (), options["reasons"], harmless=options["harmless"])
    schema = scores.schema(map(there.field, names))
    write_table(task.out, schema.empty_table(), force=True)


def _counts(model: TableModel, task: FileTask) -> dict[str, Any]:
    """Return how many rows of a file have which p-value."""
    scores = PartScores(model, (), 0)
    decision, counts = scores.decision, scores.decision.counts(())
    if task.source.n_rows == 0:
        return {"counts": counts.tolist()}
    for batch in task.source.batches(scores.columns(task.source.names)):
        part = scores.score(pa.Table.from_batches([batch]), lambda warning: None)
        counts = counts + decision.counts(part["anomaly_score"].to_numpy())
    return {"counts": counts.tolist()}


def _dependencies(model: TableModel, work: FolderWork) -> dict[str, str]:
    found = PartScores(model, (), 0).fingerprints()
    options = [dict(work.options), work.missing_columns]
    return {
        "model": found["model"],
        "threshold": found["threshold"],
        "choice of options": json.dumps(options, default=str),
        "version of aloof": __version__,
    }


def _read_done(note: Mapping[str, Any]) -> dict[str, Any]:
    drift = tuple(Drift(**each) for each in note["drift"])
    return {**note, "drift": drift, "remarks": tuple(note["remarks"])}


def _content(place: FilePath) -> bool:
    """Say whether there is something in a folder."""
    if isinstance(place, RemotePath):
        return place.is_dir() and bool(place.files())
    if place.exists() and not place.is_dir():
        raise TableError(f"{place} is a file, not a folder.")
    return place.is_dir() and any(place.iterdir())


def _read_json(path: FilePath) -> Any:
    with suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def _write(path: FilePath, content: Any) -> None:
    text = json.dumps(content)
    if isinstance(path, RemotePath):
        with sending(path, TableError) as here:
            here.write_text(text, encoding="utf-8")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text, TableError, sync=False)


def _reason(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return words if isinstance(error, AloofError) else f"{type(error).__name__}: {words}"


def _failure(failed: Mapping[str, str], n: int) -> str:
    shown: Iterable[str] = list(failed)[:_SHOWN]
    more = f" (and {len(failed) - _SHOWN} more)" if len(failed) > _SHOWN else ""
    reasons = "; ".join(f"{name}: {failed[name].rstrip('.')}" for name in shown)
    return (
        f"{len(failed):,} of {count(n, 'file')} could not be scored: {reasons}{more}. The "
        "others are done; when that is put right, continue with resume=True (--resume)."
    )
