"""The model of rows of numbers: a detector that takes part in all commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from aloof.estimators import Detector
from aloof.exceptions import LabelError, TableError
from aloof.labels import read_labels
from aloof.models import Evaluation, Model, MostAnomalous, ScoredFile, made_by
from aloof.models.page import check_report, write_page
from aloof.models.results import highest
from aloof.report.findings import Tally
from aloof.scoring import Explanation

__all__ = ["ArrayModel"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ArrayModel(Model):
    """A fitted detector as a model: ``ArrayModel(detector=detector)``.

    Rows are an array ``(n, n_features)``, or the path of one that ``numpy.save`` wrote; labels
    are an array ``(n,)``, or the path of one.
    """

    section, kind, things, error = None, "arrays", "rows", TableError

    def __repr__(self) -> str:
        return f"ArrayModel({self.detector!r})"

    def read(self, data: Any) -> NDArray[Any]:
        """Return the array; see above."""
        if not isinstance(data, str | os.PathLike):
            return np.asarray(data)
        try:
            return np.asarray(np.load(data, allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            raise TableError(
                f"{os.fspath(data)} cannot be read as an array. This model is a detector for "
                "arrays, not for tables: give it an array saved by numpy.save (.npy), or "
                "make a table model with aloof.fit or aloof fit."
            ) from error

    def anomaly_score(self, data: Any) -> NDArray[np.float64]:
        """Return how anomalous each row is; higher is worse."""
        rows = self.read(data)
        if rows.shape[1:] != tuple(self.detector.shape_):
            raise TableError(
                f"The model takes rows of shape {tuple(self.detector.shape_)}; these have "
                f"shape {rows.shape[1:]}."
            )
        return self.detector.anomaly_score(rows)

    def score(self, data: Any) -> dict[str, NDArray[Any]]:
        """Return ``anomaly_score``, ``p_value`` if it is calibrated, and ``is_anomaly``."""
        scores = self.anomaly_score(data)
        p = self.detector.decision_.p_values(scores)
        p_value = {} if p is None else {"p_value": p}
        return {"anomaly_score": scores, **p_value, "is_anomaly": self.decide(scores)}

    def score_file(
        self,
        data: Any,
        out: str | os.PathLike[str],
        *,
        top: int | None = None,
        flagged_only: bool = False,
        sort: bool = False,
        force: bool = False,
    ) -> ScoredFile:
        """Write rows and their scores into a table; see `streaming.score_file` of tables.

        There is a column ``row``, counted from 1, where not all rows are written in order.
        """
        import pyarrow as pa

        found = self.score(data)
        if flagged_only or sort:
            found = {"row": np.arange(1, len(found["is_anomaly"]) + 1), **found}
        table = pa.table(found)
        return self._written(
            table, out, top=top, flagged_only=flagged_only, sort=sort, force=force
        )

    def explain(self, data: Any) -> Explanation:
        """Return what every feature contributes to the anomaly scores."""
        return self.detector.explain(self.read(data))

    def most_anomalous(
        self, data: Any, top: int = 20, *, reasons: int = 3, rows: Sequence[int] = ()
    ) -> MostAnomalous:
        """Return the rows with the highest scores, and the features that raise them most.

        `rows`, counted from 1, are those to tell about in place of the highest.
        """
        given = self.read(data)
        scores = self.anomaly_score(given)
        order = self._numbered(rows, len(given)) if rows else highest(scores, top, TableError)
        parts = self.explain(given[order]).contributions.reshape(len(order), -1)
        verdicts = self.verdicts(scores[order], self.decide(scores)[order])
        told: list[dict[str, Any]] = [
            {
                "row": int(place) + 1,
                **said,
                "reasons": [
                    {
                        "column": int(column),
                        "contribution": float(part[column]),
                        "words": f"feature {column}",
                    }
                    for column in np.argsort(-part, kind="stable")[:reasons]
                ],
            }
            for place, said, part in zip(order, verdicts, parts, strict=True)
        ]
        return MostAnomalous(len(given), [f"row {row['row']:,}" for row in told], told)

    def evaluate(
        self, data: Any, *, labels: str | os.PathLike[str] | ArrayLike | None = None
    ) -> Evaluation:
        """Return how well scores and decisions agree with labels: 1, 0 and -1."""
        if labels is None:
            raise LabelError("Give the labels: labels=y, on the command line --labels y.npy.")
        scores = self.anomaly_score(data)
        return self._evaluation(self._labels(labels, len(scores)), scores)

    def calibrate(
        self, data: Any, *, labels: str | os.PathLike[str] | ArrayLike | None = None
    ) -> ArrayModel:
        """Learn how normal rows score, from rows the model was not trained on."""
        scores = self.anomaly_score(data)
        call = made_by(self.calibrate, _name(data), {"labels": labels})
        return self._calibrated(self._labels(labels, len(scores)), scores, call)

    def report(
        self,
        data: Any,
        out: str | os.PathLike[str],
        *,
        top: int = 20,
        title: str = "Anomaly report",
        labels: str | os.PathLike[str] | ArrayLike | None = None,
        force: bool = False,
    ) -> None:
        """Write what the model finds into one HTML file; see `TableModel.report`."""
        check_report(out, force=force, top=top)
        scores = self.anomaly_score(data)
        tally = Tally(self.detector.decision_)
        tally.add(scores, self._labels(labels, len(scores)))
        write_page(
            out,
            self,
            tally.findings("rows", has_labels=labels is not None),
            title=title,
            call=made_by(self.report, _name(data), {"labels": labels, "title": title}),
        )

    @classmethod
    def _read_state(
        cls, state: dict[str, Any], detector: Detector, tensors: dict[str, Tensor]
    ) -> dict[str, Any]:
        return {}

    def _labels(
        self, labels: str | os.PathLike[str] | ArrayLike | None, n_rows: int
    ) -> NDArray[np.int64]:
        given = None if labels is None else self.read(labels)
        return read_labels(given, n_rows, self.detector.labels)


def _name(data: Any) -> str | None:
    return os.fspath(data) if isinstance(data, str | os.PathLike) else None
