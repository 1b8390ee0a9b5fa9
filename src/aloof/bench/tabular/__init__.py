"""Any tables: three protocols, many systems, development tasks by name or a folder of files."""

from aloof.bench.tabular.protocols import (
    PROTOCOLS,
    Condition,
    Protocol,
    cluster_kinds,
    labelled_kind,
    make_protocol_split,
)

__all__ = [
    "PROTOCOLS",
    "Condition",
    "Protocol",
    "cluster_kinds",
    "labelled_kind",
    "make_protocol_split",
]
