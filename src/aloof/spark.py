"""Scores on Spark: of a data frame by Arrow batches, or of the files of a folder.

The model is sent to the executors with the work and loaded once in each Python worker. They
need aloof installed, and no shared disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from aloof.exceptions import AloofError, MissingExtraError
from aloof.models.table import TableModel
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.folders import FileTask, FolderPool, FolderWork
from aloof.models.table.harmless import Harmless
from aloof.models.table.rows import RowScorer

__all__ = ["folder_pool", "score"]


def score(
    frame: Any,
    model: TableModel | str | os.PathLike[str],
    *,
    reasons: int = 3,
    keep: Sequence[str] = (),
    keep_all: bool = False,
    missing_columns: MissingColumns = "refuse",
    harmless: Sequence[Harmless] = (),
) -> Any:
    """Return the scores of a Spark data frame, as one; Spark computes it when it is asked for.

    Parameters
    ----------
    frame
        A ``pyspark.sql.DataFrame``.
    model
        What scores, or its folder. A false discovery rate is refused: it needs all rows.
    reasons, keep, keep_all, missing_columns, harmless
        See `TableModel.score_file`.
    """
    try:
        from pyspark.sql.pandas.types import from_arrow_schema
    except ImportError as error:
        raise MissingExtraError("pyspark", "spark", "Scoring on Spark") from error
    scorer = RowScorer.of(
        model,
        reasons=reasons,
        keep=keep,
        keep_all=keep_all,
        missing_columns=missing_columns,
        harmless=harmless,
    )
    schema = scorer.schema(pa.schema([(name, pa.null()) for name in frame.columns]))
    kept = scorer.columns(frame.columns)
    said = from_arrow_schema(pa.schema([f for f in schema if f.name not in kept]))
    types = type(frame.schema)([*(frame.schema[name] for name in kept), *said.fields])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        one = None
        for batch in batches:
            one = one or scorer.start()
            if batch.num_rows:
                yield from one(pa.Table.from_batches([batch])).combine_chunks().to_batches()

    return frame.mapInArrow(run, types)


def folder_pool(session: Any) -> FolderPool:
    """Return what scores the files of a folder on Spark; see `TableModel.score_folder`.

    Every executor must reach the files.

    Parameters
    ----------
    session
        A ``pyspark.sql.SparkSession`` with a Spark context (not Spark Connect).
    """

    def pool(work: FolderWork, tasks: Sequence[FileTask]) -> Iterator[tuple[int, Any]]:
        context = session.sparkContext
        sent = context.broadcast(work)

        def run(numbered: Iterator[tuple[int, FileTask]]) -> Iterator[tuple[int, Any]]:
            do = None
            for place, task in numbered:
                do = do or sent.value.start()
                try:
                    yield place, do(task)
                except AloofError as error:
                    yield place, error

        spread = context.parallelize(list(enumerate(tasks)), len(tasks))
        yield from spread.mapPartitions(run).collect()

    return pool
