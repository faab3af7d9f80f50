"""A running server with something on every page of its dashboard: ordinary, live, long and hostile."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reasonblocks.events import Event, RunStart
from reasonblocks.types import Codebase, Finding, RunInfo
from reasonblocks_server.ui._paths import codebase_href, experiment_href, pattern_href, run_href, thread_href
from reasonblocks_server.values import Scope
from reasonblocks_threads import Actor, Cause, Evidence, Proposal, Threads
from reasonblocks_workbench.traces import RunLog
from tests.server.running import ORG, Running, running
from tests.workbench.report.runs import ATTACKS, hostile_log, ordinary_log, step

ATTACK = "".join(ATTACKS)
STORED = ATTACK.replace("\0", "\ufffd").replace("\ud800", "?")
"""The attack as the storage keeps it: both databases lack NUL characters and unpaired surrogates."""
HOSTILE_ID = '../x"><script>alert(1)</script>\u202e'
NAMED = "</bdi><img src=x onerror=alert(1)>\u202e\u2066"
"""An attack that is short enough for a name in the log of a thread."""
CODEBASE = "acme/shop"
HOSTILE_CODEBASE = '../x"><script>alert(1)</script>%2F?q=#é'
LONG = 420
"""Calls of the long run: three pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The running server, and the addresses of its pages by their names."""

    running: Running
    started: float
    paths: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.running.url

    def login(self, *scopes: Scope, seconds: float = 600.0, **options: Any) -> str:
        """Return the cookie of a login with a new key."""
        keys = self.running.server.storage.keys
        key = self.running.make_key(*scopes, **options)
        return keys.login(key.split("_")[1], expires=time.time() + seconds)

    def ingest(self, *events: Event, org: str = ORG) -> None:
        """Store events as a client's request does, and tell open pages."""
        storage, live = self.running.server.storage, self.running.server.live
        stored = storage.runs.ingest(org, [event.as_dict() for event in events], now=time.time())
        assert not stored.refused, stored.refused
        live.events_stored(org, {_run_of(event) for event in events})

    def takes_notes(self, run_id: str) -> None:
        self.running.server.storage.runs.takes_notes(ORG, run_id, time.time())

    def start(self, run_id: str, **info: Any) -> None:
        """Start a run that takes notes, with its first call."""
        run = RunInfo(**{"run_id": run_id, "agent_name": "bugfixer", "task": "Fix the failing tests.", **info})
        self.ingest(RunStart(run=run, timestamp=time.time()), step(0, state="INIT", run_id=run_id))
        self.takes_notes(run_id)


def events_of(log: RunLog) -> list[Event]:
    assert log.start is not None
    return [log.start, *log.steps, *([log.finish] if log.finish is not None else [])]


def _run_of(event: Event) -> str:
    return event.run.run_id if isinstance(event, RunStart) else event.run_id


@contextmanager
def board(data: Path) -> Iterator[Board]:
    """Run a server with something on every page until the block ends."""
    with Threads(data / "threads.db", org_id=ORG) as threads:
        threads_of_board = _threads(threads)
    with running(data, threads_url=str(data / "threads.db")) as server:
        found = Board(running=server, started=time.time())
        found.ingest(*events_of(ordinary_log(run_id="run-1")))
        _hostile(found)
        found.ingest(RunStart(run=RunInfo(run_id="long", agent_name="walker"), timestamp=found.started), *_long())
        found.start("child", parent_run_id="run-1")
        _notes(found)
        _others(found)
        _findings(found)
        found.paths.update(_paths() | threads_of_board)
        yield found


def _long() -> Sequence[Event]:
    return [step(at, run_id="long", difficulty=0.3, thought=f"thought {at}") for at in range(LONG)]


def _hostile(found: Board) -> None:
    start, *rest = events_of(hostile_log(ATTACK, long=100_000, number=0.5))
    assert isinstance(start, RunStart)
    found.ingest(start, *rest)
    info = RunInfo(run_id=HOSTILE_ID, agent_name=ATTACK, task=ATTACK, parent_run_id="run-1",
                   metadata={"experiment_id": ATTACK, "arm": "on", "on_fraction": 0.5})  # fmt: skip
    found.ingest(RunStart(run=info, timestamp=found.started), step(0, run_id=HOSTILE_ID, state=ATTACK))
    found.takes_notes(HOSTILE_ID)


def _notes(found: Board) -> None:
    notes, now = found.running.server.storage.notes, time.time()
    for text in ("Run the unit tests only.", STORED, "Stop soon."):
        notes.add(ORG, HOSTILE_ID, text, key_id=STORED, now=now, expires=now + 600)
    first, second, _ = notes.list(ORG, HOSTILE_ID)
    notes.told(ORG, HOSTILE_ID, [first.note_id], 3, now)
    notes.withdraw(ORG, HOSTILE_ID, second.note_id, now)


def _others(found: Board) -> None:
    server, now = found.running.server, time.time()
    server.patterns.add(ORG, [
        {"id": "ours", "tier": "e2", "failure_type": "loop", "fields": {
            "diagnosis": "It loops.", "intervention": "Read the error.",
            "trigger_state": {"trajectory_description": "run_tests fails again and again"}}},
        {"id": "bad\"><script>alert(1)</script>", "tier": "e3", "fields": {"instruction": STORED}},
    ])  # fmt: skip
    found.running.make_key("read", name=STORED)
    server.storage.audit.add(ORG, STORED, STORED, STORED, now)
    for at in range(24):
        summary = {"reached": [at] * 7, "needless": [at // 9] * 7, "checks": True}
        server.storage.agents.add(ORG, "bugfixer", "coding", f"r-{at}", summary, now)
        server.storage.agents.add(ORG, STORED, STORED, f"r-{at}", summary, now)
    for at in range(8):
        info = RunInfo(run_id=f"ab-{at}", mode="steer" if at % 2 else "observe",
                       metadata={"experiment_id": "ab", "arm": ("off", "on")[at % 2], "on_fraction": 0.5})  # fmt: skip
        _, *rest = events_of(ordinary_log(run_id=f"ab-{at}", outcome="success" if at % 3 else "failure: E"))
        found.ingest(RunStart(run=info, timestamp=now - 90), *rest)


def finding(name: str, content: str, path: str = "", **given: Any) -> Finding:
    """Return a finding as a store gets it, with an id of its own."""
    return Finding(**{"finding_id": name, "content": content, "file_path": path,
                      "created_at": "2026-10-01T12:00:00+00:00", **given})  # fmt: skip


def _findings(found: Board) -> None:
    store = found.running.server.findings.store
    many = [finding(f"{at:03}", f"Note {at} about prices.", f"shop/{at}.py") for at in range(101)]
    store.put(Codebase(org_id=ORG, codebase_id=CODEBASE), [
        finding("tests", "The tests need `make services` first.", "Makefile", finding_type="command",
                metadata={"run_id": "run-1"}),
        *many,
    ])  # fmt: skip
    hostile = finding("long", STORED + "x" * (8_000 - len(STORED)), NAMED, finding_type=NAMED, created_at=NAMED,
                      metadata={NAMED: STORED})  # fmt: skip
    short = finding('"><script>alert(1)</script>', NAMED, "a/b?c#d%00é")
    store.put(Codebase(org_id=ORG, codebase_id=HOSTILE_CODEBASE), [hostile, short])


def _threads(threads: Threads) -> dict[str, str]:
    """Open threads, and return the addresses of their pages: an ordinary card, a hostile one, a split and an end."""
    mira = Actor.person("Mira")
    text = {"run_id": "run-1", "text": "Read the error first."}
    asks = threads.open(cause("stalled", "bugfixer repeats itself"), proposals=proposals("inject_guidance", text))
    evidence = tuple([Evidence(id=f"e{at}", label=ATTACK, text=ATTACK) for at in range(14)])
    attack = Cause(kind=NAMED, key=NAMED, title=ATTACK, run_id=NAMED, evidence=evidence)
    parameters = {"run_id": NAMED, "text": STORED}
    by = Actor.agent(NAMED)
    hostile = threads.open(attack, proposals=proposals("inject_guidance", parameters, ATTACK), by=by)
    answered = threads.open(replace(attack, key="answered"), proposals=proposals(NAMED, {}, ATTACK), by=by)
    split = threads.open(cause("split", "Release 1.4"), children=[cause("part-1", "Notes"), cause("part-2", ATTACK)])
    ended = threads.open(cause("ended", "Restart the worker"))
    threads.drain()
    (card,) = (card for card in threads.cards() if card.thread_id == answered.id)
    threads.answer(card, "redirect", by=Actor.person(NAMED), text=ATTACK)
    threads.drain()
    threads.note(hostile.id, ATTACK, by=mira)
    threads.dismiss(ended.id, by=mira, reason="It restarted by itself.")
    names = {
        "thread": asks,
        "hostile thread": hostile,
        "answered thread": answered,
        "split": split,
        "ended thread": ended,
    }
    lists = {"": "threads", "progress": "threads in progress", "later": "no threads", "ended": "ended threads"}
    return {
        **{name: f"/ui/threads?show={tab}" if tab else "/ui/threads" for tab, name in lists.items()},
        **{name: thread_href(thread.id) for name, thread in names.items()},
    }


def cause(key: str, title: str) -> Cause:
    return Cause(kind="run_stalled", key=key, title=title, run_id="run-1")


def proposals(action: str, parameters: dict[str, Any], text: str = "It repeats a failing call.") -> list[Proposal]:
    """Return proposals of all stages, so that nothing is inferred."""
    intent, context = Proposal.of_intent(text, confidence=0.9), Proposal.of_context(text, confidence=0.9)
    return [intent, context, Proposal.of_action(action, parameters, confidence=0.9)]


def _paths() -> dict[str, str]:
    """Return the pages of somebody with all scopes."""
    return {
        "runs": "/ui/", "filtered": "/ui/?state=SLOW&q=fix", "none": "/ui/?q=nothing-has-this",
        "run": run_href("run-1"), "live": run_href("child"), "long": run_href("long"), "hostile": run_href(HOSTILE_ID),
        "attack": run_href(STORED), "health": "/ui/health", "words": "/ui/words",
        "patterns": "/ui/patterns", "pattern": pattern_href("ours"), "new": "/ui/new-pattern?tier=e1",
        "bad pattern": pattern_href('bad"><script>alert(1)</script>'), "experiments": "/ui/experiments",
        "memory": "/ui/memory", "codebase": codebase_href(CODEBASE), "recalled": f"{codebase_href(CODEBASE)}?q=tests",
        "hostile codebase": codebase_href(HOSTILE_CODEBASE),
        "experiment": experiment_href("ab"), "agents": "/ui/agents",
        "agent": "/ui/agents/one?name=bugfixer&profile=coding",
        "bad agent": f"/ui/agents/one?name={quote(STORED)}&profile={quote(STORED)}",
        "keys": "/ui/keys", "audit": "/ui/audit", "settings": "/ui/org",
    }  # fmt: skip
