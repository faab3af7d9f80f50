"""Builds a client's configuration from its options; each value is validated once, and errors name the option."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from os import PathLike, fspath, sep
from os.path import exists
from typing import Any, Protocol, cast, get_args, runtime_checkable

from ..advisors.asking import ChatModelAdvisor
from ..backends.local import LocalEvaluator
from ..backends.local_store import LocalStore
from ..backends.pattern_stats import Counts, PatternStats
from ..backends.profiles import ProfileFile, ProfileMemory
from ..engine.routing import ESCALATE, check_routing
from ..exceptions import ConfigError, StoreError
from ..monitors.builtin import MONITORS, WEIGHTS, resolve_weights
from ..monitors.calibration import level_of
from ..monitors.patience import rung_of
from ..monitors.roles import ROLES
from ..patterns.starter import starter_patterns
from ..ports import Advisor, Embedder, Mailbox, Monitor, PatternStore, TelemetrySink
from ..session import Backends, Faults, Learned, Profiles, Workers, bounded_calls
from ..types import Mode, Placement, Settings
from ..util.files import profiles_path, store_path
from ..util.secret import Secret
from ..util.text import size, whole
from . import Options, StandingRules
from .server import Server, refuse_embedder, server_of, with_server_evaluator
from .values import (
    api_key_of,
    budget,
    call_back,
    choice,
    condition,
    deadline,
    easy_of,
    escalation,
    flag,
    items,
    limits,
    look,
    machine,
    mapping,
    plain_call_back,
    share,
    switch,
    text,
)

_log = logging.getLogger("reasonblocks")

CLOSE_SECONDS = 0.05
"""The least time in which a store may close; a file takes a millisecond."""
MONITOR_GROUP = "reasonblocks.monitors"
NAME_BYTES = 100
"""The limit of a monitor's name and failure type, because every step record may contain them."""
MAX_MONITORS = 4
"""Custom monitors of one client: each may keep 3 KB, and the trace state stays under 64."""
BOUNDED = (
    "the scorer", "the transition", "the evaluator", "the pattern store", "the mailbox", "on_injection", "stop_when",
    "interrupt_when", "the advisor",
)  # fmt: skip
"""The names of the calls that run in workers: the caller's code, and the backends that are not called inline."""


@runtime_checkable
class Closes(Protocol):
    """A store that holds files or connections open."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The validated options of a client."""

    settings: Settings
    backends: Backends
    owns_store: bool
    project_id: str
    sinks: tuple[TelemetrySink, ...]
    model_routing: Mapping[str, object]
    weights: Mapping[str, float]
    api_key: Secret | None
    deadline_seconds: float
    strict: bool
    workers: Workers
    server: Server | None = None

    def load(self) -> None:
        """Read patterns and search tables now, so that no step has to."""
        store = self.backends.store
        if self.settings.e_traces_enabled and not self.settings.disabled and isinstance(store, LocalStore):
            try:
                store.load()
            except StoreError:  # the built-in lessons are still found
                store.leave_file()
                raise

    def close(self, seconds: float, faults: Faults) -> None:
        """Close the connections to a server, and the store, unless it is the caller's; then end the workers.

        A store that does not close in time is abandoned.
        """
        try:
            if self.server is not None:
                self.server.close()
            store = self.backends.store
            if self.owns_store and isinstance(store, Closes):
                self._close_store(store, seconds, faults)
        finally:
            self.workers.close()

    def _close_store(self, store: Closes, seconds: float, faults: Faults) -> None:
        try:
            closing = self.workers.submit(store.close)
        except RuntimeError:  # no thread can be started at exit
            store.close()
            return
        try:
            error = closing.exception(max(seconds, CLOSE_SECONDS))
        except FutureTimeout:
            name = f"the pattern store {type(store).__name__}"
            faults.say("left behind", f"{name} did not close in the time it had; it is left behind")
        else:
            if error is not None:
                raise error


def configure(options: Options, environ: Mapping[str, str]) -> Config:
    """Return the configuration of a client. Raises `ConfigError` with the option's name, value and rule."""
    disabled, key = switch("REASONBLOCKS_DISABLED", environ), api_key_of(options.api_key, environ)
    redact, streams = call_back("redact", options.redact), options.live_streaming_enabled
    server = server_of(options.base_url, key, streams, redact, environ, disabled=disabled)
    monitors, mailboxes = tuple(custom_monitors(options.monitors)), mailboxes_of(options.mailbox)
    check_routing(routing := dict(mapping("model_routing", options.model_routing)))
    escalate = escalation("escalate", options.escalate)
    if escalate is not None and escalate.model is not None:
        routing[ESCALATE] = escalate.model
    weights, profile = dict(mapping("weights", options.weights)), profile_of(options.task_profile, server)
    built_in, history_limit = machine(options.transition, options.fsm_thresholds)
    store = store_of(options.pattern_store, options.embedder, environ, server)
    token_budget, seconds = budget(options.token_budget), deadline(options.step_deadline_ms)
    strict = switch("REASONBLOCKS_STRICT", environ) if options.strict is None else flag("strict", options.strict)
    settings = Settings(
        level=level_of(options.calibration, _log.warning),
        transition=built_in,
        history_limit=history_limit,
        caller_scorer=call_back("scorer", options.scorer) is not None,
        custom_monitors=bool(monitors),
        task_profile=options.task_profile,
        weights=resolve_weights(profile, weights, [monitor.name for monitor in monitors]),
        org_id=text("org_id", options.org_id),
        token_budget=token_budget,
        budget=limits("budget", options.budget),
        e_traces_enabled=flag("e_traces_enabled", options.e_traces_enabled),
        e2_requires_signal=flag("e2_requires_signal", options.e2_requires_signal),
        standing_rules=choice("standing_rules", options.standing_rules, get_args(StandingRules)),
        placement=choice("placement", options.placement, get_args(Placement)),
        patience=None if options.patience is None else rung_of(options.patience).name,
        explore=share("explore", options.explore),
        easy=easy_of(built_in),
        tool_roles=tool_roles_of(options.tool_roles),
        mode=choice("mode", options.mode, get_args(Mode)),
        on_injection=plain_call_back("on_injection", options.on_injection) is not None,
        stop_when=condition("stop_when", options.stop_when, token_budget),
        second_look=look("second_look", options.second_look),
        escalate=escalate,
        advisor=options.advisor is not None,
        operator_notes=flag("operator_notes", options.operator_notes) and bool(mailboxes or server),
        disabled=disabled,
    )
    workers = Workers() if server is None else server.workers
    profiles = profiles_of(options.profile, environ, server, settings.org_id, seconds)
    learned = None if profiles is None else Learned(profiles, workers, Faults("reasonblocks", strict=strict))
    backends = Backends(
        evaluator=LocalEvaluator(settings.tool_roles, {monitor.name: monitor.failure_type for monitor in monitors}),
        store=store,
        scorer=options.scorer,
        transition=options.transition,
        monitors=monitors,
        mailboxes=mailboxes,
        advisor=advisor_of(options.advisor),
        bounded=bounded_calls([*BOUNDED, *(f"monitor {monitor.name}" for monitor in monitors)], workers),
        learned=learned,
        on_injection=options.on_injection,
        conditions={"stop_when": options.stop_when} if callable(options.stop_when) else {},
    )
    return Config(
        settings=settings,
        backends=with_server_evaluator(server, backends, weights, options.tool_roles),
        owns_store=options.pattern_store is None,
        project_id=text("project_id", options.project_id),
        sinks=all_sinks(sinks_of(options.sinks), server, store, disabled=disabled),
        model_routing=routing,
        weights=weights,
        api_key=key,
        server=server,
        deadline_seconds=seconds,
        strict=strict,
        workers=workers,
    )


def profile_of(profile: str, server: Server | None) -> str:
    """Return the profile whose weights are those of this process. A server has profiles that are not known here."""
    if server is not None and text("task_profile", profile) not in WEIGHTS:
        return "coding"
    return choice("task_profile", profile, tuple(WEIGHTS))


def advisor_of(given: object) -> Advisor | None:
    """Return the caller's advisor: a callable as it is, and LangChain's chat models as a callable that asks them."""
    is_class = isinstance(given, type)
    if given is None or (callable(given) and not is_class):
        return cast("Advisor | None", given)
    if hasattr(given, "ainvoke") and not is_class:
        return ChatModelAdvisor(given)
    if hasattr(given, "get_response"):
        raise ConfigError(
            "advisor", given, "is a model of OpenAI Agents: give reasonblocks_openai_agents.ask_model(it)"
        )
    raise ConfigError("advisor", given, "must be callable: (AdviceRequest) -> text or None; or a LangChain chat model")


def mailboxes_of(given: object) -> tuple[Mailbox, ...]:
    """Return the caller's mailbox, if there is one, validated."""
    if given is None:
        return ()
    if isinstance(given, type) or not isinstance(given, Mailbox):
        raise ConfigError("mailbox", given, "must have a method waiting(run_id)")
    return (given,)


def custom_monitors(given: Iterable[Monitor | str]) -> Iterable[Monitor]:
    seen = {row.name for row in MONITORS}
    found: list[Any] = [_named(item) if isinstance(item, str) else item for item in items("monitors", given)]
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
    """Validate a monitor's name or failure type, because the trace state stores them."""
    if type(label) is not str or whole(label) != label or size(label) > NAME_BYTES:
        rule = f"name and failure_type must be strings of at most {NAME_BYTES} bytes, without unpaired surrogates"
        raise ConfigError(f"monitors[{type(monitor).__name__}]", label, rule)


def _named(name: str) -> Monitor:
    """Return the monitor that an installed package offers under that name."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    offered = {point.name: point for point in entry_points(group=MONITOR_GROUP)}
    if name not in offered:
        raise ConfigError.unknown("monitors", name, offered or ["none is installed"])
    loaded: Any = offered[name].load()
    monitor: Monitor = loaded() if isinstance(loaded, type) else loaded
    return monitor


def tool_roles_of(given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the roles of the caller's tools, by tool."""
    found = dict(mapping("tool_roles", given))
    for tool, role in found.items():
        if role not in ROLES:
            raise ConfigError.unknown(f"tool_roles[{tool!r}]", role, ROLES)
    return found


def sinks_of(given: Iterable[TelemetrySink]) -> tuple[TelemetrySink, ...]:
    found = tuple(items("sinks", given))
    for sink in found:
        if not isinstance(sink, TelemetrySink):
            raise ConfigError("sinks", sink, "a sink has emit(event) and close()")
    return found


def store_of(
    store: PatternStore | None, embedder: Embedder | None, environ: Mapping[str, str], server: Server | None
) -> PatternStore:
    """Return the caller's store, else the server's, else ours over the starter library. Nothing is opened yet."""
    if store is not None:
        return _checked(store, embedder)
    if server is not None:
        refuse_embedder(embedder)
        return server.store()
    embedder, layer = _embedder(embedder), starter_patterns()
    if url := environ.get("QDRANT_URL"):
        from ..backends.qdrant_store import QdrantStore  # with the client, for those who have a server
        from ..backends.qdrant_store.clients import require_client

        require_client("the pattern store at QDRANT_URL")
        return QdrantStore(url, environ.get("QDRANT_API_KEY") or None, layer=layer, embedder=embedder)
    return LocalStore(store_path(environ), layer=layer, embedder=embedder)


SHARED, IN_MEMORY, IN_HOME = "shared", "memory", "auto"
"""Values of `profile` that are no path."""
PROFILE_SHARE = 2
"""Reading a profile may take a step's time divided by this: half of it."""


def profiles_of(
    given: object, environ: Mapping[str, str], server: Server | None, org_id: str, deadline_seconds: float
) -> Profiles | None:
    """Return the place of the agents' profiles, None for no place. Nothing is opened yet."""
    if given is None:
        return None
    if given == SHARED and server is not None:
        return server.profiles(org_id, deadline_seconds / PROFILE_SHARE, ProfileMemory())
    if given in (SHARED, IN_MEMORY):
        return ProfileMemory()
    if given == IN_HOME:
        in_home = profiles_path(environ)
        return ProfileMemory() if in_home is None else ProfileFile(in_home)
    if isinstance(given, Profiles):
        return given
    if not isinstance(given, (str, PathLike)):
        raise ConfigError("profile", given, 'must be "shared", "memory", "auto", the path of a file, or None')
    path = fspath(given)
    if isinstance(given, str) and not {".", "/", sep} & {*given}:  # a word, perhaps misspelled
        valid = (SHARED, IN_MEMORY, IN_HOME, "the path of a file, such as ./profiles.db")
        raise ConfigError.unknown("profile", given, valid)
    return ProfileFile(path)


def all_sinks(
    given: tuple[TelemetrySink, ...], server: Server | None, store: PatternStore, *, disabled: bool
) -> tuple[TelemetrySink, ...]:
    """Return the caller's sinks and our own; without those that send events away if steering is disabled."""
    if disabled:
        given = tuple([sink for sink in given if getattr(sink, "remote", False) is not True])
    return (*given, *(server.sinks(given) if server else ()), *counting(store))


def counting(store: PatternStore) -> tuple[TelemetrySink, ...]:
    """Return the sink that counts, in a store that outlives the process, how its patterns did.

    None for a store whose file does not exist, because counting would create it.
    """
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
