"""The telemetry sink that opens, resolves and informs the threads about runs."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from reasonblocks import exceptions
from reasonblocks.concurrency.forks import on_fork
from reasonblocks.events import Event, RunFinish, StepEvent
from reasonblocks.session.guard import Faults
from reasonblocks.session.telemetry import Redactor

from ..engine import Engine
from ..errors import Conflict, Refused, StoreUnavailable
from ..phases import RunStatus
from ..values import Actor, Cause, Evidence, Thread
from ..watch import NUMBERS, WATCHED, Noticed, Numbers, WatchMemory, cause_of, ended_well, family_of, is_call, watch
from . import _letters as letters

STEERING = Actor(kind="system", name="steering")
QUIET_CALLS = 20
"""Calls for which a family is quiet after its thread has ended."""
MOST_OPEN = 100
"""Live threads of an organisation up to which causes open new ones."""
MOST_RUNS = 1_000
"""Runs that are remembered: those of the newest events."""
MOST_THREADS = 1_000
"""Live threads of one run that learn of its end."""
NOT_OPENED = "causes_not_opened:"
"""The beginning of the store's count of causes for which there were too many live threads, by organisation."""


class Opens(Protocol):
    """The methods of `Threads` that the sink calls."""

    def open(self, cause: Cause, *, by: Actor, run: RunStatus) -> Thread: ...
    def add_evidence(self, id: str, *evidence: Evidence, by: Actor, run: RunStatus | None = None) -> Thread: ...
    def resolve(self, id: str, reason: str) -> Thread: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as the sink remembers it.

    `calls` are the times of its newest calls, `held` the families whose cause was not raised because they are quiet.
    """

    memory: WatchMemory = field(default_factory=WatchMemory)
    calls: tuple[float, ...] = ()
    held: frozenset[str] = frozenset()


class RunSink:
    """Opens threads about runs that need a person, and reports what became of letters and of the runs themselves.

    The core calls it in a background thread, with redacted events; `redact` hides more. Events wait while the store is
    not available. `not_opened` counts the causes of this process for which too many threads were live.
    """

    def __init__(
        self,
        threads: Opens,
        engine: Engine,
        *,
        redact: Callable[[str], str] | None = None,
        numbers: Numbers = NUMBERS,
    ) -> None:
        self._threads, self._engine, self._numbers = threads, engine, numbers
        self._redactor = Redactor(redact, Faults("threads", strict=False))
        self.not_opened = 0
        self._reset()
        on_fork(self._reset)

    def _reset(self) -> None:
        """Start without runs: a forked process continues none of them."""
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, Run] = OrderedDict()

    def emit(self, event: Event) -> None:
        """Take one event. Raises the core's `Unavailable` while the store is not available."""
        try:
            with self._lock:
                self._take(self._redactor.redacted(event))
        except StoreUnavailable as exc:
            raise exceptions.Unavailable("the threads' store", exc.why) from exc

    def emit_many(self, events: Sequence[Event], seconds: float) -> int:
        """Take events for about `seconds` and return their number; the others are passed again.

        Only the event that fails is dropped.
        """
        ends = time.monotonic() + seconds
        for taken, event in enumerate(events):
            if taken and time.monotonic() > ends:
                return taken
            try:
                self.emit(event)
            except Exception as exc:
                if taken:
                    return taken
                if isinstance(exc, exceptions.Unavailable):
                    raise
                raise exceptions.Refused("the threads", f"{type(exc).__name__}: {exc}", events=1) from exc
        return len(events)

    def close(self) -> None:
        """Do nothing: the threads stay open."""

    def _take(self, event: Event) -> None:
        """Act on an event, then remember it: if the store fails, the same event is taken again."""
        run = self._runs.get(event.run_id)
        if run is None:
            run = Run()
            if not isinstance(event, RunFinish):
                self._tell(event.run_id, "live", "the run goes on after its end")
        if isinstance(event, StepEvent):
            letters.told(self._engine, event)
            if is_call(run.memory, event):
                began = run.calls[-1] if run.calls else None  # as the call before was reported
                letters.passed_over(self._engine, event, began)
                run = replace(run, calls=(*run.calls, self._engine.now())[-QUIET_CALLS:])
        memory, noticed = watch(run.memory, event, self._numbers)
        run = replace(run, memory=memory)
        for one in noticed:
            run = self._acted(event.run_id, run, one)
        if isinstance(event, RunFinish):
            self._ended(event)
            self._runs.pop(event.run_id, None)
            return
        self._runs[event.run_id] = run
        self._runs.move_to_end(event.run_id)
        while len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)

    # --- causes

    def _acted(self, run_id: str, run: Run, noticed: Noticed) -> Run:
        family = noticed.family
        if noticed.what == "over":
            self._resolve_family(family_of(run_id, family), noticed.text)
            return replace(run, held=run.held - {family})
        if noticed.what == "lasts" and family not in run.held:
            return run
        held = self._raise(run_id, run, noticed)
        return replace(run, held=run.held | {family} if held else run.held - {family})

    def _raise(self, run_id: str, run: Run, noticed: Noticed) -> bool:
        """Open a thread, or add evidence to the live one of its family. Returns True if it is too early for that."""
        org_id, cause = self._engine.org_id, cause_of(run_id, run.memory, noticed)
        family = str(cause.family)
        with self._engine.store.read() as reading:
            live = reading.by_family(org_id, family)
            last = None if live else reading.last_of_family(org_id, family)
            is_full = not live and reading.live_count(org_id) >= MOST_OPEN
        if last is not None:
            if noticed.partial:
                return False  # the episode of that thread, which a restarted process sees from its middle
            if len(run.calls) < QUIET_CALLS or run.calls[0] <= last.entered_at:
                return True
        if is_full:
            self._count_not_opened()
            return False
        self._threads.open(cause, by=STEERING, run="live")
        return False

    def _count_not_opened(self) -> None:
        self.not_opened += 1
        name = f"{NOT_OPENED}{self._engine.org_id}"
        with self._engine.store.write() as writing:
            writing.set_meta({name: str(int(writing.meta(name).get(name, "0")) + 1)})

    def _resolve_family(self, family: str, reason: str) -> None:
        with self._engine.store.read() as reading:
            found = reading.by_family(self._engine.org_id, family)
        if found is not None:
            self._resolve(found, reason)

    def _resolve(self, thread_id: str, reason: str) -> None:
        try:
            self._threads.resolve(thread_id, reason)
        except (Refused, Conflict):
            return  # it acts, or a person was faster

    # --- the run itself

    def _ended(self, event: RunFinish) -> None:
        """Tell the live threads of a run that it has ended; a success settles those that it opened here."""
        letters.unheard(self._engine, event.run_id)
        if ended_well(event):
            with self._engine.store.read() as reading:
                live = reading.listed(org_id=self._engine.org_id, run_id=event.run_id, limit=MOST_THREADS)
            for one in live:
                if one.kind in WATCHED:
                    self._resolve(one.id, "the run ended with success")
        doubts = "".join(f"; in doubt: {doubt.text}" for doubt in event.doubts)
        self._tell(event.run_id, "ended", f"the run has ended: {event.outcome}{doubts}")

    def _tell(self, run_id: str, status: RunStatus, text: str) -> None:
        """Add to the live threads of a run whether it is live, if they do not know it."""
        with self._engine.store.read() as reading:
            listed = reading.listed(org_id=self._engine.org_id, run_id=run_id, limit=MOST_THREADS)
            heads = [reading.head(one.id) for one in listed]
        for thread in heads:
            if thread is None or thread.run == status:
                continue
            evidence = Evidence(id=f"run-{status}-{thread.version}", label="run", text=text[:400])
            is_news = status == "ended" or thread.run == "ended"
            try:
                self._threads.add_evidence(thread.id, *[evidence][:is_news], by=STEERING, run=status)
            except (Refused, Conflict):
                continue  # it ended at the same moment
