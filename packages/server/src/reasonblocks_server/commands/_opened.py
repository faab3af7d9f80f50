"""Opens the database that a command's options or the environment name, and reports problems in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from reasonblocks.exceptions import ConfigError, ReasonBlocksError
from reasonblocks.util.extras import pip_install
from reasonblocks.util.files import HOME, make_folder
from reasonblocks.util.secret import shown_url
from reasonblocks_workbench.cli.files import home_path

from ..errors import StorageUnavailable
from ..settings import DATABASE_FILE, Settings

if TYPE_CHECKING:
    from ..storage import Storage

POSTGRES = ("psycopg[binary]>=3.2.1",)
"""The requirements of the extra `postgres`, as in `pyproject.toml`."""
SQLITE_URL = "sqlite:///"
FOLDER = "server"
"""The name of the data folder in the user's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """The options that name the database of a server."""

    data: Annotated[
        str | None,
        Option(
            metavar="FOLDER",
            help=f"the folder of the database and the patterns ($REASONBLOCKS_DATA, else ${HOME}/{FOLDER}, "
            f"else ~/.reasonblocks/{FOLDER})",
        ),
    ] = None
    database_url: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="postgresql://... or sqlite:///PATH ($REASONBLOCKS_DATABASE_URL, else a file in the data folder); on "
            "a command line, every user of this machine can see a password",
        ),
    ] = None


def settings_of(database: Database, **given: Any) -> Settings:
    """Return the settings of a server that is started. Options override the environment."""
    settings = _read(database, **given)
    try:
        make_folder(settings.data)
        return settings
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReasonBlocksError(f"cannot write to {settings.data}: {reason}; --data names another folder") from error


def settings_in_use(database: Database) -> Settings:
    """Return the settings of a server that has been started. Raises `ReasonBlocksError` for a place without one."""
    settings = _read(database)
    if settings.database_url is None and not (settings.data / DATABASE_FILE).exists():
        raise ReasonBlocksError(f"no server has been started with {settings.data}; --data names another folder")
    path = settings.database.partition("?")[0]
    if path.startswith(SQLITE_URL) and not Path(path.removeprefix(SQLITE_URL)).exists():
        raise ReasonBlocksError(f"no server has been started with {path}; --database-url names another database")
    return settings


def place_of(settings: Settings) -> str:
    """Return where the data is, without a password."""
    return str(settings.data) if settings.database_url is None else shown_url(settings.database_url)


def _read(database: Database, **given: Any) -> Settings:
    data = database.data or os.environ.get("REASONBLOCKS_DATA") or home_path(None, FOLDER, "--data FOLDER")
    return Settings.from_environ(os.environ, data=data, database_url=database.database_url, **given)


@contextmanager
def open_storage(settings: Settings) -> Iterator[Storage]:
    """Open the database and migrate it to this version. Raises `ReasonBlocksError`."""
    from ..storage import NewerDatabase

    storage = _open(settings)
    try:
        storage.migrate()
        yield storage
    except (StorageUnavailable, NewerDatabase) as error:
        raise ReasonBlocksError(str(error)) from error
    finally:
        storage.close()


def _open(settings: Settings) -> Storage:
    from ..storage import Storage

    try:
        return Storage.open(settings.database)
    except ImportError as error:
        raise ReasonBlocksError(f"PostgreSQL needs psycopg: {pip_install(POSTGRES)}") from error
    except ValueError as error:
        raise ConfigError("database_url", shown_url(settings.database), str(error)) from error
