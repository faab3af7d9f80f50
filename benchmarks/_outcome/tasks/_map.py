"""The map that an agent can draw from what it was shown: rooms, their exits, and what is behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence


class Map:
    """Rooms by name. An exit leads to None until it is known what is behind it."""

    def __init__(self) -> None:
        self._exits: dict[str, dict[str, str | None]] = {}

    def show(self, room: str, exits: Sequence[str]) -> None:
        """Note the exits of a room that the agent has seen; what is known to be behind them stays."""
        known = self._exits.setdefault(room, {})
        for way in exits:
            known.setdefault(way, None)

    def link(self, room: str, way: str, behind: str) -> None:
        """Note which room is behind an exit of a room that the agent has seen."""
        self._exits[room][way] = behind

    def untried(self, here: str) -> str | None:
        """Return the exit to take from here towards the nearest room not seen yet; None if there is none."""
        return self._towards(here, lambda room: room not in self._exits)

    def route(self, here: str, goal: str) -> str | None:
        """Return the exit to take from here towards a room; None if no way is known."""
        return self._towards(here, lambda room: room == goal)

    def _towards(self, here: str, arrived: Callable[[str | None], bool]) -> str | None:
        """Return the first exit of a shortest way from here to where `arrived` is true."""
        queue, seen = deque([(here, "")]), {here}
        while queue:
            room, first = queue.popleft()
            for way, behind in self._exits.get(room, {}).items():
                if arrived(behind):
                    return first or way
                if behind is not None and behind not in seen:
                    seen.add(behind)
                    queue.append((behind, first or way))
        return None
