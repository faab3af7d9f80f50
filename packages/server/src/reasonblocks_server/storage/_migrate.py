"""Migrates the tables of a database to this version."""

from __future__ import annotations

from importlib.resources import as_file, files

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from ..errors import StorageUnavailable
from ._database import Database, NewerDatabase

WAIT_S = 60.0
"""Seconds to wait for another process's migration."""


def migrate(database: Database) -> None:
    """Run the missing migrations, one process at a time. Raises `NewerDatabase`."""
    with database.lock("migrate", wait_s=WAIT_S) as held:
        if not held:
            raise StorageUnavailable("another process is migrating it")
        with database.creating() as connection:
            _upgrade(connection)


def _upgrade(connection: Connection) -> None:
    with as_file(files(__package__) / "_migrations") as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        for revision in MigrationContext.configure(connection).get_current_heads():
            if revision not in known:
                raise NewerDatabase(revision)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
