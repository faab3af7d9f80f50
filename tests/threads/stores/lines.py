"""Lines of logs, and the heads that they fold to: a test builds no thread but by its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasonblocks_threads.codec import encode
from reasonblocks_threads.log import fold
from reasonblocks_threads.phases import AnswerName, CardKind, Phase, Stage
from reasonblocks_threads.policy import policy_json
from reasonblocks_threads.ports import Known, Store
from reasonblocks_threads.values import (
    SYSTEM,
    Actor,
    Card,
    Cause,
    Evidence,
    NewWork,
    Policy,
    Rows,
    Thread,
    ThreadEvent,
    Work,
    thread_id_of,
)

NO_ROWS = Rows()
MOST = {"begin": 8, "infer": 2, "execute": 1, "timeout": 8}
LEASES = {"begin": 30.0, "infer": 60.0, "execute": 120.0, "timeout": 30.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """New lines of a log, with the head before them and after."""

    before: Thread | None
    after: Thread
    events: tuple[ThreadEvent, ...]

    @property
    def id(self) -> str:
        return self.after.id

    def put(self, store: Store, rows: Rows = NO_ROWS, *, command: str | None = None) -> Thread:
        """Append them in a transaction, and return the head."""
        with store.write([self.id]) as writing:
            writing.append(self.before, self.after, self.events, rows, self.known(command))
        return self.after

    def known(self, command: str | None = None) -> Known:
        first = 1 if self.before is None else self.before.version + 1
        named = command or self.events[0].command_id
        return Known(command_id=named, thread_id=self.id, content="asked", first=first, last=self.after.version)


def opening(
    key: str = "k", *, org_id: str = "default", at: float = 1.0, parent: str | None = None, **cause: Any
) -> Lines:
    """Return the first line of a thread."""
    found = Cause(**{"kind": "proposal", "key": key, "title": f"About {key}", **cause})
    data: dict[str, Any] = {
        "org_id": org_id, "cause": encode(found), "policy": policy_json(Policy()), "proposals": [],
        "parent": parent, "ancestors": [], "rule": "all_of", "follows": None, "run": "unknown",
    }  # fmt: skip
    return following(None, ("thread_opened", data), id=thread_id_of(org_id, key), at=at)


def following(
    before: Thread | None,
    *lines: tuple[str, Mapping[str, Any]],
    id: str = "",
    at: float = 1.0,
    command: str = "",
    by: Actor = SYSTEM,
) -> Lines:
    """Return lines of these kinds and data after a head."""
    first = 1 if before is None else before.version + 1
    id = id if before is None else before.id
    events = tuple(
        ThreadEvent(thread_id=id, seq=seq, kind=kind, actor=by, at=at, data=data, command_id=command or f"{id}:{first}")
        for seq, (kind, data) in enumerate(lines, first)
    )
    after = before
    for event in events:
        after = fold(after, event)
    assert after is not None
    assert after.unreadable is None
    return Lines(before=before, after=after, events=events)


def noting(before: Thread, count: int = 1, text: str = "seen", **how: Any) -> Lines:
    return following(before, *[("noted", {"text": text})] * count, **how)


def ending(before: Thread, *, at: float = 2.0) -> Lines:
    """Return the line by which a proposed thread is dismissed."""
    data = {"from": "proposed", "to": "dismissed", "trigger": "dismissed_by_user", "stage": "intent", "reason": ""}
    return following(before, ("phase_changed", data), at=at, by=Actor.person("mara"))


def opened(store: Store, key: str = "k", rows: Rows = NO_ROWS, **how: Any) -> Thread:
    return opening(key, **how).put(store, rows)


def card(thread: Thread, seq: int | None = None, *, kind: CardKind = "clarification", **how: Any) -> Card:
    return Card(
        **{
            "id": f"{thread.id}.{thread.version + 1 if seq is None else seq}",
            "thread_id": thread.id,
            "org_id": thread.org_id,
            "kind": kind,
            "phase": Phase.AWAITING_INTENT_CLARIFICATION,
            "stage": Stage.INTENT,
            "title": thread.cause.title,
            "cause": thread.cause.kind,
            "opened_at": 1.0,
            "expires_at": None,
            "run_id": thread.cause.run_id,
            "evidence": (Evidence(id="e1", label="a log", text="it stalled"),),
            "parameters": {"deep": [1, {"x": None}]},
            **how,
        }
    )


def work(kind: Any = "begin", due_at: float = 0.0, **how: Any) -> NewWork:
    return NewWork(kind=kind, due_at=due_at, **how)


def claimed(store: Store, now: float, *, lease: str = "L", has: Sequence[str] = (), **how: Any) -> Work | None:
    with store.write() as writing:
        return writing.claim(now=now, lease=lease, has=has, leases=LEASES, most=MOST, **how)


def head(store: Store, id: str) -> Thread | None:
    with store.read() as reading:
        return reading.head(id)


ANSWER: AnswerName = "provide"
