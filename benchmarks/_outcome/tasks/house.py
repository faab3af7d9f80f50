"""House: rooms and doors. The exit is in a far room, and each result lists the doors of the present one."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..environment import Call, Tool, ToolError, tool
from ._arguments import checked, listed

ROOMS = "kitchen hall attic cellar garden library studio bedroom garage pantry office balcony".split()
SIZES = (8, 9, 10)
NEAREST = 3
"""The rooms before it, by number, to one of which a room has its first door."""


class House:
    """A search for the exit. The agent knows no map: only the doors that it was shown."""

    system = (
        "You are in a house and look for the exit. Each result names your room and its doors. "
        "Call exactly one tool each turn."
    )
    tools: Sequence[Tool] = (tool("go", "Go through a door into the next room", door="the room behind the door"),)
    max_steps = 22

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Build the house of this seed and put the agent into its first room."""
        rng = Random(f"house {seed}")
        rooms = rng.sample(ROOMS, rng.choice(SIZES))
        self._doors = _doors(rooms, rng)
        self._room = rooms[0]
        self._exit = [*_distances(self._doors, rooms[0])][-1]
        self._entered = {self._room}
        return f"Find the exit of the house. {self._here()}"

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Go through a door. Raises `ToolError` if the present room has no such door."""
        door = checked(name, arguments, self.tools)["door"].lower().removeprefix("the ")
        if door not in self._doors[self._room]:
            raise ToolError(f"there is no door to {door!r} here. {self._here()}")
        self._room = door
        self._entered.add(door)
        return "You found the exit." if self.done else self._here()

    @property
    def done(self) -> bool:
        """True in the room of the exit."""
        return self._room == self._exit

    def success(self) -> bool:
        """Return True in the room of the exit."""
        return self.done

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the doors of the present room."""
        return {"go.door": self._doors[self._room]}

    def reference(self) -> Call | None:
        """Take the first untried door here, or else go back towards the nearest room that has one."""
        shown = {room: self._doors[room] for room in self._entered}
        for room in _distances(shown, self._room):
            if room not in self._entered:
                return Call("go", {"door": _first_step(shown, self._room, room)})
        return None

    def _here(self) -> str:
        return f"You are in the {self._room}. Doors: {listed(self._doors[self._room])}."


def _doors(rooms: Sequence[str], rng: Random) -> dict[str, list[str]]:
    """Return the doors of each room: those of a tree and one more, in any order."""
    doors: dict[str, list[str]] = {room: [] for room in rooms}
    pairs = {(rng.randint(max(0, at - NEAREST), at - 1), at) for at in range(1, len(rooms))}
    first = rng.randrange(len(rooms) - NEAREST)
    pairs.add((first, first + rng.randint(2, NEAREST)))
    for one, other in sorted(pairs):
        doors[rooms[one]].append(rooms[other])
        doors[rooms[other]].append(rooms[one])
    for behind in doors.values():
        rng.shuffle(behind)
    return doors


def _distances(doors: Mapping[str, Sequence[str]], start: str) -> dict[str, int]:
    """Return the rooms that can be reached, the nearest first, with the number of doors to each."""
    distances = {start: 0}
    waiting = deque([start])
    while waiting:
        room = waiting.popleft()
        for door in doors.get(room, ()):
            if door not in distances:
                distances[door] = distances[room] + 1
                waiting.append(door)
    return distances


def _first_step(doors: Mapping[str, Sequence[str]], start: str, goal: str) -> str:
    """Return the door to take first on a shortest way."""
    back = {**doors, goal: [room for room, behind in doors.items() if goal in behind]}
    away = _distances(back, goal)
    return min(doors[start], key=lambda door: away.get(door, len(back)))
