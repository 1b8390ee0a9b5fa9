"""Content from outside, read strictly: keys of known types, and one line about what is wrong.

Not imported before it is needed: pydantic takes its time.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

__all__ = ["Count", "Section", "Text", "read_section"]

_S = TypeVar("_S", bound="Section")

_LONGEST = 60  # characters of a value in a message


class Section(BaseModel):
    """A part of a file: types are not converted, numbers are finite, no key is unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


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
    ValueError: page.width should be a valid integer; got '3'
    >>> read_section(Size, {"widht": 3})
    Traceback (most recent call last):
    ValueError: width is missing (and 1 more)
    """
    try:
        return kind.model_validate(content)
    except ValidationError as problems:
        first = problems.errors(include_url=False, include_context=False)[0]
        key = ".".join(map(str, [*filter(None, [within]), *first["loc"]])) or "this"
        more = problems.error_count() - 1
        if first["type"] == "missing":
            words = "is missing"
        elif first["type"] == "extra_forbidden":
            words = "is unknown"
        elif first["type"] == "value_error":  # of a check of our own
            words = f"is wrong: {first['msg'].removeprefix('Value error, ').rstrip('.')}"
        else:
            said = first["msg"].removeprefix("Input ").partition(" or instance of ")[0]
            words = f"{said[0].lower()}{said[1:]}; got {_short(first['input'])}"
        raise ValueError(f"{key} {words}{f' (and {more} more)' if more else ''}") from problems


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
