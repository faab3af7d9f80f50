"""Two games of TextWorld, which generates them by seed: a search for a coin, and a meal to cook after a recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..environment import Call, Tool, ToolError, names, tool, unknown
from ._arguments import QUOTES
from ._map import Map
from ._recipe import Recipe
from ._textworld import Played, clipped, shortened

_COMMANDS = {
    "go": re.compile(r"go (?P<direction>.+)"),
    "look": re.compile(r"look"),
    "inventory": re.compile(r"inventory"),
    "open": re.compile(r"open (?P<thing>.+)"),
    "take": re.compile(r"take (?P<thing>.+?)(?: from .+)?"),
    "examine": re.compile(r"examine (?P<thing>.+)"),
    "cook": re.compile(r"cook (?P<food>.+) with (?P<appliance>.+)"),
    "cut": re.compile(r"(?P<how>chop|slice|dice) (?P<food>.+) with .+"),
    "prepare_meal": re.compile(r"prepare meal"),
    "eat": re.compile(r"eat (?P<food>.+)"),
}
"""The commands of a game, by the tool that types them; a command's groups are the tool's arguments."""

_SHOWING = ("go", "look", "open")
"""Tools whose result ends with the exits and things that are here."""
_OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
_LEFT_CLOSED = "oven"
"""What the reference policy leaves closed: no game puts food there."""


class _Game:
    """What the two have in common: tools that type commands, and a map of what was shown."""

    kind = ""
    system = ""
    task = ""
    tools: Sequence[Tool] = ()
    max_steps = 28

    def __init__(self) -> None:
        self._open: Played | None = None

    def settings(self, rng: Random) -> Mapping[str, Any]:
        """Return TextWorld's settings of the game."""
        raise NotImplementedError

    def reset(self, seed: int) -> str:
        """Start the game of this seed, which is made first if need be. Raises `NotInstalled` without TextWorld."""
        self.close()
        self._open = Played(self.kind, self.settings(Random(f"{self.kind} {seed}")), seed)
        self._map, self._recipe = Map(), Recipe()
        return f"{self.task} {self._seen()}"

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Type the command of this call. Raises `ToolError` for one that the game does not accept now."""
        game, left = self._game, self._game.room
        command = self._command(name, arguments)
        game.type(command)
        self._recipe.did(command)
        self._recipe.read(game.text)
        if name == "go" and game.room != left:
            way = command.removeprefix("go ")
            self._map.show(game.room, [_OPPOSITE[way]])
            self._map.link(left, way, game.room)
            self._map.link(game.room, _OPPOSITE[way], left)
        return clipped(shortened(game.text), "") if self.done or name not in _SHOWING else self._seen()

    @property
    def done(self) -> bool:
        """True once the game is won or lost."""
        return self._game.won or self._game.lost

    def success(self) -> bool:
        """Return True once the game is won."""
        return self._game.won

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return what the game accepts now. An argument that can take no value now is left out."""
        found: dict[str, dict[str, None]] = {}
        for name in names(self.tools):
            for values in self._accepted(name).values():
                for key, value in values.items():
                    found.setdefault(f"{name}.{key}", {})[value] = None
        return {key: [*values] for key, values in found.items()}

    def close(self) -> None:
        """Stop the game's interpreter."""
        if self._open:
            self._open.close()
        self._open = None

    @property
    def _game(self) -> Played:
        if self._open is None:
            raise RuntimeError("no game is being played; call reset(seed) first")
        return self._open

    def _accepted(self, name: str) -> dict[str, dict[str, str]]:
        """Return the commands that a tool can type now, each with its arguments."""
        found = {command: _COMMANDS[name].fullmatch(command) for command in self._game.commands}
        return {command: match.groupdict() for command, match in found.items() if match}

    def _command(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name not in names(self.tools):
            raise unknown(name, self.tools)
        wanted = {key: str(value).strip(QUOTES).casefold() for key, value in arguments.items()}
        accepted = self._accepted(name)
        for command, values in accepted.items():
            if {key: value.casefold() for key, value in values.items()} == wanted:
                return command
        possible = ", ".join(dict.fromkeys(" / ".join(values.values()) for values in accepted.values()))
        asked = " / ".join(map(str, arguments.values()))
        raise ToolError(clipped(f"{name} {asked!r} is not possible here now;", f"possible: {possible or 'nothing'}"))

    def _seen(self) -> str:
        """Return the game's last answer, with a list of the exits and of what is here."""
        exits = self._values("go", "direction")
        self._map.show(self._game.room, exits)
        lists = [
            ("Exits", exits),
            ("Closed", self._values("open", "thing")),
            ("Here", self._values("examine", "thing")),
        ]
        return clipped(
            shortened(self._game.text), " ".join(f"{name}: {', '.join(values)}." for name, values in lists if values)
        )

    def _values(self, name: str, argument: str) -> list[str]:
        return [values[argument] for values in self._accepted(name).values()]

    def _typed(self, command: str) -> Call:
        """Return the call that types this command."""
        matches = ((name, _COMMANDS[name].fullmatch(command)) for name in names(self.tools))
        return next(Call(name, match.groupdict()) for name, match in matches if match)


class Coins(_Game):
    """A coin lies in one of many rooms, most of which are dead ends. Taking it wins."""

    kind = "coins"
    system = (
        "You are in a building and look for a coin. Each result names the exits of your room. "
        "Go from room to room, and take the coin when you see it. Call exactly one tool each turn."
    )
    task = "Find the coin and take it."
    tools: Sequence[Tool] = (
        tool("go", "Go through an exit into the next room", direction="north, south, east or west"),
        tool("take", "Take a thing that is here", thing="the name of the thing"),
        tool("look", "Look at the room that you are in"),
    )
    levels = (205, 206, 207)
    """TextWorld's levels: a chain of 5 to 7 rooms, and two dead ends at each of them."""

    def settings(self, rng: Random) -> Mapping[str, Any]:
        """Return the level."""
        return {"level": rng.choice(self.levels)}

    def reference(self) -> Call | None:
        """Take the coin where it is, or else the nearest untried exit."""
        if "take coin" in self._game.commands:
            return self._typed("take coin")
        way = self._map.untried(self._game.room)
        return self._typed(f"go {way}") if way else None


class Cooking(_Game):
    """A meal has to be found, cut, cooked and eaten as the cookbook demands; a wrong step loses."""

    kind = "cooking"
    system = (
        "You are hungry. Find the kitchen and examine the cookbook there. Take the ingredients, in the kitchen or "
        "elsewhere, and follow the recipe's directions exactly: to fry is to cook with the stove, to roast with the "
        "oven, to grill with the BBQ. Then prepare the meal in the kitchen and eat it. Anything burnt, cut wrongly or "
        "eaten too soon is lost. Call exactly one tool each turn."
    )
    task = "Cook the meal of the cookbook and eat it."
    tools: Sequence[Tool] = (
        tool("go", "Go through an exit into the next room", direction="north, south, east or west"),
        tool("look", "Look at the room that you are in"),
        tool("open", "Open a door or a container", thing="the name of the door or container"),
        tool("take", "Take a thing that is here", thing="the name of the thing"),
        tool("examine", "Examine a thing, or read it", thing="the name of the thing"),
        tool("cook", "Cook food that you carry", food="the food", appliance="stove, oven or BBQ"),
        tool("cut", "Cut food that you carry, with a knife that you carry", food="the food", how="chop, slice or dice"),
        tool("prepare_meal", "Prepare the meal in the kitchen, from its ingredients, when all directions are followed"),
        tool("eat", "Eat something", food="the food"),
        tool("inventory", "List what you carry"),
    )
    max_steps = 30

    def settings(self, rng: Random) -> Mapping[str, Any]:
        """Return a recipe of one or two ingredients, in a house of six rooms."""
        skills = rng.choice([{"recipe": 1, "take": 1, "cut": True}, {"recipe": 2, "take": 2, "cut": False}])
        fixed = {"cook": True, "open": True, "drop": False, "go": 6, "split": "train"}
        return {**skills, **fixed, "recipe_seed": rng.randrange(10_000)}

    def reference(self) -> Call | None:
        """Follow the recipe as far as it is known; otherwise open what is closed here, or take an untried exit."""
        game = self._game
        command = self._recipe.next(game.commands) or self._elsewhere()
        return self._typed(command) if command else None

    def _elsewhere(self) -> str | None:
        closed = [f"open {thing}" for thing in self._values("open", "thing") if thing != _LEFT_CLOSED]
        way = self._map.untried(self._game.room) or (self._map.route(self._game.room, "kitchen"))
        return min(closed, default=None) or (f"go {way}" if way else None)


def coins() -> Coins:
    """Return the search for a coin."""
    return Coins()


def cooking() -> Cooking:
    """Return the meal to cook."""
    return Cooking()
