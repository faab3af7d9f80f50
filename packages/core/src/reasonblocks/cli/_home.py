"""Where the commands keep what a user has added: the folder that REASONBLOCKS_HOME names, or one in the home folder."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["PATTERNS", "PROPOSALS", "home"]

PATTERNS = "patterns.db"
PROPOSALS = "proposals.jsonl"


def home() -> Path:
    """The folder; nothing is made."""
    return Path(os.environ.get("REASONBLOCKS_HOME") or Path.home() / ".reasonblocks")
