"""Tables: any frame or file in, encoded for a detector, and results out again."""

from aloof.tabular.encoder import Feature, TableEncoder
from aloof.tabular.explanation import TableExplanation
from aloof.tabular.files import Source, open_source
from aloof.tabular.fitting import fit
from aloof.tabular.frames import like, to_table
from aloof.tabular.model import TableModel
from aloof.tabular.outputs import check_output, open_output, write_table
from aloof.tabular.sampling import Sample, sample
from aloof.tabular.streaming import score_file

__all__ = [
    "Feature",
    "Sample",
    "Source",
    "TableEncoder",
    "TableExplanation",
    "TableModel",
    "check_output",
    "fit",
    "like",
    "open_output",
    "open_source",
    "sample",
    "score_file",
    "to_table",
    "write_table",
]
