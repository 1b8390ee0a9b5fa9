"""Why rows of a table have their scores, column by column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.models.table.encoder import TableEncoder
from aloof.scoring import Explanation

__all__ = ["TableExplanation"]

# A reason contributes at least this part of what the first one does.
_LEAST = 0.1


@dataclass(frozen=True)
class TableExplanation:
    """What every column contributes to the anomaly scores of some rows.

    Attributes
    ----------
    columns
        The names of the columns that are used.
    contributions
        ``(n, n_columns)``; higher is more anomalous, and a row adds up to its score.
    reconstruction, latent
        The two parts of the contributions: how badly a column was reconstructed, and how far
        it moved the row's latent code from where normal rows are.
    score
        The rows' anomaly scores, ``(n,)``.
    values, expected
        For each column what is there and what was expected, as `TableEncoder.read` gives it:
        numbers (NaN: missing), text (None: missing) or times (NaT: missing).
    encoder
        What encoded the rows.
    by_feature, expected_features
        Contributions of the encoded features, and what was expected of them before
        `TableEncoder.gain`, ``(n, n_features)``.
    absent
        Columns that the table lacks and that were filled: no row is stranger than another
        because of them, so that they are no reason.
    """

    columns: tuple[str, ...]
    contributions: NDArray[np.float64]
    reconstruction: NDArray[np.float64]
    latent: NDArray[np.float64]
    score: NDArray[np.float64]
    values: dict[str, NDArray[Any]]
    expected: dict[str, NDArray[Any]]
    encoder: TableEncoder
    by_feature: NDArray[np.float64]
    expected_features: NDArray[np.float64]
    absent: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        encoder: TableEncoder,
        found: Explanation,
        values: dict[str, NDArray[Any]],
        absent: Iterable[str] = (),
    ) -> TableExplanation:
        """Return the explanation of encoded rows as one of columns.

        Parameters
        ----------
        encoder
            What encoded the rows.
        found
            Their explanation.
        values
            What was encoded, as `TableEncoder.read` gives it.
        absent
            Columns that were not there, and were filled.
        """
        reconstruction = encoder.sum_by_column(found.reconstruction)
        latent = encoder.sum_by_column(found.latent)
        return cls(
            columns=encoder.names,
            contributions=reconstruction + latent,
            reconstruction=reconstruction,
            latent=latent,
            score=found.score,
            values=values,
            expected=encoder.decode(found.expected),
            encoder=encoder,
            by_feature=found.contributions,
            expected_features=found.expected / encoder.gain,
            absent=frozenset(absent),
        )

    def order(self, top: int | None = None) -> NDArray[np.intp]:
        """Return the indices of each row's columns, ``(n, top)``, the first reason first."""
        return np.argsort(-self._counting, axis=1, kind="stable")[:, :top]

    @property
    def _counting(self) -> NDArray[np.float64]:
        """The contributions of what can be a reason."""
        out = np.array([name in self.absent for name in self.columns])
        return np.where(out, -np.inf, self.contributions)

    def reasons(self, top: int = 3) -> list[list[str]]:
        """Return the first reasons of each row in words.

        There are fewer than `top` where the other columns matter little: less than a tenth of
        the first reason.
        """
        order = self.order(top)
        reasons = np.empty(order.shape, dtype=object)
        for index, column in enumerate(self.encoder.columns):
            rows, places = np.nonzero(order == index)
            features = np.flatnonzero(self.encoder.owners == index)
            reasons[rows, places] = column.reasons(
                self.values[column.name][rows],
                self.expected[column.name][rows],
                self.by_feature[np.ix_(rows, features)],
                self.expected_features[np.ix_(rows, features)],
            )
        sizes = np.take_along_axis(self._counting, order, axis=1)
        told = (sizes >= _LEAST * sizes[:, :1]).sum(axis=1)
        return [row[:n] for row, n in zip(reasons.tolist(), told, strict=True)]
