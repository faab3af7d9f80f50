"""A fair way to cook: what to do next, from what the agent was shown of the recipe and of the kitchen."""

from __future__ import annotations

import re
from collections.abc import Sequence

_INGREDIENTS = re.compile(r"Ingredients:(.*?)Directions:(.*)", re.DOTALL)
_APPLIANCES = {"fry": "stove", "roast": "oven", "grill": "BBQ"}
_CUTS = ("chop", "slice", "dice")
_KNIFE = "take knife"


class Recipe:
    """The cookbook's text, once read, and the food that is cooked already, which would burn the second time."""

    def __init__(self) -> None:
        self.ingredients: list[str] = []
        self.directions: list[tuple[str, str]] = []
        self.cooked: set[str] = set()

    def read(self, text: str) -> None:
        """Read the recipe out of a text, if it is in there."""
        if found := _INGREDIENTS.search(text):
            self.ingredients = [line.strip() for line in found[1].splitlines() if line.strip()]
            steps = [line.strip().partition(" the ") for line in found[2].splitlines()]
            self.directions = [(verb, food) for verb, _, food in steps if food]

    def did(self, command: str) -> None:
        """Note the command, which the game has accepted."""
        if found := re.fullmatch(r"cook (.+) with .+", command):
            self.cooked.add(found[1])

    def next(self, commands: Sequence[str]) -> str | None:
        """Return the command to type now; None if something is to be found in another room or container first."""
        if "eat meal" in commands:
            return "eat meal"
        if not self.ingredients:
            return "examine cookbook" if "examine cookbook" in commands else None
        if taken := self._take(commands):
            return taken
        if any(f"drop {food}" not in commands for food in self.ingredients):
            return None
        return self._prepare(commands)

    def _take(self, commands: Sequence[str]) -> str | None:
        missing = [f"take {food}" for food in self.ingredients if f"drop {food}" not in commands]
        missing += [_KNIFE] if any(verb in _CUTS for verb, _ in self.directions) else []
        wanted = {part for base in missing for part in commands if part == base or part.startswith(f"{base} from ")}
        return min(wanted, default=None)

    def _prepare(self, commands: Sequence[str]) -> str | None:
        """Return the next direction that can be followed here. A cut that is not offered has been made."""
        for verb, food in self.directions:
            if (cut := f"{verb} {food} with knife") in commands:
                return cut
        for verb, food in self.directions:
            if verb in _APPLIANCES and food not in self.cooked:
                cook = f"cook {food} with {_APPLIANCES[verb]}"
                if cook in commands:
                    return cook
        waiting = any(verb in _APPLIANCES and food not in self.cooked for verb, food in self.directions)
        return None if waiting or "prepare meal" not in commands else "prepare meal"
