"""Repair: a file with a bug, its tests, and a list of patches of which one is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..environment import Call, Tool, ToolError, tool
from ._arguments import checked, listed
from ._programs import PROGRAMS
from ._sandbox import failures, failures_apart, refused

PATCHES = 5
SHOWN = 2
"""Failed tests that a result names."""
LONGEST = 200
"""Characters of an edited line."""


class Repair:
    """A repair of one line. The agent applies proposed patches, which replace each other, or edits the line itself."""

    system = (
        "You repair the file lib.py until its tests pass. Call exactly one tool each turn. "
        "When the tests pass, call done."
    )
    tools: Sequence[Tool] = (
        tool("read_file", "Show lib.py with line numbers"),
        tool("run_tests", "Run the tests"),
        tool("list_patches", "List the proposed patches"),
        tool("apply_patch", "Apply one patch to the file as it was at first", name="name of the patch"),
        tool("edit_line", "Replace a line", line="number of the line", text="the new line, with its indentation"),
        tool("done", "End the task"),
    )
    max_steps = 22

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Break a program, and propose patches."""
        rng = Random(f"repair {seed}")
        program = rng.choice(PROGRAMS)
        self._tests = program.tests
        right = program.source.split("\n")
        at, text = rng.choice(program.wrong)
        self._first = [*right[: at - 1], text, *right[at:]]
        first, *rest = rng.sample([wrong for wrong in program.wrong if wrong != (at, text)], PATCHES - 1)
        rest.append((at, right[at - 1]))
        self._patches = {f"p{number}": patch for number, patch in enumerate([first, *rng.sample(rest, len(rest))], 1)}
        self._lines = [*self._first]
        self._applied: str | None = None
        self._listed = self._read = self._edited = self._ended = False
        self._passed: bool | None = None
        self._failed: set[str] = set()
        return "The tests of lib.py fail: one line has a bug. Repair it, make sure that the tests pass, then call done."

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Show, change or test the file. Raises `ToolError` for patches and lines that do not exist."""
        given = checked(name, arguments, self.tools, verbatim=("text",))
        if name == "read_file":
            self._read = True
            return "\n".join([f"{number}: {line}" for number, line in enumerate(self._lines, 1)])
        if name == "list_patches":
            self._listed = True
            return "\n".join(
                [f"{patch}: line {at} becomes {text.strip()}" for patch, (at, text) in self._patches.items()]
            )
        if name == "run_tests":
            return self._run()
        if name == "apply_patch":
            return self._apply(given["name"])
        if name == "edit_line":
            return self._edit(given["line"], given["text"])
        self._ended = True
        return "The task has ended."

    @property
    def done(self) -> bool:
        """True after `done`."""
        return self._ended

    def success(self) -> bool:
        """Return True if the tests pass."""
        return not self._failures()

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the patches and the numbers of lines that were shown."""
        found = {
            "apply_patch.name": [*self._patches] if self._listed else [],
            "edit_line.line": [str(number) for number in range(1, len(self._lines) + 1)] if self._read else [],
        }
        return {key: values for key, values in found.items() if values}

    def reference(self) -> Call | None:
        """Apply the next patch that was not tested yet, and run the tests after each."""
        if self._passed:
            return Call("done", {})
        if (self._applied or self._edited) and self._passed is None:
            return Call("run_tests", {})
        if not self._listed:
            return Call("list_patches", {})
        left = [name for name in self._patches if name not in self._failed]
        return Call("apply_patch", {"name": left[0]}) if left else None

    def _failures(self) -> Sequence[str]:
        source = "\n".join(self._lines)
        return failures_apart(source, self._tests) if self._edited else failures(source, self._tests)

    def _run(self) -> str:
        found = self._failures()
        self._passed = not found
        if not found:
            return f"All {len(self._tests)} tests passed."
        if self._applied:
            self._failed.add(self._applied)
        return "\n".join([f"{len(found)} of {len(self._tests)} tests failed:", *found[:SHOWN]])

    def _apply(self, name: str) -> str:
        if name not in self._patches:
            known = f"Patches: {listed([*self._patches])}." if self._listed else "List them with list_patches."
            raise ToolError(f"no patch {name[:40]!r}. {known}")
        at, text = self._patches[name]
        self._lines = [*self._first]
        self._lines[at - 1] = text
        self._applied, self._edited, self._passed = name, False, None
        return f"Patch {name} is applied: line {at} is now {text.strip()}"

    def _edit(self, line: str, text: str) -> str:
        if not line.isdecimal() or not 1 <= int(line) <= len(self._lines):
            raise ToolError(f"no line {line[:40]!r}. Lines: 1 to {len(self._lines)}.")
        lines = [*self._lines]
        lines[int(line) - 1] = text.rstrip()[:LONGEST]
        if why := refused("\n".join(lines)):
            raise ToolError(why)
        self._lines, self._applied, self._edited, self._passed = lines, None, True, None
        return f"Line {line} is now {text.strip()[:LONGEST]}"
