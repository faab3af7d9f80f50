"""Connects to a Qdrant server, and turns the errors of qdrant-client into ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from ...concurrency.forks import close_at_fork, no_fork
from ...exceptions import ConfigError, ExtraMissing, StoreError, Unavailable
from ...util.secret import KEY_RULE, Secret, describe_key, is_key, shown_url

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from qdrant_client import AsyncQdrantClient, QdrantClient


TIMEOUT_S = 5
"""Seconds per request: writing 200 patterns over a slow line. A search ends earlier, with its step's deadline."""
BATCH = 200
"""Patterns or findings written in one request; about 2 MB of JSON with 256 dimensions."""
TRY_AGAIN = (408, 429)
"""Status codes below 500 after which a request may be repeated."""


class Clients:
    """The clients of one server, made on first use. A `given` client is closed by its owner and serves threads only."""

    def __init__(self, url: str | None, api_key: str | None, timeout: int, given: QdrantClient | None) -> None:
        if api_key is not None and not is_key(api_key):
            raise ConfigError("api_key", describe_key(api_key), KEY_RULE)
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
        """True for a caller's client without a server; it has no payload indexes."""
        options = {} if self._given is None else self._given.init_options
        return options.get("location") == ":memory:" or options.get("path") is not None

    def load(self) -> None:
        """Import the library, which takes a second, and make a client, so that no step has to."""
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
        url, key = (None if secret is None else secret.reveal() for secret in (self._url, self._api_key))
        return {"url": url, "api_key": key, "timeout": self._timeout, "check_compatibility": False}

    def _connected(self) -> QdrantClient:
        from qdrant_client import QdrantClient

        with no_fork:
            if self._made is None:
                self._made = QdrantClient(**self._options)
                close_at_fork(self)
            return self._made

    def of_loop(self, loop: AbstractEventLoop) -> AsyncQdrantClient:
        """Return the client of this event loop. Call it in a thread: the first call takes tens of milliseconds."""
        found = self._of_loops.get(loop)
        if found is not None:
            return found
        from qdrant_client import AsyncQdrantClient

        with no_fork:
            if loop not in self._of_loops:
                self._of_loops[loop] = AsyncQdrantClient(**self._options)
            return self._of_loops[loop]

    def close(self) -> None:
        """Close the client for threads, also before a fork. Clients of event loops belong to their loops."""
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


def clients_of(what: str, url: str | None, api_key: str | None, timeout: int, client: QdrantClient | None) -> Clients:
    """Return the clients of the server that was given, as a URL or as a client, after loading the library."""
    if (url is None) == (client is None):
        raise ConfigError(
            "url", shown_url(url) if url else url, "give the url of a Qdrant server, or a client: one of the two"
        )
    if client is None:
        require_client(what)
    clients = Clients(url, api_key, timeout, client)
    clients.load()
    return clients


def collection_name(prefix: str, embedder_id: str) -> str:
    return f"{prefix}-{quote(embedder_id, safe='').replace('%', '_')}"


def require_client(what: str) -> None:
    """Raise `ExtraMissing`, with the command that installs it, if qdrant-client is missing."""
    try:
        found = find_spec("qdrant_client") is not None
    except ValueError:  # `sys.modules` holds None for this name
        found = False
    if not found:
        raise ExtraMissing(what, "qdrant-client", "qdrant")
