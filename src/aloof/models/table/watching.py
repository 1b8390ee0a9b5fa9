"""Whether rows that keep coming still look like those that were learned from.

Rows are looked at in windows, each of so many rows, one after the other. What is found depends
on the rows and their order, not on how many came at once or how fast: what follows a file and
the server find the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.models.results import Drift
from aloof.models.table.drift import RowSample, drift_lines
from aloof.models.table.encoder import TableEncoder
from aloof.models.table.files import joined_table
from aloof.models.table.lowest import Rows

if TYPE_CHECKING:
    from aloof.models.table.model import TableModel

__all__ = ["WINDOW", "DriftWatch"]

WINDOW = 2000  # rows that are looked at together
_FEWEST = 100
_SEED = 0x616C6F6F66
_AT_ONCE = 512  # rows that wait to be sampled: one by one takes longer
_BYTES = 8 * 2**20  # of a window, more or less
_MOST_NAMES = 1000  # strangers may send any


class DriftWatch:
    """Says in which ways rows differ from those that were learned from, as they come.

    Threads may add rows and look at them at the same time.

    Parameters
    ----------
    model
        What scores.
    rows
        How many rows are looked at together.
    drift
        What was different before, where it goes on; None: it begins.

    Attributes
    ----------
    drift
        What was different at the last look.
    """

    def __init__(
        self, model: TableModel, rows: int = WINDOW, drift: Sequence[Drift] | None = None
    ) -> None:
        if rows < _FEWEST:
            raise TableError(f"Drift is judged over at least {_FEWEST} rows; got {rows}.")
        self._model, self._rows = model, rows
        self.drift: tuple[Drift, ...] = tuple(drift or ())
        # Until the first window is full, it is looked at as far as it has come.
        self._begins = drift is None
        self._lock = threading.RLock()
        self._window = _Window(model.encoder)
        self._full: _Window | None = None

    def add(
        self,
        rows: pa.Table,
        names: Sequence[tuple[int, tuple[str, ...]]],
        flagged: NDArray[np.bool_],
        full: Callable[[], None] = lambda: None,
    ) -> None:
        """Take rows.

        Parameters
        ----------
        rows
            With the columns that are used.
        names
            All columns that they had: of so many rows these, of the next ones those.
        flagged
            Which of them the threshold flags, whether or not they are harmless.
        full
            Called whenever a window is full. Of those that become full before the next look,
            the last one counts.
        """
        ends = np.cumsum([n for n, _ in names])
        with self._lock:
            at = 0
            while at < rows.num_rows:
                n = min(rows.num_rows - at, self._rows - self._window.n_rows)
                first, last = np.searchsorted(ends, [at, at + n - 1], "right")
                given = dict.fromkeys(own for _, own in names[first : last + 1])
                self._window.take(rows.slice(at, n), given, flagged[at : at + n])
                at += n
                if self._window.n_rows == self._rows:
                    self._full, self._window = self._window, _Window(self._model.encoder)
                    self._begins = False
                    full()

    def look(self) -> list[str]:
        """Look at the last full window; return what is new and what is over, in words.

        Before there is a full one, look at what has come.
        """
        with self._lock:
            window, self._full = self._full, None
            if window is None:
                return self._judged(self._window) if self._begins else []
        return self._judged(window)

    def _judged(self, window: _Window) -> list[str]:
        if not window.n_sampled:
            return []
        found = self._model.drift_in(window, [*window.names], window.n_flagged)
        before, now = ({(d.column, d.what): d for d in each} for each in (self.drift, found))
        new = [drift for key, drift in now.items() if key not in before]
        said = [words for words, _ in drift_lines(new)]
        for key, drift in before.items():
            if key not in now:
                name = "rows" if drift.column is None else f"`{drift.column}`"
                said.append(f"{name}: as in training again ({drift.what})")
        self.drift = found
        return said


class _Window(RowSample):
    """Rows that are looked at together: all, or a sample that depends on the rows alone."""

    def __init__(self, encoder: TableEncoder) -> None:
        super().__init__(encoder)
        self._random = np.random.default_rng(_SEED)
        self._waiting: list[pa.Table] = []
        self._n_waiting = self._n_sampled = self._bytes = self.n_flagged = 0
        self.names: dict[str, None] = {}

    @property
    def n_sampled(self) -> int:
        """How many rows there were to choose from."""
        self._sample()
        return self._n_sampled

    def take(
        self, rows: pa.Table, names: Iterable[Sequence[str]], flagged: NDArray[np.bool_]
    ) -> None:
        """Take rows; see `DriftWatch.add`."""
        for each in names:
            if not self.names.keys() >= {*each} and len(self.names) < _MOST_NAMES:
                self.names.update(dict.fromkeys(each))
        self.n_rows += rows.num_rows
        self.n_flagged += int(np.count_nonzero(flagged))
        self._waiting.append(rows)
        self._n_waiting += rows.num_rows
        if self._n_waiting >= _AT_ONCE:
            self._sample()

    def _sample(self) -> None:
        tables, self._waiting, self._n_waiting = self._waiting, [], 0
        if not tables or self._bytes > _BYTES:
            return
        try:
            batches = [batch for table in tables for batch in table.to_batches()]
            rows = self._short(tables[0] if len(tables) == 1 else joined_table(batches))
        except (pa.ArrowException, TableError):  # types that cannot go together
            return
        if rows.num_columns:
            self._lowest.add(Rows(rows, {}), self._random.random(rows.num_rows))
            self._n_sampled += rows.num_rows
            self._bytes += rows.nbytes
