"""Finds the commands that other packages add to `reasonblocks`, as entry points of the group `reasonblocks.commands`.

The target of an entry point is a function `add_to(commands)` that adds the parser of the command of its name, as the
modules of the workbench's own commands do. It is loaded only when its command or the list of all commands is asked for.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

from reasonblocks.util.extras import folder_of

from .output import Parsers, warn

GROUP = "reasonblocks.commands"
OURS = {"keys": "reasonblocks-server", "serve": "reasonblocks-server"}
"""Our distributions, by the commands that they add."""


class Commands(Parsers, Protocol):
    """The subparsers of `reasonblocks`: `choices` has the parser of each command by its name."""

    choices: dict[str, Any]


class _OneParser:
    """The subparsers that a package receives. It can add a parser for its own command only."""

    def __init__(self, commands: Parsers, name: str) -> None:
        self.commands, self.name = commands, name

    def add_parser(self, name: str, *, help: str, description: str, allow_abbrev: bool) -> ArgumentParser:
        if name != self.name:
            raise ValueError(f"it adds the command {name!r}")
        return self.commands.add_parser(name, help=help, description=description, allow_abbrev=allow_abbrev)


def add_found(commands: Commands, wanted: str | None) -> None:
    """Add the commands of other packages; if `wanted` is the name of one of them, only that one.

    A command that is already there or cannot be added is skipped with a warning.
    """
    found = list(_free(commands.choices))
    for point in [point for point in found if point.name == wanted] or found:
        try:
            point.load()(_OneParser(commands, point.name))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - code of another package
            commands.choices.pop(point.name, None)
            warn(f"reasonblocks: the command {point.name!r} of {_owner(point)} is left out: {_reason(error)}")


def missing(name: str) -> str | None:
    """Return the error for a missing command of ours, with the command that installs it."""
    if name not in OURS or any(point.name == name for point in entry_points(group=GROUP)):
        return None
    needed = OURS[name]
    return (
        f"the command {name!r} is part of {needed}, which is not installed; in a clone of ReasonBlocks: "
        f"pip install ./packages/core ./packages/workbench {folder_of(needed)}"
    )


def _free(taken: Iterable[str]) -> Iterator[EntryPoint]:
    """Yield one entry point for each name; a name that is taken is skipped with a warning."""
    seen = dict.fromkeys(taken, "reasonblocks-workbench")
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, _owner(point))):
        if point.name in seen:
            warn(f"reasonblocks: the command {point.name!r} of {_owner(point)} is left out: {seen[point.name]} has it")
        else:
            seen[point.name] = _owner(point)
            yield point


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
