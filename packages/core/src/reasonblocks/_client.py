"""`ReasonBlocks`: settings become backends once, and sessions one a run; adapters are found when they are used."""

from __future__ import annotations

import atexit
import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import MethodType
from typing import TYPE_CHECKING, Any

from .adapters._find import ADAPTERS, find_adapter, installed_methods, load_adapters

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._config import Calibration, Standing
    from ._session import Backends, SteeringSession
    from .adapters import RunKeywords
    from .ports import Embedder, Monitor, PatternStore, TelemetrySink
    from .types import JSON, AdapterCaps, Placement, Step, Transition

EXIT_SECONDS = 1.0
"""The most that the sinks of all clients may hold up the interpreter's exit."""
SINKS_SHARE = 0.9
"""The sinks' share of the time of `close`. The rest is for the store, which sinks may write to until then."""


class ReasonBlocks:
    """Steering for any number of runs, at once and in any thread. Works with no server, no key and no network.

    `fsm_thresholds` are the parameters of `DifficultyFSM`; `transition` replaces the machine. `model_routing` maps
    "FAST", "NORMAL", "SLOW", "SKIP" to a model identifier or object. `token_budget` is tracked only. `weights` go over
    those of `task_profile` ("coding", "pr_review", "qa"). `monitors` are your own, or names that an installed package
    offers. `tool_roles` maps tools to "edit", "test", "read", "search", "finish". `scorer(step)` replaces the built-in
    difficulty; `calibration` are the numbers that fit your agent: the TOML file that `reasonblocks calibrate` writes,
    or a mapping of its form (`difficulty_mean`, `difficulty_spread`, `composite_fires`, `fires`, `evidence`), where
    what is missing is as shipped. `pattern_store` finds lessons; without it they are those of the library and of the
    file that `reasonblocks patterns` writes, or of the server at QDRANT_URL, searched with `embedder`.
    `e_traces_enabled=False` leaves lessons out, `e2_requires_signal` keeps tier e2 for trouble, `standing_rules="run"`
    shows the rules at every call. `sinks` receive events of every run and step; `redact(text)` sees every text before
    they do. `placement` puts guidance at the "tail", the end of a request's messages, or into the "system" message,
    which also serves runs that have no tail. `live_streaming_enabled` needs a server: not here yet. `strict` raises
    faults of steering instead of logging them. Your own callables run in daemon threads for at most `step_deadline_ms`
    a step; code that holds the interpreter lock cannot be bounded.

    Read when the argument is absent: REASONBLOCKS_API_KEY, REASONBLOCKS_BASE_URL, REASONBLOCKS_STRICT,
    REASONBLOCKS_HOME (the folder of that file, ~/.reasonblocks), QDRANT_URL, QDRANT_API_KEY;
    REASONBLOCKS_DISABLED=1 lets everything pass untouched. Raises `ConfigError` for a wrong value.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        org_id: str = "default",
        project_id: str = "default",
        fsm_thresholds: Mapping[str, float] | None = None,
        transition: Transition | None = None,
        model_routing: Mapping[str, object] | None = None,
        token_budget: int | None = None,
        task_profile: str = "coding",
        weights: Mapping[str, float] | None = None,
        monitors: Iterable[Monitor | str] = (),
        tool_roles: Mapping[str, str] | None = None,
        scorer: Callable[[Step], float] | None = None,
        calibration: Calibration | None = None,
        pattern_store: PatternStore | None = None,
        embedder: Embedder | None = None,
        e_traces_enabled: bool = True,
        e2_requires_signal: bool = False,
        standing_rules: Standing = "first_call",
        sinks: Iterable[TelemetrySink] = (),
        live_streaming_enabled: bool | None = None,
        redact: Callable[[str], str] | None = None,
        placement: Placement = "tail",
        step_deadline_ms: float = 800,
        strict: bool | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        # The rooms behind this door are loaded here: not by the import of a name, and never inside a step.
        from ._config import Options, configure
        from ._session import Faults, OpenRuns, Telemetry

        self._config = configure(Options(**given), os.environ)
        self._project_id = project_id
        self._telemetry = Telemetry(self._config.sinks, redact)
        self._faults = Faults("reasonblocks", strict=self._config.strict)
        self._runs = OpenRuns()
        with self._faults.guard("loading adapters"):
            load_adapters()
        with self._faults.guard("loading patterns"):
            self._config.load()
        _CLIENTS.add(self)
        weakref.finalize(self, self._telemetry.stop).atexit = False

    def session(
        self,
        *,
        run_id: str | None = None,
        agent_name: str | None = None,
        task: str | None = None,
        model: str | None = None,
        codebase_id: str | None = None,
        org_id: str | None = None,
        project_id: str | None = None,
        task_profile: str | None = None,
        metadata: Mapping[str, JSON] | None = None,
        placement: Placement | None = None,
        framework: str = "custom",
        caps: AdapterCaps | None = None,
        snapshot: Mapping[str, Any] | None = None,
        parent_run_id: str | None = None,
        parent_call_id: str | None = None,
        session_id: str | None = None,
        route_names: Mapping[str, str] | None = None,
    ) -> SteeringSession:
        """One run. `org_id`, `project_id`, `task_profile`, `placement` are the client's, `run_id` a random one.

        `snapshot` goes on where another session stopped, under that run's id: another `run_id` beside it is refused.
        `route_names` are the names by which an adapter knows the mapped models. Raises `ConfigError`, and
        `SnapshotError` for a snapshot that cannot be read.
        """
        from ._config import bounded_id, bounded_task, check_given, settings_of
        from ._session import SteeringSession
        from .types import AdapterCaps, RunInfo

        check_given(locals())
        run = RunInfo(
            run_id=bounded_id(run_id) if run_id else os.urandom(16).hex(),
            framework=framework,
            agent_name=agent_name or "",
            task=bounded_task(task or ""),
            model=model or "",
            parent_run_id=parent_run_id,
            parent_call_id=parent_call_id,
            session_id=session_id,
            codebase_id=codebase_id,
            org_id=org_id or self._config.settings.org_id,
            project_id=project_id or self._project_id,
            task_profile=task_profile or self._config.settings.task_profile,
            metadata=dict(metadata or {}),
        )
        caps = caps or AdapterCaps()
        return SteeringSession(
            run=run,
            settings=settings_of(self._config, run, caps, placement, route_names),
            backends=self._backends,
            telemetry=self._telemetry,
            caps=caps,
            snapshot=snapshot,
            deadline_seconds=self._config.deadline_seconds,
            strict=self._config.strict,
            open_runs=self._runs,
            owner=self,
        ).placed(placement or self._config.settings.placement)

    def check_run(self, snapshot: Mapping[str, Any] | None = None, **options: Unpack[RunKeywords]) -> None:
        """For adapters: refuse a wrong run option where it is given. Raises `ConfigError`."""
        from ._config import check_given, settings_of
        from .types import AdapterCaps, RunInfo

        check_given({**options, "snapshot": snapshot})
        run = RunInfo(run_id="", task_profile=options.get("task_profile") or self._config.settings.task_profile)
        settings_of(self._config, run, AdapterCaps(), options.get("placement"), None)

    def score_step(self, text: str) -> float:
        """The built-in difficulty of a text in [0, 1], by the prior alone."""
        from ._scoring import score_text

        return score_text(text, self._config.settings.level)

    @property
    def model_routing(self) -> Mapping[str, object]:
        """The mapped models, as given, by state name."""
        return self._config.model_routing

    @property
    def disabled(self) -> bool:
        """REASONBLOCKS_DISABLED=1: everything passes through untouched."""
        return self._config.settings.disabled

    @property
    def step_deadline_seconds(self) -> float:
        """The most that steering may hold up one step: `step_deadline_ms`, in seconds."""
        return self._config.deadline_seconds

    def guard(self, kind: str) -> AbstractContextManager[None]:
        """For an adapter's code outside any run: what it raises is said once per kind, and goes no further."""
        return self._faults.guard(kind)

    def close(self, timeout: float = 5.0) -> None:
        """Finish open runs as abandoned, close the sinks, then the store, in at most `timeout` seconds in all.

        The last steps of open runs get the first half of it. A sink or store that hangs is logged and abandoned.
        """
        begun = time.monotonic()
        for session in self._runs.all():
            session.abandon(begun + timeout / 2 if time.monotonic() < begun + timeout / 2 else None)
        self._telemetry.close(begun + timeout * SINKS_SHARE - time.monotonic())
        with self._faults.guard("closing the pattern store"):
            self._config.close(begun + timeout - time.monotonic(), self._faults)

    def __enter__(self) -> ReasonBlocks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        """The methods that adapters bring: `rb.middleware(...)` and its like."""
        if (method := find_adapter(name)) is None:
            from ._text import nearest

            near = nearest(name, [one for one in (*dir(type(self)), *ADAPTERS) if not one.startswith("_")])
            hint = f": did you mean {near!r}?" if near else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")
        return MethodType(method, self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *installed_methods()]

    @property
    def _backends(self) -> Backends:
        return self._config.backends


_CLIENTS: weakref.WeakSet[ReasonBlocks] = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    """Finish open runs as abandoned; the sinks of all clients share one deadline."""
    ends = time.monotonic() + EXIT_SECONDS
    clients = list(_CLIENTS)
    for client in clients:
        for session in client._runs.all():
            session.abandon()
        client._telemetry.start_closing(ends)
    for client in clients:
        client._telemetry.wait_closed(ends)
