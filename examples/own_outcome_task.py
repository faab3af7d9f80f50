"""A task of your own for `./dev bench outcome --tasks examples/own_outcome_task.py:Meeting` (docs/outcome.md).

An agent books a meeting at the one hour at which three people are free. The booking fails at any other hour and names
somebody who is busy then, so an agent that asks everybody first needs four calls.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from _outcome.environment import ToolError, tool

PEOPLE = ("Amal", "Bea", "Chidi", "Dana", "Emre", "Femi")
HOURS = tuple(map(str, range(9, 18)))


class Meeting:
    """The environment: `./dev bench outcome` makes one for each run, and calls `reset` first."""

    system = "You book meetings. Call one tool at a time."
    max_steps = 12
    tools = (
        tool("free_hours", "Returns the hours at which a person is free.", person="The person's name."),
        tool("book", "Books the meeting, which ends the task.", hour="The hour, from 9 to 17."),
        tool("give_up", "Ends the task without a meeting.", reason="Why there can be none."),
    )

    def reset(self, seed: int) -> str:
        draw = random.Random(seed)  # of its own: the same seed gives the same task on every machine
        people = draw.sample(PEOPLE, 3)
        self._common = draw.choice(HOURS)
        self._free: dict[str, set[str]] = {name: {self._common} for name in people}
        for hour in HOURS:
            if hour != self._common:
                for name in draw.sample(people, draw.choice((1, 2, 2))):
                    self._free[name].add(hour)
        self._booked: str | None = None
        self._gave_up = False
        return f"Book a meeting of {', '.join(people)}."

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "free_hours":
            return self._free_hours(str(arguments.get("person")))
        if name == "book":
            return self._book(str(arguments.get("hour")))
        self._gave_up = True
        return "The task has ended."

    @property
    def done(self) -> bool:
        return self._gave_up or self._booked is not None

    def success(self) -> bool:
        return self._booked == self._common

    def _free_hours(self, person: str) -> str:
        if person not in self._free:
            raise ToolError(f"there is no {person}; the people are {', '.join(self._free)}")
        return f"{person} is free at {', '.join(sorted(self._free[person], key=int))}."

    def _book(self, hour: str) -> str:
        if hour not in HOURS:
            raise ToolError("hour has to be one of " + ", ".join(HOURS))
        busy = [name for name, free in self._free.items() if hour not in free]
        if busy:
            raise ToolError(f"{busy[0]} is busy at {hour}")
        self._booked = hour
        return f"The meeting is booked at {hour}."
