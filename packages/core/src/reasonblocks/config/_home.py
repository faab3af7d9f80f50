"""Where a user's own files are: the folder that patterns and proposals are kept in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..exceptions import ConfigError

HOME = "~/.reasonblocks"
"""Used where REASONBLOCKS_HOME is not set."""
PATTERNS = "patterns.db"


def home(environ: Mapping[str, str]) -> Path:
    """The folder, which need not exist: nothing is made in it until something is added. Raises `ConfigError`."""
    given = environ.get("REASONBLOCKS_HOME") or HOME
    try:
        return Path(given).expanduser()
    except RuntimeError as exc:  # no home folder can be told
        raise ConfigError("REASONBLOCKS_HOME", given, "name a folder: this user has no home folder") from exc


def patterns_path(environ: Mapping[str, str]) -> Path:
    """The file of the default pattern store."""
    return home(environ) / PATTERNS
