"""The client: holds the configuration and backends, and makes a session for each run."""

from __future__ import annotations

import atexit
import os
import time
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MethodType
from typing import TYPE_CHECKING, Any

from .discovery import adapter_methods, find_adapter, installed_methods, load_adapters
from .foreign import refuse_foreign
from .keywords import takes
from .options import Options, StopWhen

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from reasonblocks_claude_agent import claude_hooks
    from reasonblocks_langchain import middleware
    from reasonblocks_openai_agents import openai_hooks, openai_model, openai_run, openai_run_streamed, openai_run_sync

    from .session import Backends, SteeringSession
    from .types import AdapterCaps, Budget, Mode, RunKeywords, RunOptions

EXIT_SECONDS = 1.0
"""The limit for the sinks of all clients together to delay the interpreter's exit."""
SINKS_SHARE = 0.9
"""The sinks' share of the timeout of `close`. The store, which sinks may write to until then, gets the rest."""


class ReasonBlocks:
    """Steers any number of runs, at once and in any thread. Needs no server, no key and no network by default.

    State machine and models: `fsm_thresholds` are the parameters of `DifficultyFSM`, and `transition` replaces that
    machine. `model_routing` maps "FAST", "NORMAL", "SLOW" and "SKIP" to a model identifier or object. `token_budget`
    is only tracked.

    Monitors: `task_profile` ("coding", "pr_review" or "qa") selects their weights, and `weights` overrides single
    ones. `monitors` adds your own, or those that an installed package offers under a name. `tool_roles` maps tools to
    "change", "check", "read", "list", "search", "ask" or "finish", or to "web", "mail" or "chat", whose results are not
    quoted. `scorer(step)` replaces the built-in difficulty. `calibration` fits that to your agent: the path of the TOML
    file that `reasonblocks calibrate` writes, or a mapping of the same form (`difficulty_mean`, `difficulty_spread`);
    what is missing keeps its shipped value.

    Patience: `patience="3 of 5"` says how many of the newest steps have to be dead before the agent is told; it is one
    of "2 of 3", "3 of 5", "3 of 3", "4 of 5" (the default), "5 of 6", "6 of 7" and "8 of 9". Without it, an agent with
    a name gets the least patient one that its earlier runs show to be seldom needless. `profile` keeps the counts of
    these runs on the server ("shared", or in memory without a server), in "memory", in the user's folder ("auto") or in
    a file, and None disables it. `explore` is the share of its runs whose monitors are silent to learn from them.

    Lessons: `pattern_store` finds them. Without it they come from the library and from the file that
    `reasonblocks patterns` writes, or from the server at QDRANT_URL, searched with `embedder`.
    `e_traces_enabled=False` disables lessons, `e2_requires_signal` restricts tier e2 to trouble, and
    `standing_rules="run"` shows the rules at every call.

    Events and guidance: `sinks` receive an event for every run and step, after `redact(text)` has seen every text.
    `placement` puts guidance at the "tail", which is the end of the last message of a request, into a user
    "message" of its own, which some providers refuse after a tool's result, or into the "system" message, which is also
    used if the last message cannot hold it.

    Control: with `mode="observe"`, everything is computed and recorded, but nothing is injected. Each text is passed to
    `on_injection(injection, run)`, which returns another text, the unchanged injection, or None to drop it. `stop_when`
    ends a run that is "stalled" or "over_budget", or for which `stop_when(run)` returns a reason. `budget` ends it when
    its calls, tokens, dollars or seconds are used up, limits the calls of tools, and tells the agent what is left;
    "auto" only tells what the framework's own limits leave. `escalate` gives a stuck run a stronger model, or more
    effort, for a few calls, and `advisor`, a callable `(AdviceRequest) -> str | None` or a model, is asked what to try
    next, for the end of a monitor's text; it may take 15 seconds. `second_look` gives an agent that ends by itself one
    more call, with facts: "doubt" (or True) if its newest check failed or its answer claims a check that never ran,
    "unchecked" also if it changed something after its newest check, and "always" in each run. `mailbox` holds the notes
    that persons write to live runs: each is injected once, first in the guidance, unless `operator_notes` is False.

    `strict` raises errors of steering instead of logging them. Your own callables run in daemon threads for at most
    `step_deadline_ms` a step; code that holds the interpreter lock cannot be stopped.

    Server: with `base_url` and `api_key`, a ReasonBlocks server evaluates each step, finds the lessons unless there is
    a `pattern_store`, passes on operators' notes, and receives the events unless `live_streaming_enabled` is False. All
    texts pass `redact` first. If the server is slow or away, the agent continues unsteered. Nothing is sent anywhere
    without a URL; an empty `base_url` means none, whatever the environment has.

    Environment variables for absent arguments: REASONBLOCKS_API_KEY, REASONBLOCKS_BASE_URL, REASONBLOCKS_STRICT,
    REASONBLOCKS_HOME (the folder of that file, by default ~/.reasonblocks), QDRANT_URL, QDRANT_API_KEY.
    REASONBLOCKS_DISABLED=1 disables steering. Raises `ConfigError` for an invalid value, `ExtraMissing` for a
    server without httpx, and `ForeignDistribution` if the other product called `reasonblocks` is installed.
    """

    @takes(Options)
    def __init__(self, options: Options) -> None:
        refuse_foreign()
        from .options.config import configure  # here, so that importing this class is cheap; never in a step
        from .options.run import Assignments
        from .session import Faults, OpenRuns, Telemetry

        self._config = configure(options, os.environ)
        self._telemetry = Telemetry(self._config.sinks, options.redact)
        self._faults = Faults("reasonblocks", strict=self._config.strict)
        self._runs = OpenRuns()
        self._assignments = Assignments()
        with self._faults.guard("loading adapters"):
            load_adapters()
        with self._faults.guard("loading patterns"):
            self._config.load()
        _CLIENTS.add(self)
        weakref.finalize(self, self._telemetry.stop).atexit = False

    def session(
        self,
        options: RunOptions | None = None,
        *,
        framework: str = "custom",
        caps: AdapterCaps | None = None,
        snapshot: Mapping[str, Any] | None = None,
        parent_run_id: str | None = None,
        parent_call_id: str | None = None,
        session_id: str | None = None,
        route_names: Mapping[str, str] | None = None,
        interrupt_when: StopWhen | None = None,
        **keywords: Unpack[RunKeywords],
    ) -> SteeringSession:
        """Return the session of one run, configured by `options`, by the same fields as keywords, or by both.

        A keyword replaces the field of `options`. `run_id` defaults to a random id; `org_id`, `project_id`,
        `task_profile` and `placement` default to those of the client.

        A `snapshot` continues a run where another session stopped, under that run's id; a different `run_id` beside
        it is an error. `route_names` are an adapter's names for the mapped models. `interrupt_when` is the
        condition under which a decision has an `interrupt`, the reason to ask a person before its call. Raises
        `ConfigError`, and `SnapshotError` for a snapshot that cannot be read.
        """
        from .options.run import check_options, options_of, run_info, settings_of, unable
        from .options.values import condition
        from .session import SteeringSession
        from .types import AdapterCaps

        given = options_of(options, keywords)
        found = {
            "framework": framework,
            "parent_run_id": parent_run_id,
            "parent_call_id": parent_call_id,
            "session_id": session_id,
        }
        check_options(given, snapshot, found)
        given, new_id = self._assigned(given, snapshot, parent_run_id)
        run = run_info(self._config, given, new_id, found)
        caps = caps or AdapterCaps()
        asks = condition("interrupt_when", interrupt_when, self._config.settings.token_budget)
        settings = settings_of(self._config, run, caps, given, route_names, asks)
        backends = self._backends
        if callable(interrupt_when):
            backends = replace(backends, conditions={**backends.conditions, "interrupt_when": interrupt_when})
        session = SteeringSession(
            run=run,
            settings=settings,
            backends=backends,
            telemetry=self._telemetry,
            caps=caps,
            snapshot=snapshot,
            deadline_seconds=self._config.deadline_seconds,
            strict=self._config.strict,
            open_runs=self._runs,
            owner=self,
        )
        return session.placed(given.placement or self._config.settings.placement).warn_unable(
            unable(self._config, caps, settings)
        )

    def _assigned(
        self, options: RunOptions, snapshot: Mapping[str, Any] | None, parent_run_id: str | None
    ) -> tuple[RunOptions, str]:
        """Return the options with the mode of the run's arm, if it is in an experiment, and an id for a new run."""
        from .options.run import assign_arm, bounded_id, id_of_snapshot

        new_id = os.urandom(16).hex()
        run_id = id_of_snapshot(snapshot) or (bounded_id(options.run_id) if options.run_id else new_id)
        caller = self._assignments.get(parent_run_id or "")
        given, assignment = assign_arm(options, self._config.settings, run_id, caller)
        if assignment is not None:
            self._assignments.keep(run_id, assignment)
        return given, new_id

    def run_mode(self, options: RunOptions) -> Mode:
        """Return the mode of runs with these options, for an adapter that prepares them.

        It is "steer" for an experiment whose units are the runs, since some of them may be steered.
        """
        from .options.run import assign_arm

        if options.experiment_id is not None and options.unit_id is None:
            return self.mode
        return assign_arm(options, self._config.settings, "", None)[0].mode or self.mode

    def check_run(
        self,
        options: RunOptions,
        snapshot: Mapping[str, Any] | None = None,
        interrupt_when: object = None,
    ) -> None:
        """Validate run options where an adapter receives them, before there is a run.

        Raises `ConfigError`.
        """
        from .options.run import check_options, run_info, settings_of
        from .options.values import condition
        from .types import AdapterCaps

        check_options(options, snapshot)
        condition("interrupt_when", interrupt_when, self._config.settings.token_budget)
        settings_of(self._config, run_info(self._config, options, "", {}), AdapterCaps(), options)

    def score_step(self, text: str) -> float:
        """Return the built-in difficulty of a text in [0, 1], without the history of a run."""
        from .engine.scoring import score_text

        return score_text(text, self._config.settings.level)

    @property
    def model_routing(self) -> Mapping[str, object]:
        """The mapped models by state name, as given."""
        return self._config.model_routing

    @property
    def disabled(self) -> bool:
        """True if REASONBLOCKS_DISABLED=1 is set: agents then run unsteered."""
        return self._config.settings.disabled

    @property
    def mode(self) -> Mode:
        """The mode of runs without a mode of their own."""
        return self._config.settings.mode

    @property
    def second_look(self) -> bool:
        """True if runs may get a second look."""
        return self._config.settings.second_look is not None

    def tells_framework_limits(self, options: RunOptions) -> bool:
        """Return True if runs with these options are told what their framework's limits leave (`budget="auto"`)."""
        from .types.steering import AUTO

        return self._budget_of(options) == AUTO

    def limits_tools(self, options: RunOptions) -> bool:
        """Return True if runs with these options may have calls of tools refused (`Budget(tools=...)`)."""
        budget = self._budget_of(options)
        return budget is not None and budget.tools is not None

    def _budget_of(self, options: RunOptions) -> Budget | None:
        from .options.values import limits

        return self._config.settings.budget if options.budget is None else limits("budget", options.budget)

    @property
    def step_deadline_seconds(self) -> float:
        """The most that steering may delay one step: `step_deadline_ms`, in seconds."""
        return self._config.deadline_seconds

    def guard(self, kind: str) -> AbstractContextManager[None]:
        """Return a context manager that logs the errors of an adapter's code outside any run, each kind once.

        With `strict` it raises them.
        """
        return self._faults.guard(kind)

    def close(self, timeout: float = 5.0) -> None:
        """Finish open runs as abandoned, then close the sinks and the store, in at most `timeout` seconds in all.

        The last steps of open runs get the first half of that time. A sink or store that hangs is logged and
        abandoned.
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

    if TYPE_CHECKING:  # `__getattr__` finds them; without their adapter, their type is `Any`
        claude_hooks = claude_hooks
        middleware = middleware
        openai_hooks = openai_hooks
        openai_model = openai_model
        openai_run = openai_run
        openai_run_streamed = openai_run_streamed
        openai_run_sync = openai_run_sync

    def __getattr__(self, name: str) -> Any:
        """Return the method of an installed adapter, such as `rb.middleware`."""
        if (method := find_adapter(name)) is None:
            from .util.text import nearest

            adapters = adapter_methods()
            near = nearest(name, [known for known in (*dir(type(self)), *adapters) if not known.startswith("_")])
            hint = f": did you mean {near!r}?" if near else f", nor has any adapter ({', '.join(adapters)})"
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
    """Finish open runs as abandoned, and close the sinks of all clients by one deadline."""
    ends = time.monotonic() + EXIT_SECONDS
    clients = list(_CLIENTS)
    for client in clients:
        for session in client._runs.all():
            session.abandon()
        client._telemetry.start_closing(ends)
    for client in clients:
        client._telemetry.wait_closed(ends)
