"""A model that answers requests: what it reads, and what it says of many requests at once."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from aloof.models import Model
from aloof.models.table.harmless import Rules
from aloof.serve.limits import Limits, Refused

__all__ = [
    "Asked",
    "Content",
    "Rows",
    "Scored",
    "Served",
    "Tensor",
    "from_base64",
    "parsed",
]


@dataclass(frozen=True)
class Asked:
    """What a request wants to know, and how its body is to be read.

    Attributes
    ----------
    reasons
        How many reasons to give for rows that are flagged.
    fills
        Whether columns that are missing are filled.
    ignores_rules
        Whether rows are flagged that reviewers know to be harmless.
    delimiter, encoding, header
        Of CSV; see `aloof.models.table.open_source`.
    """

    reasons: int = 0
    fills: bool = False
    ignores_rules: bool = False
    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None


@dataclass(slots=True)
class Content:
    """The body of a request.

    Attributes
    ----------
    data
        The bytes.
    kind
        The media type, without its parameters, in lower case.
    parameters
        Of the media type.
    """

    data: bytes
    kind: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """What was read of one request, ready to be scored.

    Attributes
    ----------
    n
        How many rows there are.
    asked
        What is to be said of them.
    """

    n: int
    asked: Asked


@dataclass(slots=True)
class Scored:
    """What there is to say about the rows of one request.

    Attributes
    ----------
    scores
        Higher is worse.
    p_values
        None: the model is not calibrated.
    flagged
        Which are anomalies. With a false discovery rate, those of a request are decided
        together.
    decided
        Which would be if there were no rules of reviewers.
    suppressed_by
        The rule by which a row is known to be harmless, of each row, and so not flagged;
        None: there are no rules.
    names
        What the rows are called: the key, such as the column of ids, and values.
    reasons
        In words, of each row; None: nobody asked.
    warnings
        What the client should know.
    """

    scores: NDArray[np.float64]
    p_values: NDArray[np.float64] | None
    flagged: NDArray[np.bool_]
    decided: NDArray[np.bool_]
    suppressed_by: Sequence[str | None] | None = None
    names: tuple[str, Any] | None = None
    reasons: list[list[str]] | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tensor:
    """One input of the Open Inference Protocol.

    Attributes
    ----------
    name, datatype, shape
        As there.
    data
        An array of this shape: numbers, booleans, or bytes as objects.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: NDArray[Any]


_R = TypeVar("_R", bound=Rows)


class Served(ABC, Generic[_R]):
    """A model in use. It never changes, but for the rules: another version is another one.

    Parameters
    ----------
    model
        What scores.
    limits
        What requests may ask for.

    Attributes
    ----------
    rules
        Returns what reviewers know to be harmless, at this moment.
    """

    takes: ClassVar[tuple[str, ...]]  # media types
    has_rules: ClassVar[bool] = False  # whether rules of reviewers can hold

    def __init__(self, model: Model, limits: Limits) -> None:
        self.rules: Callable[[], Rules] = Rules
        self.model, self.limits = model, limits
        self._decision = model.detector.decision_
        self.version = str(model.training.get("version", 1))

    @abstractmethod
    def read(self, content: Content, asked: Asked) -> _R:
        """Return the rows of a body; raise `Refused` or an `AloofError` if there are none."""

    @abstractmethod
    def read_tensors(self, tensors: Sequence[Tensor], asked: Asked) -> _R:
        """Return the rows of inputs of the Open Inference Protocol."""

    @abstractmethod
    def inputs(self) -> list[dict[str, Any]]:
        """Return what `read_tensors` takes, as the protocol's metadata has it."""

    @abstractmethod
    def example(self) -> Any:
        """Return a request in JSON that works."""

    @abstractmethod
    def row_schema(self) -> dict[str, Any]:
        """Return the JSON schema of what the list in `example` holds."""

    @abstractmethod
    def score(self, requests: Sequence[_R]) -> list[Scored | Exception]:
        """Return what there is to say about each request, or why there is nothing.

        What is said of a request does not depend on those that it comes with.
        """

    @abstractmethod
    def rehearsal(self) -> list[_R]:
        """Return requests that are always the same, made from what the model knows."""

    def rehearse(self) -> None:
        """Score rows that are always the same, each by itself and all together.

        That the detector has the scores that were saved with it is found out when it is
        loaded. Here the whole way of a request is gone, which also loads what is loaded late.
        """
        requests = self.rehearsal()
        together = self.score(requests)
        for request, among in zip(requests, together, strict=True):
            (alone,) = self.score([request])
            for found in (alone, among):
                if isinstance(found, Exception):
                    raise found
            assert isinstance(alone, Scored)
            assert isinstance(among, Scored)
            same = np.array_equal(alone.scores, among.scores)
            if not same or not np.isfinite(alone.scores).all():
                raise self.model.error(
                    "Rows do not get the same score by themselves and among others, so the "
                    "model was not put to use."
                )

        self.forget()

    def forget(self) -> None:
        """Forget the latest rows."""

    def drift(self) -> list[str]:
        """Return the ways in which the latest rows do not look like those of the training."""
        return []

    def _scored(
        self,
        scores: NDArray[np.float64],
        names: tuple[str, Any] | None = None,
        reasons: list[list[str]] | None = None,
    ) -> Scored:
        decided = self._decision.flag(scores)
        p = self._decision.p_values(scores)
        return Scored(scores, p, decided, decided, names=names, reasons=reasons)

    def _not_taken(self, content: Content) -> Refused:
        given = f"not {content.kind[:100]}" if content.kind else "and says so in Content-Type"
        return Refused(
            415, f"A model of {self.model.kind} takes {', '.join(self.takes)}, {given}."
        )


def parsed(data: bytes) -> Any:
    """Return the content of JSON; raise `Refused` where it is none."""
    try:
        return json.loads(data.decode())
    except RecursionError as error:
        raise Refused(400, "The JSON is nested too deeply.") from error
    except ValueError as error:
        # The message of the parser would quote the body.
        raise Refused(400, "The body is not valid JSON.") from error


def from_base64(text: Any) -> bytes:
    """Return the bytes that base64 stands for."""
    if not isinstance(text, str | bytes):
        raise Refused(422, "An image in JSON is a text in base64.")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Refused(422, "An image in JSON is a text in base64.") from error
