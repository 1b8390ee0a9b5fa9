"""Rows of numbers, for a detector alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.models.arrays import ArrayModel
from aloof.serve.arrow import ARROW_FILE, ARROW_STREAM, read_arrow
from aloof.serve.limits import Limits, Refused
from aloof.serve.served import Asked, Content, Rows, Scored, Served, Tensor, parsed

__all__ = ["ArrayRows", "ServedArrays"]

_JSON = "application/json"
_REHEARSED = 8


@dataclass(frozen=True)
class ArrayRows(Rows):
    """Rows of numbers.

    Attributes
    ----------
    values
        ``(n, *shape)``, finite.
    """

    values: NDArray[np.float64] = field(repr=False)


class ServedArrays(Served[ArrayRows]):
    """A detector in use; see `Served`."""

    takes = (_JSON, ARROW_STREAM, ARROW_FILE)
    model: ArrayModel

    def __init__(self, model: ArrayModel, limits: Limits) -> None:
        super().__init__(model, limits)
        self._shape = tuple(map(int, model.detector.shape_))

    def read(self, content: Content, asked: Asked) -> ArrayRows:
        """Return the rows of a body."""
        if content.kind in (ARROW_STREAM, ARROW_FILE):
            table = read_arrow(content.data, self.limits)
            try:
                columns = [
                    table[name].cast("float64").to_numpy() for name in table.schema.names
                ]
            except (ValueError, NotImplementedError) as error:
                raise Refused(422, "All columns must hold numbers.") from error
            return self._checked(np.stack(columns, 1), asked)
        if content.kind != _JSON:
            raise self._not_taken(content)
        value = parsed(content.data)
        rows = value.get("rows") if isinstance(value, dict) and len(value) == 1 else value
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise Refused(422, 'Send {"rows": [[number, ...], ...]}.')
        self.limits.check_rows(len(rows))
        try:
            values = np.array(rows)
        except ValueError:
            values = np.empty(0, object)
        if values.dtype.kind not in "iuf":
            raise Refused(422, f"Each row must be numbers of shape {list(self._shape)}.")
        return self._checked(values, asked)

    def _checked(self, values: NDArray[Any], asked: Asked) -> ArrayRows:
        if asked.fills or asked.ignores_rules:
            raise Refused(422, "A detector has no columns that could be filled, or have rules.")
        if values.shape[1:] != self._shape:
            raise Refused(
                422,
                f"The model takes rows of shape {list(self._shape)}; these have shape "
                f"{list(values.shape[1:])}.",
            )
        values = values.astype(np.float64)
        if not (np.abs(values) <= np.finfo(np.float32).max).all():
            raise Refused(422, "All numbers must be finite, also in single precision.")
        return ArrayRows(len(values), asked, values)

    def score(self, requests: Sequence[ArrayRows]) -> list[Scored | Exception]:
        """Return what there is to say about each request."""
        scores = self.model.detector.anomaly_score(
            np.concatenate([request.values for request in requests])
        )
        answers: list[Scored | Exception] = []
        begin = 0
        for request in requests:
            own = scores[begin : begin + request.n]
            begin += request.n
            if not np.isfinite(own).all():
                answers.append(
                    TableError("Some rows are too far from all others to be scored.")
                )
                continue
            reasons = self._reasons(request, own) if request.asked.reasons else None
            answers.append(self._scored(own, reasons=reasons))
        return answers

    def _reasons(self, request: ArrayRows, scores: NDArray[np.float64]) -> list[list[str]]:
        told: list[list[str]] = [[] for _ in range(request.n)]
        flagged = np.flatnonzero(self.model.decide(scores))
        if len(flagged):
            found = self.model.explain(request.values[flagged]).contributions
            for row, parts in zip(flagged, found.reshape(len(flagged), -1), strict=True):
                order = np.argsort(-parts, kind="stable")[: request.asked.reasons]
                told[row] = [f"feature {place}" for place in order]
        return told

    def inputs(self) -> list[dict[str, Any]]:
        """Return one input: the rows."""
        return [{"name": "rows", "datatype": "FP64", "shape": [-1, *self._shape]}]

    def read_tensors(self, tensors: Sequence[Tensor], asked: Asked) -> ArrayRows:
        """Return the rows of the one tensor."""
        (first, *others) = tensors
        if others or first.datatype in ("BYTES", "BOOL"):
            raise Refused(422, "Send one tensor of numbers.")
        self.limits.check_rows(first.shape[0] if first.shape else 0)
        return self._checked(first.data, asked)

    def example(self) -> Any:
        """Return one row of zeros."""
        return {"rows": np.zeros((1, *self._shape)).tolist()}

    def row_schema(self) -> dict[str, Any]:
        """Return the schema of a row."""
        most = float(np.finfo(np.float32).max)
        schema: dict[str, Any] = {"type": "number", "minimum": -most, "maximum": most}
        for size in reversed(self._shape):
            schema = {"type": "array", "items": schema, "minItems": size, "maxItems": size}
        return schema

    def rehearsal(self) -> list[ArrayRows]:
        """Return rows of noise."""
        noise = np.random.default_rng(0).standard_normal((_REHEARSED, 1, *self._shape))
        return [ArrayRows(1, Asked(), rows) for rows in noise]
