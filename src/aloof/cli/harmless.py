"""The rules of reviewers, for commands that flag rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aloof.cli.group import fail
from aloof.exceptions import AloofError
from aloof.models import Model
from aloof.models.table import TableModel
from aloof.models.table.harmless import Harmless

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
    # The packages that a store takes are not needed where there is none.
    beside = Path(f"{os.path.realpath(folder)}.answers.sqlite")
    if store is None and not beside.is_file():
        return {}
    try:
        from aloof.feedback.store import AnswerStore

        with AnswerStore.of(folder, store) as opened:
            rules = [Harmless(rule.column, rule.value) for rule in opened.rules()]
    except AloofError as error:
        fail(
            f"{error} It may hold rules of what is harmless; --ignore-rules scores without "
            "them."
        )
    return {"harmless": rules} if rules else {}
