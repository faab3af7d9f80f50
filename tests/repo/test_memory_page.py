"""What docs/memory.md and README.md show of codebase memory runs, and what they name is there."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool

from reasonblocks import findings
from reasonblocks.findings import _shown
from reasonblocks.memory import CodebaseMemory, memory_tools
from reasonblocks_workbench.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/memory.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkout of the page, as the current folder, and a home of its own."""
    root = tmp_path / "shop"
    (root / "shop").mkdir(parents=True)
    (root / "Makefile").write_text("test: services\n", encoding="utf-8")
    (root / "shop/prices.py").write_text("def round_price(): ...\n", encoding="utf-8")
    monkeypatch.chdir(root)
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "home"))
    for name in ("REASONBLOCKS_BASE_URL", "QDRANT_URL"):
        monkeypatch.delenv(name, raising=False)
    return root


def ran(code: str, **given: Any) -> dict[str, Any]:
    names = dict(given)
    exec(compile(code.replace('"/src/shop"', '"."'), "memory.md", "exec"), names)
    return names


def test_the_code_recalls_what_it_stored_and_counts_it(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [block for block in blocks("python") if "coverage_for" in block]
    ran(code)
    *recalled, coverage = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"0\.\d\d fresh Makefile: The tests need `make services` first\.", recalled[0])
    assert coverage == "{'shop': 1, 'shop/prices.py': 1, 'shop/cart.py': 0}"


@pytest.mark.parametrize("text", [PAGE, README], ids=["page", "readme"])
def test_the_langchain_agent_gets_the_three_tools(text: str) -> None:
    (code,) = [block for block in blocks("python", text) if "reasonblocks_langchain import memory_tools" in block]
    given: dict[str, Any] = {}
    stub = "def create_agent(model, tools): given['tools'] = tools\n"
    code = re.sub(r"from langchain.agents import create_agent\n", stub, code)
    ran(code, model=None, read_file=None, run_tests=None, checkout=".", given=given)
    assert [tool.name for tool in given["tools"] if isinstance(tool, BaseTool)] == [
        "memory_recall",
        "memory_store",
        "memory_forget",
    ]


def test_the_table_of_tools_is_that_of_the_description() -> None:
    with CodebaseMemory("acme/shop") as memory:
        shown = {f"{tool.name}({', '.join(tool.parameters['properties'])})" for tool in memory_tools(memory)}
    assert {*re.findall(r"^\| `(memory_\w+\([\w, ]+\))` \|", PAGE, re.MULTILINE)} == shown


def test_every_method_of_the_table_exists_with_these_arguments() -> None:
    named = re.findall(r"`(\w+)\(([^()]*)\)`", PAGE[PAGE.index("| method |") : PAGE.index("Each has an async twin")])
    assert {"store", "recall", "coverage_for", "invalidate_changed", "clear"} <= {name for name, _ in named}
    for name, arguments in named:
        method = getattr(CodebaseMemory, name)
        parameters = inspect.signature(method).parameters
        for argument in filter(None, arguments.split(", ")):
            given, _, default = argument.partition("=")
            assert given in parameters or given == "ids", (name, given)
            assert not default or repr(parameters[given].default).replace("'", '"') == default
        assert inspect.iscoroutinefunction(getattr(CodebaseMemory, f"a{name}"))


def test_the_limits_are_those_of_the_code() -> None:
    for limit in (findings.CONTENT_CHARS, findings.MOST_FINDINGS, findings.PATH_CHARS, findings.TYPE_CHARS):
        assert f"{limit:,}" in PAGE
    assert f"cut to {_shown.NOTE_CHARS:,} characters, and the whole answer to {_shown.SHOWN_CHARS:,}" in PAGE


def test_the_commands_run(capsys: pytest.CaptureFixture[str]) -> None:
    with CodebaseMemory("acme/shop", root=".") as memory:
        found = memory.store("Prices are rounded in `round_price`.", file_path="shop/prices.py")
    (code,) = [block for block in blocks("sh") if "memory list" in block]
    for line in code.splitlines():
        argv = shlex.split(line.replace("ID ", f"{found} "), comments=True)
        assert main(argv[1:]) == 0, line
        assert capsys.readouterr().out.strip(), line
