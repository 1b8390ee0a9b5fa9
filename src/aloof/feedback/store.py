"""Where answers are kept: SQLite beside the model, or a PostgreSQL that many share.

An answer is on the disk before it is acknowledged. The history is kept: an undo is one more
event, and how things stand is computed from all of them. A write that may or may not have
reached the database, because the connection broke, is tried again and never done twice.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from aloof.exceptions import AnswerError, MissingExtraError
from aloof.feedback.answer import Answer, Key, Standing, standings

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
    from sqlalchemy.pool import ConnectionPoolEntry, NullPool

    from aloof.feedback.migrating import migrate
    from aloof.feedback.schema import answer as answers
    from aloof.feedback.schema import rule as rules
except ImportError as error:
    raise MissingExtraError("sqlalchemy", "review", "The store of answers") from error

__all__ = ["AnswerStore", "Rule", "store_beside"]

_T = TypeVar("_T")
_PATIENCE = 10.0  # seconds in which a database that went away may come back
_WRITES = "aloof_writes"
_LOCK = 0x616C6F6F66  # of PostgreSQL


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Rows that are known to be harmless: those with a value in a column.

    Attributes
    ----------
    column, value
        The column, and the value as text.
    until
        When the rule ends; None: when it is lifted.
    by, note, at, number
        As in `Answer`.
    """

    column: str
    value: str
    until: datetime | None = None
    by: str = ""
    note: str = ""
    at: datetime | None = None
    number: int | None = None


def store_beside(model: str | os.PathLike[str]) -> Path:
    """Return the file where the answers of a model are kept: beside its folder."""
    folder = Path(os.path.realpath(model))
    return folder.with_name(f"{folder.name}.answers.sqlite")


class AnswerStore:
    """The answers about the rows that one model scores.

    Safe in several threads and processes at once.

    Parameters
    ----------
    url
        Of the database: ``postgresql://...``, ``sqlite:///...``, or the path of a SQLite file.
        It is made where there is none.
    model
        The name of the model: one database may hold the answers of several.
    patience
        How many seconds to wait for a database that went away.
    read_only
        Look, and change nothing: neither are tables made, nor files of SQLite.

    Examples
    --------
    >>> import tempfile
    >>> from aloof.feedback import Answer
    >>> folder = tempfile.mkdtemp()
    >>> with AnswerStore(f"{folder}/answers.sqlite") as store:
    ...     _ = store.add([Answer(row="4711", label=1, by="eve")])
    ...     _ = store.add([Answer(row="4711", label=0, by="bob")])
    ...     store.standings()["", "4711"].in_conflict
    ...     _ = store.undo(by="bob")
    ...     store.standings()["", "4711"].label
    True
    1
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        model: str = "model",
        patience: float = _PATIENCE,
        read_only: bool = False,
    ) -> None:
        self.model, self._patience = model, patience
        self._engine, self.name = _engine(url, read_only)
        try:
            if not read_only:
                self._retried(migrate, writes=True)
        except BaseException:
            self._engine.dispose()
            raise

    @classmethod
    def of(
        cls, model: str | os.PathLike[str], url: str | None = None, **options: Any
    ) -> AnswerStore:
        """Open the store of a model on disk; `url` in place of the file beside it."""
        name = Path(os.path.realpath(model)).name
        return cls(store_beside(model) if url is None else url, model=name, **options)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, given: Sequence[Answer], *, request: str | None = None) -> list[int]:
        """Keep answers, all or none of them.

        Parameters
        ----------
        given
            What reviewers say.
        request
            A name that nobody else gives: what comes again under it was stored already, and is
            not stored twice. None: one is made up.

        Returns
        -------
        Their numbers. When they are returned, the answers are on the disk.
        """
        name = uuid.uuid4().hex if request is None else request
        return self._retried(lambda db: self._insert(db, given, name), writes=True)

    def undo(
        self, *, by: str, key: Key | None = None, request: str | None = None
    ) -> Answer | None:
        """Take back the latest answer of a reviewer.

        Parameters
        ----------
        by
            Who.
        key
            About this row; None: about any. One request that gave several answers is taken
            back whole, where no row is named.
        request
            As in `add`.

        Returns
        -------
        The answer that was taken back, with its own number; None: there is none.
        """
        name = uuid.uuid4().hex if request is None else request
        return self._retried(lambda db: self._undone(db, by, key, name), writes=True)

    def events(self, *, after: int = 0, key: Key | None = None) -> list[Answer]:
        """Return everything that was said, in order: answers, and undoes of them.

        Parameters
        ----------
        after
            Only events with a higher number.
        key
            Only those about one row.
        """
        query = (
            sa.select(answers)
            .where(answers.c.model == self.model, answers.c.number > after)
            .order_by(answers.c.number)
        )
        if key is not None:
            query = query.where(answers.c.source == key[0], answers.c.row == key[1])
        return self._retried(lambda db: [_event(row) for row in db.execute(query)])

    def standings(self) -> dict[Key, Standing]:
        """Return how the answers about each row stand."""
        return standings(self.events())

    def conflicts(self) -> list[Standing]:
        """Return the rows that one reviewer calls anomalies and another one normal."""
        return [found for found in self.standings().values() if found.in_conflict]

    def add_rule(self, rule: Rule, *, request: str | None = None) -> int:
        """Keep a rule about what is harmless; return its number."""
        name = uuid.uuid4().hex if request is None else request

        def insert(db: sa.Connection) -> int:
            known = sa.select(rules.c.number).where(rules.c.request == name)
            if (found := db.execute(known).scalar()) is not None:
                return int(found)
            values = {
                "model": self.model,
                "column": rule.column,
                "value": rule.value,
                "until": rule.until,
                "by": rule.by,
                "at": datetime.now(UTC),
                "note": rule.note,
                "request": name,
            }
            query = rules.insert().values(values).returning(rules.c.number)
            return int(db.execute(query).scalar_one())

        return self._retried(insert, writes=True)

    def lift_rule(self, number: int, *, by: str) -> bool:
        """End a rule; return whether there was one in force."""
        query = (
            rules.update()
            .where(rules.c.model == self.model, rules.c.number == number)
            .where(rules.c.lifted_at.is_(None))
            .values(lifted_by=by, lifted_at=datetime.now(UTC))
        )
        return self._retried(lambda db: bool(db.execute(query).rowcount), writes=True)

    def rules(self, *, now: datetime | None = None) -> list[Rule]:
        """Return the rules that are in force."""
        moment = datetime.now(UTC) if now is None else now
        query = (
            sa.select(rules)
            .where(rules.c.model == self.model, rules.c.lifted_at.is_(None))
            .where(sa.or_(rules.c.until.is_(None), rules.c.until > moment))
            .order_by(rules.c.number)
        )
        return self._retried(lambda db: [_rule(row) for row in db.execute(query)])

    def _insert(self, db: sa.Connection, given: Sequence[Answer], request: str) -> list[int]:
        done = sa.select(answers.c.number).where(answers.c.request == request)
        if known := list(db.execute(done.order_by(answers.c.place)).scalars()):
            return [int(number) for number in known]
        now, numbers = datetime.now(UTC), []
        for place, answer in enumerate(given):
            values = {
                "model": self.model,
                "source": answer.source,
                "row": answer.row,
                "label": answer.label,
                "by": answer.by,
                "at": now if answer.at is None else answer.at,
                "note": answer.note,
                "values": sa.null() if answer.values is None else dict(answer.values),
                "score": answer.score,
                "undoes": answer.undoes,
                "request": request,
                "place": place,
            }
            query = answers.insert().values(values).returning(answers.c.number)
            numbers.append(int(db.execute(query).scalar_one()))
        return numbers

    def _undone(
        self, db: sa.Connection, by: str, key: Key | None, request: str
    ) -> Answer | None:
        known = sa.select(answers.c.undoes).where(answers.c.request == request)
        if before := db.execute(known.order_by(answers.c.place)).scalars().first():
            again = sa.select(answers).where(answers.c.number == before)
            return _event(db.execute(again).one())
        undoes = sa.select(answers.c.undoes).where(answers.c.undoes.is_not(None))
        query = (
            sa.select(answers)
            .where(answers.c.model == self.model, answers.c.by == by)
            .where(answers.c.undoes.is_(None), answers.c.number.not_in(undoes))
            .order_by(answers.c.number.desc())
        )
        if key is not None:
            query = query.where(answers.c.source == key[0], answers.c.row == key[1])
        last = db.execute(query.limit(1)).first()
        if last is None:
            return None
        alike = [last]
        if key is None:  # what was said at once is taken back at once
            alike = list(db.execute(query.where(answers.c.request == last.request)))
        taken_back = [
            replace(_event(row), undoes=row.number, number=None, at=None, note="", values=None)
            for row in alike
        ]
        self._insert(db, taken_back, request)
        return _event(last)

    def _retried(self, work: Callable[[sa.Connection], _T], *, writes: bool = False) -> _T:
        """Do some work in one transaction; where the database went away, again."""
        end, pause = time.monotonic() + self._patience, 0.05
        while True:
            try:
                with self._transaction(writes) as connection:
                    return work(connection)
            except IntegrityError as error:  # another thread or process was as fast
                problem: SQLAlchemyError = error
            except DBAPIError as error:
                problem = error
                if not _passes(error):
                    raise _refused(self.name, error) from error
            except SQLAlchemyError as error:
                raise _refused(self.name, error) from error
            if time.monotonic() + pause > end:
                raise _refused(self.name, problem) from problem
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    @contextmanager
    def _transaction(self, writes: bool) -> Iterator[sa.Connection]:
        connection = self._engine.connect().execution_options(**{_WRITES: writes})
        with connection, connection.begin():
            if writes and connection.dialect.name == "postgresql":
                # One at a time, as in SQLite: who has read event 7 has seen all before it.
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            yield connection


def _event(row: Any) -> Answer:
    return Answer(
        row=row.row,
        label=row.label,
        by=row.by,
        note=row.note,
        source=row.source,
        values=row._mapping["values"],
        score=row.score,
        number=row.number,
        at=row.at,
        undoes=row.undoes,
    )


def _rule(row: Any) -> Rule:
    return Rule(
        column=row.column,
        value=row.value,
        until=row.until,
        by=row.by,
        note=row.note,
        at=row.at,
        number=row.number,
    )


def _engine(url: str | os.PathLike[str], read_only: bool) -> tuple[sa.Engine, str]:
    """Return the engine of a database, and its name without a password."""
    text = os.fspath(url)
    try:
        found = sa.make_url(text) if "://" in text else sa.URL.create("sqlite", database=text)
    except ArgumentError as error:
        raise AnswerError("The URL of the store of answers cannot be read.") from error
    if found.drivername in ("postgresql", "postgres"):
        found = found.set(drivername="postgresql+psycopg")
    name = found.render_as_string(hide_password=True)
    if found.get_backend_name() == "sqlite":
        return _sqlite(found, read_only)
    if found.get_backend_name() != "postgresql":
        raise AnswerError(
            f"The store of answers is SQLite or PostgreSQL; got {found.drivername}."
        )
    try:
        engine = sa.create_engine(found, pool_pre_ping=True, pool_recycle=1800)
    except ImportError as error:
        raise MissingExtraError("psycopg", "postgresql", "A store in PostgreSQL") from error
    sa.event.listen(engine, "connect", _durable)
    return engine, name


def _durable(connection: Any, entry: ConnectionPoolEntry) -> None:
    """Make a commit of PostgreSQL wait for the disk, whatever the server's default is."""
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit TO on")
    connection.commit()


def _sqlite(url: sa.URL, read_only: bool) -> tuple[sa.Engine, str]:
    if not url.database or url.database == ":memory:":
        raise AnswerError("Answers in memory would be lost. Name a file for the store.")
    name = url.database
    if not Path(name).parent.is_dir():
        raise AnswerError(f"{name} cannot be opened: there is no folder {Path(name).parent}.")
    if read_only:
        if not Path(name).is_file():
            raise AnswerError(f"There is no store of answers {name}.")
        return sa.create_engine(
            "sqlite://", creator=partial(_looking, name), poolclass=NullPool
        ), name
    engine = sa.create_engine(url, connect_args={"timeout": _PATIENCE})
    sa.event.listen(engine, "connect", _set_up)
    sa.event.listen(engine, "begin", _begin)
    return engine, name


def _looking(name: str) -> sqlite3.Connection:
    """Connect to a SQLite file without writing anything beside it, which may not be allowed.

    Whoever has the file open has a second one beside it, with what is not in the first yet.
    Where that is missing, the first one is complete, and stays as it is.
    """
    mode = "mode=ro" if os.path.exists(f"{name}-wal") else "immutable=1"
    return sqlite3.connect(f"{Path(name).absolute().as_uri()}?{mode}", _PATIENCE, uri=True)


def _set_up(connection: Any, entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says so
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _passes(error: DBAPIError) -> bool:
    """Say whether it may go well the next time: the database is busy, or away."""
    words = str(error.orig).lower()
    busy = ("locked", "locking protocol", "busy", "deadlock", "could not serialize")
    away = ("connection", "server closed", "starting up", "shutting down", "terminating")
    return bool(error.connection_invalidated) or any(word in words for word in (*busy, *away))


def _refused(name: str, error: SQLAlchemyError) -> AnswerError:
    cause = getattr(error, "orig", None) or error
    reason = " ".join(str(cause).split()).rstrip(".")
    advice = "Make room. " if "full" in reason.lower() else ""
    return AnswerError(
        f"The store of answers {name} cannot be used: {reason}. {advice}What was not "
        "acknowledged is not stored."
    )
