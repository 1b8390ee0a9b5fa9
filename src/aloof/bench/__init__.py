"""Benchmarks: who trains on which rows, and what comes out.

A study (`aloof.bench.odds`, `tabular`, `images`, `text`, `planning`) says what its cases are,
what a result depends on, what runs it and how its table looks. Specification, resuming,
records, processes, statistics and tables are here, once.

>>> from aloof.bench import specify
>>> from aloof.bench.odds import OddsSpecification
>>> specify(OddsSpecification, {"datasets": "cardio", "methods": ["dp", "vae"]}).conditions
((0.01, 0.0),)
"""

from aloof.bench.identity import Identity
from aloof.bench.records import read_records
from aloof.bench.runner import run_study, stored, write_tables
from aloof.bench.specification import Specification, read_options, specify
from aloof.bench.splits import (
    Split,
    make_split,
    read_split,
    split_record,
    standardise,
    training_rows,
)
from aloof.bench.study import Group, Study, Where
from aloof.exceptions import ExperimentError

__all__ = [
    "ExperimentError",
    "Group",
    "Identity",
    "Specification",
    "Split",
    "Study",
    "Where",
    "make_split",
    "read_options",
    "read_records",
    "read_split",
    "run_study",
    "specify",
    "split_record",
    "standardise",
    "stored",
    "training_rows",
    "write_tables",
]
