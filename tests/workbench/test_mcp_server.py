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

from anyio import BrokenResourceError, ClosedResourceError
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    JSONRPCRequest,
    TextContent,
    Tool,
    jsonrpc_message_adapter,
)

from reasonblocks import __version__
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.memory import CodebaseMemory, memory_tools
from reasonblocks.types import Codebase, RecalledFinding
from reasonblocks_workbench import mcp_server
from reasonblocks_workbench.cli import main
from reasonblocks_workbench.mcp_lines import refusals
from reasonblocks_workbench.mcp_server import _server
from tests.whole import in_whole

SECONDS = 60
SERVE = [sys.executable, "-m", "reasonblocks", "memory", "serve", "acme/search"]
PARALLEL = 12
T = TypeVar("T")
if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup
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


# ------------------------------------------------------------ lines that the library leaves without an answer


LISTING = line("tools/list", {}, 99)


def answered(home: Path, *lines: str) -> list[dict[str, Any]]:
    """Return the answers to the lines by the process, which must still answer a request after them, and say no more."""
    with serving(home) as child:
        asked(child, OPENING)
        child.stdin.write("".join(lines) + LISTING)
        child.stdin.flush()
        read: list[dict[str, Any]] = []
        while not read or read[-1]["id"] != 99:
            read.append(json.loads(child.stdout.readline()))
        child.stdin.close()
        assert (child.wait(SECONDS), child.stdout.read(), child.stderr.read()) == (0, "", "")
        return read[:-1]


def request(id: str, arguments: str = "{}") -> str:
    params = f'{{"name": "memory_recall", "arguments": {arguments}}}'
    return f'{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {params}}}\n'


REFUSED: dict[str, tuple[str, int, list[object]]] = {
    "an unpaired surrogate": (request("7", '{"query": "\\ud800"}'), PARSE_ERROR, [7]),
    "5,000 digits": (request('"a"', '{"top_k": ' + "1" * 5_000 + "}"), PARSE_ERROR, ["a"]),
    "an id of 5,000 digits": (request("1" * 5_000), PARSE_ERROR, [None]),
    "an id with an unpaired surrogate": (request('"\\ud800"'), PARSE_ERROR, [None]),
    "300 levels": (request("7", '{"a":' * 300 + "1" + "}" * 300), PARSE_ERROR, [7]),
    "100,000 levels": (request("7", "[" * 100_000 + "]" * 100_000), PARSE_ERROR, [None]),
    "no JSON": ("no JSON\n", PARSE_ERROR, [None]),
    "half a line": (request("7")[:40] + "\n", PARSE_ERROR, [None]),
    "a line of some megabytes": (request("7", json.dumps({"query": "a" * 9_000_000})), PARSE_ERROR, [None]),
    "an id that is a float": (request("1.5"), INVALID_REQUEST, [None]),
    "an id that is true": (request("true"), INVALID_REQUEST, [None]),
    "an id that is null": (request("null"), INVALID_REQUEST, [None]),
    "an id that is a list": (request("[1]"), INVALID_REQUEST, [None]),
    "a number": ("5\n", INVALID_REQUEST, [None]),
    "an empty object": ("{}\n", INVALID_REQUEST, [None]),
    "another version": ('{"jsonrpc": "1.0", "id": 7, "method": "ping"}\n', INVALID_REQUEST, [7]),
    "no method": ('{"jsonrpc": "2.0", "id": 7}\n', INVALID_REQUEST, [7]),
    "a method that is a number": ('{"jsonrpc": "2.0", "id": 7, "method": 1}\n', INVALID_REQUEST, [7]),
    "params that are a list": ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}\n', INVALID_REQUEST, [7]),
    "a batch": (f"[{request('7').strip()}, {request('8').strip()}]\n", INVALID_REQUEST, [7, 8]),
    "a batch without messages": ("[]\n", INVALID_REQUEST, [None]),
}
UNANSWERED = {
    "a notification with params that are a number": '{"jsonrpc": "2.0", "method": "a", "params": 5}\n',
    "a notification with an unpaired surrogate": '{"jsonrpc": "2.0", "method": "a", "params": {"a": "\\ud800"}}\n',
    "an unknown notification": '{"jsonrpc": "2.0", "method": "a"}\n',
    "a response to no request": '{"jsonrpc": "2.0", "id": 7, "result": {}}\n',
    "a response that is no object": '{"jsonrpc": "2.0", "id": 7, "result": 5}\n',
    "a batch of notifications": '[{"jsonrpc": "2.0", "method": "a"}]\n',
    "a blank line": " \r\n",
}  # fmt: skip


def test_each_line_that_cannot_be_read_gets_one_error_and_the_next_request_an_answer(tmp_path: Path) -> None:
    answers = answered(tmp_path, *(refused for refused, _, _ in REFUSED.values()))
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [
        (id, code) for _, code, ids in REFUSED.values() for id in ids
    ]


def test_malformed_notifications_and_responses_get_no_answer_and_do_not_stop_it(tmp_path: Path) -> None:
    assert answered(tmp_path, *UNANSWERED.values()) == []


def test_an_error_names_the_wrong_value() -> None:
    (error,) = refusals(request("1.5")) or ()
    assert error.error.message == "Invalid request: id must be a string or a whole number, not 1.5"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["2.0", "ping"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
messages = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("jsonrpc", "id", "method", "params", "result", "error"), json_values)
)


@given(messages | json_values)
def test_every_line_is_refused_unless_the_library_reads_a_message_with_its_id(value: object) -> None:
    errors = refusals(json.dumps(value))
    is_asked = not isinstance(value, dict) or (
        "method" in value and ("id" in value or not isinstance(value["method"], str))
    )
    if errors is None and is_asked:
        assert isinstance(value, dict)
        read = jsonrpc_message_adapter.validate_json(json.dumps(value), by_name=False)
        assert isinstance(read, JSONRPCRequest)
        assert read.id == value["id"]
    elif isinstance(value, dict) and is_asked:
        assert len(errors or ()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe without a reader is another error there")
def test_a_client_that_closes_stdout_ends_it_quietly(tmp_path: Path) -> None:
    with serving(tmp_path) as child:
        asked(child, OPENING)
        child.stdout.close()
        child.stdin.write(STORE + LISTING)
        child.stdin.flush()
        complained = child.stderr.read()  # stdin stays open: only the failed answer ends it
        assert (child.wait(SECONDS), complained) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell of POSIX")
@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_it_does_not_start_without_a_client(tmp_path: Path, closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *SERVE], env=environment(tmp_path), cwd=tmp_path,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        1, "reasonblocks: `reasonblocks memory serve` needs an MCP client: its stdin or stdout is closed\n"
    )  # fmt: skip


def test_without_the_library_it_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "reasonblocks_workbench.mcp_server")
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert main(["memory", "serve", "acme/search"]) == 1
    assert "needs mcp>=2: pip install 'detect-secrets>=1.5' 'mcp>=2,<3'" in capsys.readouterr().err


@pytest.mark.parametrize(("faults", "raised"), [((), ()), ((ValueError("a fault"),), ("a fault",))])
def test_a_line_that_is_passed_on_while_the_session_ends_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, faults: tuple[Exception, ...], raised: tuple[str, ...]
) -> None:
    class Ended:
        async def __aenter__(self) -> None:
            inner = BaseExceptionGroup("inner", [BrokenResourceError(), *faults])
            raise BaseExceptionGroup("outer", [inner, ClosedResourceError()])

        async def __aexit__(self, *_: object) -> None: ...

    monkeypatch.setattr(mcp_server, "stdio_server", lambda **_: Ended())
    monkeypatch.setattr(mcp_server, "_moved_stdout", lambda: 1)
    found = list[str]()
    with CodebaseMemory("acme/search", store=tmp_path / "a.db") as memory:
        try:
            in_time(mcp_server.serve_stdio(memory, "1"))
        except BaseExceptionGroup as group:
            found += [str(fault) for inner in group.exceptions for fault in inner.exceptions]
    assert tuple(found) == raised
