"""The cells of the matrix leave nothing out, and one that gets other versions than it asked for fails."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cells import ADAPTERS, CELLS, ENDS, PYTHONS, Cell
from nox_support import check_versions

with_versions = pytest.mark.parametrize("part", [*ADAPTERS, "server", "threads"])


def test_a_cell_has_a_name_of_its_own() -> None:
    assert len({cell.name for cell in CELLS}) == len(CELLS)


@pytest.mark.parametrize("part", ["core", "install"])
def test_the_core_and_the_installs_are_tested_on_every_python(part: str) -> None:
    assert {cell.python for cell in CELLS if cell.part == part} == {*PYTHONS}


def test_the_whole_core_is_tested_on_one_python() -> None:
    assert [cell.python for cell in CELLS if cell.part == "core" and cell.whole] == [PYTHONS[-1]]


@with_versions
def test_both_ends_of_the_versions_have_all_tests_on_one_python_each(part: str) -> None:
    whole = {(cell.versions, cell.python) for cell in CELLS if cell.part == part and cell.whole}
    assert whole == {("oldest", ENDS[0]), ("newest", ENDS[1])}


@with_versions
def test_the_newest_versions_are_tested_on_both_ends_of_the_pythons(part: str) -> None:
    assert {cell.python for cell in CELLS if cell.part == part and cell.versions == "newest"} == {*ENDS}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_oldest_framework_is_tested_on_both_ends_of_the_pythons(adapter: str) -> None:
    assert {cell.python for cell in CELLS if cell.part == adapter and cell.versions == "oldest"} == {*ENDS}


def test_the_shorter_cells_come_last() -> None:
    assert [cell.whole for cell in CELLS] == sorted([cell.whole for cell in CELLS], reverse=True)


def session(python: str, framework: str) -> Any:
    """Return a session whose environment has this Python and this framework."""

    class Session:
        def run(self, *command: str, **options: object) -> str:
            return f"{python} {framework}\n"

        def error(self, message: str) -> None:
            raise AssertionError(message)

    return Session()


LANGCHAIN = ADAPTERS["langchain"]
OLDEST = Cell(part="langchain", python="3.10", versions="oldest")
NEWEST = Cell(part="langchain", python="3.13")


def test_a_cell_reports_the_versions_that_it_got() -> None:
    got = check_versions(session("3.10.14", LANGCHAIN["oldest"]), OLDEST)
    assert got == f"Python 3.10.14, langchain {LANGCHAIN['oldest']}"


@pytest.mark.parametrize(
    ("cell", "python", "framework", "asked"),
    [
        (OLDEST, "3.12.1", LANGCHAIN["oldest"], "Python==3.10.*"),
        (OLDEST, "3.10.14", LANGCHAIN["newest"], f"langchain=={LANGCHAIN['oldest']}"),
        (NEWEST, "3.13.1", LANGCHAIN["oldest"], f"langchain>={LANGCHAIN['newest']}"),
    ],
)
def test_a_cell_fails_with_another_version(cell: Cell, python: str, framework: str, asked: str) -> None:
    with pytest.raises(AssertionError, match=f"^asked for {re.escape(asked)}, got "):
        check_versions(session(python, framework), cell)
