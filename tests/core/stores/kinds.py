"""Every kind of store that the contract holds for, each made empty."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest

from reasonblocks import LocalStore
from reasonblocks.ports import Embedder
from reasonblocks.requests import Retrieve
from reasonblocks.types import ETrace, Pattern, Tier
from tests.core.stores.world import Numbers


class Store(Protocol):
    """What every store has beside the port."""

    def search(self, request: Retrieve) -> tuple[ETrace, ...]: ...
    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]: ...
    def add(self, patterns: Iterable[Pattern]) -> None: ...
    def remove(self, pattern_id: str) -> bool: ...
    def count(self, pattern_ids: Iterable[str], what: str) -> None: ...
    def get(self, pattern_id: str) -> Pattern | None: ...
    def list(
        self, org_id: str, tier: Tier | None = None, *, failure_type: str | None = None, layer: bool = False
    ) -> tuple[Pattern, ...]: ...
    def __len__(self) -> int: ...
    def close(self) -> None: ...


SERVER = os.environ.get("QDRANT_URL")
KINDS = ("memory", "file", "qdrant-local", "qdrant-loopback", *(("qdrant-server",) if SERVER else ()))


class Maker:
    """Makes stores of one kind, and the same store again: what it kept is there, what was in memory is not."""

    def __init__(self, kind: str, folder: Path, open_until: ExitStack) -> None:
        self.kind, self._folder, self._open_until = kind, folder, open_until
        self._make = self._prepared()

    @property
    def is_lasting(self) -> bool:
        return self.kind != "memory"

    def new(
        self, patterns: Iterable[Pattern] = (), layer: Iterable[Pattern] = (), embedder: Embedder | None = None
    ) -> Store:
        return self.at(uuid4().hex, patterns, layer, embedder)

    def at(
        self,
        name: str,
        patterns: Iterable[Pattern] = (),
        layer: Iterable[Pattern] = (),
        embedder: Embedder | None = None,
    ) -> Store:
        store = self._make(name, tuple(layer), embedder or Numbers())
        self._open_until.callback(store.close)
        store.add(patterns)
        return store

    def _prepared(self) -> Callable[[str, tuple[Pattern, ...], Embedder], Store]:
        if self.kind == "memory":
            return lambda name, layer, embedder: LocalStore(layer=layer, embedder=embedder)
        if self.kind == "file":
            return lambda name, layer, embedder: LocalStore(self._folder / name, layer=layer, embedder=embedder)
        return self._qdrant()

    def _qdrant(self) -> Callable[[str, tuple[Pattern, ...], Embedder], Store]:
        client = pytest.importorskip("qdrant_client")
        from reasonblocks import QdrantStore

        if self.kind == "qdrant-local":
            made = client.QdrantClient(location=":memory:")
            self._open_until.callback(made.close)
            return lambda name, layer, embedder: QdrantStore(
                client=made, collection_prefix=name, layer=layer, embedder=embedder
            )
        url = self._url()
        return lambda name, layer, embedder: QdrantStore(
            url, collection_prefix=f"test-{name}", layer=layer, embedder=embedder
        )

    def _url(self) -> str:
        if self.kind == "qdrant-server":
            assert SERVER
            return SERVER
        pytest.importorskip("qdrant_edge")
        from tests.core.stores.loopback import Loopback

        server = Loopback(self._folder)
        self._open_until.enter_context(server)
        return server.url


@contextmanager
def maker(kind: str, folder: Path) -> Iterator[Maker]:
    with ExitStack() as open_until:
        yield Maker(kind, folder, open_until)
