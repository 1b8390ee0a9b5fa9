"""The tables of the store brought up to date, by Alembic, from the steps in the package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from aloof.exceptions import AnswerError

__all__ = ["migrate", "newest"]

_FOLDER = Path(__file__).parent / "migrations"


def _scripts() -> tuple[Config, ScriptDirectory]:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config, ScriptDirectory.from_config(config)


def newest() -> str:
    """Return the revision that this aloof works with."""
    return str(_scripts()[1].get_current_head())


def migrate(connection: Connection) -> None:
    """Carry out the steps that a database lacks, in the transaction of the connection."""
    present = MigrationContext.configure(connection).get_current_revision()
    config, scripts = _scripts()
    if present == scripts.get_current_head():
        return
    if present is not None and present not in {s.revision for s in scripts.walk_revisions()}:
        raise AnswerError(
            f"The store of answers is of a newer aloof (its tables are of step {present}). "
            "Upgrade with: pip install --upgrade aloof"
        )

    def steps(revision: Any, context: Any) -> Iterable[Any]:
        return scripts._upgrade_revs("head", revision)

    with EnvironmentContext(config, scripts, fn=steps) as environment:
        environment.configure(connection=connection)
        environment.run_migrations()
