"""Project: a small repository with two bugs, the second of which shows only when the first is repaired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..environment import Call, Tool, ToolError, tool
from ._arguments import checked, listed
from ._repository import MODULES, Failure, first_failure, repository, variants
from ._sandbox import refused

LONGEST = 2_000
"""Characters of a text that an edit brings."""


class Project:
    """A long repair with real files and test runs; the files lie in a folder only while the tests run."""

    system = (
        "You repair a repository until its tests pass. Call exactly one tool each turn. When all tests pass, call done."
    )
    tools: Sequence[Tool] = (
        tool("list_files", "List all files"),
        tool("read_file", "Read a file with line numbers", path="path of the file"),
        tool(
            "replace_lines",
            "Replace lines of a file",
            path="path of the file",
            first="number of the first line",
            last="number of the last line",
            text="the new lines",
        ),
        tool("replace_text", "Replace a text of a file", path="path of the file", old="present text", new="new text"),
        tool("run_tests", "Run the tests; they stop at the first failure"),
        tool("done", "End the task"),
    )
    max_steps = 30

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Put two bugs into the repository."""
        rng = Random(f"project {seed}")
        self._files = repository()
        for module in rng.sample([*MODULES], 2):
            function = MODULES[module][rng.choice([*MODULES[module]])]
            right, wrong = rng.choice(function.bugs)
            broken = function.source.replace(right, wrong, 1)
            self._files[f"shop/{module}.py"] = self._files[f"shop/{module}.py"].replace(function.source, broken)
        self._first = dict(self._files)
        self._shown = False
        self._read: set[str] = set()
        self._failed: set[tuple[str, str]] = set()
        self._last: Failure | None = None
        self._tested = self._ended = False
        return (
            "Tests of this repository fail. Repair the modules under shop/ until all tests pass, then call done. "
            "The tests themselves are right and cannot be changed."
        )

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """List, read, edit or test. Raises `ToolError` for unknown files and for edits that cannot be made."""
        given = checked(name, arguments, self.tools, verbatim=("text", "old", "new"))
        if name == "list_files":
            self._shown = True
            return "\n".join(self._files)
        if name == "read_file":
            return self._show(given["path"])
        if name == "replace_lines":
            return self._replace_lines(given["path"], given["first"], given["last"], given["text"])
        if name == "replace_text":
            return self._replace_text(given["path"], given["old"], given["new"])
        if name == "run_tests":
            return self._run()
        self._ended = True
        return "The task has ended."

    @property
    def done(self) -> bool:
        """True after `done`."""
        return self._ended

    def success(self) -> bool:
        """Return True if all tests pass."""
        return self._failure() is None

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the files that were listed, and the numbers of the lines of those that were read."""
        if not self._shown:
            return {}
        most = max([self._files[path].count("\n") + 1 for path in self._read], default=0)
        numbers = [str(number) for number in range(1, most + 1)]
        modules = [path for path in self._files if path.startswith("shop/")]
        found = {
            "read_file.path": [*self._files],
            "replace_lines.path": modules,
            "replace_lines.first": numbers,
            "replace_lines.last": numbers,
            "replace_text.path": modules,
        }
        return {key: values for key, values in found.items() if values}

    def reference(self) -> Call | None:
        """Read the module whose test failed, and swap one piece of the tested function after another."""
        if not self._tested:
            return Call("run_tests", {})
        if self._last is None:
            return Call("done", {})
        if not self._shown:
            return Call("list_files", {})
        path = f"shop/{self._last.module}.py"
        if path not in self._files:
            return None
        if path not in self._read:
            return Call("read_file", {"path": path})
        return self._next_variant(path, self._last.function)

    def _next_variant(self, path: str, function: str) -> Call | None:
        """Return the edit that makes the next variant of the function, as the file was at first."""
        now, first = _part(self._files[path], function), _part(self._first[path], function)
        if now is None or first is None:
            return self._rewritten(path)
        start, text = now
        for variant in variants(first[1]):
            if (path, variant) not in self._failed:
                last = start + text.count("\n")
                return Call("replace_lines", {"path": path, "first": str(start), "last": str(last), "text": variant})
        return None

    def _rewritten(self, path: str) -> Call | None:
        """Return the edit that makes the file what it was at first; None if it is that."""
        if self._files[path] == self._first[path]:
            return None
        last = str(self._files[path].count("\n") + 1)
        return Call("replace_lines", {"path": path, "first": "1", "last": last, "text": self._first[path]})

    def _failure(self) -> Failure | None:
        return first_failure(tuple(self._files.items()))

    def _run(self) -> str:
        self._last, self._tested = self._failure(), True
        if self._last is None:
            return "All tests passed."
        module, function, message = self._last
        path = f"shop/{module}.py"
        if path in self._files and (part := _part(self._files[path], function)):
            self._failed.add((path, part[1]))
        where = f"tests/test_{module}.py" if module else "the run"
        test = f" test_{function}" if function else ""
        return f"FAILED {where}{test}: {message}"

    def _known(self, path: str) -> str:
        path = path.removeprefix("./")
        if path not in self._files:
            raise ToolError(f"no file {path[:60]!r}. Files: {listed([*self._files])}.")
        return path

    def _show(self, path: str) -> str:
        path = self._known(path)
        self._read.add(path)
        return "\n".join([f"{number}: {line}".rstrip() for number, line in enumerate(self._files[path].split("\n"), 1)])

    def _replace_lines(self, path: str, first: str, last: str, text: str) -> str:
        path = self._known(path)
        lines = self._files[path].split("\n")
        if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= len(lines)):
            raise ToolError(f"no lines {first[:20]} to {last[:20]}. {path} has the lines 1 to {len(lines)}.")
        return self._write(path, [*lines[: int(first) - 1], *text.rstrip("\n").split("\n"), *lines[int(last) :]])

    def _replace_text(self, path: str, old: str, new: str) -> str:
        path = self._known(path)
        found = self._files[path].count(old) if old else 0
        if found != 1:
            raise ToolError(f"the old text occurs {found} times in {path}; it has to occur once.")
        return self._write(path, self._files[path].replace(old, new).split("\n"))

    def _write(self, path: str, lines: Sequence[str]) -> str:
        text = "\n".join(lines)
        if not path.startswith("shop/"):
            raise ToolError("the tests cannot be changed. Change a module under shop/.")
        if len(text) > LONGEST:
            raise ToolError(f"{path} may have at most {LONGEST} characters.")
        if why := refused(text):
            raise ToolError(why)
        self._files[path], self._tested = text, False
        return f"{path} is changed."


def _part(text: str, function: str) -> tuple[int, str] | None:
    """Return the number of a function's first line and its text; None if there is no such function."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if function and line.startswith(f"def {function}(")), None)
    if start is None:
        return None
    end = start + 1
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return start + 1, "\n".join(lines[start:end])
