"""docs/frameworks.md tells of every scenario and every framework; what it says of them is the reports' affair."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from reasonblocks_testing import ConformanceSuite

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
SUITE = """<testsuites><testsuite name="Python 3.13.0, langchain 1.4.7" time="2.6">
<testcase classname="tests.TestLangChain" name="test_history_stays_clean[invoke]"/>
<testcase classname="tests.TestLangChain" name="test_history_stays_clean[stream]">
<skipped type="pytest.xfail" message="it | streams"/></testcase>
<testcase classname="tests.TestLangChain" name="test_golden_runs_decide_as_written[fast-invoke]"/>
<testcase classname="tests.TestLangChain" name="test_golden_runs_decide_as_written[slow-invoke]"><failure/></testcase>
<testcase classname="tests.test_convert" name="test_something_else"/>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("frameworks", ROOT / "tools/frameworks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "frameworks", module)  # dataclasses look their module up
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    (tmp_path / "adapters(langchain).xml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "matrix-langchain-newest-3.13.xml").write_text(SUITE, encoding="utf-8")
    return tmp_path


def tables(page: str) -> list[list[list[str]]]:
    """Each table's rows, its head first."""
    found = re.findall(r"^(?:\|.*\n)+", page, re.MULTILINE)
    rows = [[line.strip("|\n").split("|") for line in table.splitlines()] for table in found]
    return [[[cell.strip() for cell in row] for row in (table[0], *table[2:])] for table in rows]


# --- the page


def test_the_page_has_every_scenario_of_the_suite(tool: ModuleType) -> None:
    scenarios = [tool.sentence(name) for name in dir(ConformanceSuite) if name.startswith("test_")]
    everywhere = PAGE.partition(tool.EVERYWHERE)[2].partition(".\n")[0].split("; ")
    assert sorted([*(row[0] for row in tables(PAGE)[0][1:]), *everywhere]) == sorted(scenarios), "./dev frameworks"


def test_the_page_has_every_framework_of_versions_toml(tool: ModuleType) -> None:
    heads = [head.partition("<br>")[0] for head in tables(PAGE)[0][0][1:]]
    wanted = [tool.LOOP, *(adapter["distribution"] for adapter in tool.ADAPTERS.values())]
    assert [*dict.fromkeys(heads)] == wanted, "./dev frameworks"


def test_the_page_has_every_cell_of_the_matrix(tool: ModuleType) -> None:
    wanted = [(cell.python, tool.framework_of(cell)) for cell in tool.cells()]
    assert [tuple(row[:2]) for row in tables(PAGE)[1][1:]] == wanted, "./dev frameworks"


def test_the_page_says_which_command_made_it() -> None:
    assert "`./dev matrix`, then `./dev frameworks`" in PAGE


# --- the tool


def test_a_scenario_that_differs_by_mode_is_told_mode_by_mode(tool: ModuleType, reports: Path) -> None:
    row = dict(row_of(tool, reports, "history stays clean"))
    assert row["langchain<br>`invoke`<br>`stream`"] == "`invoke`: passed; `stream`: cannot: it &#124; streams"


def test_a_scenario_that_passes_everywhere_is_in_the_list_alone(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [tool.Case(suite="S", name=name, mode="run", said=tool.PASSED) for name in tool.SCENARIOS[:2]]
    monkeypatch.setattr(tool, "columns", lambda reports: [tool.Column(framework="mine", cases=cases)])
    page = tool.page(tmp_path)
    assert f"{tool.EVERYWHERE}{'; '.join(map(tool.sentence, tool.SCENARIOS[:2]))}.\n" in page
    assert [row[0] for row in tables(page)[0][1:]] == [*map(tool.sentence, tool.SCENARIOS[2:])]


def test_one_golden_run_that_fails_is_a_failure(tool: ModuleType, reports: Path) -> None:
    row = dict(row_of(tool, reports, "golden runs decide as written"))
    assert row["langchain<br>`invoke`<br>`stream`"] == "failed"


def test_a_framework_without_a_report_was_not_run(tool: ModuleType, reports: Path) -> None:
    assert dict(row_of(tool, reports, "history stays clean"))["openai-agents"] == "not run"


def test_a_cell_s_row_adds_up_its_report(tool: ModuleType, reports: Path) -> None:
    rows = {tuple(row[:2]): row[2:] for row in tables(tool.page(reports))[1]}
    assert rows["3.13", "newest langchain"] == ["all", "Python 3.13.0, langchain 1.4.7", "3", "1", "0", "1", "3"]


def row_of(tool: ModuleType, reports: Path, scenario: str) -> list[tuple[str, str]]:
    heads, *rows = tables(tool.page(reports))[0]
    return next(list(zip(heads, row, strict=True)) for row in rows if row[0] == scenario)
