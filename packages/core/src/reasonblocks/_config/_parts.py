"""The settings that are objects: stores, monitors, sinks, and the backends made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os.path import exists
from typing import Any

from .._files import store_path
from .._monitors.builtin import MONITORS, Calibration
from .._monitors.roles import ROLES
from .._session import Backends, Workers, bounded_calls
from .._text import size, whole
from ..backends._local import LocalEvaluator
from ..backends._local_store import LocalStore
from ..backends._pattern_stats import Counts, PatternStats
from ..exceptions import ConfigError
from ..ports import Embedder, Monitor, PatternStore, TelemetrySink
from ..starter import starter_patterns
from ._checks import items, mapping
from ._options import Options

MONITOR_GROUP = "reasonblocks.monitors"
NAME_BYTES = 100
"""The longest name or failure type of a monitor; every step record may contain them."""
MAX_MONITORS = 4
"""Custom monitors of one client: each may keep 3 KB, and the trace state stays under 64."""


def backends(given: Options, own: tuple[Monitor, ...], calibration: Calibration, store: PatternStore) -> Backends:
    failure_types = {one.name: one.failure_type for one in own}
    return Backends(
        evaluator=LocalEvaluator(calibration, tool_roles(given.tool_roles), failure_types),
        store=store,
        scorer=given.scorer,
        transition=given.transition,
        monitors=own,
        bounded=bounded_calls(_bounded_names(given, own), Workers()),
    )


def _bounded_names(given: Options, own: Iterable[Monitor]) -> Iterable[str]:
    """Name what gets a deadline: a caller's code, and a backend that is not `inline`."""
    yield from ("the scorer", "the transition", "the evaluator", "the pattern store")
    yield from (f"monitor {monitor.name}" for monitor in own)


def monitors(given: Iterable[Monitor | str]) -> Iterable[Monitor]:
    seen = {row.name for row in MONITORS}
    found: list[Any] = [_named(one) if isinstance(one, str) else one for one in items("monitors", given)]
    if len(found) > MAX_MONITORS:
        raise ConfigError("monitors", len(found), f"at most {MAX_MONITORS}: each may keep 3 KB of every run")
    for monitor in found:
        name: object = getattr(monitor, "name", None)
        if isinstance(monitor, type) or not isinstance(monitor, Monitor) or not isinstance(name, str) or not name:
            raise ConfigError("monitors", monitor, "a monitor has name, failure_type and observe(step, memory, run)")
        for label in (name, getattr(monitor, "failure_type", None)):
            _kept_text(monitor, label)
        if name in seen or name.startswith("_"):
            raise ConfigError("monitors", name, "a monitor of that name is there already, or the name is reserved")
        seen.add(name)
        yield monitor


def _kept_text(monitor: Any, label: object) -> None:
    """Check a monitor's name or failure type, which enter the trace state."""
    if type(label) is not str or whole(label) != label or size(label) > NAME_BYTES:
        rule = f"name and failure_type must be strings of at most {NAME_BYTES} bytes, without unpaired surrogates"
        raise ConfigError(f"monitors[{type(monitor).__name__}]", label, rule)


def _named(name: str) -> Monitor:
    """A monitor that an installed package offers under that name."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    offered = {point.name: point for point in entry_points(group=MONITOR_GROUP)}
    if name not in offered:
        raise ConfigError.unknown("monitors", name, offered or ["none is installed"])
    loaded: Any = offered[name].load()
    monitor: Monitor = loaded() if isinstance(loaded, type) else loaded
    return monitor


def tool_roles(given: Mapping[str, str] | None) -> dict[str, str]:
    """What the caller's tools are for, by name."""
    found = dict(mapping("tool_roles", given))
    for tool, role in found.items():
        if role not in ROLES:
            raise ConfigError.unknown(f"tool_roles[{tool!r}]", role, ROLES)
    return found


def sinks(given: Iterable[TelemetrySink]) -> tuple[TelemetrySink, ...]:
    found = tuple(items("sinks", given))
    for sink in found:
        if not isinstance(sink, TelemetrySink):
            raise ConfigError("sinks", sink, "a sink has emit(event) and close()")
    return found


def store_of(given: Options, environ: Mapping[str, str]) -> PatternStore:
    """The store; where the caller gave none, with the starter library under it. Nothing is opened yet."""
    if given.pattern_store is not None:
        return _checked(given.pattern_store, given.embedder)
    embedder, layer = _embedder(given.embedder), starter_patterns()
    if url := environ.get("QDRANT_URL"):
        from ..backends._qdrant_store import QdrantStore  # with the client, for those who have a server
        from ..backends._stores.point_store import require

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
