"""What happened in each epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["History"]


class History:
    """Curves ``(epochs, members)`` by name, as the learner gives them.

    ``loss`` is what was minimised, ``validation`` the loss of held-out rows where there are
    any. ``learning_rate`` is one value an epoch.
    """

    def __init__(self, curves: Mapping[str, NDArray[np.float64]] | None = None) -> None:
        self._rows: dict[str, list[NDArray[np.float64]]] = {
            name: list(values) for name, values in (curves or {}).items()
        }

    def append(self, record: Mapping[str, NDArray[np.float64]]) -> None:
        """Add an epoch."""
        for name, values in record.items():
            self._rows.setdefault(name, []).append(np.asarray(values, np.float64))

    def curves(
        self, members: Sequence[int] | slice = slice(None)
    ) -> dict[str, NDArray[np.float64]]:
        """Return the curves of some members; those without a member axis as they are."""
        arrays = {name: np.stack(rows) for name, rows in self._rows.items()}
        return {
            name: values[:, members] if values.ndim == 2 else values
            for name, values in arrays.items()
        }
