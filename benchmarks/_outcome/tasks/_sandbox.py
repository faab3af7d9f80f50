"""Runs the tests of a small Python file: here if its source is ours, in a process with limits if a model wrote it.

This file is also the program of that process, so it imports nothing of the package.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

SECONDS = 5
"""Time after which the process is stopped."""
BYTES = 1 << 30
"""Memory that the process may take."""
LONGEST = 60
"""Characters of a value in a message."""
FORBIDDEN = frozenset(
    "breakpoint compile delattr eval exec getattr globals help input locals memoryview open setattr vars".split()
)
"""Builtin functions that model-written source may not name."""
INTERNAL = ("__", "ag_", "cr_", "gi_", "tb_")
"""Beginnings of names that lead to the interpreter's own objects."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

Test = tuple[str, str]
"""An expression and the expression of the value that it should have."""


def refused(source: str) -> str | None:
    """Return why model-written source is not run, if it reaches out of the file; None if it may be run.

    Source with a syntax error may be run: its tests report the error.
    """
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in nodes:
        name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return "the file may not import anything"
        if isinstance(name, str) and (name in FORBIDDEN or name.startswith(INTERNAL)):
            return f"the file may not use {name}"
    return None


def failures(source: str, tests: Sequence[Test]) -> list[str]:
    """Run the tests and return a line for each that fails; one line if the source does not load."""
    space: dict[str, Any] = {}
    try:
        exec(compile(source, "lib.py", "exec"), space)
    except Exception as error:  # noqa: BLE001 - the error of the file is the result
        return [f"lib.py does not load: {type(error).__name__}: {error}"]
    return [line for line in [_failure(*test, space) for test in tests] if line]


def bare_environment() -> dict[str, str]:
    """Return the environment variables of a process that runs tests: no secrets, and always the same hashes."""
    needed = {key: value for key, value in os.environ.items() if key == "SYSTEMROOT"}  # on Windows
    return needed | {"PYTHONHASHSEED": "0"}


def steady(message: str) -> str:
    """Return the message without addresses in memory, which differ from run to run."""
    return _ADDRESS.sub("", message)


@lru_cache(maxsize=512)
def failures_apart(source: str, tests: tuple[Test, ...]) -> tuple[str, ...]:
    """Run the tests in a process of their own, and return a line for each that fails."""
    given = json.dumps([source, tests])
    command = [sys.executable, "-S", "-B", __file__]
    try:
        found = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=SECONDS, env=bare_environment(), check=False
        )
        return tuple(json.loads(found.stdout.rpartition("\n")[2]))
    except subprocess.TimeoutExpired:
        return ("the tests did not end in time",)
    except ValueError:
        return ("the tests broke off",)


def _failure(expression: str, expected: str, space: dict[str, Any]) -> str:
    try:
        value, wanted = eval(expression, space), eval(expected, {})
    except Exception as error:  # noqa: BLE001 - as above
        return f"{expression} raises {type(error).__name__}, expected {expected}"
    return "" if value == wanted else f"{expression} is {steady(repr(value))[:LONGEST]}, expected {expected}"


def _limit() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _main() -> None:
    source, tests = json.load(sys.stdin)
    _limit()
    found = failures(source, [(expression, expected) for expression, expected in tests])
    print("\n" + json.dumps(found), end="")


if __name__ == "__main__":
    _main()
