"""Requests for scores, by what they say before their body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aloof.serve.answers import JSON
from aloof.serve.served import Asked, Served
from aloof.serve.slots import Slot

__all__ = [
    "INLINE",
    "SAFE_HEADERS",
    "TURNED_AWAY",
    "TURNED_AWAY_HEADERS",
    "Admitted",
    "Way",
    "find_way",
]

INLINE = 32 * 1024  # bytes of a body that are decoded at once, without a thread
SAFE_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]
TURNED_AWAY = b'{"error": "Too many requests are waiting. Try again later."}'
TURNED_AWAY_HEADERS = [
    (b"content-type", JSON.encode()),
    (b"content-length", b"%d" % len(TURNED_AWAY)),
    *SAFE_HEADERS,
]


@dataclass(frozen=True)
class Way:
    """Where a request for scores goes.

    Attributes
    ----------
    route
        As the figures have it.
    name, version
        Of the model; None: the only one, and any.
    infers
        Whether the request is one of the Open Inference Protocol.
    """

    route: str
    name: str | None = None
    version: str | None = None
    infers: bool = False


@dataclass(slots=True)
class Admitted:
    """A request for scores that may be read.

    Attributes
    ----------
    slot, served
        What answers.
    asked
        What the query says.
    form
        The media type of the answer.
    render
        Makes it.
    deadline
        By the monotonic clock.
    """

    slot: Slot
    served: Served[Any]
    asked: Asked
    form: bytes
    render: Callable[..., bytes]
    deadline: float


@lru_cache(256)
def find_way(path: str) -> Way | None:
    """Return where a path leads, if it is one of those for scores.

    They are asked for far more often than all others, and do without the framework.
    """
    match path.split("/"):
        case ["", "score"]:
            return Way(path)
        case ["", "models", name, "score"]:
            return Way("/models/{name}/score", name)
        case ["", "v2", "models", name, "infer"]:
            return Way("/v2/models/{name}/infer", name, infers=True)
        case ["", "v2", "models", name, "versions", version, "infer"]:
            return Way("/v2/models/{name}/infer", name, version, True)
    return None
