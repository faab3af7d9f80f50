"""Where what a user adds is kept between programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["HOME", "STORE", "home", "store_path"]

HOME = "REASONBLOCKS_HOME"
STORE = "patterns.db"


def home(environ: Mapping[str, str]) -> Path | None:
    """The folder, made when something is first added to it; None for a user without a home folder."""
    try:
        given = environ.get(HOME)
        return Path(given).expanduser().absolute() if given else Path.home() / ".reasonblocks"
    except RuntimeError:
        return None


def store_path(environ: Mapping[str, str]) -> Path | None:
    """The file of the user's own patterns."""
    folder = home(environ)
    return folder and folder / STORE
