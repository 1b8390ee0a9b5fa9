"""What to run: options from a TOML file and the command line, checked once, then frozen.

A study describes its options as a subclass of `Specification`, a pydantic model. Whatever is
wrong is told in one line that names the file and the key, all of it at once.
"""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, ValidationError

from aloof.exceptions import ExperimentError
from aloof.io.sections import Section, problems
from aloof.suggestion import did_you_mean

__all__ = [
    "SETTINGS",
    "Count",
    "Counts",
    "Names",
    "Positive",
    "Setting",
    "Settings",
    "Share",
    "Shares",
    "Specification",
    "Weight",
    "Whole",
    "command_line",
    "distinct",
    "known",
    "read_options",
    "several",
    "specify",
    "widen",
]

Setting = Literal["ours", "paper"]
"""Whose numbers a system runs with: ours, or those its authors published."""

SETTINGS: tuple[Setting, ...] = get_args(Setting)

_S = TypeVar("_S", bound="Specification")
_A = TypeVar("_A", int, float)
_N = TypeVar("_N", str, tuple[str, ...])


class Specification(Section):
    """The options of a study; a subclass adds its own. Every one may stand in a TOML file.

    Attributes
    ----------
    name
        Of the folder for results; empty: the name of the file.
    title
        Above the tables.
    """

    name: str = ""
    title: str = ""


def known(what: str, names: Iterable[str]) -> Callable[[_N], _N]:
    """Return a validator: a name, or each of several, must be one of those that there are.

    Examples
    --------
    >>> known("method", ["dp", "mml"])("dpp")
    Traceback (most recent call last):
    ValueError: There is no method 'dpp'; did you mean 'dp'? Choose from dp, mml.
    """
    allowed = list(names)

    def check(value: _N) -> _N:
        for name in value if isinstance(value, tuple) else (value,):
            if name not in allowed:
                raise ValueError(f"There is no {what} {name!r}{did_you_mean(name, allowed)}")
        return value

    return check


def several(value: Any) -> Any:
    """Let one value stand for a list of one, and a list for a tuple."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return each value once; there must be one."""
    if not values:
        raise ValueError("must be one or more; got none.")
    return tuple(dict.fromkeys(values))


def _share(value: float) -> float:
    if not 0 <= value < 1:
        raise ValueError(f"must be a share, from 0 to below 1; got {value!r}.")
    return value


def _count(value: int) -> int:
    if value < 1:
        raise ValueError(f"must be at least 1; got {value!r}.")
    return value


def _positive(value: float) -> float:
    if not value > 0:
        raise ValueError(f"must be more than 0; got {value!r}.")
    return value


def _from_zero(value: _A) -> _A:
    if not value >= 0:
        raise ValueError(f"must be at least 0; got {value!r}.")
    return value


Share = Annotated[float, AfterValidator(_share)]
Count = Annotated[int, AfterValidator(_count)]
Positive = Annotated[float, AfterValidator(_positive)]
Weight = Annotated[float, AfterValidator(_from_zero)]
Whole = Annotated[int, AfterValidator(_from_zero)]
Shares = Annotated[tuple[Share, ...], BeforeValidator(several), AfterValidator(distinct)]
Counts = Annotated[tuple[Count, ...], BeforeValidator(several), AfterValidator(distinct)]
Names = Annotated[tuple[str, ...], BeforeValidator(several), AfterValidator(distinct)]
Settings = Annotated[Names, AfterValidator(known("setting", SETTINGS))]


def read_options(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the options in a TOML file."""
    file = Path(path)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise ExperimentError(f"Cannot read the experiment {file}: {reason}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"The experiment {file} is not valid TOML: {error}.") from error


def specify(
    kind: type[_S],
    options: Mapping[str, Any] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
) -> _S:
    """Check options and fill in the rest.

    Parameters
    ----------
    kind
        The specification of a study.
    options
        By name; None stands for what was not given.
    file
        A TOML file with further options; those of `options` win.

    Raises
    ------
    ExperimentError
        Names every option that is wrong, and the file it stands in.

    Examples
    --------
    >>> from aloof.bench.planning import PlanningSpecification
    >>> specify(PlanningSpecification, {"n_wrlds": 3})
    Traceback (most recent call last):
    aloof.exceptions.ExperimentError: n_wrlds is unknown; did you mean 'n_worlds'?...
    """
    given = {key: value for key, value in (options or {}).items() if value is not None}
    stored = {} if file is None else read_options(file)
    try:
        return kind(**{**stored, **given})
    except ValidationError as error:
        sentences = (
            f"{file}: {words}." if file is not None and key not in given else f"{words}."
            for key, words in problems(error, kind)
        )
        raise ExperimentError(" ".join(dict.fromkeys(sentences))) from error


def command_line(study: str, file: Path, options: Mapping[str, Any]) -> str:
    """Return what a user types to run an experiment with options beside its file.

    Examples
    --------
    >>> command_line("odds", Path("some.toml"), {"setting": ("ours", "paper"), "seeds": 3})
    'aloof bench odds --experiment some.toml --setting ours,paper --seeds 3'
    """
    words = ["aloof", "bench", study, "--experiment", file.as_posix()]
    for option, value in options.items():
        words += [f"--{option.replace('_', '-')}", ",".join(map(str, several(value)))]
    return shlex.join(words)


def widen(part: _S, options: Mapping[str, Any], file: str | os.PathLike[str]) -> _S:
    """Return the whole of an experiment that a part of was asked for.

    Parameters
    ----------
    part
        The options of `file` with others in their place.
    options
        Those others, as for `specify`. Of several values, the whole has the file's and these;
        of a number of splits, the larger one. Other options hold for the whole, too.
    file
        The TOML file of the experiment.

    Examples
    --------
    >>> from aloof.bench.planning import PlanningSpecification
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('methods = ["vae", "dp"]')
    ...     file.flush()
    ...     part = specify(PlanningSpecification, {"methods": ["dp"]}, file=file.name)
    ...     widen(part, {"methods": ["dp"]}, file.name).methods
    ('vae', 'dp')
    """
    kind = type(part)
    stored = specify(kind, {"name": part.name}, file=file)
    wider: dict[str, Any] = {"name": part.name}
    for name, value in options.items():
        if value is None:
            continue
        own, asked = getattr(stored, name), getattr(part, name)
        if isinstance(own, tuple) and own:
            wider[name] = distinct((*own, *asked))
        elif name == "seeds":
            wider[name] = max(own, asked)
        elif isinstance(own, tuple):  # none: all of them
            wider[name] = own
        else:
            wider[name] = asked
    return specify(kind, wider, file=file)
