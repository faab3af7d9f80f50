"""The pattern store on a Qdrant server, for several hosts."""

from __future__ import annotations

from ._store import QdrantStore

__all__ = ["QdrantStore"]
