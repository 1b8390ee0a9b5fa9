"""The page about a table: the rows that stand out, the columns, the latent space."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.labels import ANOMALY
from aloof.models import Progress
from aloof.models.page import write_page
from aloof.models.table import standouts
from aloof.models.table.changes import find_changes
from aloof.models.table.files import Source
from aloof.models.table.locating import locating_errors
from aloof.models.table.lowest import Rows
from aloof.models.table.model import TableModel
from aloof.models.table.survey import Survey, survey
from aloof.phrases import count, percent
from aloof.report.pictures import draw_map

__all__ = ["write_table_page"]

_ROWS = 16_384


def write_table_page(
    model: TableModel,
    data: Source | pa.Table,
    path: str | os.PathLike[str],
    *,
    top: int,
    title: str,
    seed: int,
    call: dict[str, Any],
    progress: Progress | None,
) -> None:
    """Write the page; see `TableModel.report`."""
    source = data if isinstance(data, Source) else None
    total = data.n_rows if isinstance(data, Source) else data.num_rows
    batches = model.batches(data, rows=_ROWS)
    with locating_errors(data):
        found = survey(
            model, batches, top=top, seed=seed, total=total, source=source, progress=progress
        )
    write_page(
        path,
        model,
        found,
        title=title,
        call=call,
        template="table.html",
        notes=_notes(model, found),
        libraries={"pyarrow": pa.__version__},
        listed=standouts.top_rows(model, found, top, source),
        columns=standouts.columns(model, found),
        drift=_drift(model, data),
        map=_latent_plane(model, found, top),
        columns_used=_columns_used(model),
    )


def _notes(model: TableModel, found: Survey) -> list[tuple[str, str]]:
    said = model.training["warnings"]
    notes = [("Training", words) for words in model.encoder.warnings if words not in said]
    notes += [("This table", words) for words in found.warnings]
    if model.id is not None and model.id not in found.highest.table.column_names:
        words = (
            f"the table has no column {model.id!r} to identify rows, so they are counted "
            "instead."
        )
        notes.append(("This table", words))
    return notes


def _drift(model: TableModel, data: Source | pa.Table) -> dict[str, Any] | None:
    """Return the tests of the columns; None where the rows cannot be read again."""
    if isinstance(data, Source) and not data.paths:
        return None
    found = find_changes(model, data)
    changed = [change.name for change in found if change.has_changed]
    words = (
        f"{count(len(changed), 'column')} of {len(found)} changed. If these rows are what is "
        "to come, there are two remedies: aloof calibrate, which sets thresholds and p-values "
        "by them and trains nothing, and aloof refit, which learns from them."
        if changed
        else "No column has changed by more than chance and a small amount."
    )
    rows = [
        {
            "name": change.name,
            "changed": change.has_changed,
            "picture": change.picture,
            "size": "" if change.size is None else f"{change.size:.2f}",
            "p": "" if change.adjusted is None else f"{change.adjusted:.2g}",
            "words": change.words if change.has_changed else "",
            "test": change.test if change.p_value is not None else "not tested",
        }
        for change in sorted(found, key=lambda change: not change.has_changed)
    ]
    caption = (
        "p-values allow for all tests (Holm). The bars are shares of these rows; for numbers "
        "and scores in eighths of the training rows, where equal bars are no change."
    )
    return {"words": words, "caption": caption, "rows": rows}


def _columns_used(model: TableModel) -> dict[str, Any]:
    features = [len(column.features) for column in model.encoder.columns]
    dropped = [(name, f"left out: it {why}") for name, why in model.encoder.dropped.items()]
    named = [(model.label, "the labels"), (model.id, "names the rows")]
    named += [(name, "left out on request") for name in model.drop]
    return {
        "caption": f"{count(len(features), 'column')} make {count(sum(features), 'feature')}.",
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "missing": percent(column.missing_share) if column.missing_share else "never",
                "features": n,
            }
            for column, n in zip(model.encoder.columns, features, strict=True)
        ],
        "dropped": [pair for pair in named if pair[0] is not None] + dropped,
    }


def _latent_plane(model: TableModel, found: Survey, top: int) -> dict[str, Any] | None:
    """Draw the rows where one member of the ensemble sees them; None for too few rows."""
    listed = found.highest.take(np.arange(min(top, len(found.highest))))
    groups = (listed, found.anomalies, found.normal)
    places = np.concatenate([rows["places"] for rows in groups])
    _, first = np.unique(places, return_index=True)
    if len(first) < 3:
        return None
    codes = np.concatenate([_codes(model, rows) for rows in groups])
    is_normal = np.arange(len(codes)) >= len(listed) + len(found.anomalies)
    flat, shown_share = _plane(codes, codes[is_normal] if is_normal.sum() > 2 else codes)
    spread = flat[is_normal].std() if is_normal.sum() > 2 else flat.std()
    flat = np.arcsinh(flat / max(2 * spread, 1e-9))
    ranks = np.zeros(len(codes), np.int64)
    ranks[: len(listed)] = 1 + np.arange(len(listed))
    labels = np.concatenate([rows["labels"] for rows in groups])
    values = np.concatenate([rows["scores"] for rows in groups])
    n_drawn, n_rows = len(first), found.n()
    words = (
        f"{count(n_drawn, 'row')}{f', drawn from {n_rows:,},' if n_drawn < n_rows else ''} as "
        "the first member of the ensemble sees them: its latent means, along the two "
        f"directions in which they vary most ({percent(shown_share)} of the variance). Rows "
        "close together look alike to the model. Rings mark the rows listed above; the first "
        "have their numbers. "
    )
    words += "Crosses are labelled anomalies. " if found.n(ANOMALY) else ""
    words += (
        "Rows far out are drawn closer than they are. Distances are not scores: a row can be "
        "anomalous in a direction that is not shown."
    )
    return {
        "svg": draw_map(flat[first], values[first], labels[first] == ANOMALY, ranks[first]),
        "alt": f"Map of {count(n_drawn, 'row')}, coloured by anomaly score.",
        "words": words,
    }


def _codes(model: TableModel, rows: Rows) -> NDArray[np.float64]:
    width = model.detector.latent_dim
    if not len(rows):
        return np.empty((0, width))
    first: NDArray[np.float64] = model.detector.latent(rows["encoded"])[0]
    return first


def _plane(
    codes: NDArray[np.float64], normal: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return codes along two principal directions, and their share of the variance."""
    centre = normal.mean(0)
    _, spread, directions = np.linalg.svd(normal - centre, full_matrices=False)
    flat = np.zeros((len(codes), 2))
    axes = directions[:2]
    axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])[:, None]
    flat[:, : len(axes)] = (codes - centre) @ axes.T
    total = float((spread**2).sum())
    return flat, float((spread[:2] ** 2).sum()) / total if total > 0 else 1.0
