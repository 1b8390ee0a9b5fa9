"""The rules of reviewers, for those that flag rows: read, and never written.

They may change at any time: a reviewer makes one or lifts it, or one comes to its end.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aloof.exceptions import AloofError
from aloof.models.table.harmless import Harmless, Rules

if TYPE_CHECKING:
    from aloof.feedback.store import Rule

__all__ = ["RuleBook"]

_NONE = Rules()
_TRIES = 5


class RuleBook:
    """The rules of a model.

    Parameters
    ----------
    model
        The folder of the model.
    url
        Of the store of answers; None: the file beside the model, if there is one.
    patience
        How many seconds to wait for a database that went away.
    """

    def __init__(
        self, model: str | os.PathLike[str], url: str | None = None, *, patience: float = 2.0
    ) -> None:
        self._model, self._url, self._patience = model, url, patience
        self._seen: Any = None
        self._rules: tuple[Rule, ...] = ()
        self._current, self._until = _NONE, float("inf")

    def refresh(self) -> bool:
        """Read the rules if they may have changed; return whether they have.

        Raises an `AloofError` where they cannot be read; those of before then stay.
        """
        beside = f"{os.path.realpath(self._model)}.answers.sqlite"
        seen = None if self._url is not None else _fingerprint(beside)
        if self._url is not None:
            rules = self._read()
        elif seen == self._seen:
            return False
        elif seen is None:
            # The packages that a store takes are not needed where there is none.
            rules = ()
        else:
            rules = self._read_file(beside, seen)
        self._seen = seen
        if rules == self._rules:
            return False
        self._rules = rules
        self._compile()
        return True

    def now(self) -> Rules:
        """Return the rules that are in force at this moment, as far as they were read."""
        if time.time() >= self._until:
            self._compile()
        return self._current

    def harmless(self) -> list[Harmless]:
        """Return the same as a list."""
        now = time.time()
        return [
            Harmless(rule.column, rule.value)
            for rule in self._rules
            if rule.until is None or rule.until.timestamp() > now
        ]

    def _read(self) -> tuple[Rule, ...]:
        from aloof.feedback.store import AnswerStore

        options = {"patience": self._patience, "read_only": True}
        with AnswerStore.of(self._model, self._url, **options) as store:
            return tuple(store.rules())

    def _read_file(self, file: str, seen: Any) -> tuple[Rule, ...]:
        """Read a file that may be written at the same time."""
        for left in reversed(range(_TRIES)):
            try:
                rules = self._read()
            except AloofError:
                if not left or _fingerprint(file) == seen:
                    raise
            else:
                if not left or _fingerprint(file) == seen:
                    return rules
            seen = _fingerprint(file)
        raise AssertionError("the last try returns or raises")

    def _compile(self) -> None:
        found, now = self.harmless(), time.time()
        ends = [rule.until.timestamp() for rule in self._rules if rule.until is not None]
        self._until = min((end for end in ends if end > now), default=float("inf"))
        self._current = Rules(found) if found else _NONE


def _fingerprint(file: str) -> Any:
    """Return what changes when a SQLite file does; None: there is none."""
    found: list[tuple[int, int, int] | None] = []
    for name in (file, f"{file}-wal"):
        try:
            info = os.stat(Path(name))
        except OSError:
            if name == file:
                return None
            found.append(None)
        else:
            found.append((info.st_ino, info.st_size, info.st_mtime_ns))
    return found
