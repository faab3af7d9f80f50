"""The pattern store of one host: in memory, with an optional SQLite file."""

from __future__ import annotations

from ._store import LocalStore

__all__ = ["LocalStore"]
