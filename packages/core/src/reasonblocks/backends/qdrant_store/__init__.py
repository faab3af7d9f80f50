"""The stores of patterns and of findings on a Qdrant server, for several hosts."""

from __future__ import annotations

from ._store import QdrantStore
from .findings import QdrantFindings

__all__ = ["QdrantFindings", "QdrantStore"]
