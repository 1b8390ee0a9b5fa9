"""A sample of a table that does not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.models.table.files import Source, joined_table
from aloof.models.table.lowest import Lowest, Rows

__all__ = ["Sample", "sample"]


@dataclass(frozen=True)
class Sample:
    """Rows of a table, in their order.

    Attributes
    ----------
    table
        The rows.
    n_rows
        How many there were to choose from.
    n_kept
        How many of them were to be kept whatever happens.
    """

    table: pa.Table
    n_rows: int
    n_kept: int


def sample(
    source: Source,
    n: int,
    seed: int,
    *,
    keep: Callable[[pa.RecordBatch], NDArray[np.bool_]] | None = None,
    columns: Sequence[str] | None = None,
) -> Sample:
    """Draw rows at random in one pass, with memory for twice as many.

    Parameters
    ----------
    source
        See `open_source`.
    n
        How many rows; all if there are no more.
    seed
        Decides which; how the rows are spread over files does not.
    keep
        Which rows of a batch to take in any case, such as the labelled anomalies. If they are
        more than `n`, they are drawn from as well.
    columns
        Which columns to read; all by default.
    """
    if n < 1:
        raise TableError(f"A sample must have at least one row; got n={n}.")
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    drawn, kept = Lowest(n), Lowest(n)
    seen = n_kept = 0
    for batch in source.batches(columns):
        ranks = generator.random(batch.num_rows)
        places = np.arange(seen, seen + batch.num_rows)
        rows = Rows(pa.Table.from_batches([batch]), {"places": places})
        seen += batch.num_rows
        wanted = np.zeros(batch.num_rows, bool) if keep is None else keep(batch)
        n_kept += int(wanted.sum())
        kept.add(rows, np.where(wanted, ranks, np.inf))
        drawn.add(rows, np.where(wanted, np.inf, ranks))
    parts = [drawn.rows(), kept.rows()]
    order = np.argsort(np.concatenate([part["places"] for part in parts]))
    table = joined_table([b for part in parts for b in part.table.to_batches()])
    return Sample(table.take(pa.array(order)), seen, n_kept)
