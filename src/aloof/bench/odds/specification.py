"""What to run on the ODDS data sets: which methods on which data, under which conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, model_validator

from aloof.bench.methods import PAPERS, Compared, resolve_methods
from aloof.bench.odds.paper import PAPER_TABLES
from aloof.bench.odds.settings import has_setting
from aloof.bench.specification import (
    Count,
    Names,
    Settings,
    Shares,
    Specification,
    known,
)
from aloof.bench.splits import SCALINGS
from aloof.bench.variants import Variant, Variants, check_variants, variant_named, variants_of
from aloof.datasets import PublicTable, find_dataset, list_datasets

__all__ = ["OddsSpecification", "System", "Variant"]


@dataclass(frozen=True)
class System(Compared):
    """One row of a table.

    Attributes
    ----------
    method
        Its name.
    setting
        Whose numbers it runs with; empty where all have the same.
    variant
        Which change to the method; empty for the method as it is.
    scaling
        Of the columns it sees.
    """

    setting: str = ""
    variant: str = ""
    scaling: str = "standard"

    @property
    def label(self) -> str:
        """What it is called in a table; standardised columns are not mentioned."""
        scaling = "" if self.scaling == "standard" else self.scaling
        details = ", ".join(part for part in (self.setting, self.variant, scaling) if part)
        return f"{self.method} ({details})" if details else self.method

    def meets(self, other: System) -> bool:
        """Return whether the two may be compared: one scaling, and no two settings."""
        settings = {self.setting, other.setting} - {""}
        return self.scaling == other.scaling and len(settings) < 2


def _datasets(names: tuple[str, ...]) -> tuple[str, ...]:
    every = [entry.name for entry in list_datasets(PublicTable)]
    chosen = dict.fromkeys(n for name in names for n in (every if name == "all" else [name]))
    return tuple(find_dataset(name, PublicTable).name for name in chosen)


class OddsSpecification(Specification):
    """Options of ``aloof bench odds``. One value may stand for a list of one.

    Attributes
    ----------
    datasets
        By name; ``all`` stands for every one.
    methods
        By name; ``ours``, ``peers`` and ``all`` stand for many.
    setting
        ``ours``, ``paper`` or both; see `aloof.bench.odds.settings`. Systems for which they do
        not differ run once.
    scaling
        Of the columns, by the training rows: ``standard``, to mean 0 and variance 1, ``unit``,
        from there to [0, 1], or both.
    variants
        Of our methods, and of those peers that one names; the others run once. Tables with the
        fields of `Variant`.
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
    methods: Annotated[Names, AfterValidator(resolve_methods)] = PAPERS
    setting: Settings = ("ours",)
    scaling: Annotated[Names, AfterValidator(known("scaling", SCALINGS))] = ("standard",)
    variants: Variants = (Variant(name=""),)
    gamma_l: Shares = (0.01,)
    gamma_p: Shares = (0.0,)
    seeds: Count = 10
    paper: Annotated[str, AfterValidator(known("table of the paper", PAPER_TABLES))] = (
        "complete"
    )

    @model_validator(mode="after")
    def _check_parameters(self) -> OddsSpecification:
        check_variants(self.variants, self.methods)
        return self

    @property
    def systems(self) -> tuple[System, ...]:
        """The rows of its tables."""
        return tuple(
            System(method, setting, variant, scaling)
            for method in self.methods
            for setting in (self.setting if has_setting(method) else ("",))
            for variant in variants_of(method, self.variants)
            for scaling in self.scaling
        )

    @property
    def conditions(self) -> tuple[tuple[float, float], ...]:
        """The pairs of `gamma_l` and `gamma_p`."""
        return tuple((labelled, hidden) for labelled in self.gamma_l for hidden in self.gamma_p)

    def variant(self, system: System) -> Variant:
        """Return what is changed in a system."""
        found = variant_named(system.variant, system.method, self.variants)
        return found or Variant(name="")
