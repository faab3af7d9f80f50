"""Patterns in a Qdrant server, shared by several hosts."""

from __future__ import annotations

from ._store import QdrantStore

__all__ = ["QdrantStore"]
