"""Models by name, each of which can be replaced while it is in use."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aloof.exceptions import AloofError, ServingError
from aloof.feedback.rules import RuleBook
from aloof.models import Model
from aloof.models.arrays import ArrayModel
from aloof.models.loading import open_model
from aloof.serve.garbage import set_aside
from aloof.serve.limits import Limits, Refused
from aloof.serve.logs import say
from aloof.serve.served import Served
from aloof.suggestion import closest

__all__ = ["Keeper", "Slot", "Slots", "serve_model"]


def serve_model(model: Model, limits: Limits) -> Served[Any]:
    """Return a model as it is served, whatever it models."""
    if isinstance(model, ArrayModel):
        from aloof.serve.arrays import ServedArrays

        return ServedArrays(model, limits)
    if model.section == "images":
        from aloof.serve.images import ServedImages

        return ServedImages(model, limits)  # type: ignore[arg-type]
    from aloof.serve.tables import ServedTable

    return ServedTable(model, limits)  # type: ignore[arg-type]


class Slot:
    """The place of one model.

    Parameters
    ----------
    name
        What requests call it.
    path
        The folder.
    limits
        What requests may ask for.
    device
        Where to score.
    book
        The rules of reviewers; None: they do not matter.

    Attributes
    ----------
    served
        What answers; None: nothing does yet.
    problem
        Why what is in the folder, or in the store of rules, now is not in use; "": it is.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        limits: Limits,
        device: str = "auto",
        book: RuleBook | None = None,
    ) -> None:
        self.name, self.path = name, path
        self._limits, self._device, self._book = limits, device, book
        self._seen: Any = None
        self._lock = threading.Lock()
        self.served: Served[Any] | None = None
        self.problem = ""

    def refresh(self, *, force: bool = False, tells: bool = True) -> str:
        """Read the folder if it has changed, and use what is there if it passes its probes.

        Requests that wait are answered by the model that they were sent to, and by the rules
        of reviewers that held when they were read.

        Parameters
        ----------
        force
            Read it whether or not it has changed.
        tells
            Whether a problem is logged, once.

        Returns
        -------
        "ok", "failed" (what was in use still is), or "same".
        """
        with self._lock:
            seen, result, problem = _fingerprint(self.path), "same", ""
            served = self.served
            if served is None or seen != self._seen or force:
                result = "failed"
                try:
                    served = serve_model(
                        open_model(self.path, device=self._device), self._limits
                    )
                    served.rehearse()
                except AloofError as error:
                    problem = " ".join(str(error).split())
                except Exception as error:  # whatever a damaged folder leads to
                    problem = f"{self.path} cannot be used ({type(error).__name__})."
                else:
                    result = "ok"
            unread = self._read_rules(served)
            # Without rules that it may have, nothing begins; later, the former ones hold.
            if result == "ok" and (self.served is not None or not unread):
                assert served is not None
                self.served, self._seen = served, seen
                set_aside()
                say("model in use", model=self.name, version=served.version)
            former, self.problem = self.problem, problem or unread
            # It is tried again at every look: what is missing may still be on its way.
            if self.problem and self.problem != former and tells:
                say(
                    "model or rules cannot be used",
                    level=logging.ERROR,
                    model=self.name,
                    problem=self.problem,
                    answers="the former ones" if self.served is not None else "nothing",
                )
            return "failed" if self.problem else result

    def _read_rules(self, served: Served[Any] | None) -> str:
        """Read the rules of reviewers if they have changed; return why they cannot be read."""
        if served is None or self._book is None or not served.has_rules:
            return ""
        served.rules = self._book.now
        try:
            if self._book.refresh():
                say("rules in use", model=self.name, rules=len(self._book.now()))
        except AloofError as error:
            words = " ".join(str(error).split())
            return (
                f"{words} It may hold rules of what is harmless; ignores_rules=True "
                "(--ignore-rules) does without them."
            )
        return ""

    def ready(self) -> Served[Any]:
        """Return what answers; refuse where nothing does."""
        if self.served is None:
            raise Refused(503, f"The model {self.name} is not ready.", retry=2)
        return self.served


class Slots(Mapping[str, Slot]):
    """All models of a server.

    Parameters
    ----------
    models
        Folders, or names and folders: ``name=folder``.
    limits
        What requests may ask for.
    device
        Where to score.
    store
        Of the answers and rules of reviewers; None: the file beside each model.
    ignores_rules
        Whether rules play no part.
    """

    def __init__(
        self,
        models: Sequence[str],
        limits: Limits,
        device: str = "auto",
        *,
        store: str | None = None,
        ignores_rules: bool = False,
    ) -> None:
        self._slots: dict[str, Slot] = {}
        for given in models:
            name, sign, folder = given.partition("=")
            if not sign:
                folder, name = given, Path(os.path.abspath(given)).name
            if not name or set(name) & set('/\\?#%"') or not name.isprintable():
                raise ServingError(f"A model cannot be called {name!r}. Write NAME=FOLDER.")
            if name in self._slots:
                raise ServingError(
                    f"Two models are called {name!r}. Write OTHER-NAME={folder} for one."
                )
            book = None if ignores_rules else RuleBook(folder, store)
            self._slots[name] = Slot(name, Path(folder), limits, device, book)
        if not self._slots:
            raise ServingError("Name at least one model.")

    def __getitem__(self, name: str) -> Slot:
        return self._slots[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def find(self, name: str | None) -> Slot:
        """Return a model by its name; None: the only one there is."""
        if name is None:
            if len(self) > 1:
                raise Refused(
                    404, f"Ask one of the models: /models/{next(iter(self))}/score, for one."
                )
            return next(iter(self._slots.values()))
        if name not in self._slots:
            raise Refused(
                404, f"There is no model {name[:100]!r}{closest(name[:100], [*self])}."
            )
        return self._slots[name]

    def load(self) -> None:
        """Read all models; raise where one cannot be used."""
        for slot in self.values():
            if slot.refresh(tells=False) == "failed":
                raise ServingError(slot.problem)


class Keeper(threading.Thread):
    """Looks after the models in the background: new folders, and drift.

    Parameters
    ----------
    slots
        The models.
    every
        Seconds between two looks at the folders; 0: only when asked to.
    drift_every
        Seconds between two looks at the latest rows.
    loaded
        Called with a model and what `Slot.refresh` returned.
    drifted
        Called with the name of a model, and the differences.
    before
        Called before each look that was asked for.
    """

    def __init__(
        self,
        slots: Slots,
        *,
        every: float = 5.0,
        drift_every: float = 60.0,
        loaded: Callable[[Slot, str], None],
        drifted: Callable[[str, Sequence[str]], None],
        before: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="keeper", daemon=True)
        self._slots, self._every, self._drift_every = slots, every, drift_every
        self._loaded, self._drifted, self._before = loaded, drifted, before
        self._called = threading.Event()
        self._over = False

    def look(self) -> None:
        """Look now, whether or not it is time."""
        self._called.set()

    def stop(self) -> None:
        """End; whatever is being read is read to the end."""
        self._over = True
        self._called.set()
        self.join()

    def run(self) -> None:
        """Look again and again."""
        drift_at = time.monotonic() + self._drift_every
        while not self._over:
            pause = min(self._every or self._drift_every, self._drift_every)
            asked = self._called.wait(pause)
            self._called.clear()
            if self._over:
                return
            if asked:
                self._before()
            if asked or self._every:
                for slot in self._slots.values():
                    self._loaded(slot, slot.refresh())
            if time.monotonic() >= drift_at:
                drift_at = time.monotonic() + self._drift_every
                self._look_for_drift()

    def _look_for_drift(self) -> None:
        for slot in self._slots.values():
            if slot.served is None:
                continue
            try:
                self._drifted(slot.name, slot.served.drift())
            except Exception as error:  # rows of strangers; a gauge is not worth an end
                say("drift not known", model=slot.name, error=type(error).__name__)


def _fingerprint(path: Path) -> Any:
    """Return what changes when a file of the folder does; clocks play no part in it."""
    found = []
    try:
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            info = os.stat(entry.path)
            found.append((entry.name, info.st_ino, info.st_size, info.st_mtime_ns))
    except OSError as error:
        return str(error.strerror)
    return found
