"""The cells of the matrix leave nothing out: together they test each part in full, with both ends of its versions."""

from __future__ import annotations

import pytest
from cells import ADAPTERS, CELLS, ENDS, PYTHONS

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
