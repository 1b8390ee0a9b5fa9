"""What the manifest says of how a model was made."""

from __future__ import annotations

from aloof.io.sections import Count, Section, Text

__all__ = ["Training"]


class Training(Section, extra="allow"):
    """What every model was made from; there may be more to say."""

    source: Text | None
    n_anomalies: Count
    n_labelled_normal: Count
    n_unlabelled: Count
    n_training: Count
    n_calibration: Count
    seed: Count
    warnings: list[Text]
