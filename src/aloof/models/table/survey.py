"""One pass over a table: counts of all rows, and some rows to look at, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import TableWarning, once_of_each
from aloof.labels import ANOMALY, UNLABELLED
from aloof.models import Progress
from aloof.models.table.drift import RowSample
from aloof.models.table.files import Source
from aloof.models.table.locating import locating_warnings
from aloof.models.table.lowest import Lowest, Rows
from aloof.models.table.model import TableModel
from aloof.report.findings import Findings, Tally

__all__ = ["Survey", "survey"]

# Rows that stand for all others in pictures, and labelled anomalies shown beside them.
_SAMPLE, _SAMPLE_ANOMALIES = 1500, 300
# Rows with the highest scores that are kept, to say which columns flagged rows have in common.
_HIGHEST = 200


@dataclass(frozen=True)
class Survey(Findings):
    """What was found in a table.

    Rows have the arrays ``encoded``, ``scores``, ``labels``, and ``places``: how many rows
    stand before each.

    Attributes
    ----------
    highest
        The rows with the highest scores, highest first.
    normal
        Rows drawn at random from those that are not labelled as anomalies.
    anomalies
        Rows drawn at random from those that are.
    warnings
        Words about the table.
    """

    highest: Rows
    normal: Rows
    anomalies: Rows
    warnings: tuple[str, ...]


def survey(
    model: TableModel,
    batches: Iterable[pa.RecordBatch],
    *,
    top: int,
    seed: int = 0,
    total: int | None = None,
    source: Source | None = None,
    progress: Progress | None = None,
) -> Survey:
    """Score a stream of rows and keep what a report needs.

    Parameters
    ----------
    model
        What scores them.
    batches
        The rows.
    top
        How many of the highest rows to keep at least.
    seed
        Decides which rows are drawn.
    total
        How many rows there are, if that is known.
    source
        The file they are from, so that lines of it can be named.
    progress
        Called with the number of rows done and the total.
    """
    generator = np.random.default_rng(seed)
    tally = Tally(model.detector.decision_)
    highest, normal = Lowest(max(top, _HIGHEST)), Lowest(_SAMPLE)
    anomalies = Lowest(_SAMPLE_ANOMALIES)
    remarks: list[TableWarning] = []
    warn = once_of_each(locating_warnings(source, remarks.append))
    done, has_labels = 0, False
    sample, names = RowSample(model.encoder), []
    for batch in batches:
        table = pa.Table.from_batches([batch])
        sample.add(table)
        names = table.column_names
        encoded = model.encode(table, warn=warn)
        scores = model.detector.anomaly_score(encoded)
        labels = np.full(len(scores), UNLABELLED)
        if model.label is not None and model.label in table.column_names:
            labels, has_labels = model.labels(table), True
        tally.add(scores, labels)
        places = done + np.arange(len(scores))
        found: dict[str, NDArray[Any]]
        found = {"encoded": encoded, "scores": scores, "labels": labels, "places": places}
        rows, ranks = Rows(table, found), generator.random(len(scores))
        highest.add(rows, -scores)
        normal.add(rows, np.where(labels == ANOMALY, np.inf, ranks))
        anomalies.add(rows, np.where(labels == ANOMALY, ranks, np.inf))
        done += len(scores)
        if progress is not None:
            progress(done, total)
    model.drift_in(sample, names, warn=warn)
    return Survey(
        **vars(tally.findings("rows", has_labels=has_labels)),
        highest=highest.rows(),
        normal=normal.rows(),
        anomalies=anomalies.rows(),
        warnings=tuple(f"{str(words).removesuffix('.')}." for words in remarks),
    )
