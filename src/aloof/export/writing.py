"""Models as ONNX files: the graph, what is said about it, and the proof that it is right."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof._version import __version__
from aloof.estimators import Committee, Detector, describe
from aloof.exceptions import ModelError
from aloof.export.decisions import flag, p_value, probability
from aloof.export.detectors import changes_nothing, score
from aloof.export.encoding import encode
from aloof.export.graph import DOUBLE, Graph, Value
from aloof.export.probes import probe_column, probe_inputs
from aloof.export.traced import trace
from aloof.io import check_file, write_file
from aloof.lite.format import BLANK, DIGEST, NOTES, SAME, VERSION, stamped
from aloof.lite.scorer import CLOSE, LiteModel, distance, opened, probe_array
from aloof.models import Model
from aloof.models.arrays import ArrayModel
from aloof.models.images import ImageModel
from aloof.models.images.views import View
from aloof.models.table import TableModel
from aloof.models.table.columns import (
    CategoryColumn,
    Column,
    ConstantColumn,
    NumberColumn,
    TimestampColumn,
)
from aloof.models.table.columns.base import LIMIT
from aloof.scoring import Scorer

__all__ = ["Exported", "check_path", "described", "export", "to_onnx"]

# Rows that travel with the file, and rows that it is tried with before it is put in place.
_PROBES, _TRIED = 16, 1000
_MOST_NUMBERS = 4096  # of probe rows
# Of images there are fewer: they are large.
_TRIED_IMAGES, _TRIED_NUMBERS = 32, 2**23
_PRECISE_ROWS = 64  # at a time
# Trees decide by thresholds, and a row can be so near to one that the last bit decides. So many
# rows of a committee may be on the other side.
_JUMPS = 0.002

_BUG = (
    "The exported file is not what the model is: {}. This is a bug in aloof; nothing was "
    "written."
)

_RESERVED = ("anomaly_score", "p_value", "probability", "is_anomaly")


@dataclass(frozen=True)
class Exported:
    """What was written, and how near it is to the model.

    Attributes
    ----------
    path
        The file.
    n_bytes
        Its size.
    n_tried
        How many rows it was tried with.
    off
        How far its scores were from the model's at most, as a share.
    inputs
        Names and types of what it takes.
    outputs
        What it gives for each row.
    """

    path: Path
    n_bytes: int
    n_tried: int
    off: float
    inputs: dict[str, str]
    outputs: tuple[str, ...]


def export(
    model: Model | Detector, path: str | os.PathLike[str], *, force: bool = False
) -> Exported:
    """Write a model as one ONNX file that needs neither aloof nor torch to score.

    Before the file is put in place, it is run on rows that were made up from what the model
    knows, and its scores, p-values and decisions are compared with the model's.

    Parameters
    ----------
    model
        What `aloof.load` gives, or a fitted detector.
    path
        The file to write, with the ending .onnx.
    force
        Whether to replace an existing file.

    Raises
    ------
    ModelError
        If the model has something that cannot be written in ONNX: columns of text, or networks
        of your own. The message says what.
    """
    target = Path(path)
    check_path(target, force=force)
    whole = _model_of(model)
    content, tried = _written(whole)
    write_file(target, content, ModelError)
    return Exported(
        target,
        len(content),
        tried.n,
        tried.off,
        tried.lite.inputs,
        tried.lite.answers,
    )


def to_onnx(model: Model | Detector) -> bytes:
    """Return the bytes of the file that `export` writes."""
    return _written(_model_of(model))[0]


def check_path(target: Path, *, force: bool) -> None:
    """Raise where a file cannot be written, before any work is done."""
    if target.suffix.lower() != ".onnx":
        raise ModelError(f"{target} must end in .onnx.")
    check_file(target, ModelError, force=force)


def _model_of(model: Model | Detector) -> Model:
    if isinstance(model, Detector):
        return ArrayModel(detector=model)
    if isinstance(model, TableModel | ImageModel | ArrayModel):
        return model
    raise ModelError(
        f"A {type(model).__name__} cannot be exported to ONNX. Models of tables, images and "
        "arrays can."
    )


@dataclass(frozen=True)
class _Tried:
    """An exported file, opened, and how it compared."""

    lite: LiteModel
    n: int
    off: float


def _written(model: Model) -> tuple[bytes, _Tried]:
    """Return the bytes of the file, once they were tried."""
    graph = Graph(taken=model.columns if isinstance(model, TableModel) else ())
    scores = _scores(graph, model)
    detector, decision = model.detector, model.detector.decision_
    with graph.part("decide"):
        answers: dict[str, Value] = {"anomaly_score": scores}
        if decision.calibration is not None:
            answers["p_value"] = p_value(decision, scores)
        if detector._probability is not None:
            answers["probability"] = probability(detector._probability, scores)
        answers["is_anomaly"] = flag(decision, scores, answers.get("p_value"))
    for name, value in answers.items():
        graph.output(name, value)
    notes = {
        "format": VERSION,
        "aloof": __version__,
        "kind": _kind(model),
        "title": model.title,
        "outputs": list(answers),
        "threshold": {
            "rule": model.threshold.as_dict(),
            "anomaly_score": -float(detector.offset_),
            "words": str(model.threshold),
        },
        "n_calibration": None if decision.calibration is None else len(decision.calibration),
        "model_sha256": _digest(model),
        **_particulars(model),
        "probes": _probes(model),
    }
    text = json.dumps(notes, ensure_ascii=False, sort_keys=True, allow_nan=False)
    about = f"{model.title}, exported by aloof {__version__}. Higher anomaly scores are worse."
    made = graph.model(about, ("aloof", __version__), {NOTES: text, DIGEST: BLANK})
    content = stamped(made.SerializeToString(deterministic=True))
    lite = opened(Path("The exported model"), content)
    lite.check()
    return content, _compared(model, lite)


def _scores(graph: Graph, model: Model) -> Value:
    """Add inputs; return the anomaly scores."""
    if isinstance(model, TableModel):
        if clash := sorted(set(model.columns) & set(_RESERVED)):
            raise ModelError(
                f"Column {clash[0]!r} has the name of an answer of the exported model. Rename "
                "it, and fit again."
            )
        rows = encode(graph, model.encoder)
        return score(model.detector, rows, farthest=LIMIT * model.encoder.gain)
    shape = _shape(model)
    if isinstance(model, ImageModel):
        pixels = graph.input("rows", np.uint8, shape)
        if model.view is not None:
            return _viewed(graph, model.view, model.detector, pixels)
        return score(model.detector, pixels.to(np.float32) / 255.0, farthest=1.0)
    rows = graph.input("rows", DOUBLE, shape)
    is_image = len(shape) == 3
    return score(
        model.detector,
        rows.to(np.float32) if is_image else rows,
        farthest=1.0 if is_image else math.inf,
    )


def _viewed(graph: Graph, view: View, detector: Detector, pixels: Value) -> Value:
    """Return the scores of images by what a view sees of them."""
    with graph.part("see"):
        rows, *rest = trace(view.seen, pixels, shape=view.shape)
    learned = []
    for number, each in enumerate(view.detectors(detector)):
        with graph.part(f"detector {number}"):
            learned.append(score(each, rows))
    with graph.part("judge"):
        (scores,) = trace(view.judged, *learned, *rest, each=view.n_rows)
    return scores


def _shape(model: Model) -> tuple[int, ...]:
    """Return the shape of one input that is no table."""
    return tuple(model.shape if isinstance(model, ImageModel) else model.detector.shape_)


def _kind(model: Model) -> str:
    if isinstance(model, TableModel):
        return "table"
    return "images" if isinstance(model, ImageModel) else "arrays"


def _particulars(model: Model) -> dict[str, Any]:
    """Return what the scorer needs to know about inputs."""
    if not isinstance(model, TableModel):
        stretched = isinstance(model, ImageModel) and model.view is None
        return {"shape": list(_shape(model)), "keeps_proportions": not stretched}
    return {
        "columns": [described(column) for column in model.encoder.columns],
        "id": model.id,
        "reading": dict(model.reading),
    }


def described(column: Column) -> dict[str, Any]:
    """Return what the scorer needs to know about a column; see `aloof.lite.columns`."""
    found: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if isinstance(column, NumberColumn):
        found["numbers"] = dataclasses.asdict(column.dialect)
    elif isinstance(column, TimestampColumn):
        found |= {
            "times": dataclasses.asdict(column.dialect),
            "zone": column.zone,
            "pattern": column.layout,
        }
    elif isinstance(column, ConstantColumn):
        found |= {"value": column.value, "number": column.number}
    else:
        assert isinstance(column, CategoryColumn)
    return found


def _digest(model: Model) -> str:
    """Return what tells this model from others: its weights, thresholds, parameters."""
    manifest, tensors = describe(model.detector)
    if isinstance(model, ImageModel) and model.view is not None:
        tensors = {**tensors, **{f"images.{k}": v for k, v in model.view.tensors().items()}}
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensors[name].numpy()).tobytes())
    return digest.hexdigest()


def _made_up(model: Model, n: int) -> tuple[dict[str, NDArray[Any]], Any]:
    """Return rows as the graph takes them, and as the model does."""
    rng, detector = np.random.default_rng(0), model.detector
    if isinstance(model, TableModel):
        columns = model.encoder.columns
        values = {column.name: probe_column(column, n, rng) for column in columns}
        return values, _table_of(model, values)
    shape = _shape(model)
    if len(shape) == 3:
        rows = probe_array(_kind(model), shape, n)
    elif detector.likelihood == "bernoulli":
        rows = rng.uniform(size=(n, *shape))
    else:
        rows = detector.scaling_.inverse(rng.normal(scale=2.0, size=(n, *shape)))
        rows[: n // 8] *= 1e3  # far from everything
    return {"rows": rows}, rows


def _probes(model: Model) -> dict[str, Any]:
    """Return a few rows that travel with the file, and their answers."""
    shape = _shape(model)
    n = max(2, min(_PROBES, _MOST_NUMBERS // math.prod(shape)))
    inputs, rows = _made_up(model, n)
    if isinstance(model, TableModel):  # JSON knows no infinity
        for column in model.encoder.columns:
            if isinstance(column, NumberColumn):
                values = inputs[column.name]
                inputs[column.name] = np.where(np.isfinite(values), values, np.nan)
        rows = _table_of(model, inputs)
    scores = _scored(model, rows)
    travels = isinstance(model, TableModel) or len(shape) == 1
    return {
        "rows": {k: _listed(v) for k, v in inputs.items()} if travels else None,
        "anomaly_score": scores.tolist(),
        "is_anomaly": model.detector.decision_.flag(scores).tolist(),
    }


def _table_of(model: TableModel, values: dict[str, NDArray[Any]]) -> pa.Table:
    return pa.table({c.name: probe_inputs(c, values[c.name]) for c in model.encoder.columns})


def _listed(values: NDArray[Any]) -> list[Any]:
    found: list[Any] = values.tolist()
    return [None if value != value else value for value in found]


def _scored(model: Model, rows: Any) -> NDArray[np.float64]:
    if isinstance(model, TableModel):
        return model.anomaly_score(rows, warn=lambda warning: None)
    if isinstance(model, ImageModel):
        return model.anomaly_score(rows)
    found: NDArray[np.float64] = model.detector.anomaly_score(rows)
    return found


def _precisely_scored(model: Model, rows: Any) -> NDArray[np.float64]:
    """Return the scores by networks in float64, which takes longer."""
    detector = copy(model.detector)
    if isinstance(detector, Committee):
        detector._others = {name: copy(view) for name, view in detector._others.items()}
        for view in detector._others.values():
            view._scorer = _precise(view)
    detector._scorer = _precise(detector)
    changed: dict[str, Any] = {"detector": detector}
    if isinstance(model, ImageModel) and model.view is not None:
        seen: Any = model.view
        changed["view"] = dataclasses.replace(seen, backbone=seen.backbone.precise())
    return _scored(dataclasses.replace(model, **changed), rows)


def _rounds(model: Model) -> bool:
    """Whether float32 can lose more digits than scores have to spare.

    It can in a backbone, and where networks take numbers of any size as they are.
    """
    if isinstance(model, ImageModel):
        return model.view is not None
    return isinstance(model, ArrayModel) and changes_nothing(model.detector.scaling_)


def _precise(detector: Detector) -> Scorer:
    return Scorer(
        detector._ensemble,
        detector._fitted_objective,
        device=detector.device_,
        dtype=detector._scoring_dtype,
        aggregate_prior=detector._aggregate_prior,
        direction_penalty=detector._direction_penalty,
        chunk_size=_PRECISE_ROWS,
    )


def _compared(model: Model, lite: LiteModel) -> _Tried:
    """Compare an exported file with the model on rows that were made up.

    Raises
    ------
    ModelError
        They differ.
    """
    are_rows = len(_shape(model)) == 1
    size = math.prod(_shape(model))
    n = _TRIED if are_rows else max(2, min(_TRIED_IMAGES, _TRIED_NUMBERS // size))
    inputs, rows = _made_up(model, n)
    wanted, found = _scored(model, rows), lite.run(inputs)
    scores, decision = found["anomaly_score"], model.detector.decision_
    off = distance(scores, wanted)
    jumps = off > CLOSE
    if jumps.any() and _rounds(model):
        # Here and there, the model itself is as far from what is right.
        precise = _precisely_scored(model, rows)
        own = distance(wanted, precise)
        rounded = jumps & (distance(scores, precise) <= CLOSE + 3 * own.max())
        if rounded.sum() <= max(3, 3 * (own > CLOSE / 3).sum()):
            jumps &= ~rounded
    most = _JUMPS * n if isinstance(model.detector, Committee) else 0
    if jumps.sum() > most:
        raise ModelError(_BUG.format(f"scores are off by {off.max():.1e}"))
    if decision.calibration is not None:
        n_below = np.searchsorted(decision.calibration, scores - SAME * np.abs(scores))
        p = (len(decision.calibration) + 1 - n_below) / (len(decision.calibration) + 1)
        if not np.array_equal(p, found["p_value"]):
            raise ModelError(_BUG.format("p-values differ"))
    level = np.full(n, decision.least)
    close = jumps | (distance(wanted, level) < np.maximum(10 * SAME, 2 * off))
    together = decision.threshold.fdr is not None
    if not together and (decision.flag(wanted) != found["is_anomaly"])[~close].any():
        raise ModelError(_BUG.format("decisions differ"))
    return _Tried(lite, n, float(off[~jumps].max()))
