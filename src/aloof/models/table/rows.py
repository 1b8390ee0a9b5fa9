"""Rows scored where engines have them: any number of batches, anywhere, each by itself."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from aloof.exceptions import TableError, TableWarning
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.folders import FolderWork
from aloof.models.table.harmless import Harmless
from aloof.models.table.labelling import check_column
from aloof.models.table.model import TableModel
from aloof.models.table.scores import PartScores, Verdict

__all__ = ["RowScorer"]


@dataclass(frozen=True)
class RowScorer:
    """A model and what it is to say about rows; can be sent to other processes.

    Attributes
    ----------
    work
        The model.
    keep
        Columns to copy, with the id.
    keep_all
        Copy all columns.
    reasons
        How many reasons to give.
    harmless
        Rows that are not flagged, whatever their scores.
    """

    work: FolderWork
    keep: tuple[str, ...]
    keep_all: bool
    reasons: int
    harmless: tuple[Harmless, ...] = ()

    @classmethod
    def of(
        cls,
        model: TableModel | str | os.PathLike[str],
        *,
        reasons: int = 3,
        keep: Sequence[str] = (),
        keep_all: bool = False,
        missing_columns: MissingColumns = "refuse",
        harmless: Sequence[Harmless] = (),
    ) -> RowScorer:
        """Return what scores with a model, or with that of a folder."""
        if not isinstance(model, TableModel):
            model = TableModel.load(model, device="cpu")
        if model.threshold.fdr is not None:
            raise TableError(
                f"The model flags by {model.threshold}, which needs all rows at once; here "
                "each batch is by itself. Score a folder (aloof score), or choose another "
                "rule: aloof threshold MODEL --share 0.01"
            )
        work = FolderWork.of(model, options={}, missing_columns=missing_columns)
        kept = model.copied((), keep, keep_all=False)
        return cls(work, kept, keep_all, reasons, tuple(harmless))

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return which columns of a table are copied."""
        return list(dict.fromkeys([*self.keep, *(names if self.keep_all else ())]))

    def schema(self, table: pa.Schema) -> pa.Schema:
        """Return names and types of what comes out of tables with these columns."""
        kept = self.columns(table.names)
        for name in kept:
            check_column(name, table.names, "output")
        model = _opened(self.work)
        scores = PartScores(model, (), self.reasons, harmless=self.harmless)
        taken = scores.schema(())
        if both := sorted({*kept} & {*taken.names}):
            raise TableError(
                f"Cannot keep column {both[0]!r}: the scores have a column of that name. "
                "Rename it."
            )
        known = [n for n in table.names if n not in kept or n in model.columns]
        scores.check(known, _ignore)
        return pa.schema([*(table.field(name) for name in kept), *taken])

    def start(self) -> Callable[[pa.Table], pa.Table]:
        """Load the model, once in a process; return what scores a table."""
        scores = PartScores(_opened(self.work), (), self.reasons, harmless=self.harmless)
        verdict = Verdict(scores.schema(()), scores.least)

        def score(table: pa.Table) -> pa.Table:
            kept = self.columns(table.column_names)
            part = scores.score(table, _issue).replace_schema_metadata(None)
            found = scores.settle(part, verdict)
            columns = {name: table[name] for name in kept}
            columns |= {name: found[name] for name in found.column_names}
            return pa.table(columns)

        return score


# The models of this process, by what tells them apart: it may get many pieces of the work.
_MODELS: dict[str, TableModel] = {}


def _opened(work: FolderWork) -> TableModel:
    key = work.key
    if key not in _MODELS:
        _MODELS.clear()
        _MODELS[key] = work.open_model()._accepting(work.missing_columns)
    return _MODELS[key]


def _ignore(warning: TableWarning) -> None:
    pass


def _issue(warning: TableWarning) -> None:
    warnings.warn(warning, stacklevel=4)
