"""Tables: any frame or file in, encoded for a detector, and results out again."""

from aloof.models.table.encoder import Feature, TableEncoder, Unreadable
from aloof.models.table.explanation import TableExplanation
from aloof.models.table.files import Source, open_source
from aloof.models.table.fitting import fit
from aloof.models.table.frames import like, to_table
from aloof.models.table.model import TableModel
from aloof.models.table.outputs import check_output, open_output, write_table
from aloof.models.table.sampling import Sample, sample
from aloof.models.table.streaming import score_file

__all__ = [
    "Feature",
    "Sample",
    "Source",
    "TableEncoder",
    "TableExplanation",
    "TableModel",
    "Unreadable",
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
