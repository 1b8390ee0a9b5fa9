"""The rules of reviewers, for commands that flag rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aloof.cli.group import fail
from aloof.exceptions import AloofError
from aloof.feedback.rules import RuleBook
from aloof.models import Model
from aloof.models.table import TableModel
from aloof.models.table.harmless import Harmless

__all__ = ["harmless_while_running", "known_harmless"]


def known_harmless(model: Model, folder: Path | str, store: str | None) -> dict[str, Any]:
    """Return the argument ``harmless`` of what scores; nothing where there are no rules.

    Parameters
    ----------
    model
        Only rows of a table have columns that rules are about.
    folder
        Where it is.
    store
        The store of answers; None: the file beside the model, if there is one.
    """
    if not isinstance(model, TableModel):
        return {}
    rules = _opened(folder, store).harmless()
    return {"harmless": rules} if rules else {}


def harmless_while_running(
    model: Model, folder: Path | str, store: str | None
) -> dict[str, Any]:
    """Return the same for what runs on while reviewers make rules and lift them."""
    if not isinstance(model, TableModel):
        return {}
    book = _opened(folder, store)

    def latest() -> list[Harmless]:
        book.refresh()
        return book.harmless()

    return {"harmless": latest}


def _opened(folder: Path | str, store: str | None) -> RuleBook:
    book = RuleBook(folder, store)
    try:
        book.refresh()
    except AloofError as error:
        fail(
            f"{error} It may hold rules of what is harmless; --ignore-rules scores without "
            "them."
        )
    return book
