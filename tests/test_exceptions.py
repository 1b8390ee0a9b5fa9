"""Warnings are said once of each thing, whatever numbers stand in them."""

from __future__ import annotations

from aloof.exceptions import AloofWarning, ImageWarning, TableWarning, once_of_each


def test_once_of_each_category_and_thing() -> None:
    said: list[AloofWarning] = []
    say = once_of_each(said.append)
    first = TableWarning("Column 'a': 3 of 9 values cannot be read", about="a")
    for warning in (
        first,
        TableWarning("Column 'a': 5 of 9 values cannot be read", about="a"),
        TableWarning("Column 'b': odd", about="b"),
        ImageWarning("a", about="a"),
        ImageWarning("a"),
        ImageWarning("c"),
    ):
        say(warning)
    assert [str(warning)[:10] for warning in said] == ["Column 'a'", "Column 'b'", "a", "c"]
    assert said[0] is first
