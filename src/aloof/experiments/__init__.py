"""The paper's experiments: who trains on which rows, and what comes out.

>>> from aloof.experiments import make_experiment
>>> make_experiment({"datasets": "cardio", "methods": ["dp", "vae"], "seeds": 3}).conditions
((0.01, 0.0),)

An experiment is turned into a plan (`make_plan`), the plan is run into a folder (`run_plan`),
and tables are made from the records (`write_tables`).
"""

from aloof.exceptions import ExperimentError
from aloof.experiments.experiment import Experiment, make_experiment, read_options
from aloof.experiments.plan import Plan, make_plan
from aloof.experiments.protocol import (
    Split,
    make_split,
    read_split,
    split_digest,
    split_record,
    standardise,
    training_rows,
)
from aloof.experiments.records import read_records
from aloof.experiments.results import write_plot, write_tables
from aloof.experiments.runner import run_plan

__all__ = [
    "Experiment",
    "ExperimentError",
    "Plan",
    "Split",
    "make_experiment",
    "make_plan",
    "make_split",
    "read_options",
    "read_records",
    "read_split",
    "run_plan",
    "split_digest",
    "split_record",
    "standardise",
    "training_rows",
    "write_plot",
    "write_tables",
]
