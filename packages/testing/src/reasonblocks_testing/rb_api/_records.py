"""Records what a scripted rb-api receives: requests, the events of runs, and the notes that wait for runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeAlias

from reasonblocks.events import event_of
from reasonblocks.types import Note

Body: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request.

    `path` has no `/v1` before it, and `headers` have lower-case names. `body` is the parsed JSON, None if it is none.
    `up` and `down` are the bytes of the whole request and of the whole answer on the connection; `down` and `status`
    are 0 for a request that was not answered.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    up: int = 0
    down: int = 0
    status: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedNote:
    """An operator's note to a run; `told` is True once the client has reported it."""

    run_id: str
    note: Note
    told: bool = False


class Requests:
    """All requests so far, in order of arrival."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Received] = []

    def add(self, received: Received) -> int:
        """Record a request, and return its number."""
        with self._lock:
            self._all.append(received)
            return len(self._all) - 1

    def answered(self, number: int, status: int, down: int) -> None:
        with self._lock:
            self._all[number] = replace(self._all[number], status=status, down=down)

    def all(self) -> list[Received]:
        with self._lock:
            return list(self._all)


class Runs:
    """The events of all runs, and the notes to them. A repeated or late event changes nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count(1)
        self.forget()

    def forget(self) -> None:
        with self._lock:
            self._events: dict[tuple[str, str, int], Body] = {}
            self._notes: list[QueuedNote] = []

    def add(self, body: Mapping[str, Any]) -> bool:
        """Add an event; return False if it is known. Raises `EventError`.

        A finish replaces one whose outcome is "success".
        """
        event_of(body)
        event = dict(body)
        index = event["step_index"] if event["event"] == "step" else 0
        place = (event["run_id"], event["event"], index)
        told = event.get("metadata", {}).get("note_ids")
        with self._lock:
            known = self._events.get(place)
            if known is not None and (event["event"] != "run_finish" or known["outcome"] != "success"):
                return False
            self._events[place] = event
            self._mark(event["run_id"], filter(_is_text, told if isinstance(told, list) else ()))
            return known != event

    def events(self) -> list[Body]:
        with self._lock:
            return list(self._events.values())

    def add_note(self, run_id: str, text: str) -> Note:
        with self._lock:
            note = Note(id=f"note-{next(self._numbers)}", text=text)
            self._notes.append(QueuedNote(run_id=run_id, note=note))
            return note

    def notes(self) -> list[QueuedNote]:
        with self._lock:
            return list(self._notes)

    def waiting(self, run_id: str, told: Iterable[str] = ()) -> tuple[Note, ...]:
        """Return the oldest note that a run has not been told, after those that the client reports."""
        with self._lock:
            self._mark(run_id, told)
            return tuple([item.note for item in self._notes if item.run_id == run_id and not item.told][:1])

    def _mark(self, run_id: str, told: Iterable[str]) -> None:
        ids = {*told}
        self._notes = [
            replace(item, told=True) if item.run_id == run_id and item.note.id in ids else item for item in self._notes
        ]

    def listed(self, limit: int) -> list[Body]:
        """Return the newest runs, each with its start, its outcome, and the number of its steps."""
        found: dict[str, Body] = {}
        for event in self.events():
            run = found.setdefault(event["run_id"], {"run_id": event["run_id"], "outcome": None, "steps": 0})
            _SUMMARY[event["event"]](run, event)
        return list(found.values())[::-1][:limit]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _started(run: Body, event: Body) -> None:
    run.update({name: event[name] for name in ("agent_name", "task", "model", "framework") if name in event})


def _stepped(run: Body, event: Body) -> None:
    run["steps"] += 1


def _finished(run: Body, event: Body) -> None:
    run["outcome"] = event["outcome"]


_SUMMARY: Mapping[str, Callable[[Body, Body], None]] = {
    "run_start": _started,
    "step": _stepped,
    "run_finish": _finished,
}
