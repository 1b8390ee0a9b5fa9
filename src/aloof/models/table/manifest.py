"""What the manifest says of a table."""

from __future__ import annotations

from typing import Any

from aloof.io.sections import Count, Section, Text
from aloof.models.manifest import Training

__all__ = ["TableManifest", "TableTraining"]


class TableTraining(Training):
    """What the model of a table was made from."""

    n_rows: Count
    n_used: Count


class TableManifest(Section):
    """What a `TableModel` has beside its detector."""

    encoder: dict[str, Any]  # checks its own state
    label: Text | None
    id: Text | None
    drop: list[Text]
    anomaly_value: Text | None
    training: TableTraining
