"""A sample of a table that does not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.tabular.files import Source, joined_table

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
    drawn, kept = _Reservoir(n), _Reservoir(n)
    seen = n_kept = 0
    for batch in source.batches(columns):
        ranks = generator.random(batch.num_rows)
        places = np.arange(seen, seen + batch.num_rows)
        seen += batch.num_rows
        if keep is not None:
            wanted = np.asarray(keep(batch), bool)
            n_kept += int(wanted.sum())
            kept.add(batch, ranks, places, wanted)
            drawn.add(batch, ranks, places, ~wanted)
        else:
            drawn.add(batch, ranks, places, np.ones(batch.num_rows, bool))
    drawn.shrink()
    kept.shrink()
    order = np.argsort(np.concatenate([*drawn.places, *kept.places]))
    table = joined_table([*drawn.batches, *kept.batches]).take(pa.array(order))
    return Sample(table, seen, n_kept)


class _Reservoir:
    """The `n` rows with the lowest ranks of all that were added."""

    def __init__(self, n: int) -> None:
        self.n, self.bound = n, np.inf
        self.batches: list[pa.RecordBatch] = []
        self.ranks: list[NDArray[np.float64]] = []
        self.places: list[NDArray[np.int64]] = []

    def add(
        self,
        batch: pa.RecordBatch,
        ranks: NDArray[np.float64],
        places: NDArray[np.int64],
        wanted: NDArray[np.bool_],
    ) -> None:
        """Take the wanted rows, as far as they are among the lowest yet."""
        wanted = wanted & (ranks < self.bound)
        if not wanted.any():
            return
        self.batches.append(batch.filter(pa.array(wanted)))
        self.ranks.append(ranks[wanted])
        self.places.append(places[wanted])
        if sum(map(len, self.ranks)) > 2 * self.n:
            self.shrink()

    def shrink(self) -> None:
        """Forget all but the lowest."""
        if sum(map(len, self.ranks)) <= self.n:
            return
        self.bound = float(np.partition(np.concatenate(self.ranks), self.n - 1)[self.n - 1])
        masks = [ranks <= self.bound for ranks in self.ranks]
        left = [b.filter(pa.array(m)) for b, m in zip(self.batches, masks, strict=True)]
        lowest = np.concatenate(masks)
        self.batches = joined_table(left).combine_chunks().to_batches()
        self.ranks = [np.concatenate(self.ranks)[lowest]]
        self.places = [np.concatenate(self.places)[lowest]]
