"""The kinds of models there are: what each is made from, and where it is in a model folder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from aloof.exceptions import TableError

if TYPE_CHECKING:
    from aloof.models import Model

__all__ = ["KINDS", "ModelKind", "kind_for", "options_of"]


@dataclass(frozen=True)
class ModelKind:
    """A kind of model. What it consists of is imported when it is needed.

    Attributes
    ----------
    section
        Of the manifest: who has it is of this kind.
    model_name, fit_name
        Where the class, and what makes one, are found.
    claims_name
        Where the function is that says whether data are for this kind; None: all are.
    """

    section: str
    model_name: str
    fit_name: str
    claims_name: str | None = None

    @property
    def model(self) -> type[Model]:
        """The class."""
        found: type[Model] = resolve_name(self.model_name)
        return found

    @property
    def fit(self) -> Callable[..., Model]:
        """What makes one."""
        found: Callable[..., Model] = resolve_name(self.fit_name)
        return found

    def claims(self, data: Any, options: Collection[str]) -> bool:
        """Say whether data, given with options of these names, are for this kind."""
        return self.claims_name is None or bool(resolve_name(self.claims_name)(data, options))


# The first that claims some data has it.
KINDS = (
    ModelKind(
        "images",
        "aloof.models.images:ImageModel",
        "aloof.models.images:fit_images",
        "aloof.models.images:are_images",
    ),
    ModelKind("table", "aloof.models.table:TableModel", "aloof.models.table:fit"),
)


def kind_for(data: Any, options: Collection[str]) -> ModelKind:
    """Return the kind of model that is made from data, given with options of these names."""
    found = next(kind for kind in KINDS if kind.claims(data, options))
    if data is None and found.claims_name is None:
        raise TableError("Nothing to learn from. Name a table, or a folder of images.")
    return found


def options_of(function: Callable[..., Any]) -> set[str]:
    """Return the names of the keyword parameters of a function; not those it passes on."""
    names = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            names.add(name)
        elif fields := get_args(get_type_hints(function)[name]):  # Unpack[...] of a TypedDict
            names |= set(fields[0].__annotations__)
    return names
