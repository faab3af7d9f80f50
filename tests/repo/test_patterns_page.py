"""What docs/patterns.md shows runs, in its order, and what it names is there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.engine.gates import TIER_RULES
from reasonblocks.monitors import MONITORS
from reasonblocks.monitors.kinds import KINDS
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks_workbench.authoring import Authored, read_patterns, warnings
from reasonblocks_workbench.cli import main

PAGE = (Path(__file__).parents[2] / "docs/patterns.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the page's file, and a home of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "home"))
    (tmp_path / "lessons.toml").write_text(blocks("toml")[0], encoding="utf-8")
    return tmp_path


def test_the_example_has_nothing_to_look_at_again() -> None:
    (found,) = read_patterns("lessons.toml")
    assert isinstance(found, Authored)
    assert warnings(found.pattern) == ()


def test_the_commands_work_one_after_another() -> None:
    assert [line for line in blocks("sh")[0].splitlines() if main(shlex.split(line)[1:]) != 0] == []


def test_the_example_is_found_by_what_the_page_searches(capsys: pytest.CaptureFixture[str]) -> None:
    *before, search = [shlex.split(line)[1:] for line in blocks("sh")[0].splitlines()]
    for argv in before:
        assert main(argv) == 0
    capsys.readouterr()
    assert main([*search, "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (first["id"], first["found"]) == ("orders-wrong-database", True)


def test_the_store_of_one_s_own_is_used(here: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(blocks("python")[0], "docs/patterns.md", "exec"), names)
    names["store"].close()
    assert (here / "team.db").exists()


def test_every_command_is_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", "--help"]) == 0
    given = set(re.findall(r"^ {2}(\w+) {2,}", capsys.readouterr().out, re.MULTILINE))
    table = PAGE[PAGE.index("|---|", PAGE.index("## Commands")) :]
    assert given == set(re.findall(r"^\| `(\w+)[` ]", table[: table.index("All but")], re.MULTILINE))


def test_the_gates_are_those_of_the_tiers() -> None:
    assert f"`e2` requires {TIER_RULES['e2'].similarity:g}, `e1` {TIER_RULES['e1'].similarity:g}" in PAGE


def test_the_kinds_of_trouble_are_the_monitors() -> None:
    assert [row.failure_type for row in MONITORS if f"`{row.failure_type}`" not in PAGE] == []


def test_the_kinds_of_findings_are_those_that_monitors_report() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (`.*) \|$", PAGE[PAGE.index("### Kinds of findings") :], re.MULTILINE)
    named = {name: set(re.findall(r"`(\w+)`", kinds)) for name, kinds in rows if name in KINDS}
    assert named == {name: set(kinds) for name, kinds in KINDS.items()}


def test_the_patterns_that_are_named_are_shipped() -> None:
    shipped = {one.id for one in starter_patterns()}
    assert set(re.findall(r"\brb-[a-z-]+", PAGE)) <= shipped
