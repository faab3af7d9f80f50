"""Pasted: a file with wrong values, and an edit tool that does not find the line numbers of `view` in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from ..environment import Call, Tool, ToolError, tool
from ._arguments import checked


class Kind(NamedTuple):
    """A kind of file: its name, and the forms of a value and of a comment."""

    file: str
    value: str
    comment: str


class Wording(NamedTuple):
    """The results of an edit, as editors of agents word them: made, not found, and found more than once."""

    edited: str
    missing: str
    repeated: str


VALUES = {
    "timeout": ("15", "30", "45", "90"),
    "retries": ("2", "3", "5", "8"),
    "port": ("8080", "8443", "9000", "9191"),
    "workers": ("4", "6", "12", "16"),
    "level": ("debug", "info", "warning", "error"),
    "region": ("north-1", "south-2", "east-3", "west-4"),
    "batch": ("50", "64", "100", "128"),
    "cache": ("memory", "disk", "redis", "none"),
    "encoding": ("utf-8", "latin-1", "ascii", "utf-16"),
    "backoff": ("linear", "fixed", "double", "random"),
}
KINDS = (
    Kind("settings.ini", "{key} = {value}", "; {text}"),
    Kind("config.yaml", "{key}: {value}", "# {text}"),
    Kind("service.env", "{key}={value}", "# {text}"),
    Kind("limits.toml", '{key} = "{value}"', "# {text}"),
    Kind("app.properties", "app.{key}={value}", "! {text}"),
)
COMMENTS = ("read at the start", "ask before a change", "used by all jobs", "see the handbook")
NUMBERS = ("{}: ", "{:>4}: ", "{:>6}\t", "{:>3} | ", "{:>5}→")
"""The forms of a line's number that `view` shows before it."""
WORDINGS = (
    Wording(
        "The file {file} has been edited.",
        "No replacement was performed, old `{old}` did not appear verbatim in {file}.",
        "No replacement was performed. Multiple occurrences of old `{old}` in {file}. Please ensure it is unique.",
    ),
    Wording(
        "The file {file} has been updated successfully.",
        "String to replace not found in file.\nString: {old}",
        "Found {count} matches of the string to replace, but only one may be replaced.\nString: {old}",
    ),
    Wording(
        "Successfully modified file: {file} (1 replacements).",
        "Failed to edit, could not find the string to replace.",
        "Failed to edit, expected 1 occurrence but found {count}.",
    ),
    Wording("Edit applied.", "old not found in content of {file}", "old found {count} times in content of {file}"),
)
WRONG = (3, 5, 7, 8)
"""Values to correct: one of these numbers."""
LONGEST = 100
"""Characters of an edited line."""


class Pasted:
    """Corrections in a file. An edit replaces one line, or a part of it that occurs once in the file."""

    system = "You correct a file. Call exactly one tool each turn. When the file is correct, call submit."
    tools: Sequence[Tool] = (
        tool("view", "Show the file with line numbers"),
        tool("edit", "Replace a line", old="the old line", new="the new line"),
        tool("submit", "End the task"),
    )
    max_steps = 12

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Write the file of this seed, with wrong values."""
        rng = Random(f"pasted {seed}")
        kind, self._number, self._wording = rng.choice(KINDS), rng.choice(NUMBERS), rng.choice(WORDINGS)
        self._file = kind.file
        keys = rng.sample([*VALUES], len(VALUES))
        wrong = {*rng.sample(keys, rng.choice(WRONG))}
        pairs = {key: rng.sample(VALUES[key], 2) for key in keys}
        right = [kind.value.format(key=key, value=pairs[key][0]) for key in keys]
        now = [kind.value.format(key=key, value=pairs[key][key in wrong]) for key in keys]
        for text in rng.sample(COMMENTS, 2):
            at = rng.randrange(len(right))
            right.insert(at, kind.comment.format(text=text))
            now.insert(at, kind.comment.format(text=text))
        self._right, self._lines = right, now
        self._wanted = [line for line in right if line not in now]
        self._first: list[str] | None = None
        self._viewed: list[str] = []
        self._ended = False
        wanted = "\n".join(rng.sample(self._wanted, len(self._wanted)))
        return (
            f"Some values in {self._file} are wrong. These lines have to be:\n{wanted}\nCorrect them with edit, leave "
            "the other lines as they are, then call submit."
        )

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Show, edit or submit. Raises `ToolError` for an old text that does not occur once in the file."""
        given = checked(name, arguments, self.tools, verbatim=("old", "new"))
        if name == "view":
            self._viewed = [*self._lines]
            self._first = self._first or self._viewed
            return "\n".join(self._numbered())
        if name == "edit":
            return self._edit(given["old"].strip("\r\n"), given["new"].strip("\r\n"))
        self._ended = True
        return "The file is submitted."

    @property
    def done(self) -> bool:
        """True after `submit`."""
        return self._ended

    def success(self) -> bool:
        """Return True if the whole file is as it has to be."""
        return self._lines == self._right

    def reopen(self) -> None:
        """Take the submission back."""
        self._ended = False

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the lines that were shown, with and without their numbers, and the lines of the task."""
        old = [*self._numbered(), *self._viewed]
        new = [*self._wanted, *(self._first or ())]
        return {key: [*dict.fromkeys(lines)] for key, lines in (("edit.old", old), ("edit.new", new)) if lines}

    def reference(self) -> Call | None:
        """View the file, then replace each line that differs from the task or, if it was spoiled, from the first view.

        A spoiled line that occurs twice cannot be replaced.
        """
        if self._first is None:
            return Call("view", {})
        right = [line if line in self._wanted else first for line, first in zip(self._right, self._first)]
        for now, line in zip(self._lines, right):
            if now != line and "\n".join(self._lines).count(now) == 1:
                return Call("edit", {"old": now, "new": line})
        return Call("submit", {}) if self._lines == right else None

    def _numbered(self) -> list[str]:
        return [f"{self._number.format(number)}{line}" for number, line in enumerate(self._viewed, 1)]

    def _edit(self, old: str, new: str) -> str:
        if not old or "\n" in old or "\n" in new:
            raise ToolError("old and new have to be one line each.")
        if old == new:
            raise ToolError("No changes to make: old and new are exactly the same.")
        text = "\n".join(self._lines)
        count = text.count(old)
        if count != 1:
            said = self._wording.repeated if count else self._wording.missing
            raise ToolError(said.format(file=self._file, old=old[:LONGEST], count=count))
        self._lines = text.replace(old, new[:LONGEST]).split("\n")
        return self._wording.edited.format(file=self._file)
