"""The real CLI behind the gateway: guidance in one request, nothing anywhere else."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, Transport

from reasonblocks.exceptions import ConfigError, ExtraMissing
from reasonblocks_claude_agent import SteeredClaudeClient, query
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked, ScriptedServer
from tests.claude_agent.gateway_world import (
    OWN,
    STRONG,
    TASK,
    client,
    guided,
    in_turn,
    is_agents,
    is_scrubbed,
    looks,
    of_the_agent,
    options,
    ran,
    session,
    transcripts,
)
from tests.steered import steering

pytestmark = pytest.mark.skipif(not is_scrubbed(), reason="the environment names a provider that is not on loopback")


def is_summary(asked: Asked) -> bool:
    return any("detailed summary" in text for text in asked.texts[-3:])  # an older CLI says its budget after it


def test_guidance_leaves_no_trace_in_the_transcript(tmp_path: Path) -> None:
    async def work(server: ScriptedServer) -> None:
        async for _ in query(steering(), prompt=TASK, options=options(server, tmp_path), mode="gateway"):
            pass

    with ScriptedServer(in_turn(looks(2))) as server:
        asyncio.run(work(server))
        assert any(guided(server.requests))
    kept = transcripts(tmp_path)
    assert TASK in kept
    assert "REASONBLOCKS" not in kept


def test_sessions_at_once_hear_their_own_guidance(tmp_path: Path) -> None:
    async def one(server: ScriptedServer, mark: str) -> None:
        home = tmp_path / mark
        home.mkdir()
        steered = client(steering(f" {mark}", placement="system"), options(server, home))
        async with steered:
            await ran(steered, f"Task {mark}")

    async def work(server: ScriptedServer) -> None:
        await asyncio.gather(one(server, "north"), one(server, "south"))

    with ScriptedServer(in_turn(looks(2))) as server:
        asyncio.run(work(server))
        asked = of_the_agent(server)
    told = {("north" in str(one.texts), "north" in one.system, "south" in one.system) for one in asked}
    assert told == {(True, True, False), (True, False, False), (False, False, True), (False, False, False)}


def test_a_routed_request_asks_the_mapped_model_without_anothers_thinking(tmp_path: Path) -> None:
    rb = steering(scorer=lambda step: 0.7, model_routing={"SLOW": STRONG})
    steered, asked = session(in_turn(looks(6, reasoning="Hm.")), tmp_path, rb)
    log, last = [(entry.route, entry.model_id) for entry in steered.step_log], asked[-1]
    assert (last.model, log[-1]) == (STRONG, ("SLOW", STRONG))
    thoughts = [
        "thinking" in str(message["content"]) for message in last.body["messages"] if message["role"] == "assistant"
    ]
    assert thoughts == [False] * 5 + [True]
    assert log[0] == (None, OWN)


def test_a_subagents_requests_carry_its_own_guidance(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Turn:
        if not is_agents(asked):
            return Turn(text="ok")
        if "x-claude-code-agent-id" in asked.headers:
            return looks(1)[asked.answers]
        task = {"description": "d", "prompt": "Look.", "subagent_type": "looker", "run_in_background": False}
        return [Turn(text="I delegate.", tool_calls=(tool_call("toolu_d", "Task", task),)), Turn(text="Done.")][
            min(asked.answers, 1)
        ]

    _, requests = session(answer, tmp_path, steering(placement="system"))
    asked = [one for one in requests if "x-claude-code-agent-id" in one.headers]
    assert [("Check before" in one.system, "Step 0 looked again" in one.system) for one in asked] == [
        (True, False),
        (False, True),
    ]


def test_a_summary_of_the_conversation_is_asked_without_guidance(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Turn:
        return Turn(text="<summary>All</summary>") if is_summary(asked) else in_turn(looks(1))(asked)

    _, asked = session(answer, tmp_path, steering(), (TASK, "/compact", "Once more."))
    assert [(is_summary(one), said) for one, said in zip(asked, guided(asked))] == [
        (False, True),
        (False, True),
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize("mode", ["hooks", "gateway"])
def test_a_provider_that_is_gone_is_an_error_of_the_connection(tmp_path: Path, mode: Any) -> None:
    async def work(given: ClaudeAgentOptions) -> tuple[bool, str, str | None]:
        steered = SteeredClaudeClient(steering(), given, mode=mode)
        async with steered:
            result = await ran(steered)
        return result.is_error, str(result.result), next(iter(steered.steering.runs.values())).outcome

    with ScriptedServer(in_turn(looks(1))) as server:
        given = options(server, tmp_path, CLAUDE_CODE_MAX_RETRIES="1")
    failed, said, outcome = asyncio.run(work(given))
    assert (failed, said.partition(" (")[0].split()[:3], outcome) == (
        True,
        ["API", "Error:", "Connection"],
        "failure: server_error",
    )


def test_a_closed_session_leaves_no_task_and_no_listener(tmp_path: Path) -> None:
    async def work(server: ScriptedServer) -> tuple[int, str]:
        before = asyncio.all_tasks()
        steered = client(steering(), options(server, tmp_path))
        async with steered:
            await ran(steered)
            url = steered.options.env["ANTHROPIC_BASE_URL"]
        return len(asyncio.all_tasks() - before), url

    with ScriptedServer(in_turn(looks(1))) as server:
        left, url = asyncio.run(work(server))
    assert left == 0
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(asyncio.open_connection("127.0.0.1", int(url.split(":")[2].split("/")[0])))


def test_a_session_whose_gateway_cannot_open_goes_on_unsteered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REASONBLOCKS_STRICT", raising=False)
    nowhere = {"ANTHROPIC_BASE_URL": "https://127.0.0.1:9", "NODE_EXTRA_CA_CERTS": str(tmp_path / "missing")}

    async def work() -> str:
        steered = client(steering(strict=False), ClaudeAgentOptions(cwd=tmp_path, env=nowhere))
        async with steered:
            return steered.options.env["ANTHROPIC_BASE_URL"]
        return ""

    assert asyncio.run(work()) == "https://127.0.0.1:9"


def test_a_provider_elsewhere_is_refused_where_the_client_is_made() -> None:
    with pytest.raises(ConfigError, match="CLAUDE_CODE_USE_BEDROCK"):
        client(steering(), ClaudeAgentOptions(env={"CLAUDE_CODE_USE_BEDROCK": "1"}))


@pytest.mark.parametrize("module", ["aiohttp", "certifi"])
def test_without_its_extra_a_gateway_is_refused_where_the_client_is_made(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraMissing, match=rf"needs {module}: pip install 'aiohttp>=3.10,<4' certifi$"):
        client(steering(), ClaudeAgentOptions())


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match="gateway"):
        SteeredClaudeClient(steering(), mode="gatway")  # type: ignore[arg-type]  # what is tested


def test_a_transport_of_the_callers_is_refused() -> None:
    class Own(Transport):
        """Starts nothing."""

        async def connect(self) -> None: ...
        async def write(self, data: str) -> None: ...
        def read_messages(self) -> Any: ...
        async def close(self) -> None: ...
        def is_ready(self) -> bool:
            return False

        async def end_input(self) -> None: ...

    with pytest.raises(ConfigError, match="transport"):
        SteeredClaudeClient(steering(), transport=Own(), mode="gateway")
