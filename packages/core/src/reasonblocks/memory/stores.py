"""Chooses the store of findings by the arguments and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..exceptions import ConfigError
from ..ports import Embedder, FindingStore
from ..util.files import store_path

if TYPE_CHECKING:
    from ..options.server import Server

RULE = (
    "must be the path of a file, a LocalStore, a QdrantStore, or have the methods of a FindingStore "
    "(put, search, page, remove, clear, codebases, close)"
)


def finding_store(
    store: object = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    embedder: Embedder | None = None,
    environ: Mapping[str, str] = os.environ,
) -> FindingStore:
    """Return the store that is given, else the server's, else the one at QDRANT_URL, else the user's file.

    Nothing is opened yet. Raises `ConfigError` for arguments that contradict each other, and `ExtraMissing`.
    """
    from ..options.values import api_key_of

    if embedder is not None and (isinstance(embedder, type) or not isinstance(embedder, Embedder)):
        raise ConfigError("embedder", embedder, "must have id, dim, curves, embed(text) and embed_many(texts)")
    if store is not None:
        for name, other in (("base_url", base_url), ("api_key", api_key)):
            if other:
                raise ConfigError("store", _shown(store), f"is given beside {name}, which is for a server")
        return _given(store, embedder)
    server = _server(base_url, api_key_of(api_key, environ), environ)
    if server is not None:
        from ..backends.http.findings import HttpFindings

        if embedder is not None:
            raise ConfigError("embedder", embedder, "the server embeds by itself: give none, or base_url=''")
        found: FindingStore = HttpFindings(server.exchange)
        return found
    if url := environ.get("QDRANT_URL"):
        from ..backends.qdrant_store.findings import QdrantFindings

        return QdrantFindings(url, environ.get("QDRANT_API_KEY") or None, embedder=embedder)
    return _local(store_path(environ), embedder)


def is_own(store: object) -> bool:
    """Return True if `finding_store` makes a store from this argument, which nobody else closes."""
    return store is None or not isinstance(store, FindingStore)


def _server(base_url: object, key: Any, environ: Mapping[str, str]) -> Server | None:
    from ..options.server import server_of

    return server_of(base_url, key, None, None, environ, disabled=False)


def _given(store: object, embedder: Embedder | None) -> FindingStore:
    if isinstance(store, (str, os.PathLike)):
        if not os.fspath(store):
            raise ConfigError("store", store, RULE)
        return _local(store, embedder)
    if isinstance(store, type):
        raise ConfigError("store", store, RULE)
    if embedder is not None:
        raise ConfigError("embedder", embedder, "the given store has its own: give one of the two")
    if isinstance(store, FindingStore):
        return store
    return _beside(store)


def _beside(store: object) -> FindingStore:
    """Return the findings in the file or on the server of a store of patterns, with its embedder."""
    from ..backends.local_store import LocalStore

    if isinstance(store, LocalStore):
        return _local(store.path, store.embedder)
    if type(store).__module__.startswith("reasonblocks.backends.qdrant_store"):  # else its client need not be there
        from ..backends.qdrant_store import QdrantFindings, QdrantStore

        if isinstance(store, QdrantStore):
            return QdrantFindings.beside(store)
    raise ConfigError("store", _shown(store), RULE)


def _local(path: Any, embedder: Embedder | None) -> FindingStore:
    from ..backends.local_store.findings import LocalFindings

    return LocalFindings(path, embedder=embedder)


def _shown(store: object) -> object:
    """Return the part of a wrong argument that an error may show."""
    return f"a value of type {type(store).__name__}" if not isinstance(store, (str, os.PathLike)) else os.fspath(store)
