"""Patterns of one host: in memory, or in a SQLite file behind it."""

from __future__ import annotations

from ._store import LocalStore

__all__ = ["LocalStore"]
