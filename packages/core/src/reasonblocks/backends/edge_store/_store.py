"""`EdgeStore`: what a caller gives and gets."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...ports import Embedder
from ...types import Pattern
from .._stores import embedders
from .._stores.extras import require
from .._stores.point_store import PointStore
from .._stores.vectors import Vectors
from ._points import EdgePoints

__all__ = ["EdgeStore"]


class EdgeStore(PointStore):
    """Patterns in a folder, searched by Qdrant's engine in this process: for 20,000 to a million in one process.

    The folder holds one folder an embedder; it is made when something is first added, and one process at a time has
    it open. Raises `ExtraMissing` without qdrant-edge-py, `StoreError` for what the engine refuses; else as
    `LocalStore`. Safe for threads; a fork closes it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, layer: Iterable[Pattern] = (), embedder: Embedder | None = None
    ) -> None:
        require("EdgeStore", "qdrant_edge", "qdrant-edge-py", "edge")
        self.path = os.fspath(path)
        made = embedders.default() if embedder is None else embedder
        self._engine = EdgePoints(self.path, made.id, made.dim)
        super().__init__(self._engine, layer, Vectors(made))

    def optimize(self) -> bool:
        """Build the engine's graph of all vectors, which takes minutes from some 20,000 on; True: there was work.

        Every search is exact until then. After it one of tier e2 over everything takes a tenth of its time, and may
        miss a pattern.
        """
        return self._engine.optimize()

    def __enter__(self) -> EdgeStore:
        return self
