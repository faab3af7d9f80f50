"""The last lines of a run add up the reports of its stages, below a table of them."""

from __future__ import annotations

from pathlib import Path

import nox_support
import pytest

ADAPTER = """<testsuites><testsuite name="Python 3.12.1, langchain 1.5.2" tests="5" failures="1" errors="1" skipped="1">
<properties><property name="hypothesis-statistics-a" value="dGVzdA=="/></properties></testsuite></testsuites>"""
CORE = """<testsuites><testsuite name="Python 3.12.1" tests="10" failures="0" errors="0" skipped="0">
<properties><property name="compared with the core" value="replay: 3 entries"/></properties></testsuite></testsuites>"""


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    (tmp_path / "adapters(langchain).xml").write_text(ADAPTER, encoding="utf-8")
    (tmp_path / "core.xml").write_text(CORE, encoding="utf-8")
    return tmp_path


def lines(reports: Path, **minutes: float) -> list[str]:
    """Return the last lines after stages that took so long; one that took less than none has failed."""
    stages = [
        nox_support.Stage(name=name, seconds=60 * abs(took), code=int(took < 0)) for name, took in minutes.items()
    ]
    return nox_support.summary(stages, reports).splitlines()


def test_reports_are_added_up_and_an_error_counts_as_failed(reports: Path) -> None:
    last = lines(reports, **{"adapters(langchain)": 1.0, "core": 2.0, "lint": 0.1})[-2:]
    assert last == ["compared with the core: replay: 3 entries", "12 passed, 2 failed, 1 skipped"]


def test_the_table_has_every_stage_the_longest_first(reports: Path) -> None:
    table = [line.split() for line in lines(reports, **{"lint": 0.1, "adapters(langchain)": -1.0, "core": 12.0})[:4]]
    assert table == [
        ["stage", "passed", "failed", "skipped", "minutes", "versions"],
        ["core", "10", "-", "-", "12.0", "Python", "3.12.1"],
        ["adapters(langchain)", "2", "2", "1", "1.0", "Python", "3.12.1,", "langchain", "1.5.2"],
        ["lint", "-", "-", "-", "0.1"],
    ]


def test_a_stage_that_failed_without_a_failed_test_is_seen_in_the_table(reports: Path) -> None:
    table = lines(reports, core=-1.0, lint=-2.0)
    assert ["failed (1), see its output" in line for line in table[1:3]] == [True, True]
