"""The map that an agent can draw from what it was shown: rooms, their exits, and what is behind those that it took."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

_Wanted: TypeAlias = Callable[[str], "str | None"]


class Map:
    """Rooms by name. An exit that was not taken yet leads nowhere known."""

    def __init__(self) -> None:
        self._exits: dict[str, dict[str, str | None]] = {}

    def show(self, room: str, exits: Sequence[str]) -> None:
        """Note the exits of a room; what is known to be behind them stays."""
        known = self._exits.setdefault(room, {})
        for way in exits:
            known.setdefault(way, None)

    def link(self, room: str, way: str, behind: str) -> None:
        """Note which room is behind an exit."""
        self._exits.setdefault(room, {})[way] = behind

    def untried(self, here: str) -> str | None:
        """Return the exit to take from here towards the nearest untried one; None if all were taken."""
        return self._towards(
            here, lambda room: next((way for way, to in self._exits[room].items() if to is None), None)
        )

    def route(self, here: str, to: str) -> str | None:
        """Return the exit to take from here towards a room; None if it is here or no way is known."""
        return None if here == to else self._towards(here, lambda room: "" if room == to else None)

    def _towards(self, here: str, wanted: _Wanted) -> str | None:
        """Return the first exit of the shortest way to a room for which `wanted` returns an exit of its own."""
        queue = deque([(here, "")])
        seen = {here}
        while queue:
            room, first = queue.popleft()
            if room in self._exits and (last := wanted(room)) is not None:
                return first or last
            for way, to in self._exits.get(room, {}).items():
                if to is not None and to not in seen:
                    seen.add(to)
                    queue.append((to, first or way))
        return None
