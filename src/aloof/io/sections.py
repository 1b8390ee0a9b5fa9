"""Content from outside, read strictly: keys of known types, and one line about what is wrong.

Not imported before it is needed: pydantic takes its time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from aloof.suggestion import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["STRICT", "Count", "Section", "Text", "from_json", "problems", "read_section"]

_S = TypeVar("_S", bound="Section")

_T = TypeVar("_T")

# Types are not converted, numbers are finite, no key is unknown.
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

_LONGEST = 60  # characters of a value in a message


class Section(BaseModel):
    """A part of a file, read strictly."""

    model_config = {**STRICT, "frozen": True}


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it is text that cannot be written") from None
    return text


Text = Annotated[str, AfterValidator(_encodable)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


def read_section(kind: type[_S], content: object, *, within: str = "") -> _S:
    """Return content as a section; raise a `ValueError` that names the first key that is wrong.

    Parameters
    ----------
    kind
        What it should be.
    content
        As a parser of JSON or TOML gives it.
    within
        The key that it has in the file, if it is not all of it.

    Examples
    --------
    >>> class Size(Section):
    ...     width: Count
    >>> read_section(Size, {"width": 3}).width
    3
    >>> read_section(Size, {"width": "3"}, within="page")
    Traceback (most recent call last):
    ValueError: page.width must be a whole number; got '3'
    >>> read_section(Size, {"widht": 3})
    Traceback (most recent call last):
    ValueError: width is missing (and 1 more)
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise ValueError(_first_problem(error, kind, within=within)) from error


def from_json(kind: type[_T], content: object) -> _T:
    """Return the dataclass whose fields JSON held; a `ValueError` names the one that is wrong.

    Its ``__pydantic_config__``, such as `STRICT`, says how it is read, and how the dataclasses
    in it are that have none.
    """
    try:
        found: _T = _adapter(cast(Any, kind)).validate_json(json.dumps(content))
    except ValidationError as error:
        raise ValueError(_first_problem(error)) from error
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _first_problem(error: ValidationError, kind: object = None, *, within: str = "") -> str:
    """Say in one line what is wrong first, and how much else is."""
    (_, first), *others = problems(error, kind, within=within)
    return first + (f" (and {len(others)} more)" if others else "")


def problems(
    error: ValidationError, kind: object = None, *, within: str = ""
) -> list[tuple[str, str]]:
    """Say what is wrong with content: of each problem the outermost key, and words.

    Parameters
    ----------
    error
        What pydantic says.
    kind
        What the content should have been, for names that come near to an unknown key.
    within
        See `read_section`.
    """
    found = []
    for problem in error.errors(include_url=False, include_context=False):
        path = list(problem["loc"])
        while path and isinstance(path[-1], int):  # the value is shown: no need to count
            path.pop()
        key = ".".join(map(str, [*filter(None, [within]), *path]))
        found.append((str(path[0]) if path else "", _words(key, kind, path, problem)))
    return found


def _words(key: str, kind: object, path: list[int | str], problem: ErrorDetails) -> str:
    said = problem["msg"]
    if problem["type"] == "missing":
        return f"{key} is missing"
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _names_beside(kind, path)
        return f"{key} is unknown{did_you_mean(path[-1], known).rstrip('.') if known else ''}"
    if problem["type"] == "value_error":  # of a check of our own
        said = said.removeprefix("Value error, ").rstrip(".")
        return f"{key} {said}" if said.startswith("must") else f"{key}: {said}".lstrip(": ")
    rule = _RULES.get(problem["type"]) or said.partition(" should ")[2]
    if not rule:
        return f"{key}: {said}".lstrip(": ")
    return f"{key or 'this'} must {rule}; got {_short(problem['input'])}"


_RULES = {
    "bool_type": "be true or false",
    "dict_type": "be a mapping",
    "float_type": "be a number",
    "int_type": "be a whole number",
    "list_type": "be a list",
    "model_type": "be a mapping",
    "string_type": "be text",
    "tuple_type": "be a list",
}


def _names_beside(kind: object, path: list[int | str]) -> Collection[str]:
    """Return the names that there are where the last of a path is not one."""
    for name in path[:-1]:
        if isinstance(name, str):
            field = getattr(kind, "model_fields", {}).get(name)
            parts = () if field is None else _types(field.annotation)
            kind = next((part for part in parts if hasattr(part, "model_fields")), None)
    return getattr(kind, "model_fields", ())


def _types(annotation: object) -> Iterator[object]:
    yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _types(part)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
