"""The stores of patterns and of findings on a Qdrant server, for several hosts."""

from __future__ import annotations

from ._findings import QdrantFindings
from ._store import QdrantStore

__all__ = ["QdrantFindings", "QdrantStore"]
