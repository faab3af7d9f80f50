"""Backends and environments that are played by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from _outcome.arms import ARMS
from _outcome.backend import Query, Reply
from _outcome.environment import Call, Environment, Tool, ToolError, tool
from _outcome.run import Point, Run, Setting

Policy = Callable[[Query], Reply]


class Scripted:
    """A backend that answers by a function and remembers what it was asked."""

    model = "scripted"

    def __init__(self, policy: Policy, *, lanes: int = 2, in_rounds: bool = True) -> None:
        self._policy, self.lanes, self.in_rounds = policy, lanes, in_rounds
        self.asked: list[Query] = []
        self.batches: list[list[int]] = []

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        self.batches.append([query.lane for query in queries])
        self.asked += queries
        return [self._policy(query) for query in queries]

    def close(self) -> None:
        """Nothing is open."""


class Cells:
    """Cells one after the other, of which the fifth is the goal. `closed` and `opened` count environments."""

    system = "Walk to the goal. Call exactly one tool each turn."
    tools: Sequence[Tool] = (tool("go", "Go to a cell", cell="its number"), tool("stop", "Give up"))
    max_steps = 10
    opened = closed = 0

    def __init__(self) -> None:
        type(self).opened += 1
        self._at, self._stopped = 0, False

    def reset(self, seed: int) -> str:
        self._at, self._stopped = 0, False
        return f"Task {seed}: go to cell 5. You are in cell 0."

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "stop":
            self._stopped = True
            return "You stopped."
        if name != "go":
            raise ToolError(f"unknown tool {name}")
        self._at = int(arguments["cell"])
        return f"You are in cell {self._at}. Next to it: {self._at - 1}, {self._at + 1}."

    @property
    def done(self) -> bool:
        return self._stopped or self._at == 5

    def success(self) -> bool:
        return self._at == 5

    def close(self) -> None:
        type(self).closed += 1


def counted() -> type[Cells]:
    """Return the environment with counters of its own."""
    return type("CountedCells", (Cells,), {"opened": 0, "closed": 0})


def go(cell: object) -> Reply:
    return Reply(call=Call("go", {"cell": str(cell)}), prompt=10, completion=2, cached=4)


def turns(query: Query) -> int:
    """The number of the model's turns so far."""
    return sum(message["role"] == "assistant" for message in query.messages)


def seed_of(query: Query) -> int:
    return int(str(query.messages[1]["content"]).split(":")[0].removeprefix("Task "))


def to_and_fro(query: Query) -> Reply:
    """Go from cell 1 to cell 2 and back: the library speaks after some calls."""
    return go(1 + turns(query) % 2)


def setting(factory: Callable[[], Environment] = Cells, *, family: str = "cells", seed: int = 1) -> Setting:
    return Setting(family=family, seed=seed, factory=factory, model="scripted")


def run(arm: str = "off", *, phase: str = "shadow", start: Point | None = None, sample: int = 0, **given: Any) -> Run:
    return Run(setting(**given), ARMS[arm], sample, phase, start)  # type: ignore[arg-type]


def played(one: Run, policy: Policy) -> list[Query]:
    """Play the run to its end, and return its queries."""
    queries = []
    while not one.over:
        queries.append(one.query(0))
        one.take(policy(queries[-1]))
    return queries
