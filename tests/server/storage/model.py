"""States the rules of ingest a second time, naively: a run is its kept events, and the rest follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reasonblocks_server.storage import Storage
from reasonblocks_server.values import RunRow

Event = dict[str, Any]


def start(run: str, at: float, **more: Any) -> Event:
    return {"event": "run_start", "run_id": run, "timestamp": at, **more}


def step(run: str, index: int, at: float = 10.0, *, final: bool = False, state: str = "NORMAL", **more: Any) -> Event:
    metadata = {"fsm_state": state, **({"final": True} if final else {}), **more.pop("metadata", {})}
    return {"event": "step", "run_id": run, "step_index": index, "timestamp": at, "metadata": metadata, **more}


def finish(run: str, outcome: str = "success", at: float = 99.0, **more: Any) -> Event:
    return {"event": "run_finish", "run_id": run, "outcome": outcome, "timestamp": at, **more}


@dataclass
class Model:
    """The kept events of one run. `times` are those of all events, for a run without a `run_start`."""

    start: Event | None = None
    steps: dict[int, Event] = field(default_factory=dict)
    finish: Event | None = None
    times: list[float] = field(default_factory=list)

    def add(self, event: Event) -> bool:
        """Return False if the event is not kept."""
        self.times.append(event["timestamp"])
        if event["event"] == "run_start":
            return self._add_start(event)
        if event["event"] == "step":
            old = self.steps.get(event["step_index"])
            kept = old is None or (is_final(old) and not is_final(event))
            if kept:
                self.steps[event["step_index"]] = event
            return kept
        if self.finish is not None and best([self.finish, event]) is self.finish:
            return False
        self.finish = event
        return True

    def _add_start(self, event: Event) -> bool:
        if self.start is not None:
            if event["timestamp"] <= self.start["timestamp"]:
                return False
            self.steps, self.finish = {}, None
        self.start = event
        return True

    def seen(self) -> dict[str, Any]:
        """Return the fields of the run's row that the rules decide."""
        calls = [event for event in self.steps.values() if not is_final(event)]
        costs = [cost for event in calls if (cost := event["metadata"].get("cost_usd")) is not None]
        tokens = [event["tokens"] for event in calls if event.get("tokens") is not None]
        ordered = [event for _, event in sorted(self.steps.items())]
        failures = [event["failure_type"] for event in ordered if event.get("failure_type")]
        told = [source for event in ordered for source in event.get("injection_sources", [])]
        return {
            "started": self.start["timestamp"] if self.start else min(self.times),
            "finished": self.finish["timestamp"] if self.finish else None,
            "outcome": self.finish["outcome"] if self.finish else None,
            "task": self.start.get("task", "") if self.start else "",
            "steps": len(calls),
            "tokens": sum(tokens) if tokens else None,
            "cost_usd": sum(costs) if costs else None,
            "state": ordered[-1]["metadata"]["fsm_state"] if ordered else None,
            "failure_type": failures[-1] if failures else None,
            "injections": sum(source != "E3Injection" for source in told),
            "bodies": [(event["step_index"], event["timestamp"], event["metadata"]) for event in ordered],
        }


def is_final(event: Event) -> bool:
    return event["metadata"].get("final") is True


def best(ends: list[Event]) -> Event:
    """Return the end that counts: the newest that is no success, else the oldest."""
    bad = [end for end in ends if end["outcome"] != "success"]
    if bad:
        return max(bad, key=lambda end: (end["timestamp"], end["outcome"]))
    return min(ends, key=lambda end: end["timestamp"])


def row_of(storage: Storage, run: str = "r", org: str = "o") -> RunRow:
    """Return a stored run."""
    row = storage.runs.get(org, run)
    assert row is not None
    return row


def stored(storage: Storage, org: str, run: str) -> dict[str, Any] | None:
    """Return the same fields of a stored run."""
    row = storage.runs.get(org, run)
    if row is None:
        return None
    names = "started finished outcome task steps tokens cost_usd state failure_type injections".split()
    bodies = storage.runs.steps(org, run)
    return {
        **{name: getattr(row, name) for name in names},
        "bodies": [(body["step_index"], body["timestamp"], body["metadata"]) for body in bodies],
    }
