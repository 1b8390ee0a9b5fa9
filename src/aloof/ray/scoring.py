"""Scores on a Ray cluster: of the files of a folder, or of a Ray data set.

The model is loaded once in each worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from aloof.exceptions import TableError
from aloof.models.table import TableModel
from aloof.models.table.encoder import MissingColumns
from aloof.models.table.folders import FileTask, FolderPool, FolderWork
from aloof.models.table.harmless import Harmless
from aloof.models.table.rows import RowScorer
from aloof.ray.pool import RayPool, WorkerDied, connected

__all__ = ["folder_pool", "score"]


def folder_pool(n_workers: int | None = None) -> FolderPool:
    """Return what scores the files of a folder on a cluster; see `TableModel.score_folder`.

    Parameters
    ----------
    n_workers
        How many workers, each with one processor; None: as many as the cluster has.
    """

    def pool(work: FolderWork, tasks: Sequence[FileTask]) -> Iterator[tuple[int, Any]]:
        workers = RayPool(n_workers, work.start)
        try:
            for place, found in workers.results([(task,) for task in tasks]):
                died = isinstance(found, WorkerDied)
                yield place, TableError(str(found)) if died else found
        finally:
            workers.close()

    return pool


def score(
    dataset: Any,
    model: TableModel | str | os.PathLike[str],
    *,
    reasons: int = 3,
    keep: Sequence[str] = (),
    keep_all: bool = False,
    missing_columns: MissingColumns = "refuse",
    harmless: Sequence[Harmless] = (),
    workers: int | tuple[int, int] | None = None,
    **options: Any,
) -> Any:
    """Return the scores of a Ray data set, as one; nothing is computed until it is asked for.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``.
    model
        What scores, or its folder. A false discovery rate is refused: it needs all rows.
    reasons, keep, keep_all, missing_columns, harmless
        See `TableModel.score_file`.
    workers
        How many have the model: a number, or the least and the most. None: as Ray sees fit.
    **options
        Of ``Dataset.map_batches``, such as ``batch_size`` or ``num_gpus``.
    """
    connected()
    scorer = RowScorer.of(
        model,
        reasons=reasons,
        keep=keep,
        keep_all=keep_all,
        missing_columns=missing_columns,
        harmless=harmless,
    )
    if workers is not None:
        options["concurrency"] = workers
    return dataset.map_batches(
        _Scorer, fn_constructor_args=(scorer,), batch_format="pyarrow", **options
    )


class _Scorer:
    """What scores batches in a worker of Ray Data."""

    def __init__(self, scorer: RowScorer) -> None:
        self._score = scorer.start()

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self._score(batch)
