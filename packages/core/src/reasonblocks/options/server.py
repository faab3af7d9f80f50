"""Chooses between the backends of this process and those of a server, and connects the latter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any

from ..exceptions import ConfigError
from ..ports import Embedder, PatternStore, TelemetrySink
from ..session import Backends, BoundedCall, Profiles, Workers
from ..util.secret import Secret

if TYPE_CHECKING:
    from ..backends.http import Exchange

VARIABLE = "REASONBLOCKS_BASE_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server in place of the evaluator and of the pattern store, and the sink that streams the runs to it.

    `redact` is the caller's, and runs in a worker with a deadline.
    """

    exchange: Exchange
    streams: bool
    redact: Callable[[str], str] | None
    workers: Workers = field(default_factory=Workers)

    def close(self) -> None:
        self.exchange.close()

    def store(self) -> PatternStore:
        from ..backends.http.store import HttpStore

        return HttpStore(self.exchange, self.redaction())

    def profiles(self, org_id: str, seconds: float, local: Profiles) -> Profiles:
        """Return the profiles that all clients of the server share. `local` keeps those that the server cannot keep."""
        from ..backends.http.profiles import HttpProfiles

        return HttpProfiles(self.exchange, org_id, seconds, local)

    def sinks(self, others: Iterable[TelemetrySink]) -> tuple[TelemetrySink, ...]:
        """Return the sink that streams the runs, unless the caller passed one for the same server."""
        from ..backends.http import HttpSink

        address = self.exchange.address
        known = any(isinstance(sink, HttpSink) and sink.url == address.url for sink in others)
        return (HttpSink(address.url, address.key),) if self.streams and not known else ()

    def redaction(self) -> Any:
        if self.redact is None:
            return None
        from ..backends.http.texts import Redaction

        return Redaction(self.redact, BoundedCall("redact", self.workers))


def server_of(
    base_url: object,
    key: Secret | None,
    live_streaming_enabled: object,
    redact: Callable[[str], str] | None,
    environ: Mapping[str, str],
    *,
    disabled: bool,
) -> Server | None:
    """Return the server of the options or of the environment, None without one. Nothing is sent yet.

    Raises `ConfigError`, and `ExtraMissing` without httpx. An empty `base_url` means none, whatever the environment
    has.
    """
    if not isinstance(live_streaming_enabled, (bool, NoneType)):
        raise ConfigError("live_streaming_enabled", live_streaming_enabled, "must be True, False or None")
    name, url = ("base_url", base_url) if base_url is not None else (VARIABLE, environ.get(VARIABLE, ""))
    if url == "":
        if live_streaming_enabled:
            raise ConfigError("live_streaming_enabled", True, f"needs a server: pass base_url or set {VARIABLE}")
        return None
    if disabled:
        return None
    from ..backends.http import Exchange, address_of

    exchange = Exchange(address_of(name, url, key))
    return Server(exchange=exchange, streams=live_streaming_enabled is not False, redact=redact)


def refuse_embedder(embedder: Embedder | None) -> None:
    """Raise `ConfigError` for an embedder beside the server's pattern store."""
    if embedder is not None:
        raise ConfigError(
            "embedder", embedder, "the server's pattern store has its own embedder: pass a pattern_store, too"
        )


def with_server_evaluator(
    server: Server | None,
    backends: Backends,
    weights: Mapping[str, float],
    tool_roles: Mapping[str, str] | None,
) -> Backends:
    """Return the backends with the server's evaluator, which is also a mailbox; unchanged without a server.

    `weights` and `tool_roles` are those that the caller gave.
    """
    if server is None:
        return backends
    from ..backends.http.evaluator import HttpEvaluator

    evaluator = HttpEvaluator(
        server.exchange,
        weights=weights,
        tool_roles=tool_roles,
        failure_types={monitor.name: monitor.failure_type for monitor in backends.monitors},
        redaction=server.redaction(),
    )
    return replace(backends, evaluator=evaluator, mailboxes=(evaluator, *backends.mailboxes))
