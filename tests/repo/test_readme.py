"""Runs the blocks of README.md and docs/replay.md, and checks numbers and names in README.md and docs/.

The README's runs of the SDKs are tested where these are installed: in tests/examples and in tests/claude_agent.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.errors import GraphRecursionError

from reasonblocks import ReasonBlocks, ToolCall
from reasonblocks.monitors import MONITORS
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.types import FSMState, GateDecision
from reasonblocks_testing import ConformanceSuite
from reasonblocks_workbench.cli import main as reasonblocks_command

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = tuple(sorted((ROOT / "docs").glob("*.md")))
LOOP_LINES = 15


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


LANGCHAIN, _, _, LOOP, THREADS, MEMORY = blocks("python", README)


class ScriptedModel(BaseChatModel):
    """Calls a tool so many times, then answers."""

    calls: int = 2

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind()

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        at = sum(isinstance(message, AIMessage) for message in messages)
        call = {"name": "run_tests", "args": {"attempt": at}, "id": f"call-{at}"}
        said = AIMessage(f"I run the tests, attempt {at}.", tool_calls=[call] if at < self.calls else [])
        return ChatResult(generations=[ChatGeneration(message=said)])


def read_file(path: str) -> str:
    """Reads a file."""
    return f"{path} is empty"


def run_tests(attempt: int) -> str:
    """Runs the tests."""
    return f"attempt {attempt}: 3 failed"


def ran(code: str, given: Mapping[str, Any]) -> dict[str, Any]:
    names = dict(given)
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_the_langchain_agent_runs_and_is_steered(capsys: pytest.CaptureFixture[str]) -> None:
    names = ran(LANGCHAIN, {"model": ScriptedModel(), "read_file": read_file, "run_tests": run_tests})
    assert [entry.step for entry in names["mw"].step_log] == [0, 1, 2]
    assert names["mw"].step_log[0].injection_sources == ("E3Injection",)
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("0 INIT None ('- Before you say that something is done, ")


def test_the_loop_of_one_s_own_runs_and_is_steered() -> None:
    requests: list[list[Any]] = []

    def call_model(system: str, messages: list[Any]) -> tuple[str, tuple[ToolCall, ...]]:
        assert system == "You fix bugs."
        requests.append(messages)
        call = ToolCall(id=f"call-{len(requests)}", name="run_tests")
        return "I run the tests.", (call,) if len(requests) < 7 else ()

    def as_messages(text: str, calls: Any, results: Any) -> list[Any]:
        return [{"role": "assistant", "content": text}, *({"role": "tool", "content": one.output} for one in results)]

    given = {"task": "Fix the failing tests.", "system_prompt": "You fix bugs.", "as_messages": as_messages}
    names = ran(LOOP, {**given, "call_model": call_model, "run_tool": lambda call: "3 failed"})
    assert len(names["session"].step_log) == len(requests) == 7
    assert any("run_tests() has failed in the same way 5 times" in messages[-1]["content"] for messages in requests)
    assert "REASONBLOCKS" not in repr(names["messages"])


def test_the_loop_of_one_s_own_is_short() -> None:
    loop = ast.parse(LOOP).body[-1]
    assert (loop.end_lineno or 0) - loop.lineno + 1 <= LOOP_LINES


def test_the_recorded_run_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = next(block for block in blocks("json", page("replay.md")) if "steps" in block)
    file = tmp_path / "runs.jsonl"
    file.write_text(line, encoding="utf-8")
    assert reasonblocks_command(["replay", str(file), "--slow-threshold", "0.7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run_id"] == "run-1"


SHOWN_RUN: dict[str, Any] = {
    "run_id": "run-2",
    "task": "Fix the failing tests.",
    "outcome": "success",
    "steps": [
        {"thought": "I run the tests.", "action": "run_tests", "observation": "3 failed"},
        *[{"thought": "I run the tests again.", "action": "run_tests", "observation": "3 failed"}] * 4,
        {
            "thought": "I change the rounding.",
            "action": "edit_file",
            "action_input": {"path": "prices.py", "old": "int(price)", "new": "round(price)"},
            "observation": "ok",
        },
        {"thought": "I run the tests.", "action": "run_tests", "observation": "1 failed"},
        {"thought": "All tests pass, done."},
    ],
}


def test_the_view_of_a_run_is_what_replay_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs.jsonl").write_text(json.dumps(SHOWN_RUN), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "90")
    assert reasonblocks_command(["replay", "runs.jsonl", "--run", "run-2"]) == 0
    assert blocks("text", page("replay.md")) == [capsys.readouterr().out]


def test_the_page_of_the_replay_explains_every_gate_and_state() -> None:
    words = {*get_args(GateDecision), "dropped", "off", *(state.value for state in FSMState if state.value != "INIT")}
    tables = page("replay.md").partition("### Gates and states\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in tables.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == words


def test_langchain_lists_one_a_line_are_named_by_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [messages_to_dict([HumanMessage("Go."), AIMessage(f"Answer {index}.")]) for index in range(3)]
    lines = [*answers[:2], {"run_id": "mine", "outcome": "failure", "messages": answers[2]}]
    (tmp_path / "runs.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert reasonblocks_command(["replay", "runs.jsonl", "--json"]) == 0
    runs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(run["run_id"], run["outcome"]) for run in runs] == [
        ("runs.jsonl:1", None),
        ("runs.jsonl:2", None),
        ("mine", "failure"),
    ]
    assert reasonblocks_command(["replay", "runs.jsonl", "--run", "runs.jsonl:2"]) == 0
    assert "Answer 1." in capsys.readouterr().out


def test_the_settings_file_of_the_page_is_read(tmp_path: Path) -> None:
    from reasonblocks_workbench.cli.options import settings_of_file

    (code,) = blocks("toml", page("replay.md"))
    (tmp_path / "a.toml").write_text(code, encoding="utf-8")
    settings = settings_of_file(str(tmp_path / "a.toml"))
    assert settings.pop("calibration") == str(tmp_path / "agent.toml")
    assert ReasonBlocks(**settings).disabled is False


def test_every_number_of_standing_rules_and_lessons_is_that_of_the_starter_library() -> None:
    shipped = Counter(pattern.tier for pattern in starter_patterns() if not pattern.off)
    off = sum(pattern.off for pattern in starter_patterns())
    counted = [(int(number), shipped["e3"]) for number in told(r"(\d+) standing rules")]
    counted += [(int(number), off) for number in told(r"(\d+) more that are off")]
    counted += [(int(number), shipped["e2"]) for number in told(r"(\d+) lessons for the six kinds of trouble")]
    assert len(counted) >= 4
    assert all(number == real for number, real in counted)


def test_every_number_of_scenarios_is_that_of_the_suite() -> None:
    counted = [int(number) for number in told(r"(\d+) scenarios")]
    assert counted
    assert set(counted) == {sum(name.startswith("test_") for name in dir(ConformanceSuite))}


def told(expression: str) -> list[str]:
    """Every match of an expression in README and docs."""
    return [found for page in (ROOT / "README.md", *PAGES) for found in re.findall(expression, page.read_text("utf-8"))]


def test_the_monitors_are_named() -> None:
    assert [row.name for row in MONITORS if f"| `{row.name}` |" not in page("how-it-works.md")] == []


def test_the_diagram_is_that_of_the_transition_table() -> None:
    shown = page("how-it-works.md")
    assert tool("diagram").with_diagram(shown) == shown, "run tools/diagram.py"


def test_every_link_within_the_repository_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8"))]
    assert [link for page, link in links if not leads_somewhere(page, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    if link.startswith("https://"):
        return True
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> list[str]:
    """Of its headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads]


def test_every_figure_has_a_script_that_makes_it() -> None:
    scripts = {path.stem for path in ROOT.glob("benchmarks/[!_]*.py")}
    assert set(re.findall(r"\./dev bench (\w+)", page("performance.md"))) == scripts
    assert set(told(r"\./dev bench (\w+)")) == scripts


def test_every_figure_of_the_readme_is_on_the_page_of_figures() -> None:
    costs = README.split("\n## What it costs\n")[1].split("\n## ")[0]
    figures = re.findall(r"\d[\d.]* to \d[\d.]*", costs)
    assert len(figures) == 5
    assert [figure for figure in figures if figure not in page("performance.md")] == []


def test_a_recursion_limit_of_25_allows_what_the_page_says() -> None:
    said = re.search(r"`recursion_limit=25` allows (\d+) tool calls instead of (\d+)", page("langchain.md"))
    assert said is not None
    assert [most_tool_calls(25, [ReasonBlocks().middleware()]), most_tool_calls(25, [])] == [*map(int, said.groups())]


def most_tool_calls(limit: int, middleware: list[Any]) -> int:
    for calls in range(limit):
        agent: Any = create_agent(ScriptedModel(calls=calls), tools=[run_tests], middleware=middleware)
        try:
            agent.invoke({"messages": [("user", "Go.")]}, {"recursion_limit": limit})
        except GraphRecursionError:
            return calls - 1
    raise AssertionError("no limit was met")


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_loop_of_the_cores_own_page_runs_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("python", (ROOT / "packages/core/README.md").read_text(encoding="utf-8"))
    exec(block, {})
    assert "[REASONBLOCKS]" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "packages").iterdir()))
def test_the_names_in_a_package_s_own_page_are_there(name: str) -> None:
    for block in blocks("python", (ROOT / "packages" / name / "README.md").read_text(encoding="utf-8")):
        for node in ast.walk(compile(block, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reasonblocks"):
                module = importlib.import_module(str(node.module))
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
