"""A model of a table: what encodes its columns, what scores the rows, and the names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from aloof.calibration import p_values
from aloof.estimators import Detector, describe, from_model
from aloof.exceptions import LabelError, ModelError, TableError
from aloof.modelling import Model
from aloof.persistence import refusing, section_of, write_model
from aloof.tabular.encoder import TableEncoder
from aloof.tabular.evaluation import Evaluation, evaluate_scores
from aloof.tabular.explanation import TableExplanation
from aloof.tabular.frames import like, to_table
from aloof.tabular.labelling import check_column, read_label_column
from aloof.tabular.passages import Passage, find_passages

__all__ = ["TableModel"]

# What the manifest holds of a model, beside its encoder and detector.
_STATE = ("label", "id", "drop", "anomaly_value", "training")

# A column stands out if it contributes this part of what the first one does. After three
# passes what is expected in its place has settled.
_STANDING_OUT, _PASSES = 0.2, 3


@dataclass(frozen=True, eq=False, repr=False)
class TableModel(Model):
    """A detector for the rows of a table; `aloof.fit` makes one, `aloof.load` reads one.

    Frames are of any flavour, see `to_table`, with the columns of the training table in any
    order. The label, the id and dropped columns may be there; only the id has to be, and only
    for `score`.

    Attributes
    ----------
    encoder
        What was learned about the columns.
    detector
        What scores encoded rows. It was calibrated with rows that were held out, if there
        were enough.
    label
        The column of labels in the training table, or None.
    id
        The column that names the rows, or None.
    drop
        Columns that were not to be used.
    anomaly_value
        The label of anomalies; None: 1, true or yes.
    training
        What it was made from, as JSON can hold it: ``source`` (a path, or None for a frame),
        ``n_rows`` in the source, ``n_used`` of them (all unless it was too large), and of
        these ``n_anomalies``, ``n_labelled_normal``, ``n_unlabelled``, ``n_training`` and
        ``n_calibration`` rows (the latter two without anomalies); ``seed``; ``warnings``, a
        list of words. No time of day and no duration: one seed gives the same bytes.
    """

    encoder: TableEncoder
    detector: Detector
    label: str | None
    id: str | None
    drop: tuple[str, ...]
    anomaly_value: str | None
    training: dict[str, Any]

    _things, _error = "rows", TableError

    def __repr__(self) -> str:
        return (
            f"TableModel({type(self.detector).__name__} of {len(self.columns)} columns, "
            f"label={self.label!r}, id={self.id!r})"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are used."""
        return self.encoder.names

    def encode(
        self, frame: Any, *, warn: Callable[[str], None] | None = None
    ) -> NDArray[np.float32]:
        """Return rows as the detector takes them, ``(n, n_features)``.

        Parameters
        ----------
        frame
            A frame of any flavour.
        warn
            Called with words about the frame in place of `warnings.warn`.
        """
        return self.encoder.transform(self._used(frame), warn=warn)

    def labels(self, frame: Any) -> NDArray[np.int64]:
        """Return 1, 0 and -1 for each row from the label column, which must be there."""
        if self.label is None:
            raise LabelError(
                "The model was fitted without labels. Say which column has them: "
                "with_label('fraud'), on the command line --label fraud."
            )
        table = to_table(frame)
        check_column(self.label, table.column_names, "labels")
        return read_label_column(self.label, table[self.label], self.anomaly_value)

    def with_label(self, label: str, anomaly_value: str | None = None) -> TableModel:
        """Return the same model with labels in another column, or with other labels."""
        former = () if self.label in (None, label) else (str(self.label),)
        return replace(
            self, label=label, anomaly_value=anomaly_value, drop=(*self.drop, *former)
        )

    def anomaly_score(
        self, data: Any, *, warn: Callable[[str], None] | None = None
    ) -> NDArray[np.float64]:
        """Return how anomalous each row is; higher is worse. `warn` is as in `encode`."""
        return self._scores(self.encode(data, warn=warn))

    def explain(self, frame: Any) -> TableExplanation:
        """Return what every column contributes to the anomaly score of each row.

        Takes six to ten times as long as the scores do.
        """
        used = self._used(frame)
        return self.explain_encoded(self.encoder.transform(used), used)

    def explain_encoded(self, encoded: NDArray[np.float32], frame: Any) -> TableExplanation:
        """Return what `explain` does, of rows that were encoded already."""
        found = self.detector.explain(encoded)
        expected = self._plausible(encoded, found.contributions)
        return TableExplanation.of(
            self.encoder, replace(found, expected=expected), self.encoder.read(frame)
        )

    def passages(self, frame: Any, column: str, top: int = 3) -> list[list[Passage]]:
        """Return the words or sentences of a text that raise the score of each row most.

        Each is left out in turn, so this takes as long as scoring some dozen rows for each.

        Parameters
        ----------
        frame
            A frame of any flavour.
        column
            A column of text.
        top
            How many passages at most.
        """
        texts = [own.name for own in self.encoder.columns if own.reads_text]
        if column not in texts:
            have = f"It reads {', '.join(map(repr, texts))}." if texts else "It reads none."
            raise TableError(f"The model does not read column {column!r} as text. {have}")
        return find_passages(self._used(frame), column, self.anomaly_score, top=top)

    def reasons(self, frame: Any, top: int = 3) -> list[list[str]]:
        """Return the first reasons of each row in words."""
        return self.explain(frame).reasons(top)

    def score(self, frame: Any, *, reasons: int = 3) -> Any:
        """Return what there is to say about each row, as a frame of the same flavour.

        Parameters
        ----------
        frame
            A frame of any flavour, with the id column if the model has one.
        reasons
            How many reasons to give for rows that are flagged.

        Returns
        -------
        The id column if the model has one, ``anomaly_score``, ``p_value`` if the detector is
        calibrated, ``is_anomaly``, and ``reason_1``, ... in words, None for rows not flagged.
        """
        table = to_table(frame)
        columns: dict[str, Any] = {}
        if self.id is not None:
            check_column(self.id, table.column_names, "id")
            columns[self.id] = table[self.id]
        used = self._used(table)
        encoded = self.encoder.transform(used)
        scores = self._scores(encoded)
        columns["anomaly_score"] = scores
        if self.detector.calibration_scores_ is not None:
            columns["p_value"] = p_values(self.detector.calibration_scores_, scores)
        flagged = self.decide(scores)
        columns["is_anomaly"] = flagged
        n_reasons = min(reasons, len(self.columns))
        words = np.full((len(scores), n_reasons), None, dtype=object)
        if flagged.any() and n_reasons:
            found = self.explain_encoded(encoded[flagged], used.filter(pa.array(flagged)))
            for row, told in zip(
                np.flatnonzero(flagged), found.reasons(n_reasons), strict=True
            ):
                words[row, : len(told)] = told
        for place in range(n_reasons):
            columns[f"reason_{place + 1}"] = pa.array(words[:, place], pa.string())
        return like(frame, columns)

    def evaluate(self, frame: Any) -> Evaluation:
        """Return how well scores and decisions agree with the labels in the frame."""
        labels, scores = self.labels(frame), self.anomaly_score(frame)
        return evaluate_scores(
            labels, scores, self.decide(scores), threshold=str(self.threshold)
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, which `aloof.load` and the commands read.

        It is the folder of a detector with ``table`` in its manifest. The ``threshold`` may be
        edited, as there.
        """
        manifest, tensors = describe(self.detector)
        table = {name: getattr(self, name) for name in _STATE}
        write_model(
            path, {**manifest, "table": {"encoder": self.encoder.state(), **table}}, tensors
        )

    @classmethod
    def from_model(
        cls,
        path: str | os.PathLike[str],
        model: tuple[dict[str, Any], dict[str, Tensor]],
        *,
        device: str = "auto",
    ) -> TableModel:
        """Return the model of what was read from a folder."""
        manifest, _ = model
        folder = os.fspath(path)
        if "table" not in manifest:
            raise ModelError(
                f"{folder} holds a detector of arrays, not the model of a table. Open it with "
                "aloof.load, or make a model of a table with aloof.fit or aloof fit."
            )
        from aloof.tabular.manifest import TableManifest

        section_of(TableManifest, manifest, folder, "table")
        state = {name: manifest["table"][name] for name in _STATE}
        state["drop"] = tuple(state["drop"])
        detector = from_model(path, model, device=device)
        with refusing(folder):
            encoder = TableEncoder.from_state(manifest["table"]["encoder"])
            if (encoder.n_features,) != detector.shape_:
                raise ValueError("the columns are not those of the detector")
        return cls(encoder=encoder, detector=detector, **state)

    def _used(self, frame: Any) -> pa.Table:
        """Return the columns that are to be encoded, and those that nobody knows."""
        table = to_table(frame)
        known = {self.label, self.id, *self.drop} - set(self.columns)
        return table.select([name for name in table.column_names if name not in known])

    def _scores(self, encoded: NDArray[np.float32]) -> NDArray[np.float64]:
        return self.detector.anomaly_score(encoded) if len(encoded) else np.empty(0)

    def _plausible(
        self, encoded: NDArray[np.float32], contributions: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what the members expect of rows when the columns that stand out are hidden.

        A reconstruction alone follows the value that was there. So columns that stand out are
        set to their means, then to what the members make of that.
        """
        by_column = self.encoder.sum_by_column(contributions)
        hidden = by_column >= _STANDING_OUT * by_column.max(axis=1, keepdims=True)
        hidden_features = hidden[:, self.encoder.owners]
        expected = np.zeros(encoded.shape)
        for _ in range(_PASSES):
            rows = np.where(hidden_features, expected, encoded)
            expected = self.detector.reconstruct(rows)
        return expected
