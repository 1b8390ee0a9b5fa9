"""Score a table of any size in bounded memory; a killed run can be continued.

The rows are scored in parts of a fixed size, which are safe in a folder beside the output as
soon as they are done. At the end they are joined. Only then it is settled what is an anomaly:
a false discovery rate is decided over all rows, through the counts of their p-values.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import torch

from aloof._version import __version__
from aloof.exceptions import TableError, TableWarning, once_of_each
from aloof.io.remote import is_remote, path_of
from aloof.models import Progress, ScoredFile
from aloof.models.table.counting import about_rows
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.files import Source
from aloof.models.table.harmless import Harmless
from aloof.models.table.in_memory import scored_table
from aloof.models.table.locating import MisreadWarning, locating_warnings
from aloof.models.table.outputs import check_output, open_output, write_table
from aloof.models.table.parts import Parts, PartsError
from aloof.models.table.scores import PartScores, Settled, Verdict, chosen_places

if TYPE_CHECKING:
    from aloof.models.table.model import TableModel

__all__ = ["is_unfinished", "score_file", "score_whole"]

# Rows in a part: what is lost when a run is killed, and what each thread has in memory.
_ROWS = 65_536

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def score_file(
    model: TableModel,
    data: Any,
    out: str | os.PathLike[str],
    *,
    reasons: int = 3,
    keep: Sequence[str] = (),
    keep_all: bool = False,
    top: int | None = None,
    flagged_only: bool = False,
    sort: bool = False,
    missing_columns: MissingColumns = "refuse",
    harmless: Sequence[Harmless] = (),
    resume: bool = False,
    force: bool = False,
    warn: Callable[[TableWarning], None] | None = None,
    progress: Progress | None = None,
) -> ScoredFile:
    """Score rows into a file, whatever their number.

    What is written is what `TableModel.score` returns, in the order of the rows. Memory holds
    a few parts of 65,536 rows at a time. On a CPU, as many parts are scored at once as torch
    has threads.

    Parameters
    ----------
    model
        What scores.
    data
        A file, a folder, a glob, "-" for CSV on standard input, a `Source`, or a frame.
    out
        The file to be: .csv, .tsv (with .gz or without), .parquet, .arrow; "-" for CSV on
        standard output. A file appears when all rows are scored, or not at all.
    reasons
        How many reasons to give for rows that are flagged.
    keep
        Columns of the source to copy, besides the id.
    keep_all
        Copy all columns of the source.
    top
        How many rows to flag, whatever their scores: the highest, the earlier of equal ones.
        None: those that the threshold says.
    flagged_only
        Write the rows that are flagged, and no others.
    sort
        Write the highest scores first. Memory holds all rows that are written.
    missing_columns
        See `TableModel.score`.
    harmless
        Rows that are not flagged, whatever their scores; see `aloof.models.table.harmless`.
    resume
        Continue a run of the same model over the same source that was killed, if there is
        one. The result is the same, byte for byte, as if it had not been killed.
    force
        Replace an output that is there; without `resume`, also start anew where a run was not
        finished.
    warn
        Called with warnings about the rows in place of `warnings.warn`.
    progress
        Called with how many rows are done, whenever that changes, and about how many there
        are, if that is known.
    """
    check_output(out, force=force)
    source, model = model.read(data), model._accepting(missing_columns)
    if not isinstance(source, Source):
        if resume:
            raise TableError("A frame in memory is scored in one go: leave out resume.")
        kept = model.copied(source.column_names, keep, keep_all)
        rows, done = scored_table(model, source, kept, reasons, top, harmless)
        places = chosen_places(rows, flagged_only=flagged_only, sort=sort)
        write_table(out, rows.take(pa.array(places)), force=force)
        return done
    kept = model.copied(source.names, keep, keep_all)
    run = _Run(
        source,
        PartScores(model, kept, reasons, top, tuple(harmless)),
        once_of_each(locating_warnings(source, _issue if warn is None else warn)),
        progress or (lambda done, total: None),
        flagged_only,
        sort,
    )
    far = is_remote(out)
    target = None if _is_stream(out) else path_of(out)
    fingerprint = source.fingerprint()
    if resume and far:
        raise TableError(
            "A run that writes one file elsewhere cannot continue later. Score into a folder "
            "there (a name that ends in /), whose finished files are kept; or leave out "
            "resume (--resume)."
        )
    if resume and (target is None or fingerprint is None):
        raise TableError(
            "A run that reads standard input or writes standard output cannot continue "
            "later. Name files, or leave out resume (--resume)."
        )
    run.check()
    if isinstance(target, Path) and fingerprint is not None:
        return run.to_file(target, fingerprint, resume=resume, force=force)
    if target is None and run.scores.each_by_itself:
        return run.straight_to(out)
    with tempfile.TemporaryDirectory(
        prefix=".aloof-", dir=target.parent if isinstance(target, Path) else None
    ) as folder:
        parts = Parts(Path(folder) / "parts", {}, resume=False, force=False)
        run.fill(parts)
        return run.join(parts, out, force=force)


def score_whole(
    model: TableModel,
    source: Source,
    out: str | os.PathLike[str],
    *,
    reasons: int = 3,
    keep: Sequence[str] = (),
    keep_all: bool = False,
    flagged_only: bool = False,
    harmless: Sequence[Harmless] = (),
    level: float | None = None,
    warn: Callable[[TableWarning], None],
) -> ScoredFile:
    """Score a file into another in one go, with nothing beside it to be continued.

    Where several processes do the same, one file is there, and whole.

    Parameters
    ----------
    model, source, out, reasons, keep, keep_all, flagged_only, harmless, warn
        See `score_file`; what is there is replaced.
    level
        The anomaly score above which rows are flagged, where a false discovery rate was
        decided over more rows than these. It has to be there with such a rate.
    """
    run = _Run(
        source,
        PartScores(
            model,
            model.copied(source.names, keep, keep_all),
            reasons,
            harmless=tuple(harmless),
            level=level,
        ),
        once_of_each(locating_warnings(source, warn)),
        lambda done, total: None,
        flagged_only,
        False,
    )
    run.check()
    return run.straight_to(out, typed=True)


@dataclass(frozen=True)
class _Run:
    source: Source
    scores: PartScores
    warn: Callable[[TableWarning], None]
    progress: Progress
    flagged_only: bool
    sort: bool

    def check(self) -> None:
        """Raise before any work is done if the columns do not fit."""
        self.scores.check(self.source.names, self.warn)

    def to_file(
        self, target: Path, fingerprint: str, *, resume: bool, force: bool
    ) -> ScoredFile:
        """Score into parts beside the target, and join them into it."""
        folder = _folder(target)
        depends_on = {
            "input": fingerprint,
            **self.scores.fingerprints(),
            "version of aloof": __version__,
            "size of parts": str(_ROWS),
        }
        parts = Parts(folder, depends_on, resume=resume, force=force)
        resumed, joined = parts.n_rows, folder / f"joined-{target.name}"
        try:
            self.fill(parts)
        except PartsError as error:
            raise _with_advice(error, parts) from error
        except TableError:  # the rows are at fault, and would be again
            parts.discard()
            raise
        finally:
            if not parts.n_rows:
                parts.discard()
        try:
            done = self.join(parts, joined, force=True)
            check_output(target, force=force)
            os.replace(joined, target)
        except (TableError, OSError) as error:
            raise _with_advice(error, parts) from error
        parts.discard()
        return replace(done, n_resumed=resumed)

    def straight_to(self, out: str | os.PathLike[str], *, typed: bool = False) -> ScoredFile:
        """Write rows as they come, where each is decided by itself.

        What is kept is text, or `typed` as in the first part.
        """
        parts = self._scored(0)
        kept = [pa.field(name, pa.string()) for name in self.scores.keep]
        if typed:
            first = next(parts)
            parts = chain([first], parts)
            kept = [first.schema.field(name) for name in self.scores.keep]
        verdict = Verdict(self.scores.schema(kept), self.scores.least)
        return self._write(parts, verdict, out, force=True)

    def fill(self, parts: Parts) -> None:
        """Score the rows that have no part yet."""
        for part in self._scored(parts.n_rows):
            parts.add(part)

    def join(self, parts: Parts, out: str | os.PathLike[str], *, force: bool) -> ScoredFile:
        """Settle what is an anomaly, and write all rows."""
        return self._write(parts, self.scores.verdict(parts), out, force=force)

    def _write(
        self,
        parts: Iterable[pa.Table],
        verdict: Verdict,
        out: str | os.PathLike[str],
        *,
        force: bool,
    ) -> ScoredFile:
        settled, held = Settled(self.scores, verdict), []
        with open_output(out, verdict.schema, force=force) as output:
            for part in parts:
                rows = settled.add(part)
                if self.flagged_only:
                    rows = rows.filter(rows["is_anomaly"])
                if self.sort:
                    held.append(rows)
                else:
                    output.write(rows)
            if self.sort:
                whole = pa.concat_tables(held)
                output.write(whole.take(pa.array(chosen_places(whole, sort=True))))
        model, names = self.scores.model, self.source.names
        return settled.done(model.drift_in(settled.sample, names, settled.n_decided, self.warn))

    def _scored(self, skip: int) -> Iterator[pa.Table]:
        """Yield the parts that follow the first `skip` rows."""
        done, total = skip, about_rows(self.source)
        self.progress(done, total)
        wanted = self.scores.columns(self.source.names)
        batches = self.source.batches(wanted, rows=_ROWS, skip=skip)
        workers = torch.get_num_threads() if self._on_cpu else 1
        for part, remarks in _in_order(self._score, batches, workers):
            first, done = done + 1, done + part.num_rows
            for remark in remarks:
                self.warn(_among(remark, first, done))
            yield part
            self.progress(done, total)

    def _score(self, batch: pa.RecordBatch) -> tuple[pa.Table, list[TableWarning]]:
        remarks: list[TableWarning] = []
        return self.scores.score(pa.Table.from_batches([batch]), remarks.append), remarks

    @property
    def _on_cpu(self) -> bool:
        return self.scores.model.detector.device_.type == "cpu"


def _in_order(
    work: Callable[[_Item], _Result], items: Iterable[_Item], workers: int
) -> Iterator[_Result]:
    """Yield the results of `work` in the order of the items, with one more item in memory.

    Each worker computes by itself. Threads that share one small product wait for each other
    most of the time, and nearly all of it where other programs use the processor as well.
    """
    threads = torch.get_num_threads()
    waiting: deque[Future[_Result]] = deque()
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # threads yet to come would have one as well


def _among(remark: TableWarning, first: int, last: int) -> TableWarning:
    """Return a remark that says which rows it is about, where these are not all."""
    if not isinstance(remark, MisreadWarning) or (first == 1 and last < _ROWS):
        return remark
    misread = remark.misread
    before = f"Rows {first:,} to {last:,}: {misread.before}"
    return MisreadWarning(replace(misread, before=before))


def _with_advice(error: Exception, parts: Parts) -> PartsError:
    if not parts.n_rows:
        return PartsError(str(error))
    return PartsError(
        f"{error} The scores of {parts.n_rows:,} rows are kept in {parts.folder}; to "
        "continue, use resume=True (--resume)."
    )


def is_unfinished(out: str | os.PathLike[str]) -> bool:
    """Say whether a run that was to write this file was killed and can be continued."""
    path = path_of(out)
    return os.fspath(out) != "-" and isinstance(path, Path) and _folder(path).is_dir()


def _folder(target: Path) -> Path:
    return target.with_name(f".{target.name}.parts")


def _is_stream(out: str | os.PathLike[str]) -> bool:
    """Say whether an output is standard output or a device, which cannot be taken back."""
    if is_remote(out):
        return False
    path = path_of(out)
    assert isinstance(path, Path)
    return os.fspath(out) == "-" or (path.exists() and not path.is_file())


def _issue(warning: TableWarning) -> None:
    warnings.warn(warning, stacklevel=4)
