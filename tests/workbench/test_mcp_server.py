"""`reasonblocks memory serve`: an MCP server as its clients meet it, as a process with pipes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

pytest.importorskip("mcp_types", reason="needs mcp 2")
pytest.importorskip("detect_secrets")

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent, Tool

from reasonblocks import __version__
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.memory import CodebaseMemory, memory_tools
from reasonblocks.types import Codebase, RecalledFinding
from reasonblocks_workbench.cli import main
from reasonblocks_workbench.mcp_server import _server
from tests.whole import in_whole

SECONDS = 60
SERVE = [sys.executable, "-m", "reasonblocks", "memory", "serve", "acme/search"]
PARALLEL = 12
T = TypeVar("T")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def in_time(work: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work, SECONDS)

    return asyncio.run(bounded())


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("REASONBLOCKS_", "QDRANT_"))}
    return {**kept, "REASONBLOCKS_HOME": str(home)}


# ------------------------------------------------------------ a client of the official library


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The answers of one session with the process."""

    name: str
    version: str
    tools: dict[str, Tool]
    stored: list[CallToolResult]
    recalled: CallToolResult
    wrong: CallToolResult
    unknown: CallToolResult
    forgotten: CallToolResult


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def conversation(home: Path) -> Session:
    parameters = StdioServerParameters(command=SERVE[0], args=SERVE[1:], env=environment(home), cwd=home)
    async with Client(parameters) as client:
        assert client.server_info is not None
        return Session(
            name=client.server_info.name,
            version=client.server_info.version,
            tools={tool.name: tool for tool in (await client.list_tools()).tools},
            stored=await asyncio.gather(
                *(client.call_tool("memory_store", {"content": f"Shard {n} is in rack {n}"}) for n in range(PARALLEL))
            ),
            recalled=await client.call_tool("memory_recall", {"query": "rack of shard 7"}),
            wrong=await client.call_tool("memory_recall", {"top_k": 0}),
            unknown=await client.call_tool("memory_erase", {}),
            forgotten=await client.call_tool("memory_forget", {"finding_id": "nothing"}),
        )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def session(home: Path) -> Session:
    return in_time(conversation(home))


def test_the_server_names_itself(session: Session) -> None:
    assert (session.name, session.version) == ("reasonblocks", __version__)


def test_the_tools_are_those_of_every_framework(session: Session, tmp_path: Path) -> None:
    tools = memory_tools(CodebaseMemory("acme/search", store=tmp_path / "a.db"))
    assert [(tool.name, tool.description, tool.parameters) for tool in tools] == [
        (tool.name, tool.description, tool.input_schema) for tool in session.tools.values()
    ]


def test_hints_say_what_a_call_changes(session: Session) -> None:
    hints = {name: tool.annotations for name, tool in session.tools.items()}
    assert {name: (hint.read_only_hint, hint.destructive_hint) for name, hint in hints.items() if hint} == {
        "memory_recall": (True, False),
        "memory_store": (False, False),
        "memory_forget": (False, True),
    }


def test_parallel_calls_are_all_answered(session: Session, home: Path) -> None:
    assert [result.is_error for result in session.stored] == [False] * PARALLEL
    with CodebaseMemory("acme/search", store=home / "patterns.db") as memory:
        assert len(memory.list_all()) == PARALLEL


def test_what_was_stored_is_recalled(session: Session) -> None:
    assert not session.recalled.is_error
    assert "    Shard 7 is in rack 7" in text(session.recalled).splitlines()


def test_wrong_arguments_are_an_error_that_the_model_reads(session: Session) -> None:
    assert session.wrong.is_error
    assert "query is missing" in text(session.wrong)


def test_an_unknown_tool_is_an_error_that_names_the_tools(session: Session) -> None:
    assert session.unknown.is_error
    assert "memory_recall, memory_store, memory_forget" in text(session.unknown)


def test_an_unknown_id_is_no_error(session: Session) -> None:
    assert not session.forgotten.is_error


class Meeting(LocalFindings):
    """A store in which a search waits until two searches run at once."""

    def __init__(self) -> None:
        super().__init__()
        self.barrier = threading.Barrier(2)

    def search(
        self, codebase: Codebase, query: str, *, top_k: int, score_threshold: float
    ) -> tuple[RecalledFinding, ...]:
        self.barrier.wait(SECONDS)
        return ()


def test_calls_run_at_once_and_beside_the_event_loop() -> None:
    async def both() -> list[CallToolResult]:
        tools = memory_tools(CodebaseMemory("acme/search", store=Meeting()))
        async with Client(_server("1", tools, set())) as client:
            return await asyncio.gather(*(client.call_tool("memory_recall", {"query": "x"}) for _ in range(2)))

    assert [result.is_error for result in in_time(both())] == [False, False]


# ------------------------------------------------------------ pipes and signals


def line(method: str, params: object, number: int | None = None) -> str:
    request = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(request if number is None else {**request, "id": number}) + "\n"


def call(number: int, name: str, **arguments: object) -> str:
    return line("tools/call", {"name": name, "arguments": arguments}, number)


OPENING = line("initialize", HELLO, 0) + line("notifications/initialized", {})
STORE = call(1, "memory_store", content="The index is rebuilt at night")


@contextmanager
def serving(home: Path) -> Iterator[Any]:
    """Run the process, and kill it at the end."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(
        SERVE, env=environment(home), cwd=home, text=True, **pipes,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell starts us with it ignored
    ) as child:  # fmt: skip
        try:
            yield child
        finally:
            child.kill()


def asked(child: Any, lines: str) -> dict[str, Any]:
    """Write the lines and return the answer to the last one that is a request."""
    child.stdin.write(lines)
    child.stdin.flush()
    answer: dict[str, Any] = json.loads(child.stdout.readline())
    return answer


def test_calls_that_are_under_way_at_the_end_of_the_input_are_answered(tmp_path: Path) -> None:
    done = subprocess.run(
        SERVE, input=OPENING + STORE + "no JSON\n", env=environment(tmp_path), cwd=tmp_path, capture_output=True,
        text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    answers = [json.loads(answer) for answer in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [answer["result"]["isError"] for answer in answers if answer.get("id") == 1] == [False]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_ends_it_quietly(tmp_path: Path) -> None:
    with serving(tmp_path) as child:
        asked(child, OPENING)
        child.send_signal(signal.SIGINT)
        complained = child.stderr.read()  # stdin stays open: only the signal ends it
        assert (child.wait(SECONDS), child.stdout.read(), complained) == (0, "", "")


@in_whole
def test_what_was_answered_outlives_a_kill(tmp_path: Path) -> None:
    with serving(tmp_path) as child:
        asked(child, OPENING)
        assert asked(child, STORE)["result"]["isError"] is False
        child.kill()
        child.wait(SECONDS)
    with CodebaseMemory("acme/search", store=tmp_path / "patterns.db") as memory:
        assert [finding.content for finding in memory.list_all()] == ["The index is rebuilt at night"]


def test_without_the_library_it_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "reasonblocks_workbench.mcp_server")
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert main(["memory", "serve", "acme/search"]) == 1
    assert "needs mcp>=2: pip install 'detect-secrets>=1.5' 'mcp>=2,<3'" in capsys.readouterr().err
