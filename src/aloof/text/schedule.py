"""How long to learn from vectors of documents."""

from __future__ import annotations

from math import ceil
from typing import Any

__all__ = ["schedule"]

# Steps. A few labelled documents are soon known by heart, and then their wording counts: they
# join for the last steps alone.
_STEPS, _WITH_ANOMALIES = 3000, 70
_FEWEST, _MOST = 10, 150  # passes over all documents


def schedule(n_documents: int, *, batch_size: int = 128) -> dict[str, Any]:
    """Return the parameters of a detector of documents.

    Examples
    --------
    >>> schedule(10_000)
    {'max_epochs': 38, 'warmup_epochs': 37}
    >>> schedule(500)
    {'max_epochs': 150, 'warmup_epochs': 132}
    """
    steps = max(1, ceil(n_documents / batch_size))
    epochs = min(max(round(_STEPS / steps), _FEWEST), _MOST)
    return {
        "max_epochs": epochs,
        "warmup_epochs": epochs - max(1, ceil(_WITH_ANOMALIES / steps)),
    }
