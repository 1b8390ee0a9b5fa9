"""``aloof explain``: the most anomalous rows, and why."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from aloof.calibration import p_values
from aloof.cli.group import warner
from aloof.cli.images import explain_images_command, is_image_model, refuse
from aloof.cli.options import (
    Data,
    Delimiter,
    Device,
    Encoding,
    FileFormat,
    Json,
    Model,
    opened,
)
from aloof.cli.progress import counting_rows
from aloof.tabular import Source, TableModel
from aloof.tabular.files import joined_table
from aloof.tabular.labelling import check_column
from aloof.tabular.passages import Passage

__all__ = ["explain"]


def explain(
    model: Model,
    data: Data,
    top: Annotated[int, typer.Option(min=1, help="How many rows.")] = 20,
    reasons: Annotated[int, typer.Option(min=1, help="How many reasons for each.")] = 3,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PNG", help="Images: a picture of what is strange about them."),
    ] = None,
    device: Device = "auto",
    delimiter: Delimiter = None,
    encoding: Encoding = "utf8",
    file_format: FileFormat = None,
    as_json: Json = False,
) -> None:
    """Show the most anomalous rows with the reasons, in words.

    Contributions of columns add up to the anomaly score. Rows are counted from 1. The file may
    be larger than memory.

    Example: **aloof explain model new.parquet --top 5**

    Images: **aloof explain model new-images/ --top 5 --out strange.png**
    """
    if is_image_model(model):
        refuse("images", {"--delimiter": delimiter, "--format": file_format})
        refuse("images", {"--encoding": None if encoding == "utf8" else encoding})
        refuse("images", {"--reasons": None if reasons == 3 else reasons})
        explain_images_command(model, data, top, out, device=device, as_json=as_json)
        return
    refuse("a table", {"--out": out})
    fitted = TableModel.load(model, device=device)
    source = opened(data, delimiter, encoding, file_format)
    if fitted.id is not None:
        check_column(fitted.id, source.names, "id")
    found = _highest(fitted, source, top)
    rows = _described(fitted, found, reasons)
    if as_json:
        typer.echo(json.dumps({"n_rows": found.n_rows, "rows": rows}))
        return
    typer.echo(f"The {len(rows)} most anomalous of {found.n_rows:,} rows:")
    for row in rows:
        name = "" if fitted.id is None else f"  {fitted.id} {row['id']}"
        p = "" if row["p_value"] is None else f"  p-value {row['p_value']:.2g}"
        flag = "  flagged" if row["is_anomaly"] else ""
        typer.echo(
            f"\nrow {row['row']:,}{name}  anomaly score {row['anomaly_score']:.4g}{p}{flag}"
        )
        for reason in row["reasons"]:
            typer.echo(f"  {reason['contribution']:>8.3g}  {reason['words']}")
            for passage in reason.get("passages", []):
                words = f"of it, what falls away without {passage['text']!r}"
                typer.echo(f"  {passage['contribution']:>12.3g}  {words}")


@dataclass
class _Highest:
    """The rows with the highest scores of those seen so far."""

    n: int
    n_rows: int = 0
    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    batches: list[pa.RecordBatch] = field(default_factory=list)
    flagged: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    def add(self, batch: pa.RecordBatch, scores: NDArray[np.float64]) -> None:
        bound = self.scores[-1] if len(self.scores) == self.n else -np.inf
        passing = np.flatnonzero(scores > bound)
        if len(passing):
            joined = np.r_[self.scores, scores[passing]]
            order = np.argsort(-joined, kind="stable")[: self.n]
            together = joined_table([*self.batches, batch.take(pa.array(passing))])
            self.batches = together.take(pa.array(order)).combine_chunks().to_batches()
            self.scores = joined[order]
            self.places = np.r_[self.places, self.n_rows + passing][order]
        self.n_rows += batch.num_rows


def _highest(model: TableModel, source: Source, n: int) -> _Highest:
    highest, every, warn = _Highest(n), [], warner()
    with counting_rows("Scoring", source.n_rows) as done:
        for batch in source.batches():
            scores = model.anomaly_score(batch, warn=warn)
            every.append(scores)
            highest.add(batch, scores)
            done(batch.num_rows)
    highest.flagged = model.decide(np.concatenate(every))[highest.places]
    return highest


def _described(model: TableModel, found: _Highest, n_reasons: int) -> list[dict[str, Any]]:
    table = pa.Table.from_batches(found.batches)
    explanation = model.explain(table)
    calibration = model.detector.calibration_scores_
    p = None if calibration is None else p_values(calibration, found.scores)
    ids = [None] * len(found.scores) if model.id is None else table[model.id].to_pylist()
    order, words = explanation.order(n_reasons), explanation.reasons(n_reasons)
    rows = [
        {
            "row": int(found.places[i]) + 1,
            "id": ids[i] if isinstance(ids[i], int | str | None) else str(ids[i]),
            "anomaly_score": float(found.scores[i]),
            "p_value": None if p is None else float(p[i]),
            "is_anomaly": bool(found.flagged[i]),
            "reasons": [
                {
                    "column": explanation.columns[column],
                    "contribution": float(explanation.contributions[i, column]),
                    "words": reason,
                }
                for column, reason in zip(order[i], words[i], strict=False)
            ],
        }
        for i in range(len(found.scores))
    ]
    for column in model.encoder.columns:
        if column.reads_text:
            _add_passages(rows, column.name, model.passages(table, column.name, n_reasons))
    return rows


def _add_passages(
    rows: list[dict[str, Any]], column: str, passages: list[list[Passage]]
) -> None:
    """Put passages beside the reason that is about their text."""
    for row, own in zip(rows, passages, strict=True):
        for reason in row["reasons"]:
            if reason["column"] == column:
                reason["passages"] = [asdict(passage) for passage in own]
