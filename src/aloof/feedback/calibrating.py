"""A model whose threshold and p-values come from other rows, but for known anomalies."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.feedback.answer import Key, Standing
from aloof.feedback.material import image_keys, row_keys, source_of
from aloof.labels import ANOMALY, UNLABELLED
from aloof.models import Model, made_by
from aloof.models.table import TableModel
from aloof.models.table.files import column_names

__all__ = ["calibrated"]


def calibrated(model: Model, standing: Mapping[Key, Standing], data: str) -> Any:
    """Return a model that was calibrated with some data; the given one stays as it is.

    Parameters
    ----------
    model
        Of a table or of images.
    standing
        How the answers stand: what was answered as an anomaly is left out.
    data
        As the user wrote it.
    """
    if isinstance(model, TableModel):
        keys, labels, scores = _rows(model, data)
    else:
        found = model.read(data)
        keys, scores = image_keys(found), model.anomaly_score(found)
        labels = np.full(len(keys), UNLABELLED)
    for place, key in enumerate(keys):
        if key in standing and standing[key].label == ANOMALY:
            labels[place] = ANOMALY
    new = replace(model, detector=copy.deepcopy(model.detector), training=dict(model.training))
    call = made_by(new.calibrate, data, {})
    return new._calibrated(labels, scores, call)


def _rows(
    model: TableModel, data: str
) -> tuple[list[Key], NDArray[np.int64], NDArray[np.float64]]:
    """Return the names of rows, the labels that the table itself has, and scores."""
    source = model.read(data)
    name = source_of(source)
    has_labels = model.label in column_names(source)
    keys: list[Key] = []
    labels, scores = [], []
    for batch, found in model.scored(source):
        keys += row_keys(model, pa.Table.from_batches([batch]), name, len(keys) + 1)
        labels.append(model.labels(batch) if has_labels else np.full(len(found), UNLABELLED))
        scores.append(found)
    return keys, np.concatenate(labels), np.concatenate(scores)
