"""Patterns in Qdrant's own engine, within this process."""

from __future__ import annotations

from ._store import EdgeStore

__all__ = ["EdgeStore"]
