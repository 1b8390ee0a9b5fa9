"""Any tables: three protocols, many systems, development tasks by name or a folder of files."""

from aloof.bench.tabular.development import DEVELOPMENT, GROUPS
from aloof.bench.tabular.files import Reading, find_tables, read_table
from aloof.bench.tabular.protocols import (
    PROTOCOLS,
    Condition,
    Protocol,
    cluster_kinds,
    labelled_kind,
    make_protocol_split,
)
from aloof.bench.tabular.specification import System, TablesSpecification
from aloof.bench.tabular.study import Case, TablesStudy, make_tables
from aloof.bench.tabular.tasks import TableTask

__all__ = [
    "DEVELOPMENT",
    "GROUPS",
    "PROTOCOLS",
    "Case",
    "Condition",
    "Protocol",
    "Reading",
    "System",
    "TableTask",
    "TablesSpecification",
    "TablesStudy",
    "cluster_kinds",
    "find_tables",
    "labelled_kind",
    "make_protocol_split",
    "make_tables",
    "read_table",
]
