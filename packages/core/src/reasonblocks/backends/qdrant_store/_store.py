"""`QdrantStore`: patterns on a Qdrant server, with sync and async searches."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ...concurrency.workers import in_daemon
from ...ports import Embedder
from ...requests import Retrieve
from ...types import ETrace, Pattern
from ..stores import embedders
from ..stores.point_store import PointStore
from ..stores.points import PointSearch
from ..stores.vectors import Vectors
from ._points import TIMEOUT_S, QdrantPoints, clients_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from qdrant_client import QdrantClient


class QdrantStore(PointStore):
    """Patterns on a Qdrant server, at `url` or behind the caller's own `client`; for several hosts.

    Each embedder has its own collection, named `collection_prefix` plus the embedder's id, created by the first `add`.
    Patterns added by another process are found at once; that one of them hides a pattern of `layer`, or has the lowest
    `gate_threshold` of all, is seen within 60 s. `timeout` is in seconds per request. Making a store imports
    qdrant-client, which takes a second; the server is contacted on first use.

    Raises `ExtraMissing` without qdrant-client, `Unavailable` if the server does not respond, `StoreError` if it
    rejects a request, and otherwise the same as `LocalStore`. Thread-safe if a given client is.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        client: QdrantClient | None = None,
        collection_prefix: str = "reasonblocks",
        layer: Iterable[Pattern] = (),
        embedder: Embedder | None = None,
        timeout: int = TIMEOUT_S,
    ) -> None:
        self._clients = clients_of("QdrantStore", url, api_key, timeout, client)
        self._prefix = collection_prefix
        made = embedders.default() if embedder is None else embedder
        self._server = QdrantPoints(self._clients, collection_prefix, made.id, made.dim)
        super().__init__(self._server, layer, Vectors(made))

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Search without blocking the event loop; a given client is called in a thread."""
        if not self._clients.is_awaitable:
            return await super().asearch(request)
        from asyncio import get_running_loop

        asking = await in_daemon(partial(self._prepared, request, get_running_loop()))
        try:
            ask = next(asking)
            while True:
                ask = asking.send(await self._server.anear(ask))
        except StopIteration as done:
            found: tuple[ETrace, ...] = done.value
            return found

    def _prepared(self, request: Retrieve, loop: AbstractEventLoop) -> PointSearch:
        """Do in a thread all that would block the event loop: make the client, embed the text, read hidden ids."""
        self._clients.of_loop(loop)
        return self._asking(request)

    async def aclose(self) -> None:
        """Close the client of this event loop; `close` closes that of threads."""
        await self._clients.aclose()

    def __enter__(self) -> QdrantStore:
        return self
