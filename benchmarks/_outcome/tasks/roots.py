"""Roots: a check that fails because of a value in one of two folders, each of which has a file of the same name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from ..environment import Call, Tool, ToolError, tool
from ._arguments import checked, listed


class Wording(NamedTuple):
    """The results of a check and of a change, as tools word them. A check may leave out the `value` that it found."""

    failed: str
    passed: str
    changed: str


ROOTS = (("app", "lib"), ("web", "core"), ("client", "server"), ("api", "shared"), ("jobs", "base"))
FILES = {"config.ini": "{} = {}", "settings.yaml": "{}: {}", "service.env": "{}={}", "options.toml": "{} = {}"}
"""A file's name, and the form of its lines."""
VALUES = {
    "timeout": ("15", "30", "45", "90"),
    "retries": ("2", "3", "5", "8"),
    "port": ("8080", "8443", "9000", "9191"),
    "workers": ("4", "6", "12", "16"),
    "level": ("debug", "info", "warning", "error"),
    "region": ("north-1", "south-2", "east-3", "west-4"),
    "cache": ("memory", "disk", "redis", "none"),
    "encoding": ("utf-8", "latin-1", "ascii", "utf-16"),
}
WORDINGS = (
    Wording("FAILED {key}: got {value}, expected {right}", "All checks passed.", "{path}: {key} is now {new}."),
    Wording("check_{key} failed: {value} != {right}", "{count} passed", "Updated {key} in {path}."),
    Wording("Error in {key}: the value has to be {right}.", "No errors.", "ok"),
    Wording("1 problem: {key} must be {right} (found: {value})", "0 problems", "{key}: {old} -> {new}"),
    Wording("not ok - {key} should equal {right}", "ok - {count} of {count}", "Wrote {path}."),
)
SHOWN = 5
"""Settings of each file."""
BROKEN = (3, 4)
"""Settings that are wrong: one of these numbers."""
HIDDEN = (1, 2)
"""Those of them that count in the root which the task does not name, the first that fails among them."""


class Roots:
    """A service to be set up. Each setting is in both roots and counts in one, which the check does not name."""

    system = (
        "You set up a service until its check passes. Call exactly one tool each turn. "
        "When the check passes, call finish with a short report."
    )
    tools: Sequence[Tool] = (
        tool("ls", "List a folder", path="folder, or . for the workspace"),
        tool("read", "Show a file", path="path of the file"),
        tool("set", "Change a setting", path="path of the file", key="the setting", value="the new value"),
        tool("check", "Run the check; it stops at the first setting that is wrong"),
        tool("finish", "End the task", report="what was done"),
    )
    max_steps = 17

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Write the files of this seed."""
        rng = Random(f"roots {seed}")
        self._wording = rng.choice(WORDINGS)
        self._roots = rng.sample(rng.choice(ROOTS), 2)
        file, self._form = rng.choice([*FILES.items()])
        keys = rng.sample([*VALUES], SHOWN)
        broken = sorted(rng.sample(keys, rng.choice(BROKEN)), key=keys.index)
        hidden = {broken[0], *rng.sample(broken[1:], rng.choice(HIDDEN) - 1)}
        named, other = (f"{root}/{file}" for root in self._roots)
        self._right: dict[str, str] = {}
        self._where: dict[str, str] = {}
        self._configs: dict[str, dict[str, str]] = {named: {}, other: {}}
        for key in keys:
            self._right[key], wrong, beside = rng.sample(VALUES[key], 3)
            self._where[key], elsewhere = (other, named) if key in hidden else (named, other)
            self._configs[self._where[key]][key] = wrong if key in broken else self._right[key]
            self._configs[elsewhere][key] = rng.choice((self._right[key], beside))
        self._listed: list[str] = []
        self._known: dict[str, dict[str, str]] = {path: {} for path in self._configs}
        """Each file as the agent knows it, from reading and changing it."""
        self._values: dict[str, None] = {}
        self._failing: str | None = None
        self._checked = self._ended = False
        return (
            f"The service in {self._roots[0]}/ does not start, because the check of its workspace fails. Change "
            "settings until the check passes, then call finish with a report."
        )

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """List, read, change, check or finish. Raises `ToolError` for folders, files and settings that do not exist."""
        given = checked(name, arguments, self.tools)
        if name == "ls":
            return self._list(given["path"].removeprefix("./").rstrip("/") or ".")
        if name == "read":
            return self._show(self._path(given["path"]))
        if name == "set":
            return self._set(self._path(given["path"]), given["key"], given["value"])
        if name == "check":
            return self._check()
        self._ended = True
        return "The task has ended."

    @property
    def done(self) -> bool:
        """True after `finish`."""
        return self._ended

    def success(self) -> bool:
        """Return True if the check passes."""
        return self._wrong() is None

    def reopen(self) -> None:
        """Take the end back."""
        self._ended = False

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the folders, files, settings and values that were shown."""
        files = [path for path in self._configs if path.partition("/")[0] in self._listed]
        named = {self._failing}.union(*self._known.values())
        found = {
            "ls.path": [".", *(self._roots if "." in self._listed else self._roots[:1])],
            "read.path": files,
            "set.path": files,
            "set.key": [key for key in self._right if key in named],
            "set.value": [*self._values],
        }
        return {key: values for key, values in found.items() if values}

    def reference(self) -> Call | None:
        """Check after each change; give the setting that fails its value in one file, and then in the other.

        If the check says which value it found, the first is the file that has it.
        """
        if not self._checked:
            return Call("check", {})
        if self._failing is None:
            return Call("finish", {"report": "The check passes."})
        for folder in (".", *self._roots):
            if folder not in self._listed:
                return Call("ls", {"path": folder})
        key, right = self._failing, self._right[self._failing]
        left = [path for path, known in self._known.items() if known.get(key) != right]
        if "{value}" in self._wording.failed:
            for path in left:
                if key not in self._known[path]:
                    return Call("read", {"path": path})
            left.sort(key=lambda path: self._known[path][key] != self._found(key))
        return Call("set", {"path": left[0], "key": key, "value": right})

    def _wrong(self) -> str | None:
        """Return the first setting that is wrong where it counts."""
        return next((key for key, right in self._right.items() if self._found(key) != right), None)

    def _found(self, key: str) -> str:
        return self._configs[self._where[key]][key]

    def _list(self, folder: str) -> str:
        if folder not in (".", *self._roots):
            raise ToolError(f"no folder {folder[:40]!r}. The workspace is the folder . (a dot).")
        self._listed.append(folder)
        if folder == ".":
            return "\n".join([f"{root}/" for root in sorted(self._roots)])
        return "\n".join(sorted([path for path in self._configs if path.startswith(f"{folder}/")]))

    def _path(self, given: str) -> str:
        path = given.removeprefix("./")
        if path not in self._configs:
            raise ToolError(f"no file {path[:60]!r}. List a folder with ls.")
        return path

    def _show(self, path: str) -> str:
        self._known[path] |= self._configs[path]
        self._values |= dict.fromkeys(self._configs[path].values())
        return "\n".join([self._form.format(key, value) for key, value in self._configs[path].items()])

    def _set(self, path: str, key: str, value: str) -> str:
        if key not in self._right:
            raise ToolError(f"no setting {key[:40]!r} in {path}. Settings: {listed([*self._right])}.")
        old, self._configs[path][key] = self._configs[path][key], value[:40]
        self._known[path][key] = value[:40]
        self._checked = False
        return self._wording.changed.format(path=path, key=key, old=old, new=value[:40])

    def _check(self) -> str:
        self._failing, self._checked = self._wrong(), True
        if self._failing is None:
            return self._wording.passed.format(count=len(self._right))
        value, right = self._found(self._failing), self._right[self._failing]
        self._values[right] = None
        return self._wording.failed.format(key=self._failing, value=value, right=right)
