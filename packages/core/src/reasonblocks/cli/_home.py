"""Where the commands keep what a user adds, unless an option says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

from .._home import HOME, STORE, home
from ..exceptions import ConfigError

__all__ = ["PROPOSALS", "STORE", "in_home", "placed"]

PROPOSALS = "proposals.jsonl"


def in_home(name: str) -> str:
    """Where the file of that name is, for a help text."""
    return f"${HOME}/{name}, else ~/.reasonblocks/{name}"


def placed(given: str | None, name: str, option: str) -> Path:
    """The file as given, else the one of that name in the home folder; nothing is made. Raises `ConfigError`."""
    if given is not None:
        return Path(given)
    folder = home(os.environ)
    if folder is None:
        raise ConfigError(HOME, None, f"this user has no home folder: set it, or give {option}")
    return folder / name
