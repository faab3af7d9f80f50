"""docs/report.md, its picture, and the files that a report's wheel needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reasonblocks_workbench.cli import main
from reasonblocks_workbench.report import TEMPLATES
from reasonblocks_workbench.report._chart import MARKS
from reasonblocks_workbench.report.text import CLIP
from reasonblocks_workbench.report.view import LEGEND

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/report.md").read_text(encoding="utf-8")
PICTURE = ROOT / "docs/run-page.png"


def test_the_picture_is_there_and_small() -> None:
    assert PICTURE.read_bytes().startswith(b"\x89PNG")
    assert PICTURE.stat().st_size < 300_000
    assert "(run-page.png)" in PAGE


@pytest.mark.parametrize("command", ["report", "replay"])
def test_the_flags_of_the_page_are_those_of_the_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([command, "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    lines = [line for line in PAGE.splitlines() if line.startswith(f"reasonblocks {command} ")]
    used = {flag for line in lines for flag in re.findall(r"--[a-z-]+", line)}
    assert used
    assert used <= known


def test_the_page_explains_every_mark() -> None:
    rows = dict(re.findall(r"^\| `(\w)` \| (.+?) \|$", PAGE, re.MULTILINE))
    assert rows.keys() == {*MARKS.values()}
    assert all(LEGEND[kind] in rows[letter] for kind, letter in MARKS.items())


def test_the_limit_of_a_text_is_that_of_the_page() -> None:
    assert f"{CLIP:,} characters" in PAGE


def test_the_files_of_a_page_are_in_the_package() -> None:
    names = {path.name for path in TEMPLATES.iterdir()}
    assert {"report.css", "report.js", "run.html", "runs.html", "health.html"} <= names
    config = (ROOT / "packages/core/pyproject.toml").read_text(encoding="utf-8")
    assert 'packages = ["src/reasonblocks"]' in config
    assert "exclude" not in config.partition("[tool.hatch")[2]
