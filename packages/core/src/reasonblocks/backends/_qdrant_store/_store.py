"""`QdrantStore`: what a caller gives and gets, and how an event loop waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ..._requests import Retrieve
from ..._secret import shown_url
from ..._threads import in_daemon
from ...exceptions import ConfigError
from ...ports import Embedder
from ...types import ETrace, Pattern
from .._stores import embedders
from .._stores.point_store import PointStore, require
from .._stores.points import Asking
from .._stores.vectors import Vectors
from ._points import Clients, QdrantPoints

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from qdrant_client import QdrantClient


TIMEOUT_S = 5
"""Of one exchange: what writing 200 patterns takes over a slow line. A search ends with its step's deadline before."""


class QdrantStore(PointStore):
    """Patterns in a Qdrant server, at `url` or behind a `client` of the caller's: for several hosts.

    One collection an embedder, named `collection_prefix` and the embedder's id; it is made when something is first
    added. What another process adds is found at once; that it hides a pattern of `layer`, or is the one with the
    lowest `gate_threshold` of all, within 60 s. `timeout` is seconds of one exchange. Making a store imports
    qdrant-client, which takes a second; the server is asked when the store is first used.

    Raises `ExtraMissing` without qdrant-client, `Unavailable` if the server does not answer, `StoreError` if it
    refuses, and otherwise as `LocalStore` does. Safe for threads, if a given client is.
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
        if (url is None) == (client is None):
            raise ConfigError(
                "url", shown_url(url) if url else url, "give the url of a Qdrant server, or a client: one of the two"
            )
        if client is None:
            require("QdrantStore", "qdrant_client", "qdrant-client", "qdrant")
        made = embedders.default() if embedder is None else embedder
        self._clients = Clients(url, api_key, timeout, client)
        self._clients.load()
        self._server = QdrantPoints(self._clients, collection_prefix, made.id, made.dim)
        super().__init__(self._server, layer, Vectors(made))

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
        """As `search`, awaited; a given client is called in a thread."""
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

    def _prepared(self, request: Retrieve, loop: AbstractEventLoop) -> Asking:
        """What would hold up the event loop: its client is made, the text embedded, what the layer hides asked."""
        self._clients.of_loop(loop)
        return self._asking(request)

    async def aclose(self) -> None:
        """Close what this event loop used; `close` is for threads."""
        await self._clients.aclose()

    def __enter__(self) -> QdrantStore:
        return self
