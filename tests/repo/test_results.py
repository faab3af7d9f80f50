"""A table has the result of each session that ran, and the last line adds up their reports."""

from __future__ import annotations

from pathlib import Path

import lanes
import nox_support
import pytest

ADAPTER = """<testsuites><testsuite name="Python 3.13.1" tests="5" failures="1" errors="1" skipped="1">
<properties><property name="hypothesis-statistics-a" value="dGVzdA=="/></properties></testsuite></testsuites>"""
CORE = """<testsuites><testsuite name="constraints.txt" tests="10" failures="0" errors="0" skipped="0">
<properties><property name="compared with the core" value="replay: 3 entries"/></properties></testsuite></testsuites>"""
ENDED = {"lint": 0, "core": 0, "adapters(langchain)": 1, "matrix-core-3.10": 2}
"""The sessions and their exit codes, in the order of their ends."""


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    (tmp_path / "adapters(langchain).xml").write_text(ADAPTER, encoding="utf-8")
    (tmp_path / "core.xml").write_text(CORE, encoding="utf-8")
    monkeypatch.setattr(nox_support, "REPORTS", tmp_path)
    nox_support.print_results(lanes.Stage(name=name, command=[], code=code, seconds=90) for name, code in ENDED.items())
    return capsys.readouterr().out.splitlines()


def test_reports_are_added_up_and_an_error_counts_as_failed(printed: list[str]) -> None:
    assert printed[-1] == "12 passed, 2 failed, 1 skipped"


def test_comparisons_are_printed_before_the_table(printed: list[str]) -> None:
    assert printed[0] == "compared with the core: replay: 3 entries"


def test_each_session_has_a_row(printed: list[str]) -> None:
    assert [line.split() for line in printed[1:-1]] == [
        ["session", "result", "passed", "failed", "skipped", "minutes", "versions"],
        ["adapters(langchain)", "failed", "(1)", "2", "2", "1", "1.5", "Python", "3.13.1"],
        ["core", "succeeded", "10", "0", "0", "1.5", "constraints.txt"],
        ["lint", "succeeded", "no", "tests", "1.5"],
        ["matrix-core-3.10", "failed", "(2)", "no", "tests", "1.5"],
    ]
