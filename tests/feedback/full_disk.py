"""A disk with no room left for a store of answers."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from aloof.feedback.store import AnswerStore


class FullDisk:
    """Lets the file of a store grow no more, until there is room."""

    def __init__(self, store: AnswerStore) -> None:
        self._engine = store._engine
        with self._engine.connect() as connection:
            self._pages = connection.exec_driver_sql("PRAGMA page_count").scalar() or 0
        self._engine.dispose()
        sa.event.listen(self._engine, "connect", self._limit)

    def make_room(self) -> None:
        self._pages += 1000
        self._engine.dispose()

    def _limit(self, connection: Any, *_: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={self._pages}")
