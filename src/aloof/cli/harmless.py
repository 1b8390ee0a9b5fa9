"""The rules of reviewers, for commands that flag rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aloof.cli.group import fail
from aloof.exceptions import AloofError
from aloof.feedback.rules import RuleBook
from aloof.models import Model
from aloof.models.table import TableModel

__all__ = ["known_harmless"]


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
    book = RuleBook(folder, store)
    try:
        book.refresh()
    except AloofError as error:
        fail(
            f"{error} It may hold rules of what is harmless; --ignore-rules scores without "
            "them."
        )
    rules = book.harmless()
    return {"harmless": rules} if rules else {}
