"""What the page knows: the rows to ask about, the answers, and a refit that may be running."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import AloofError, AnswerError
from aloof.feedback.answer import UNSURE, WORDS, Answer, Key, Standing
from aloof.feedback.asking import DEFAULT_WAY, Way, which_rows
from aloof.feedback.calibrating import calibrated
from aloof.feedback.guide import POOL_SIZE, Guide
from aloof.feedback.material import encode_kept
from aloof.feedback.refitting import Refittable, refit
from aloof.feedback.store import AnswerStore, Rule
from aloof.feedback.versions import add_version, list_versions, present_version, use_version
from aloof.labels import ANOMALY, NORMAL
from aloof.models import Model
from aloof.models.images import ImageModel
from aloof.models.images.changes import find_image_changes
from aloof.models.loading import open_model
from aloof.models.table import TableModel
from aloof.models.table.changes import find_changes
from aloof.review.pool import Item, Pool, make_pool
from aloof.training import EpochReport

__all__ = ["RefitState", "Review"]

_SHOWN = 60  # rows that the page lists at once


@dataclass(frozen=True)
class RefitState:
    """How far a refit is.

    Attributes
    ----------
    state
        "none", "running", "done" (it waits to be accepted) or "failed".
    done, total
        Epochs.
    words
        What there is to say.
    version
        The number of what it made.
    comparison
        With the version in use, as JSON can hold it.
    """

    state: str = "none"
    done: int = 0
    total: int = 0
    words: tuple[str, ...] = ()
    version: int | None = None
    comparison: dict[str, Any] | None = None


class Review:
    """A review of some data with a model; safe in several threads.

    Parameters
    ----------
    model
        The folder of the model.
    data
        What is reviewed, as the user wrote it.
    store
        Where answers are kept.
    goal
        How many answers are aimed at.
    size
        How many of the strangest rows may be asked about.
    train
        What a refit learns from; None: the training table.
    device
        Where to compute.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        data: str,
        store: AnswerStore,
        *,
        goal: int = 50,
        size: int = POOL_SIZE,
        train: str | None = None,
        device: str = "auto",
    ) -> None:
        self.path, self.data, self.store, self.goal = Path(model), data, store, goal
        self._size, self._train, self._device = size, train, device
        self._lock = threading.RLock()
        self._refit = RefitState()
        self._thread: threading.Thread | None = None
        self._before: dict[Key, int] = {}  # ranks by the version before
        self._asked: set[Key] = set()  # rows that any version put on the page
        self._guide: Guide | None = None
        self._guided: tuple[dict[Key, int], NDArray[np.float64]] | None = None
        self._load()

    def _load(self) -> None:
        model = open_model(self.path, device=self._device)
        pool = make_pool(model, self.data, self._size)
        changes = []
        if isinstance(model, TableModel):
            changes = find_changes(model, self.data)
        elif isinstance(model, ImageModel):
            changes = find_image_changes(model, self.data)
        guide = Guide(pool.features, pool.background) if pool.items else None
        with self._lock:
            self._model, self._pool, self._changes = model, pool, changes
            self._places = {item.key: place for place, item in enumerate(pool.items)}
            self._asked.update(self._places)
            self._guide, self._guided = guide, None

    @property
    def model(self) -> Model:
        """The model in use."""
        return self._model

    @property
    def pool(self) -> Pool:
        """The rows that may be asked about."""
        return self._pool

    def picture(self, place: int) -> bytes | None:
        """Return the PNG of an image; None: there is none."""
        pictures = self._pool.pictures
        return pictures[place] if pictures is not None and 0 <= place < len(pictures) else None

    def answer(
        self, keys: Sequence[Key], label: int, *, by: str, note: str = "", request: str = ""
    ) -> list[int]:
        """Keep one answer about each row; only rows of the page can be answered."""
        with self._lock:
            pool, places = self._pool, self._places
        given = []
        for key in keys:
            if key not in places:
                raise AnswerError(f"There is no row {key[1]!r} on the page.")
            item = pool.items[places[key]]
            given.append(
                Answer(
                    row=key[1],
                    source=key[0],
                    label=label,
                    by=by,
                    note=note,
                    values=item.kept,
                    score=item.score,
                )
            )
        return self.store.add(given, request=request or uuid.uuid4().hex)

    def undo(self, *, by: str, request: str = "") -> Answer | None:
        """Take back what somebody said last."""
        return self.store.undo(by=by, request=request or uuid.uuid4().hex)

    def suppress(
        self,
        column: str,
        value: str,
        *,
        by: str,
        until: datetime | None = None,
        note: str = "",
        request: str = "",
    ) -> int:
        """Hide rows with a value in a column."""
        columns = {name for item in self._pool.items for name, _ in item.values}
        if column not in columns:
            raise AnswerError(f"There is no column {column!r}.")
        rule = Rule(column=column, value=value, until=until, by=by, note=note)
        return self.store.add_rule(rule, request=request or uuid.uuid4().hex)

    def state(
        self, *, way: Way = DEFAULT_WAY, search: str = "", show: str = "open", by: str = ""
    ) -> dict[str, Any]:
        """Return all that the page shows, as JSON can hold it.

        Parameters
        ----------
        way
            Of asking.
        search
            Only rows that hold this text.
        show
            "open": rows that this reviewer has not answered; "answered"; "all".
        by
            Who looks.
        """
        with self._lock:
            pool, before, refitting = self._pool, self._before, self._refit
        standing, rules = self.store.standings(), self.store.rules()
        known = [standing.get(item.key) for item in pool.items]
        hidden_by = [_hidden(item, rules) for item in pool.items]
        evidence = self._evidence(standing) if way == "likely" else None
        asked = which_rows(way, pool.scores, pool.member_scores, pool.level, evidence)
        wanted = search.strip().lower()
        listed: list[int] = []
        for place in asked.order:
            item, answers = pool.items[place], known[place]
            mine = answers is not None and any(a.by == by for a in answers.answers)
            if hidden_by[place] is not None and show != "all":
                continue
            if (show == "open" and mine) or (show == "answered" and answers is None):
                continue
            if wanted and not _holds(item, wanted):
                continue
            listed.append(int(place))
        own = [each for key, each in standing.items() if key in self._asked]
        return {
            "things": pool.things,
            "n_rows": pool.n_rows,
            "n_flagged": pool.n_flagged,
            "n_listed": len(listed),
            "rows": [
                self._told(place, pool.items[place], known[place], asked.reasons[place], before)
                for place in listed[:_SHOWN]
            ],
            "progress": {
                "goal": self.goal,
                "answered": len(own),
                "found": sum(each.label == ANOMALY for each in own),
                "normal": sum(each.label == NORMAL for each in own),
                "conflicts": sum(each.in_conflict for each in own),
            },
            "rules": [
                {
                    "number": rule.number,
                    "column": rule.column,
                    "value": rule.value,
                    "until": None if rule.until is None else rule.until.date().isoformat(),
                    "by": rule.by,
                    "note": rule.note,
                    "hides": sum(found == rule.number for found in hidden_by),
                }
                for rule in rules
            ],
            "refit": asdict(refitting),
            "version": self._version(),
            "has_pictures": pool.pictures is not None,
            "drift": {
                "n_tested": sum(change.p_value is not None for change in self._changes),
                "changed": [
                    {
                        "name": change.name,
                        "picture": change.picture,
                        "size": change.size,
                        "p_value": change.adjusted,
                        "test": change.test,
                        "words": change.words,
                    }
                    for change in self._changes
                    if change.has_changed
                ],
            },
        }

    def _evidence(self, standing: Mapping[Key, Standing]) -> NDArray[np.float64] | None:
        """Return what speaks for an anomaly, by the model and by all answers there are."""
        sure = {key: each.label for key, each in standing.items() if each.label != UNSURE}
        with self._lock:
            pool, guide, guided, model = self._pool, self._guide, self._guided, self._model
        if guide is None:
            return np.empty(0)
        if guided is not None and guided[0] == sure:
            return guided[1]
        features = {
            key: pool.features[self._places[key]] for key in sure if key in self._places
        }
        if isinstance(model, TableModel):  # rows of other files, or that fell out of this page
            away = [key for key in sure if key not in features and standing[key].values]
            features |= zip(away, encode_kept(model, standing, away), strict=True)
        found = guide.evidence(
            pool.scores,
            np.array([features[key] for key in features]),
            np.array([sure[key] for key in features], np.int64),
        )
        with self._lock:
            if guide is self._guide:
                self._guided = (sure, found)
        return found

    def _told(
        self,
        place: int,
        item: Item,
        answers: Standing | None,
        why: str,
        before: dict[Key, int],
    ) -> dict[str, Any]:
        alike = [
            other.key
            for other in self._pool.items
            if other.group == item.group and other.key != item.key
        ]
        told: dict[str, Any] = {
            "place": int(place),
            "source": item.key[0],
            "row": item.key[1],
            "score": item.score,
            "p_value": item.p_value,
            "flagged": item.is_flagged,
            "rank": item.rank,
            "was": before.get(item.key) if before else None,
            "is_new": bool(before) and item.key not in before,
            "why": why,
            "reasons": [{"words": words, "adds": adds} for words, adds in item.reasons],
            "values": [list(pair) for pair in item.values],
            "alike": [list(key) for key in alike],
            "answers": [],
            "label": None,
        }
        if answers is not None:
            told["label"] = "conflict" if answers.in_conflict else WORDS[answers.label]
            told["answers"] = [
                {
                    "by": a.by,
                    "word": a.word,
                    "note": a.note,
                    "at": "" if a.at is None else a.at.isoformat(timespec="seconds"),
                }
                for a in answers.answers
            ]
        return told

    def _version(self) -> dict[str, Any]:
        training = self._model.training
        return {"number": training.get("version", 1), "parent": training.get("parent")}

    def start_refit(self) -> None:
        """Begin a refit in the background; one at a time."""
        with self._lock:
            if self._refit.state == "running":
                raise AnswerError("A refit is running already.")
            model = self._model
            standing = self.store.standings()
            if not any(found.label != UNSURE for found in standing.values()):
                raise AnswerError("There are no answers to learn from yet.")
            self._refit = RefitState("running", words=("Reading the rows.",))
            thread = threading.Thread(
                target=self._run_refit, args=(model, standing), daemon=True
            )
            self._thread = thread
            thread.start()

    def wait(self) -> None:
        """Wait until no refit is running."""
        if (thread := self._thread) is not None:
            thread.join()

    def _run_refit(self, model: Refittable, standing: dict[Key, Standing]) -> None:
        def report(epoch: EpochReport) -> None:
            with self._lock:
                self._refit = replace(
                    self._refit, done=epoch.epoch, total=epoch.max_epochs, words=("Learning.",)
                )

        try:
            done = refit(model, standing, self._train, compare=self.data, on_epoch=report)
            version = add_version(self.path, done.model)
        except Exception as error:
            reason = str(error) if isinstance(error, AloofError) else type(error).__name__
            with self._lock:
                self._refit = RefitState("failed", words=(reason,))
            return
        with self._lock:
            self._refit = RefitState(
                "done",
                words=tuple(done.lines()),
                version=version.number,
                comparison=done.comparison.as_dict(),
            )

    def calibrate(self) -> int:
        """Set threshold and p-values by the rows of the page, as a new version in use.

        Rows answered as anomalies are left out. Nothing is trained. Returns the number of the
        version.
        """
        with self._lock:
            if self._refit.state == "running":
                raise AnswerError("A refit is running: wait for it.")
            new = calibrated(self._model, self.store.standings(), self.data)
            number = add_version(self.path, new).number
            self._use(number)
            self._refit = RefitState()
        return number

    def accept(self) -> int:
        """Use what the refit made; return the number of the version."""
        with self._lock:
            if self._refit.state != "done" or self._refit.version is None:
                raise AnswerError("There is no refit to accept.")
            number = self._refit.version
            self._use(number)
            self._refit = RefitState()
        return number

    def dismiss(self) -> None:
        """Keep what the refit made, and go on with the version in use."""
        with self._lock:
            if self._refit.state == "running":
                raise AnswerError("A refit is running; it cannot be dismissed yet.")
            self._refit = RefitState()

    def roll_back(self) -> int:
        """Use the version that the present one was made from; return its number."""
        with self._lock:
            known = {version.number: version for version in list_versions(self.path)}
            parent = known[present_version(self.path)].parent
            if parent is None:
                raise AnswerError("This is the first version: there is none before it.")
            self._use(parent)
        return parent

    def _use(self, number: int) -> None:
        before = {item.key: item.rank for item in self._pool.items}
        use_version(self.path, number)
        self._load()
        self._before = before


def _hidden(item: Item, rules: Sequence[Rule]) -> int | None:
    """Return the number of the rule that hides an item; None: it is shown."""
    values = dict(item.values)
    return next((rule.number for rule in rules if values.get(rule.column) == rule.value), None)


def _holds(item: Item, text: str) -> bool:
    parts = [item.key[1], *(value for _, value in item.values), *(w for w, _ in item.reasons)]
    return any(text in part.lower() for part in parts)
