"""A small repository with tests, its possible bugs, and the run of its tests by `python -m unittest`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ._sandbox import bare_environment, steady

SECONDS = 20
"""Time after which a test run is stopped."""
LONGEST = 160
"""Characters of a message."""

SWAPS = (
    ("[0]", "[1]"),
    (">=", ">"),
    ("<=", "<"),
    (" + ", " - "),
    (" * ", " + "),
    ("max(", "min("),
    (" and ", " or "),
    ("[:count]", "[count:]"),
    ("= 0", "= 1"),
    ("upper()", "lower()"),
)
"""Pieces of code that are taken for one another. Each bug is one of them, in one direction or the other."""


class Function(NamedTuple):
    """A function, calls of it with their values, and the pieces that are right in it with what breaks it."""

    source: str
    cases: tuple[tuple[str, str], ...]
    bugs: tuple[tuple[str, str], ...]


MODULES: Mapping[str, Mapping[str, Function]] = {
    "parse": {
        "amount": Function(
            "def amount(line):\n    parts = line.split(' x ')\n    return int(parts[0])",
            (("amount('4 x lamp')", "4"), ("amount('12 x mug')", "12")),
            (("[0]", "[1]"),),
        ),
        "code": Function(
            "def code(text):\n    head = text.split('-')[0]\n    return head.strip().upper()",
            (("code('ab-12')", "'AB'"), ("code(' c -9')", "'C'")),
            (("[0]", "[1]"), ("upper()", "lower()")),
        ),
        "item": Function(
            "def item(line):\n    parts = line.split(' x ')\n    return parts[1].strip()",
            (("item('4 x lamp')", "'lamp'"), ("item('1 x red mug')", "'red mug'")),
            (("[1]", "[0]"),),
        ),
    },
    "prices": {
        "discount": Function(
            "def discount(total):\n    if total >= 100:\n        return total // 10\n    return 0",
            (("discount(100)", "10"), ("discount(90)", "0")),
            ((">=", ">"),),
        ),
        "shipping": Function(
            "def shipping(weight, far):\n    if weight > 20 and far:\n        return 9\n    return 4",
            (("shipping(30, True)", "9"), ("shipping(30, False)", "4"), ("shipping(20, True)", "4")),
            ((" and ", " or "), (">", ">=")),
        ),
        "total": Function(
            "def total(rows):\n    result = 0\n    for amount, price in rows:\n"
            "        result += amount * price\n    return result",
            (("total([(2, 5), (1, 7)])", "17"), ("total([])", "0")),
            ((" * ", " + "), ("= 0", "= 1")),
        ),
    },
    "report": {
        "best": Function(
            "def best(names, count):\n    ranked = sorted(names)\n    return ranked[:count]",
            (("best(['b', 'a', 'c'], 2)", "['a', 'b']"), ("best([], 1)", "[]")),
            (("[:count]", "[count:]"),),
        ),
        "title": Function(
            "def title(name, year):\n    if len(name) <= 3:\n        name = name.upper()\n    return name",
            (("title('abc', 1)", "'ABC'"), ("title('lamp', 2)", "'lamp'")),
            (("<=", "<"), ("upper()", "lower()")),
        ),
        "width": Function(
            "def width(names):\n    longest = max(len(name) for name in names)\n    return longest + 2",
            (("width(['ab', 'abcd'])", "6"), ("width(['a'])", "3")),
            (("max(", "min("), (" + ", " - ")),
        ),
    },
    "stock": {
        "left": Function(
            "def left(held, sold, broken):\n    gone = sold + broken\n    return max(held - gone, 0)",
            (("left(9, 2, 1)", "6"), ("left(1, 5, 0)", "0")),
            ((" + ", " - "), ("max(", "min("), (" - ", " + ")),
        ),
        "low": Function(
            "def low(held, least):\n    return held < least and least > 0",
            (("low(3, 3)", "False"), ("low(2, 3)", "True"), ("low(-1, 0)", "False")),
            (("<", "<="), (" and ", " or "), (">", ">=")),
        ),
        "order": Function(
            "def order(held, least):\n    if held >= least:\n        return 0\n    return least * 2 - held",
            (("order(5, 5)", "0"), ("order(1, 5)", "9"), ("order(8, 5)", "0")),
            ((">=", ">"), (" - ", " + "), (" * ", " + ")),
        ),
    },
}
HEAD = """\
import unittest

from shop import {}


class Tests(unittest.TestCase):
    longMessage = False

    def check(self, call, got, expected):
        self.assertEqual(got, expected, f"{{call}} is {{got!r}}, expected {{expected!r}}")
"""
"""The first lines of a module's tests."""
LIMITS = """\
try:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
except (ImportError, ValueError, OSError):
    pass
"""
"""The tests' package: model-written code gets a limited amount of memory and time."""
_FAILED = re.compile(r"^(?:FAIL|ERROR): test_(\w+) \(tests\.test_(\w+)\.", re.M)
_NOT_LOADED = re.compile(r"^ERROR: tests\.test_(\w+) ", re.M)
_MESSAGE = re.compile(r"^\w*(?:Error|Exception|Interrupt|Iteration|Exit)\b.*", re.M)


class Failure(NamedTuple):
    """The first failed test. `function` is the function that it tests, "" if its module does not load."""

    module: str
    function: str
    message: str


def variants(source: str) -> Iterator[str]:
    """Yield the source with one piece swapped for the one that it may be taken for, line by line."""
    lines = source.split("\n")
    for at, line in enumerate(lines[1:], 1):
        for one, other in [*SWAPS, *[(other, one) for one, other in SWAPS]]:
            if one in line and not (len(one) == 1 and f"{one}=" in line):
                yield "\n".join([*lines[:at], line.replace(one, other, 1), *lines[at + 1 :]])


def module_of(functions: Mapping[str, Function]) -> str:
    """Return the text of a module."""
    return "\n\n\n".join([function.source for function in functions.values()])


def tests_of(name: str, functions: Mapping[str, Function]) -> str:
    """Return the text of a module's tests."""
    lines = [HEAD.format(name)]
    for title, function in functions.items():
        lines.append(f"    def test_{title}(self):")
        for call, value in function.cases:
            lines.append(f"        self.check({call!r}, {name}.{call}, {value})")
    return "\n".join(lines)


def repository() -> dict[str, str]:
    """Return the text of each file of the repository that passes its tests."""
    modules = {f"shop/{name}.py": module_of(functions) for name, functions in MODULES.items()}
    return modules | {f"tests/test_{name}.py": tests_of(name, functions) for name, functions in MODULES.items()}


@lru_cache(maxsize=1_024)
def first_failure(files: tuple[tuple[str, str], ...]) -> Failure | None:
    """Write the files into a folder of their own, run the tests there, and return the first that fails."""
    with TemporaryDirectory() as folder:
        for path, text in [*files, ("shop/__init__.py", ""), ("tests/__init__.py", LIMITS)]:
            place = Path(folder, path)
            place.parent.mkdir(exist_ok=True)
            place.write_text(text + "\n", encoding="utf-8")
        return _run(folder)


def _run(folder: str) -> Failure | None:
    command = [sys.executable, "-S", "-B", "-m", "unittest", "discover", "-f", "-s", "tests", "-t", "."]
    try:
        found = subprocess.run(
            command, cwd=folder, env=bare_environment(), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Failure("", "", "the tests did not end in time")
    return None if found.returncode == 0 else _failure_in(found.stderr)


def _failure_in(said: str) -> Failure:
    messages = _MESSAGE.findall(said)
    message = steady(messages[-1])[:LONGEST] if messages else "the test run broke off"
    if failed := _FAILED.search(said):
        return Failure(failed[2], failed[1], message)
    not_loaded = _NOT_LOADED.search(said)
    return Failure(not_loaded[1] if not_loaded else "", "", message)
