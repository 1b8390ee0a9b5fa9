"""What to run on the ODDS data sets: which methods on which data, under which conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    model_validator,
)

from aloof.bench.methods import OURS, check_overrides, resolve_methods, unfair_peers
from aloof.bench.odds.paper import PAPER_TABLES
from aloof.bench.odds.settings import SETTINGS
from aloof.bench.specification import Count, Names, Shares, Specification, known, several
from aloof.datasets import PublicTable, find_dataset, list_datasets
from aloof.io.sections import Section

__all__ = ["OddsSpecification", "System", "Variant"]


class Variant(Section):
    """A change to our methods that a study is about.

    Attributes
    ----------
    name
        Empty for the methods as they are.
    parameters
        Of the estimator, in place of the setting's.
    """

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


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


def _datasets(names: tuple[str, ...]) -> tuple[str, ...]:
    every = [entry.name for entry in list_datasets(PublicTable)]
    chosen = dict.fromkeys(n for name in names for n in (every if name == "all" else [name]))
    return tuple(find_dataset(name, PublicTable).name for name in chosen)


def _variants(variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    names = [variant.name for variant in variants]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"There are two variants called {name!r}.")
    return variants or (Variant(name=""),)


class OddsSpecification(Specification):
    """Options of ``aloof bench odds``. One value may stand for a list of one.

    Attributes
    ----------
    datasets
        By name; ``all`` stands for every one.
    methods
        By name; ``ours``, ``peers`` and ``all`` stand for many.
    settings
        Of our methods, any of ``default`` and ``paper``.
    variants
        Of our methods; the others run once. Tables with `name` and `parameters`.
    gamma_l, gamma_p
        Shares of labelled and of hidden anomalies; a table for each pair.
    seeds
        Splits are made from 0, 1, ... up to but without this number.
    paper
        The paper's table to show beside the results made under its conditions.
    """

    title: str = "The ODDS data sets"
    datasets: Annotated[Names, AfterValidator(_datasets)] = tuple(
        entry.name for entry in list_datasets(PublicTable)
    )
    methods: Annotated[Names, AfterValidator(resolve_methods)] = tuple(OURS)
    settings: Annotated[Names, AfterValidator(known("setting", SETTINGS))] = ("default",)
    variants: Annotated[
        tuple[Variant, ...], BeforeValidator(several), AfterValidator(_variants)
    ] = (Variant(name=""),)
    gamma_l: Shares = (0.01,)
    gamma_p: Shares = (0.0,)
    seeds: Count = 10
    paper: Annotated[str, AfterValidator(known("table of the paper", PAPER_TABLES))] = (
        "complete"
    )

    @model_validator(mode="after")
    def _check_parameters(self) -> OddsSpecification:
        for method in self.methods:
            for variant in self.variants:
                if method in OURS:
                    check_overrides(method, variant.parameters)
        return self

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
