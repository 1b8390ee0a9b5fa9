"""What a client gets: scores as JSON or as an Arrow stream."""

from __future__ import annotations

import json
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa

from aloof.serve.arrow import ARROW_STREAM, write_arrow
from aloof.serve.limits import Refused
from aloof.serve.served import Scored

__all__ = ["JSON", "as_arrow", "as_json", "chosen_form"]

JSON = "application/json"
_ENCODER = json.JSONEncoder(default=str, allow_nan=False)
_NO_MORE = (None,) * 4
_FEW = 32  # rows that are written one by one


@lru_cache(64)
def chosen_form(accept: str) -> str:
    """Return the media type to answer in, given an Accept header.

    Examples
    --------
    >>> chosen_form("*/*"), chosen_form("application/vnd.apache.arrow.stream;q=0.9")
    ('application/json', 'application/vnd.apache.arrow.stream')
    """
    wanted = [part.split(";")[0].strip().lower() for part in accept.split(",")]
    for kind in wanted:
        if kind in (JSON, ARROW_STREAM):
            return kind
        if kind in ("", "*/*", "application/*"):
            return JSON
    raise Refused(406, f"Scores come as {JSON} or {ARROW_STREAM}.")


def as_json(scored: Scored, *, model: str, version: str) -> bytes:
    """Return scores as JSON."""
    n = len(scored.scores)
    scores, flagged = scored.scores.tolist(), scored.flagged.tolist()
    p_values = [None] * n if scored.p_values is None else scored.p_values.tolist()
    more = (scored.names, scored.reasons, scored.suppressed_by, scored.warnings or None)
    if n < _FEW and more == _NO_MORE and all(map(isfinite, scores)):
        rows = map(_row, scores, p_values, flagged)
        return (_head(model, version) + ", ".join(rows) + "]}").encode()
    columns: dict[str, Any] = {}
    if scored.names is not None:
        key, values = scored.names
        columns[key] = values.to_pylist() if isinstance(values, pa.ChunkedArray) else values
    columns |= {"anomaly_score": scores, "p_value": p_values, "is_anomaly": flagged}
    if scored.suppressed_by is not None:
        columns["suppressed_by"] = scored.suppressed_by
    if scored.reasons is not None:
        columns["reasons"] = scored.reasons
    results = [
        dict(zip(columns, values, strict=True))
        for values in zip(*columns.values(), strict=True)
    ]
    answer = {"model": model, "version": version, "results": results}
    if scored.warnings:
        answer["warnings"] = list(scored.warnings)
    try:
        return _ENCODER.encode(answer).encode()
    except ValueError:  # an id that is no number
        return json.dumps(_finite(answer), default=str).encode()


@lru_cache(64)
def _head(model: str, version: str) -> str:
    return json.dumps({"model": model, "version": version, "results": []})[:-2]


def _row(score: float, p: float | None, flagged: bool) -> str:
    """Return what the encoder would make of a row, a lot faster."""
    said = "null" if p is None else repr(p)
    words = "true" if flagged else "false"
    return f'{{"anomaly_score": {score!r}, "p_value": {said}, "is_anomaly": {words}}}'


def as_arrow(scored: Scored, *, model: str, version: str) -> bytes:
    """Return scores as an Arrow stream, with the columns that ``aloof score`` writes."""
    columns: dict[str, Any] = {}
    if scored.names is not None:
        key, values = scored.names
        if not isinstance(values, pa.ChunkedArray):
            try:
                values = pa.array(values)
            except (pa.ArrowException, OverflowError):  # mixed
                values = pa.array([None if v is None else str(v) for v in values])
        columns[key] = values
    columns["anomaly_score"] = scored.scores
    if scored.p_values is not None:
        columns["p_value"] = scored.p_values
    columns["is_anomaly"] = scored.flagged
    if scored.suppressed_by is not None:
        columns["suppressed_by"] = pa.array(scored.suppressed_by, pa.string())
    if scored.reasons is not None:
        for place in range(max(map(len, scored.reasons), default=0)):
            told = [row[place] if place < len(row) else None for row in scored.reasons]
            columns[f"reason_{place + 1}"] = pa.array(told, pa.string())
    metadata = {"model": model, "version": version}
    if scored.warnings:
        metadata["warnings"] = json.dumps(scored.warnings)
    return write_arrow(pa.table(columns).replace_schema_metadata(metadata))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
