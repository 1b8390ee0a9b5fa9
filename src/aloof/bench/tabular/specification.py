"""What to run on tables: which systems on which tasks, under which protocols."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, model_validator

from aloof.bench.methods import PAPERS, Compared, resolve_methods
from aloof.bench.specification import (
    Count,
    Names,
    Shares,
    Specification,
    distinct,
    known,
    several,
)
from aloof.bench.tabular.development import DEVELOPMENT, GROUPS
from aloof.bench.tabular.files import Reading, find_tables
from aloof.bench.tabular.protocols import PROTOCOLS, Condition
from aloof.bench.tabular.variants import TableVariant, TableVariants
from aloof.bench.variants import check_variants, variant_named, variants_of

__all__ = ["System", "TablesSpecification"]


@dataclass(frozen=True)
class System(Compared):
    """One row of a table.

    Attributes
    ----------
    method
        Its name.
    variant
        Which change to the method; empty for the method as it is.
    """

    variant: str = ""

    @property
    def label(self) -> str:
        """What it is called in a table."""
        return f"{self.method} ({self.variant})" if self.variant else self.method


def _amount(value: float) -> float:
    Condition("known", value)  # says what is wrong with it
    return value


_Amounts = Annotated[
    tuple[Annotated[float, AfterValidator(_amount)], ...],
    BeforeValidator(several),
    AfterValidator(distinct),
]
_Texts = Annotated[tuple[str, ...], BeforeValidator(several)]


class TablesSpecification(Specification):
    """Options of ``aloof bench tables``. One value may stand for a list of one.

    Attributes
    ----------
    folder
        With a table in each file; empty: development tasks.
    tasks
        By name: of files without their endings, or of development tasks, where
        ``development``, ``keel``, ``images`` and ``corruptions`` stand for many. Empty: all
        files, or ``development``.
    label, kind, anomaly_values, ignore
        What the columns of files mean; see `aloof.bench.tabular.files.Reading`.
    methods
        By name; ``ours``, ``peers`` and ``all`` stand for many.
    variants
        Of our methods, and of those peers that one names; the others run once. Tables with the
        fields of `TableVariant`.
    protocols
        ``known``, ``novel``, ``hidden``; see `aloof.bench.tabular.protocols`.
    labels
        Labelled anomalies: shares of the training rows (below 1), or numbers of them.
    hidden
        Shares of hidden anomalies, for the protocol ``hidden``.
    seeds
        Splits are made from 0, 1, ... up to but without this number.
    against
        The system that others are compared with, as it is called in tables; empty: dp, or the
        first one.
    """

    title: str = "Tables"
    folder: str = ""
    tasks: _Texts = ()
    label: str = ""
    kind: str = ""
    anomaly_values: _Texts = ()
    ignore: _Texts = ()
    methods: Annotated[Names, AfterValidator(resolve_methods)] = (*PAPERS, "committee")
    variants: TableVariants = (TableVariant(name=""),)
    protocols: Annotated[Names, AfterValidator(known("protocol", PROTOCOLS))] = PROTOCOLS
    labels: _Amounts = (0.01,)
    hidden: Shares = (0.05,)
    seeds: Count = 3
    against: str = ""

    @model_validator(mode="after")
    def _check(self) -> TablesSpecification:
        check_variants(self.variants, self.methods)
        if not self.folder and self.reading != Reading():
            raise ValueError(
                "label, kind, anomaly_values and ignore are about files: name their folder."
            )
        names = [*find_tables(Path(self.folder))] if self.folder else [*DEVELOPMENT, *GROUPS]
        known("task", names)(self.tasks)
        if self.against:
            known("system to compare with", [s.label for s in self.systems])(self.against)
        if "hidden" in self.protocols and 0 in self.hidden:
            raise ValueError("hidden must be more than 0; the protocol known has none.")
        return self

    @property
    def reading(self) -> Reading:
        """What the columns of files mean."""
        return Reading(self.label, self.kind, self.anomaly_values, self.ignore)

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The names of the tasks, each once."""
        if self.folder:
            return self.tasks or tuple(find_tables(Path(self.folder)))
        asked = self.tasks or ("development",)
        return tuple(dict.fromkeys(n for name in asked for n in GROUPS.get(name, (name,))))

    @cached_property
    def systems(self) -> tuple[System, ...]:
        """The rows of its tables, ours first."""
        every = (
            System(method, variant)
            for method in self.methods
            for variant in variants_of(method, self.variants)
        )
        return tuple(sorted(every, key=lambda system: not system.ours))

    @property
    def reference(self) -> System:
        """The system that others are compared with."""
        by_label = {system.label: system for system in self.systems}
        return by_label.get(self.against or "dp", self.systems[0])

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Every protocol with every amount of labels, and of hidden anomalies."""
        return tuple(
            Condition(protocol, labels, hidden)
            for protocol in self.protocols
            for hidden in (self.hidden if protocol == "hidden" else (0.0,))
            for labels in self.labels
        )

    def variant(self, system: System) -> TableVariant:
        """Return what is changed in a system."""
        found = variant_named(system.variant, system.method, self.variants)
        return found or TableVariant(name="")
