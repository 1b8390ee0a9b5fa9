"""An experiment: which methods on which data, under which conditions. One TOML file each."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from aloof.datasets import PublicTable, find_dataset, list_datasets
from aloof.exceptions import ExperimentError
from aloof.experiments.methods import OURS, resolve_methods, unfair_peers
from aloof.experiments.names import did_you_mean
from aloof.experiments.paper import PAPER_TABLES, PaperTable
from aloof.experiments.settings import SETTINGS, Setting, check_overrides

__all__ = ["Experiment", "System", "Variant", "make_experiment", "read_options"]


@dataclass(frozen=True)
class Variant:
    """A change to our methods that an experiment is about.

    Attributes
    ----------
    name
        Empty for the methods as they are.
    parameters
        Of the estimator, in place of the setting's.
    """

    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class System:
    """One row of a table.

    Attributes
    ----------
    method
        Its name.
    setting, variant
        Of our methods; empty for the others.
    """

    method: str
    setting: str = ""
    variant: str = ""

    @property
    def ours(self) -> bool:
        """Whether it is a method of this package."""
        return self.method in OURS

    @property
    def unfair(self) -> bool:
        """Whether it was tuned with labels of test rows, and so is no peer to beat."""
        return self.method in unfair_peers()

    @property
    def label(self) -> str:
        """What it is called in a table."""
        details = ", ".join(part for part in (self.setting, self.variant) if part)
        return f"{self.method} ({details})" if details else self.method


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What to run; make one with `make_experiment`, which checks it.

    Attributes
    ----------
    name, title
        For folders and for people.
    datasets, methods
        By name.
    settings
        Of our methods, any of ``default`` and ``paper``.
    variants
        Of our methods; the others run once.
    gamma_l, gamma_p
        Shares of labelled and of hidden anomalies; a table for each pair.
    seeds
        Splits are made from 0, 1, ... up to but without this number.
    paper
        The paper's table to show beside the results made under its conditions.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    settings: tuple[Setting, ...]
    variants: tuple[Variant, ...]
    gamma_l: tuple[float, ...]
    gamma_p: tuple[float, ...]
    seeds: int
    paper: PaperTable

    @property
    def systems(self) -> tuple[System, ...]:
        """The rows of its tables."""
        rows: list[System] = []
        for method in self.methods:
            if method not in OURS:
                rows.append(System(method))
                continue
            rows += [System(method, s, v.name) for s in self.settings for v in self.variants]
        return tuple(rows)

    @property
    def conditions(self) -> tuple[tuple[float, float], ...]:
        """The pairs of `gamma_l` and `gamma_p`."""
        return tuple((labelled, hidden) for labelled in self.gamma_l for hidden in self.gamma_p)

    def overrides(self, system: System) -> Mapping[str, Any]:
        """Return the parameters that the variant of a system changes."""
        return next((v.parameters for v in self.variants if v.name == system.variant), {})


def read_options(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the options in the TOML file of an experiment."""
    file = Path(path)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise ExperimentError(f"The experiment {file} cannot be read: {reason}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"The experiment {file} is not valid TOML: {error}.") from error


def make_experiment(options: Mapping[str, Any]) -> Experiment:
    """Check what an experiment is to be, and fill in the rest.

    Parameters
    ----------
    options
        Fields of `Experiment`. One value may stand for a list of one; `methods` may hold
        ``ours``, ``peers`` and ``all``; `variants` are tables with `name` and `parameters`.

    Raises
    ------
    ExperimentError
        Names every option that is wrong.

    Examples
    --------
    >>> make_experiment({"methods": "ours", "seeds": 2}).methods
    ('vae', 'mml', 'dp', 'mml-dp')
    """
    known = [f.name for f in fields(Experiment)]
    problems = [
        f"There is no option {key!r}{did_you_mean(key, known)}"
        for key in options
        if key not in known
    ]
    values: dict[str, Any] = {}
    for name, read in _READERS.items():
        try:
            values[name] = read(options[name]) if name in options else _DEFAULTS[name]
        except ValueError as error:
            problems.append(str(error))
    if not problems:
        problems = _contradictions(values)
    if problems:
        raise ExperimentError(" ".join(problems))
    return Experiment(**values)


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with parameters of the methods asked for."""
    problems = []
    for method in values["methods"]:
        for variant in values["variants"]:
            if method not in OURS:
                continue
            try:
                check_overrides(method, variant.parameters)
            except ExperimentError as error:
                problems.append(str(error))
    return problems


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _names(what: str, value: Any) -> tuple[str, ...]:
    names = _list(value)
    if not names or not all(isinstance(name, str) for name in names):
        raise ExperimentError(f"{what} must be one or more names; got {value!r}.")
    return tuple(dict.fromkeys(names))


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ExperimentError(f"{what} must be a text; got {value!r}.")
    return value


def _datasets(value: Any) -> tuple[str, ...]:
    names = _names("datasets", value)
    every = [entry.name for entry in list_datasets(PublicTable)]
    chosen = dict.fromkeys(n for name in names for n in (every if name == "all" else [name]))
    return tuple(find_dataset(name, PublicTable).name for name in chosen)


def _settings(value: Any) -> tuple[str, ...]:
    names = _names("settings", value)
    for name in names:
        if name not in SETTINGS:
            raise ExperimentError(f"There is no setting {name!r}{did_you_mean(name, SETTINGS)}")
    return names


def _variants(value: Any) -> tuple[Variant, ...]:
    tables = _list(value)
    found: dict[str, Variant] = {}
    for table in tables:
        if not isinstance(table, Mapping):
            raise ExperimentError(f"A variant must be a table; got {table!r}.")
        for key in table:
            if key not in ("name", "parameters"):
                hint = did_you_mean(key, ("name", "parameters"))
                raise ExperimentError(f"A variant has no {key!r}{hint}")
        variant = Variant(
            _text("name of a variant", table.get("name")), table.get("parameters", {})
        )
        if not isinstance(variant.parameters, Mapping):
            raise ExperimentError(f"parameters of {variant.name!r} must be a table.")
        if variant.name in found:
            raise ExperimentError(f"There are two variants called {variant.name!r}.")
        found[variant.name] = variant
    return tuple(found.values()) or (Variant(),)


def _shares(what: str) -> Callable[[Any], tuple[float, ...]]:
    def read(value: Any) -> tuple[float, ...]:
        shares = _list(value)
        for share in shares:
            number = isinstance(share, int | float) and not isinstance(share, bool)
            if not number or not 0 <= share < 1:
                raise ExperimentError(
                    f"{what} must be a share, from 0 to below 1; got {share!r}."
                )
        if not shares:
            raise ExperimentError(f"{what} must be one or more shares; got none.")
        return tuple(dict.fromkeys(float(share) for share in shares))

    return read


def _seeds(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ExperimentError(f"seeds must be how many, an int >= 1; got {value!r}.")
    return value


def _paper(value: Any) -> str:
    if value not in PAPER_TABLES:
        hint = did_you_mean(value, PAPER_TABLES)
        raise ExperimentError(f"The paper has no table {value!r}{hint}")
    return str(value)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "name": lambda value: _text("name", value),
    "title": lambda value: _text("title", value),
    "datasets": _datasets,
    "methods": lambda value: resolve_methods(_names("methods", value)),
    "settings": _settings,
    "variants": _variants,
    "gamma_l": _shares("gamma_l"),
    "gamma_p": _shares("gamma_p"),
    "seeds": _seeds,
    "paper": _paper,
}
_DEFAULTS: Mapping[str, Any] = {
    "name": "odds",
    "title": "The ODDS data sets",
    "datasets": tuple(entry.name for entry in list_datasets(PublicTable)),
    "methods": tuple(OURS),
    "settings": ("default",),
    "variants": (Variant(),),
    "gamma_l": (0.01,),
    "gamma_p": (0.0,),
    "seeds": 10,
    "paper": "complete",
}
