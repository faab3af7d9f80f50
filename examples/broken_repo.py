"""Makes the demo's small broken repository, and the tools that work on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

FILES = {
    "README.md": "The till of a small shop. shop/ has the code, tests/ the tests.\n",
    "shop/__init__.py": "",
    "shop/prices.py": '''"""Prices come as text and become whole cents."""


def cents(price: str) -> int:
    """ "4.99" is 499."""
    units, _, rest = price.partition(".")
    return int(units) * 100 + int(rest or 0)
''',
    "shop/orders.py": '''"""An order is settled when exactly what is due was paid."""

from shop.prices import cents


def settle(lines: list[tuple[str, int]], paid: int, discount: int = 0) -> int:
    """Checks the cents paid for lines of (price, quantity), with a discount in percent; gives what was due."""
    subtotal = sum(cents(price) * quantity for price, quantity in lines)
    due = subtotal - subtotal * discount // 100
    if paid != due:
        raise ValueError(f"paid {paid}, due {due}")
    return due
''',
    "tests/__init__.py": "",
    "tests/test_orders.py": """import unittest

from shop.orders import settle
from shop.prices import cents


class OrderTest(unittest.TestCase):
    def test_discount(self) -> None:
        settle([("12.5", 2)], paid=2250, discount=10)

    def test_price(self) -> None:
        self.assertEqual(cents("4.99"), 499)

    def test_quantity(self) -> None:
        settle([("4.99", 2)], paid=998)

    def test_round_price(self) -> None:
        settle([("12.5", 2)], paid=2500)

    def test_two_lines(self) -> None:
        settle([("0.5", 3), ("2.25", 1)], paid=375)
""",
}
"""The bug: prices.py reads 12.5 as 1205 cents. Every traceback ends in orders.py."""

TEST_SECONDS = 60
Tool = Callable[..., str]


def write_to(root: Path) -> Path:
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def tools(root: Path) -> list[Tool]:
    """Return the agent's tools."""

    def read_file(path: str) -> str:
        """Reads a file of the repository."""
        return (root / path).read_text(encoding="utf-8")

    def edit_file(path: str, old: str, new: str) -> str:
        """Puts `new` in the place of `old` in a file of the repository."""
        text = (root / path).read_text(encoding="utf-8")
        if old not in text:
            return "no such text in it"
        (root / path).write_text(text.replace(old, new, 1), encoding="utf-8")
        return f"changed line {text[: text.index(old)].count(chr(10)) + 1}"

    def run_tests() -> str:
        """Runs all tests of the repository."""
        return test_report(root)

    return [read_file, edit_file, run_tests]


def test_report(root: Path) -> str:
    """Run the tests and return unittest's report, without times, folders and other parts that differ between runs.

    The last line is the verdict: "OK" or "FAILED (...)".
    """
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "unittest"],  # -B: bytecode would hide an edit within the same second
        cwd=root,
        env={**outside, "PYTHON_COLORS": "0"},
        capture_output=True,
        text=True,
        timeout=TEST_SECONDS,
        check=False,
    )
    report = done.stderr.replace(f"{root}{os.sep}", "")
    report = re.sub(r" \(tests\.[\w.]+\)| in [\d.]+s", "", report)
    return "\n".join(line for line in report.splitlines() if re.search(r"[^-=~^.EF\s]", line))


def verdict(report: str) -> str:
    return report.rpartition("\n")[2]


def passing(report: str) -> bool:
    return verdict(report) == "OK"
