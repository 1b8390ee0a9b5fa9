"""The paper's experiments: who trains on which rows, and what comes out."""

from aloof.experiments.protocol import (
    Split,
    make_split,
    read_split,
    split_digest,
    split_record,
    standardise,
    training_rows,
)

__all__ = [
    "Split",
    "make_split",
    "read_split",
    "split_digest",
    "split_record",
    "standardise",
    "training_rows",
]
