"""What is wrong with content from outside is said in words of one kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import Field, ValidationError, field_validator

from aloof.io.sections import STRICT, Count, Section, from_json, problems, read_section


class Inner(Section):
    name: str
    size: Count = 0

    @field_validator("name")
    @classmethod
    def _check(cls, name: str) -> str:
        if name == "long":
            raise ValueError("must be short.")
        if name == "odd":
            raise ValueError("There is no such name.")
        return name


class Outer(Section):
    inner: Inner
    numbers: list[float] = Field(default=[], max_length=2)
    on: bool = True


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (3, "this must be a mapping; got 3"),
        ({}, "inner is missing"),
        ({"inner": {}}, "inner.name is missing"),
        ({"inner": 3}, "inner must be a mapping; got 3"),
        (
            {"inner": {"name": "a", "siez": 1}},
            "inner.siez is unknown; did you mean 'size'? Choose from name, size",
        ),
        ({"inner": {"name": 1}}, "inner.name must be text; got 1"),
        ({"inner": {"name": "long"}}, "inner.name must be short"),
        ({"inner": {"name": "odd"}}, "inner.name: There is no such name"),
        ({"inner": {"name": "a", "size": -1}}, "inner.size must be greater than or equal to 0"),
        ({"inner": {"name": "a"}, "on": 1}, "on must be true or false; got 1"),
        ({"inner": {"name": "a"}, "numbers": [1, "x"]}, "numbers must be a number; got 'x'"),
        (
            {"inner": {"name": "a"}, "numbers": [1, 2, 3]},
            "numbers must have at most 2 items after validation, not 3; got [1, 2, 3]",
        ),
        (
            {"inner": {"name": "a"}, "numbers": [float("nan")]},
            "numbers must be a finite number; got nan",
        ),
    ],
)
def test_a_problem_is_one_line(content: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words[:4]) as caught:
        read_section(Outer, content)
    assert str(caught.value).startswith(words)


def test_all_problems_by_the_outermost_key() -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"inner": {"name": 1}, "onn": True})
    assert problems(caught.value, Outer, within="page") == [
        ("inner", "page.inner.name must be text; got 1"),
        ("onn", "page.onn is unknown; did you mean 'on'? Choose from inner, numbers, on"),
    ]
    with pytest.raises(ValueError, match=r"^inner.name must be text; got 1 \(and 1 more\)$"):
        read_section(Outer, {"inner": {"name": 1}, "onn": True})


@dataclass
class _Point:
    x: float


@dataclass
class _Line:
    __pydantic_config__ = STRICT

    ends: tuple[_Point, ...]


def test_dataclasses_are_read_as_strictly() -> None:
    assert from_json(_Line, {"ends": [{"x": 1}]}) == _Line((_Point(1.0),))
    for content, words in (
        ({"ends": [{"x": 1, "y": 2}]}, r"^ends.0.y is unknown$"),
        ({"ends": [{"x": "1"}]}, r"^ends.0.x must be a number; got '1'$"),
        ({"ends": [{"x": float("nan")}]}, r"^ends.0.x must be a finite number"),
        ("\ud800", "^Invalid JSON"),
    ):
        with pytest.raises(ValueError, match=words):
            from_json(_Line, content)
