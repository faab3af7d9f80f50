"""Which pattern store a client has: the caller's, a Qdrant server, or the file in the user's own folder."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import exists

from .._home import store_path
from ..backends.local_store import LocalStore
from ..backends.pattern_stats import Counts, PatternStats
from ..exceptions import ConfigError
from ..ports import Embedder, PatternStore, TelemetrySink
from ..starter import starter_patterns
from ._options import Options


def store_of(given: Options, environ: Mapping[str, str]) -> PatternStore:
    """The store; where the caller gave none, with the starter library under it. Nothing is opened yet."""
    if given.pattern_store is not None:
        return _checked(given.pattern_store, given.embedder)
    embedder, layer = _embedder(given.embedder), starter_patterns()
    if url := environ.get("QDRANT_URL"):
        from ..backends._stores.extras import require
        from ..backends.qdrant_store import QdrantStore  # with the client, for those who have a server

        require("the pattern store at QDRANT_URL", "qdrant_client", "qdrant-client", "qdrant")
        return QdrantStore(url, environ.get("QDRANT_API_KEY") or None, layer=layer, embedder=embedder)
    return LocalStore(store_path(environ), layer=layer, embedder=embedder)


def counting(store: PatternStore) -> tuple[TelemetrySink, ...]:
    """What counts into a store that outlives the process how its patterns did. A file that is not there stays so."""
    if not isinstance(store, Counts) or (isinstance(store, LocalStore) and not (store.path and exists(store.path))):
        return ()
    return (PatternStats(store),)


def _checked(store: object, embedder: Embedder | None) -> PatternStore:
    if embedder is not None:
        raise ConfigError("embedder", embedder, "the given pattern_store embeds by itself: give one of the two")
    if isinstance(store, type) or not isinstance(store, PatternStore):
        raise ConfigError("pattern_store", store, "must have a method search(request)")
    return store


def _embedder(given: Embedder | None) -> Embedder | None:
    if given is not None and (isinstance(given, type) or not isinstance(given, Embedder)):
        raise ConfigError("embedder", given, "must have id, dim, curves, embed(text) and embed_many(texts)")
    return given
