"""What a request says besides its body: query, deadline, media types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from aloof.serve.limits import Refused
from aloof.serve.served import Asked, Content
from aloof.suggestion import did_you_mean

__all__ = ["TIMEOUT", "content_of", "read_query", "seconds_given"]

# The header by which a client says how many milliseconds it waits.
TIMEOUT = b"x-timeout-ms"
_KNOWN = ("reasons", "missing_columns", "ignore_rules", "delimiter", "encoding", "header")
_MOST_REASONS = 100
_WORDS = {"true": True, "false": False}


def read_query(query: bytes) -> Asked:
    """Return what the query of a request asks for.

    Examples
    --------
    >>> read_query(b"reasons=3").reasons
    3
    """
    if not query:
        return Asked()
    try:
        given = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=16)
    except ValueError as error:
        raise Refused(422, "The query cannot be read.") from error
    options: dict[str, Any] = {}
    for name, value in given:
        if name not in _KNOWN:
            hint = did_you_mean(name[:50], _KNOWN)
            raise Refused(422, f"There is no option {name[:50]!r}{hint}")
        if name in options:
            raise Refused(422, f"The option {name} is there twice.")
        options[name] = value
    asked: dict[str, Any] = {n: options[n] for n in ("delimiter", "encoding") if n in options}
    if "reasons" in options:
        text = options["reasons"]
        if not (text.isascii() and text.isdigit() and int(text[:9]) <= _MOST_REASONS):
            raise Refused(422, f"reasons must be a number from 0 to {_MOST_REASONS}.")
        asked["reasons"] = int(text)
    if "missing_columns" in options:
        if options["missing_columns"] not in ("refuse", "fill"):
            raise Refused(422, "missing_columns must be refuse or fill.")
        asked["fills"] = options["missing_columns"] == "fill"
    for name, field in (("header", "header"), ("ignore_rules", "ignores_rules")):
        if name in options:
            if options[name] not in _WORDS:
                raise Refused(422, f"{name} must be true or false.")
            asked[field] = _WORDS[options[name]]
    return Asked(**asked)


def seconds_given(headers: Mapping[bytes, bytes], most: float) -> float:
    """Return how long a request may take: what it says itself, and no more than `most`."""
    given = headers.get(TIMEOUT)
    if given is None:
        return most
    if not given.isdigit() or not 1 <= int(given[:12]):
        raise Refused(422, "X-Timeout-Ms must be a number of milliseconds, at least 1.")
    return min(most, int(given[:12]) / 1000)


def content_of(data: bytes, header: bytes) -> Content:
    """Return a body as what its Content-Type header says.

    Examples
    --------
    >>> content_of(b"", b'text/csv; charset="latin-1"').parameters
    {'charset': 'latin-1'}
    """
    return Content(data, *_media_type(header))


@lru_cache(64)
def _media_type(header: bytes) -> tuple[str, Mapping[str, str]]:
    kind, *rest = header.decode("latin-1").split(";")
    parameters = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    return kind.strip().lower(), parameters
