"""ScienceWorld's search tasks: find a living thing, a non-living thing, a plant or an animal, and bring it to a box."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..environment import Call, Tool, ToolError, names, tool, unknown
from ._arguments import QUOTES
from ._map import Map
from ._science import World, variations
from ._textworld import clipped

TASKS = ("find-living-thing", "find-non-living-thing", "find-plant", "find-animal")

_TYPED = {
    "go": "go to {place}",
    "look": "look around",
    "look_at": "look at {thing}",
    "focus": "focus on {thing}",
    "pick_up": "pick up {thing}",
    "put": "move {thing} to {box}",
    "inventory": "inventory",
}
"""The command that a tool types."""
_READ = {
    "look_at": re.compile(r"look at (?P<thing>.+)"),
    "focus": re.compile(r"focus on (?P<thing>.+)"),
    "pick_up": re.compile(r"pick up (?P<thing>.+)"),
    "put": re.compile(r"move (?P<thing>.+) to (?P<box>\w+ box)"),
}
"""The commands that ScienceWorld lists as possible, by the tool that types them."""
_NO_THING = re.compile(r"(agent|air|inventory|door|door to .+|.+ door|.+ in component|.+ terminal \d)")
"""What ScienceWorld counts as things, and nobody would ask for."""

_ROOM = re.compile(r"called the (.+?)\. ")
_DOOR = re.compile(r"[Aa] door to the (.+?) \(")
_DETAIL = re.compile(r"(?: \(|\. |, (?:which|currently)).*")
_TASK = re.compile(r"find a\(n\) (.+?)\. .* move it to the (.+? box) in the (.+?)\.")

_ALWAYS = ("the agent", "a substance called air")
_PLANT = re.compile(r"\b(tree|plant)\b")
_ANIMAL = re.compile(r"\b(egg|hatchling|baby|juvenile|adult|tadpole|caterpillar|pupa|tortoise)\b")
_VAGUE = re.compile(r"\b(in|on|containing)\b")
"""Names with a place or a content change when the thing is moved."""
_POT = re.compile(r"a (flower pot \d+) \(containing [^)]*?(?:an? |the )(\w+(?: \w+)? ?(?:tree|plant))\b")


class Science:
    """A house of ten rooms. Only the right thing may be focused on: another one loses the task at once."""

    system = (
        "You are in a house with many rooms, each with its exits. Find what the task asks for: go from room to room "
        "and look. When you see it, focus on it, pick it up, go to the room of the box and put it into the box. "
        "Focusing on a wrong thing loses the task. Call exactly one tool each turn."
    )
    tools: Sequence[Tool] = (
        tool("go", "Go through an exit into the next room", place="the room behind the exit"),
        tool("look", "Look at the room that you are in"),
        tool("look_at", "Look at a thing, or into it", thing="the name of the thing"),
        tool("focus", "Declare that this is the thing that the task asks for", thing="the name of the thing"),
        tool("pick_up", "Take a thing that is here", thing="the name of the thing"),
        tool("put", "Put a thing into a box that is here", thing="the name of the thing", box="the name of the box"),
        tool("inventory", "List what you carry"),
    )
    max_steps = 28

    def __init__(self) -> None:
        self._open: World | None = None

    def reset(self, seed: int) -> str:
        """Start a task. Raises `NotInstalled` without the package scienceworld, and `NoJava` without Java."""
        rng = Random(f"science {seed}")
        task = rng.choice(TASKS)
        self._open = World(task, rng.randrange(variations(task)))
        self._commands: Sequence[str] | None = None
        self._map, self._wanted, self._there = Map(), "", ""
        self._picked: list[str] = []
        text = " ".join(self._open.task.removeprefix("Task Description:").split())
        found = _TASK.search(text)
        if found is None:
            raise RuntimeError(f"ScienceWorld's task {task!r} reads otherwise than expected: {text!r}")
        self._kind, self._box, self._goal = found.groups()
        return f"{text} {self._seen()}"

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Type the command of this call. Raises `ToolError` for one that does nothing here."""
        if name not in names(self.tools):
            raise unknown(name, self.tools)
        values = {key: str(value).strip(QUOTES) for key, value in arguments.items()}
        try:
            command = _TYPED[name].format(**values)
        except KeyError as exc:
            raise ToolError(f"{name} needs the argument {exc.args[0]!r}") from None
        there, whole = self._room, self._whole(values.get("thing", ""))
        answer = self._type(command)
        if name == "focus":
            self._wanted, self._there = whole, there
        if name == "pick_up":
            self._picked.append(_VAGUE.split(values["thing"])[0].strip())
        return clipped(answer, "") if self.done or name not in ("go", "look") else self._seen()

    @property
    def done(self) -> bool:
        """True once the task is solved or lost."""
        return self._world.completed

    def success(self) -> bool:
        """Return True at ScienceWorld's full score."""
        return self._world.score == 100

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return what ScienceWorld accepts now. An argument that can take no value now is left out."""
        found: dict[str, dict[str, None]] = {"go.place": dict.fromkeys(self._exits)}
        for name in _READ:
            for values in self._accepted(name):
                for key, value in values.items():
                    found.setdefault(f"{name}.{key}", {})[value] = None
        return {key: [*values] for key, values in found.items() if values}

    def reference(self) -> Call | None:
        """Search the rooms, by untried exits, for a thing of the wanted kind; then carry it to the box."""
        if not self._wanted:
            found = next((thing for thing in self._things("focus") if self._suits(thing)), None)
            return Call("focus", {"thing": found}) if found else self._go()
        if not any(name in self._wanted or self._wanted in name for name in self._picked):
            return Call("pick_up", {"thing": self._wanted}) if self._room == self._there else self._go(self._there)
        if self._room != self._goal:
            return self._go(self._goal)
        return Call("put", {"thing": self._held(), "box": self._box})

    def close(self) -> None:
        """Forget the world. Java itself serves other environments, and ends with this process."""
        self._open = None

    @property
    def _world(self) -> World:
        if self._open is None:
            raise RuntimeError("no task is being worked on; call reset(seed) first")
        return self._open

    @property
    def _room(self) -> str:
        found = _ROOM.search(self._world.look)
        return found[1] if found else ""

    @property
    def _exits(self) -> list[str]:
        return sorted(_DOOR.findall(self._world.look))

    @property
    def _shown(self) -> list[str]:
        """The things that a look shows, each with what is in and on it."""
        lines = [" ".join(line.split()).rstrip(".") for line in self._world.look.splitlines() if line.startswith("\t")]
        return [line for line in lines if line not in _ALWAYS and not _DOOR.match(line)]

    def _type(self, command: str) -> str:
        """Type the command, and take the first meaning of one that has several."""
        self._commands = None
        answer = self._world.type(command)
        if answer.startswith("Ambiguous request"):
            answer = self._world.type("0")
        if answer.startswith("No known action"):
            raise ToolError(f"{command!r} does nothing here. {self._seen()}")
        return " ".join(answer.split())

    def _seen(self) -> str:
        """Return the room, its things and its exits; with many things, without what is in and on them."""
        exits = self._exits
        self._map.show(self._room, exits)
        for way in exits:  # an exit has the name of the room behind it
            self._map.link(self._room, way, way)
        kept = f"Exits: {', '.join(exits)}."
        things = self._shown
        full = f"You are in the {self._room}. You see: {'; '.join(things) or 'nothing'}."
        short = f"You are in the {self._room}. You see: {'; '.join(_DETAIL.sub('', thing) for thing in things)}."
        return clipped(full if clipped(full, kept) == f"{full} {kept}" else short, kept)

    def _accepted(self, name: str) -> list[dict[str, str]]:
        if self._commands is None:
            self._commands = self._world.commands
        passed = {self._room, *self._exits}
        found = (match.groupdict() for match in map(_READ[name].fullmatch, self._commands) if match)
        return [
            values for values in found if values["thing"] not in passed and not _NO_THING.fullmatch(values["thing"])
        ]

    def _things(self, name: str) -> list[str]:
        return [values["thing"] for values in self._accepted(name)]

    def _suits(self, thing: str) -> bool:
        """Return True for a thing of the wanted kind, by its name; bees fly away."""
        name = next((item for item in (_DETAIL.sub("", item) for item in self._shown) if thing in item), thing)
        plant = bool(_PLANT.search(name))
        animal = not plant and bool(_ANIMAL.search(name))
        if self._kind == "non-living thing":
            return not (plant or animal or _VAGUE.search(thing)) and thing in self._things("pick_up")
        return {"plant": plant, "animal": animal}.get(self._kind, plant or animal) and "bee" not in name

    def _whole(self, thing: str) -> str:
        """Return what to pick up: the thing, or the pot that it grows in."""
        pots = {plant: pot for pot, plant in _POT.findall(self._world.look)}
        return next((pot for plant, pot in pots.items() if plant in thing), thing)

    def _held(self) -> str:
        """Return the present name of what is carried: it may have a namesake here, and eggs hatch on the way."""
        things = self._things("put")
        names = [name for name in (f"{self._wanted} in inventory", self._wanted) if name in things]
        hatched = [thing for thing in things if self._kind != "non-living thing" and self._suits(thing)]
        return next(iter([*names, *hatched]), self._wanted)

    def _go(self, to: str = "") -> Call | None:
        """Return the call that goes towards a room, or if its place is unknown to a room not seen yet."""
        way = (self._map.route(self._room, to) if to else None) or self._map.untried(self._room)
        return Call("go", {"place": way}) if way else None


def science() -> Science:
    """Return ScienceWorld's search tasks."""
    return Science()
