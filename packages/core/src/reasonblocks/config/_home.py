"""Where what a user adds is kept between programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["HOME", "STORE", "store_path"]

HOME = "REASONBLOCKS_HOME"
STORE = "patterns.db"


def store_path(environ: Mapping[str, str]) -> Path | None:
    """The file of the user's own patterns, made when the first is added; None for a user without a home folder."""
    if home := environ.get(HOME):
        return Path(home) / STORE
    try:
        return Path.home() / ".reasonblocks" / STORE
    except RuntimeError:
        return None
