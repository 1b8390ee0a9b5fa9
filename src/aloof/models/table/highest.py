"""The rows of a table that stand out most, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.models.results import MostAnomalous, Progress
from aloof.models.table.files import Source, column_names
from aloof.models.table.labelling import check_column
from aloof.models.table.lowest import Lowest, Rows

if TYPE_CHECKING:
    from aloof.models.table.model import TableModel

__all__ = ["highest_rows"]


def highest_rows(
    model: TableModel,
    source: Source | pa.Table,
    top: int,
    *,
    n_reasons: int,
    progress: Progress | None = None,
) -> MostAnomalous:
    """Return the rows with the highest scores; see `TableModel.most_anomalous`."""
    if model.id is not None:
        check_column(model.id, column_names(source), "id")
    highest, every, done = Lowest(top), [], 0
    for batch, scores in model.scored(source, progress):
        places = done + np.arange(len(scores))
        found = Rows(pa.Table.from_batches([batch]), {"scores": scores, "places": places})
        highest.add(found, -scores)
        every.append(scores)
        done += len(scores)
    rows = highest.rows()
    flagged = model.decide(np.concatenate(every))[rows["places"]]
    told = _told(model, rows, flagged, n_reasons)
    id = "" if model.id is None else f"  {model.id} {{}}"
    called = [f"row {row['row']:,}{id.format(row['id'])}" for row in told]
    return MostAnomalous(done, called, told)


def _told(
    model: TableModel, rows: Rows, flagged: NDArray[np.bool_], n_reasons: int
) -> list[dict[str, Any]]:
    explanation = model.explain(rows.table)
    ids = [None] * len(rows) if model.id is None else rows.table[model.id].to_pylist()
    order, words = explanation.order(n_reasons), explanation.reasons(n_reasons)
    told: list[dict[str, Any]] = [
        {
            "row": int(rows["places"][i]) + 1,
            "id": ids[i] if isinstance(ids[i], int | str | None) else str(ids[i]),
            **said,
            "reasons": [
                {
                    "column": explanation.columns[column],
                    "contribution": float(explanation.contributions[i, column]),
                    "words": reason,
                }
                for column, reason in zip(order[i], words[i], strict=False)
            ],
        }
        for i, said in enumerate(model.verdicts(rows["scores"], flagged))
    ]
    for text in model.texts:
        passages = model.passages(rows.table, text, n_reasons)
        for row, own in zip(told, passages, strict=True):
            for reason in row["reasons"]:
                if reason["column"] == text:
                    reason["passages"] = [asdict(passage) for passage in own]
    return told
