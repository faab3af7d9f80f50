"""Drives threads through public commands only: a clock by hand, a scripted inferencer, actions that count their calls.

No test builds a thread midway: `Driver.reach` walks to each phase on the shortest way.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from reasonblocks_threads import (
    Action,
    Actor,
    Ask,
    Card,
    Cause,
    Cleaned,
    Execution,
    Inferred,
    Phase,
    Policy,
    Proposal,
    Report,
    Risk,
    Stage,
    Thread,
    ThreadEvent,
    Threads,
    Work,
)
from reasonblocks_threads.engine import Engine
from reasonblocks_threads.engine._drain import LEASES_S, MOST
from reasonblocks_threads.ports import Store
from reasonblocks_threads.stores import open_store
from reasonblocks_threads.values import Command, Problem
from tests.threads.faults import Faults, FaultyStore, Killed
from tests.threads.model import Replay
from tests.threads.statement import Known

MARA = Actor.person("mara")
OPERATOR = Actor.operator("odo")
AGENT = Actor.agent("agent")
ASK_ALL = Policy(auto_advance=frozenset())
"""Every gate asks a person."""
END_TO_END = Policy(auto_advance=frozenset(Stage))
CAUSE_KIND = "stall"


@dataclass
class Clock:
    """Seconds since the epoch, moved by hand."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Do(BaseModel):
    """The parameters of every scripted action."""

    how: str = "ok"
    n: int = 0


class DoHere(Do):
    thread_id: str = ""


ACTIONS: Mapping[str, Known] = {
    "tidy": Known(irreversibility="low", regret="low", auto=True),
    "touch": Known(irreversibility="low", regret="low", auto=True),
    "ship": Known(irreversibility="high", regret="high", amplifiers=frozenset({"external_effect"})),
    "plain": Known(),
    "check": Known(irreversibility="low", regret="low", auto=True, review=True),
    "even": Known(irreversibility="low", regret="low", auto=True, ready=lambda given: given.get("n", 0) % 2 == 0),
    "here": Known(irreversibility="low", regret="low", auto=True),
}
BUILT_IN: Mapping[str, Known] = {
    "inject_guidance": Known(kind="guidance"),
    "hand_off": Known(irreversibility="low", kind="hand_off"),
    "decompose": Known(irreversibility="low", kind="decompose"),
    "acknowledge": Known(irreversibility="low", regret="low", auto=True, kind="note"),
}
KNOWN = {**BUILT_IN, **ACTIONS}
IDEMPOTENT = frozenset({"tidy", "here"})
DEADLINE_S = 30.0
MOODS: Mapping[str, Mapping[str, str]] = {
    "awaiting_inference": {},
    "awaiting_intent_confirmation": {"intent": "low"},
    "awaiting_context_confirmation": {"context": "low"},
    "awaiting_intent_clarification": {"intent": "raise"},
    "awaiting_context_clarification": {"context": "raise"},
    "awaiting_action_clarification": {"action": "question"},
}
"""The answers of the inferencer on the way to a phase."""
OUTCOMES: Mapping[str, tuple[str, str]] = {
    "awaiting_review": ("check", "ok"),
    "awaiting_redirect": ("plain", "fail"),
    "done": ("plain", "ok"),
}
"""The action, and what comes of it, on the way to a phase."""


@dataclass
class Hands:
    """Does the actions, and counts: in memory, and as lines of `journal`, which outlive a killed process."""

    clock: Clock
    faults: Faults = field(default_factory=Faults)
    journal: Path | None = None
    calls: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    """(action, execution id, parameters) of every call."""

    def run(self, name: str, given: Do, execution: Execution) -> Report:
        self.calls.append((name, execution.id, given.model_dump()))
        if self.journal is not None:
            self._write(f"{name} {execution.id} {json.dumps(execution.hash)}\n")
        match given.how:
            case "ok":
                return Report.ok(f"{name} is done")
            case "partial":
                return Report.ok("a part", partial=True)
            case "hand_off":
                return Report(succeeded=True, disposition="handed_off", to="the team")
            case "fail":
                return Report.failed("it does not work")
            case "cancelled" if execution.is_cancelled():
                return Report.failed("stopped", code="cancelled")
            case "late":
                self.clock.advance(DEADLINE_S + 1)
                return Report.ok("too late")
            case "die":
                self.faults.dead = True
                return Report.ok("nobody hears of it")
        raise RuntimeError(f"{given.how}: the action is broken")

    def _write(self, line: str) -> None:
        assert self.journal is not None
        handle = os.open(self.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def catalogue(self) -> list[Action]:
        return [self._action(name, known) for name, known in ACTIONS.items()]

    def _action(self, name: str, known: Known) -> Action:
        def run(given: Any, execution: Execution) -> Report:
            return self.run(name, given, execution)

        def ready(given: Any, thread: Thread) -> str | None:
            return None if known.ready(given.model_dump()) else "n is odd"

        here = name == "here"
        return Action(
            name,
            DoHere if here else Do,
            run,
            risk=Risk(irreversibility=known.irreversibility, regret=known.regret, amplifiers=known.amplifiers),  # type: ignore[arg-type]
            auto=known.auto,
            review=known.review,
            idempotent=name in IDEMPOTENT,
            deadline_s=DEADLINE_S,
            bind={"thread_id": "thread_id"} if here else {},
            preconditions=[ready] if name == "even" else (),
        )


@dataclass
class Mind:
    """A scripted inferencer: `mood` by stage says how it answers, `action` what it proposes."""

    faults: Faults = field(default_factory=Faults)
    name: str = "scripted"
    mood: dict[str, str] = field(default_factory=dict)
    confidence: float = 0.9
    action: str = "plain"
    parameters: dict[str, Any] = field(default_factory=dict)
    tokens: int = 100
    usd: float = 0.001
    asks: list[Ask] = field(default_factory=list)
    during: Callable[[], object] | None = None
    """Something that happens during the next call."""
    text: Callable[[Ask], str] = field(default=lambda ask: f"the {ask.stage.value} of {ask.title}")

    def infer(self, ask: Ask) -> Inferred:
        self.asks.append(ask)
        if (during := self.during) is not None:
            self.during = None
            during()
        return Inferred(proposals=self._proposals(ask), tokens=self.tokens, usd=self.usd)

    def _proposals(self, ask: Ask) -> tuple[Proposal, ...]:
        good = self.proposal(ask, ask.stage)
        match self.mood.get(ask.stage.value, "good"):
            case "good":
                return (good,)
            case "low":
                return (self._sure(good, 0.1),)
            case "ahead":
                return tuple(self.proposal(ask, stage) for stage in list(Stage)[list(Stage).index(ask.stage) :])
            case "question":
                return (Proposal.of_question("What do you need?"),)
            case "nan":
                return (self._sure(good, math.nan),)
            case "nothing":
                return ()
            case "unknown evidence":
                return (Proposal(stage=ask.stage, body=good.body, confidence=0.9, refs=("e-nowhere",)),)
            case "bad parameters":
                return (Proposal.of_action("plain", {"n": "many"}, confidence=0.9),)
            case "unknown action":
                return (Proposal.of_action("rm_rf", {}, confidence=0.9),)
            case "repaired":
                return (good,) if ask.errors else ()
            case "die":
                self.faults.dead = True
                return ()
        raise RuntimeError("no model answers")

    def proposal(self, ask: Ask, stage: Stage) -> Proposal:
        if stage is Stage.ACTION:
            return Proposal.of_action(self.action, dict(self.parameters), confidence=self.confidence)
        return Proposal(stage=stage, body={"text": self.text(ask)}, confidence=self.confidence)

    @staticmethod
    def _sure(proposal: Proposal, confidence: float) -> Proposal:
        return Proposal(stage=proposal.stage, body=proposal.body, confidence=confidence)


@dataclass
class Broom:
    """A cleaner: `works` says what comes of it."""

    works: bool = True
    cleaned: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> tuple[str, ...]:
        return (CAUSE_KIND,)

    def clean_up(self, thread: Thread, key: str) -> Cleaned:
        self.cleaned.append(key)
        return Cleaned(succeeded=self.works, detail="" if self.works else "the source does not answer")


class Driver:
    """A `Threads` with its clock, mind, hands and broom on a store that can break. Use it as a context manager.

    `database`: a path, or None for one in memory.
    """

    def __init__(
        self,
        database: Path | None = None,
        *,
        policy: Policy = END_TO_END,
        clock: Clock | None = None,
        mind: Mind | None = None,
        hands: Hands | None = None,
        broom: Broom | None = None,
        store: Store | None = None,
        faults: Faults | None = None,
        **options: Any,
    ) -> None:
        self.database, self.policy, self.options = database, policy, options
        self.clock = clock or Clock()
        self.mind, self.hands, self.broom = mind or Mind(), hands or Hands(self.clock), broom or Broom()
        self.faults = self.mind.faults = self.hands.faults = faults or Faults()
        self.store: Store = store or open_store(database)
        self.threads = Threads(
            FaultyStore(self.store, self.faults),
            policy=policy,
            actions=self.hands.catalogue(),
            inferencer=self.mind,
            cleaners=[self.broom],
            clock=self.clock,
            **options,
        )
        self.parent: str | None = None
        """The thread below which `reach` opens those that it walks."""
        self._keys = itertools.count(1)

    def again(self) -> Driver:
        """Return a new process's driver on the same file, after this one died."""
        assert self.database is not None
        self.store.close()
        self.faults.replaced = True
        same: dict[str, Any] = {name: getattr(self, name) for name in ("clock", "mind", "hands", "broom", "policy")}
        after = Driver(self.database, **same, **self.options)
        after._keys = self._keys
        return after

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *exc: object) -> None:
        self.faults.dead = False
        self.threads.close()
        self.store.close()

    # --- commands

    def cause(self, key: str | None = None, **given: Any) -> Cause:
        key = key or f"key {next(self._keys)}"
        return Cause(kind=given.pop("kind", CAUSE_KIND), key=key, title=given.pop("title", f"Title of {key}"), **given)

    def open(self, key: str | None = None, *, policy: Policy | None = None, **given: Any) -> Thread:
        cause = given.pop("cause", None) or self.cause(key)
        return self.threads.open(cause, policy=policy, **given)

    def get(self, id: str) -> Thread:
        return self.threads.get(id)

    def phase(self, id: str) -> str:
        return self.get(id).phase.value

    def card(self, id: str) -> Card:
        """Return the open card of a thread."""
        found = [card for card in self.threads.cards(deferred=True, limit=10_000) if card.thread_id == id]
        assert len(found) == 1, found
        return found[0]

    def answer(self, id: str, what: Any, *, by: Actor = MARA, **given: Any) -> Thread:
        return self.threads.answer(self.card(id), what, by=by, **given)

    def drain(self, limit: int | None = None) -> int:
        return self.threads.drain(limit=limit)

    def settle(self) -> None:
        """Do what is due, and what becomes due when the leases of dead processes end."""
        for _ in range(4):
            self.drain()
            self.clock.advance(31)

    @property
    def engine(self) -> Engine:
        return self.threads._engine

    def submit(self, command: Command) -> object:
        """Submit a command as a client that makes its own, past the checks of `Threads`."""
        return self.engine.submit(command)

    def claim(self) -> Work:
        """Lease the most urgent work as another process, which dies or is slow."""
        with self.store.write() as writing:
            work = writing.claim(now=self.clock(), lease="theirs", has=self.engine.has, leases=LEASES_S, most=MOST)
        assert work is not None
        return work

    def damage(self, sql: str, *values: object) -> None:
        """Change the file behind the store's back."""
        assert self.database is not None
        with closing(sqlite3.connect(self.database)) as db, db:
            assert db.execute(sql, values).rowcount > 0, sql

    def until(self, id: str, phase: str) -> Thread:
        """Do the due works one by one until the thread is in a phase."""
        for _ in range(50):
            if (thread := self.get(id)).phase.value == phase:
                return thread
            assert self.drain(limit=1), f"nothing is due, and {id} is {thread.phase.value}, not {phase}"
        raise AssertionError(f"{id} does not become {phase}")

    # --- walks

    def reach(self, phase: str) -> Thread:
        """Open a thread and bring it into a phase on the shortest way."""
        thread = self._walk_to(phase)
        assert thread.phase is Phase(phase)
        return thread

    def _walk_to(self, phase: str) -> Thread:
        if phase in MOODS:
            return self.until(self._begun(**MOODS[phase]).id, phase)
        if phase in OUTCOMES:
            return self.until(self.answer(self.reach_consent(*OUTCOMES[phase]).id, "approve").id, phase)
        match phase:
            case "inferring_intent" | "inferring_context" | "inferring_action":
                return self._dying(phase.removeprefix("inferring_"))
            case "awaiting_confirmation":
                return self.reach_consent()
            case "executing":
                return self.answer(self.reach_consent().id, "approve")
            case "monitoring":
                return self.open(children=[self.cause(), self.cause()], parent=self.parent)
            case "cleaning_up":
                return self.answer(self.reach("awaiting_intent_confirmation").id, "clean_up")
            case "done_cleanup_successful" | "done_cleanup_unsuccessful":
                self.broom.works = phase == "done_cleanup_successful"
                return self.until(self.reach("cleaning_up").id, phase)
            case "dismissed":
                return self.threads.dismiss(self._begun().id, by=MARA)
            case "handed_off":
                return self.threads.take_over(self._begun().id, by=MARA, to="mara")
        return self._begun()

    def _begun(self, **mood: str) -> Thread:
        self.mind.mood = mood
        return self.open(policy=Policy(), parent=self.parent)

    def _dying(self, stage: str) -> Thread:
        """Open a thread whose inference of a stage ends its process."""
        thread = self._begun(**{stage: "die"})
        for _ in range(200):
            self.dies()
            if self.phase(thread.id) == f"inferring_{stage}":
                return self.get(thread.id)
        raise AssertionError(f"{thread.id} lives")

    def dies(self) -> bool:
        """Do the most urgent work. Return True if its process dies; this one is then a new process."""
        try:
            self.drain(limit=1)
        except Killed:
            self.faults.dead = False
            return True
        return False

    def reach_consent(self, action: str = "plain", how: str = "ok") -> Thread:
        """Open a thread that asks for consent to an action."""
        self.mind.action, self.mind.parameters = action, {"how": how}
        thread = self.until(self._begun().id, "awaiting_confirmation")
        self.mind.action, self.mind.parameters = "plain", {}
        return thread

    # --- what the log says

    def lines(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the feed of all threads as plain dicts."""
        found: list[dict[str, Any]] = []
        while more := self.threads.feed(after=after, limit=1000):
            found += [plain(event) for event in more]
            after = found[-1]["position"]
        return found

    def replayed(self, *, repairs: bool = False) -> Replay:
        """Replay the whole feed in the slow model, which raises AssertionError for a line that the rules forbid."""
        replay = Replay(KNOWN, plain_policy(self.policy), repairs=repairs)
        replay.take_all(self.lines())
        return replay


def plain(event: ThreadEvent) -> dict[str, Any]:
    """Return an event as plain JSON."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(event)))
    return found


def plain_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy as plain JSON."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(policy), default=sorted))
    return found


def problem_of(thread: Thread) -> Problem:
    """Return why a thread asks."""
    assert thread.problem is not None
    return thread.problem


def report_of(thread: Thread) -> Report:
    """Return what came of the execution of a thread."""
    assert thread.execution is not None
    assert thread.execution.report is not None
    return thread.execution.report
