"""What is known about a column besides its values: from the user, and from other columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aloof.exceptions import TableError

__all__ = ["Hints", "Locale", "Question", "Wishes"]

_DECIMALS = (".", ",")
_THOUSANDS = (".", ",", " ", "'")


@dataclass(frozen=True)
class Locale:
    """How the columns of a table are written that can be read in one way only.

    A table has one locale: what these columns say holds for the others. What they contradict
    each other in is not known.

    Attributes
    ----------
    decimal, thousands
        Signs in numbers; empty: not known.
    order
        "dmy" or "mdy" for dates in numbers; empty: not known.
    decimal_from, order_from
        Words about the columns that say so.
    """

    decimal: str = ""
    thousands: str = ""
    order: str = ""
    decimal_from: str = ""
    order_from: str = ""


@dataclass(frozen=True)
class Hints:
    """What is known about one column besides its values.

    Attributes
    ----------
    decimal, thousands, day_first, layout
        What the user says: signs in numbers, whether the day comes first in dates, and how
        times are written, as in `time.strptime`. None: nothing.
    locale
        What other columns say.
    """

    decimal: str | None = None
    thousands: str | None = None
    day_first: bool | None = None
    layout: str | None = None
    locale: Locale = field(default_factory=Locale)


@dataclass(frozen=True)
class Wishes:
    """What the user says about how a table is written.

    Attributes
    ----------
    decimal, thousands
        A sign for all columns, or signs by column.
    day_first
        True: 03/04/2024 is the 3rd of April; False: the 4th of March.
    layouts
        How times are written, by column, as in `time.strptime`.
    """

    decimal: str | Mapping[str, str] | None = None
    thousands: str | Mapping[str, str] | None = None
    day_first: bool | None = None
    layouts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for option, known in (("decimal", _DECIMALS), ("thousands", _THOUSANDS)):
            for sign in self._signs(option).values():
                if sign not in known:
                    raise TableError(
                        f"{option} (--{option}) must be one of "
                        f"{', '.join(map(repr, known))}; got {sign!r}."
                    )
        everywhere = [self._signs(option).get(None) for option in ("decimal", "thousands")]
        if everywhere[0] is not None and everywhere[0] == everywhere[1]:
            raise TableError(
                "decimal and thousands (--decimal and --thousands) cannot both be "
                f"{everywhere[0]!r}."
            )
        if self.day_first not in (None, True, False):
            raise TableError(
                f"day_first must be True (--day-first) or False (--month-first); got "
                f"{self.day_first!r}."
            )

    @property
    def columns(self) -> set[str]:
        """The columns that are named."""
        named = {*self._signs("decimal"), *self._signs("thousands"), *self.layouts}
        return {name for name in named if name is not None}

    @property
    def about_all(self) -> str:
        """An option about all columns, in words; nothing: there is none."""
        for option in ("decimal", "thousands"):
            if None in self._signs(option):
                return f"{option} (--{option})"
        if self.day_first is None:
            return ""
        return (
            "day_first (--day-first)" if self.day_first else "day_first=False (--month-first)"
        )

    def of(self, name: str, locale: Locale) -> Hints:
        """Return what is known about one column."""
        signs = [self._signs(option) for option in ("decimal", "thousands")]
        decimal, thousands = (given.get(name, given.get(None)) for given in signs)
        return Hints(decimal, thousands, self.day_first, self.layouts.get(name), locale)

    def _signs(self, option: str) -> dict[str | None, str]:
        """Return signs by column; None stands for all of them."""
        given: Any = getattr(self, option)
        if given is None:
            return {}
        return dict(given) if isinstance(given, Mapping) else {None: given}


class Question(TableError):
    """A column that can be read in more than one way, and what to say to settle it."""
