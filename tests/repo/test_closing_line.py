"""The closing line adds up the reports of the sessions that ran."""

from __future__ import annotations

from pathlib import Path

import nox_support
import pytest

ADAPTER = """<testsuites><testsuite tests="5" failures="1" errors="1" skipped="1">
<properties><property name="hypothesis-statistics-a" value="dGVzdA=="/></properties></testsuite></testsuites>"""
CORE = """<testsuites><testsuite tests="10" failures="0" errors="0" skipped="0">
<properties><property name="compared with the core" value="replay: 3 entries"/></properties></testsuite></testsuites>"""


@pytest.fixture(autouse=True)
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "adapters(langchain).xml").write_text(ADAPTER, encoding="utf-8")
    (tmp_path / "core.xml").write_text(CORE, encoding="utf-8")
    monkeypatch.setattr(nox_support, "REPORTS", tmp_path)
    return tmp_path


def test_reports_are_added_up_and_an_error_counts_as_failed(capsys: pytest.CaptureFixture[str]) -> None:
    nox_support.closing_line(["adapters(langchain)", "core", "lint"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["compared with the core: replay: 3 entries", "12 passed, 2 failed, 1 skipped"]


def test_sessions_that_ran_no_tests_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    nox_support.closing_line(["core", "lint", "matrix-core-3.10"])
    first, *_, last = capsys.readouterr().out.splitlines()
    assert (first, last) == ("no tests ran in lint, matrix-core-3.10", "10 passed, 0 failed, 0 skipped")
