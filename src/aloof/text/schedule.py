"""How long to learn from vectors of documents."""

from __future__ import annotations

from math import ceil

__all__ = ["schedule"]

# Steps. A few labelled documents are soon known by heart, and then their wording counts: they
# join for the last steps alone.
_STEPS, _WITH_ANOMALIES = 3000, 70
_FEWEST, _MOST = 10, 150  # passes over all documents


def schedule(
    n_documents: int, *, batch_size: int = 128, max_epochs: int | None = None
) -> dict[str, int]:
    """Return the parameters of a detector that learns from documents, some of them labelled.

    Parameters
    ----------
    n_documents
        Those that are not labelled as anomalies.
    batch_size
        Of them.
    max_epochs
        Where it is given, the other parameters follow from it.

    Examples
    --------
    >>> schedule(10_000)
    {'max_epochs': 38, 'warmup_epochs': 37, 'anomaly_interval': 1}
    >>> schedule(500)
    {'max_epochs': 150, 'warmup_epochs': 132, 'anomaly_interval': 1}
    >>> schedule(100_000)
    {'max_epochs': 10, 'warmup_epochs': 9, 'anomaly_interval': 11}
    """
    steps = max(1, ceil(n_documents / batch_size))
    epochs = max_epochs or min(max(round(_STEPS / steps), _FEWEST), _MOST)
    return {
        "max_epochs": epochs,
        "warmup_epochs": max(0, epochs - ceil(_WITH_ANOMALIES / steps)),
        "anomaly_interval": max(1, steps // _WITH_ANOMALIES),
    }
