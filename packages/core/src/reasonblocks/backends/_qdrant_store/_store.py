"""`QdrantStore`: what a caller gives and gets, and how an event loop waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..._requests import Retrieve
from ..._secret import KEY_RULE, Secret, described, is_key, shown_url
from ...exceptions import ConfigError, StoreError, Unavailable
from ...ports import Embedder
from ...types import ETrace, Pattern
from .._daemon import in_daemon
from .._forks import no_fork, opened
from .._stores import embedders
from .._stores.point_store import PointStore, require
from .._stores.table import Asking
from .._stores.vectors import Vectors
from ._points import QdrantPoints

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from qdrant_client import AsyncQdrantClient, QdrantClient

TRY_AGAIN = (408, 429)
"""Refusals that say nothing of what was asked, beside those from 500 on."""


class Clients:
    """Made when first used. `given` is the caller's own, who closes it; it serves threads only."""

    def __init__(self, url: str | None, api_key: str | None, timeout: int, given: QdrantClient | None) -> None:
        if api_key is not None and not is_key(api_key):
            raise ConfigError("api_key", described(api_key), KEY_RULE)
        self._url = None if url is None else Secret(url)
        self._api_key = None if api_key is None else Secret(api_key)
        self._timeout, self._given = timeout, given
        self._made: QdrantClient | None = None
        self._of_loops: WeakKeyDictionary[AbstractEventLoop, AsyncQdrantClient] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        return f"Qdrant at {shown_url(self._url.reveal())}" if self._url else "Qdrant"

    @property
    def is_awaitable(self) -> bool:
        return self._given is None

    @property
    def is_local(self) -> bool:
        """A client of the caller's that talks to no server, which knows no index."""
        options = {} if self._given is None else self._given.init_options
        return options.get("location") == ":memory:" or options.get("path") is not None

    def load(self) -> None:
        """Import the library, which takes a second, and make a client, which reads certificates: not within a step."""
        try:
            self.of_threads()
        except ValueError as exc:
            given = shown_url(self._url.reveal()) if self._url else None
            raise ConfigError("url", given, "must be the URL of a Qdrant server") from exc

    def of_threads(self) -> QdrantClient:
        if self._given is not None:
            return self._given
        made = self._made
        return self._connected() if made is None else made

    @property
    def _options(self) -> dict[str, Any]:
        url, key = (None if one is None else one.reveal() for one in (self._url, self._api_key))
        return {"url": url, "api_key": key, "timeout": self._timeout, "check_compatibility": False}

    def _connected(self) -> QdrantClient:
        from qdrant_client import QdrantClient

        with no_fork:
            if self._made is None:
                self._made = QdrantClient(**self._options)
                opened(self)
            return self._made

    def of_loop(self, loop: AbstractEventLoop) -> AsyncQdrantClient:
        """In any thread: it takes tens of milliseconds the first time, which no event loop should be held up."""
        found = self._of_loops.get(loop)
        if found is not None:
            return found
        from qdrant_client import AsyncQdrantClient

        with no_fork:
            if loop not in self._of_loops:
                self._of_loops[loop] = AsyncQdrantClient(**self._options)
            return self._of_loops[loop]

    def close(self) -> None:
        """A fork, too: what was connected is not shared. Those of event loops are the loops' own."""
        with no_fork:
            made, self._made = self._made, None
            if made is not None:
                made.close()

    async def aclose(self) -> None:
        from asyncio import get_running_loop

        found = self._of_loops.pop(get_running_loop(), None)
        if found is not None:
            await found.close()

    @contextmanager
    def border(self) -> Iterator[None]:
        from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

        try:
            yield
        except UnexpectedResponse as exc:
            code = exc.status_code or 0
            if code >= 500 or code in TRY_AGAIN:
                raise Unavailable(self.name, str(exc)) from exc
            raise StoreError(self.name, str(exc)) from exc
        except ApiException as exc:
            raise Unavailable(self.name, f"{type(exc).__name__}: {exc}") from exc


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
