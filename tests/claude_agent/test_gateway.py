"""The real CLI behind the gateway: guidance in one request, nothing anywhere else."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, Transport

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ConfigError, ExtraMissing
from reasonblocks_claude_agent import SteeredClaudeClient, query
from reasonblocks_testing import Turn
from reasonblocks_testing.server import Asked
from tests.claude_agent.test_subagents import asking
from tests.claude_agent.world import (
    AGENT,
    INSIDE,
    TASK,
    ask,
    both_modes,
    by_opening,
    cli,
    everything,
    in_time,
    in_turn,
    look,
    looks,
    place,
    result_in,
    run_in,
)
from tests.steered import steering

__all__ = ["cli"]
with_cli = pytest.mark.usefixtures("cli")
OWN, STRONG = "claude-sonnet-5-5", "claude-opus-5-5"


def gated(rb: ReasonBlocks, given: ClaudeAgentOptions) -> SteeredClaudeClient:
    return SteeredClaudeClient(rb, given, mode="gateway")


def guided(requests: Sequence[Asked]) -> list[bool]:
    return ["[REASONBLOCKS]" in json.dumps(asked.body) for asked in requests]


def is_summary(asked: Asked) -> bool:
    return any("detailed summary" in text for text in asked.texts[-3:])  # an older CLI says its budget after it


@with_cli
def test_guidance_leaves_no_trace_in_the_transcript(scrubbed: Path) -> None:
    with place(in_turn(*looks(2))) as here:
        asked = query(steering(), prompt=TASK, options=here.options(), mode="gateway")
        result = result_in(in_time(everything(asked)))
        assert any(guided(here.asked()))
    (file,) = (scrubbed / ".claude" / "projects").rglob(f"{result.session_id}.jsonl")
    kept = file.read_text()
    assert TASK in kept
    assert "REASONBLOCKS" not in kept


@with_cli
def test_sessions_at_once_hear_their_own_guidance() -> None:
    with place(in_turn(*looks(2))) as here:

        async def one(mark: str) -> None:
            async with gated(steering(f" {mark}", placement="system"), here.options()) as client:
                await ask(client, f"Task {mark}")

        async def both() -> None:
            await asyncio.gather(one("north"), one("south"))

        in_time(both())
        asked = here.asked("Task ")
    told = {("north" in str(one.texts), "north" in one.system, "south" in one.system) for one in asked}
    assert told == {(True, True, False), (True, False, False), (False, False, True), (False, False, False)}


@with_cli
def test_a_routed_request_asks_the_mapped_model_without_anothers_thinking() -> None:
    rb = steering(scorer=lambda step: 0.7, model_routing={"SLOW": STRONG})
    with place(in_turn(*(look(at, reasoning="Hm.") for at in range(6)), Turn(text="It is done."))) as here:
        log = run_in(here, rb, "gateway", model=OWN).step_log
        last = here.asked()[-1]
    assert (last.model, log[-1].route, log[-1].model_id) == (STRONG, "SLOW", STRONG)
    thoughts = [
        "thinking" in str(message["content"]) for message in last.body["messages"] if message["role"] == "assistant"
    ]
    assert thoughts == [False] * 5 + [True]
    assert (log[0].route, log[0].model_id) == (None, OWN)


@with_cli
def test_a_subagents_requests_carry_its_own_guidance() -> None:
    outer = in_turn(asking(background=False), Turn(text="It is done."))
    with place(by_opening({INSIDE: in_turn(*looks(1, "inner "))}, outer)) as here:
        run_in(here, steering(placement="system"), "gateway", **AGENT)
        asked = here.asked(INSIDE)
    assert [("Check before" in one.system, "Step 0 looked again" in one.system) for one in asked] == [
        (True, False),
        (False, True),
    ]


@with_cli
def test_a_summary_of_the_conversation_is_asked_without_guidance() -> None:
    def answer(asked: Asked) -> Turn:
        return Turn(text="<summary>All</summary>") if is_summary(asked) else looks(1)[min(asked.answers, 1)]

    with place(answer) as here:
        run_in(here, steering(), "gateway", (TASK, "/compact", "Once more."))
        asked = [one for one in here.server.requests if one.body.get("tools") and one.stream]
    assert [(is_summary(one), said) for one, said in zip(asked, guided(asked))] == [
        (False, True),
        (False, True),
        (True, False),
        (False, True),
    ]


@with_cli
@both_modes
def test_a_provider_that_is_gone_is_an_error_of_the_connection(mode: Any) -> None:
    async def work(given: ClaudeAgentOptions) -> tuple[bool, list[str], str | None]:
        async with SteeredClaudeClient(steering(), given, mode=mode, run_id="run") as client:
            result = result_in(await ask(client))
        return result.is_error, str(result.result).split()[:3], client.steering.runs["run"].outcome

    with place(in_turn(*looks(1))) as here:
        here.env["CLAUDE_CODE_MAX_RETRIES"] = "1"
        given = here.options()
    failed, said, outcome = in_time(work(given))
    assert (failed, said, outcome) == (True, ["API", "Error:", "Connection"], "failure: server_error")


@with_cli
def test_a_closed_session_leaves_no_task_and_no_listener() -> None:
    with place(in_turn(*looks(1))) as here:

        async def work() -> tuple[int, str]:
            before = asyncio.all_tasks()
            async with gated(steering(), here.options()) as client:
                await ask(client)
                url = client.options.env["ANTHROPIC_BASE_URL"]
            return len(asyncio.all_tasks() - before), url

        left, url = in_time(work())
    assert left == 0
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(asyncio.open_connection("127.0.0.1", int(url.split(":")[2].split("/")[0])))


@with_cli
def test_a_session_whose_gateway_cannot_open_goes_on_unsteered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REASONBLOCKS_STRICT", raising=False)
    nowhere = {"ANTHROPIC_BASE_URL": "https://127.0.0.1:9", "NODE_EXTRA_CA_CERTS": str(tmp_path / "missing")}

    async def work() -> str:
        steered = gated(steering(strict=False), ClaudeAgentOptions(cwd=tmp_path, env=nowhere))
        async with steered:
            return steered.options.env["ANTHROPIC_BASE_URL"]
        return ""

    assert asyncio.run(work()) == "https://127.0.0.1:9"


def test_a_provider_elsewhere_is_refused_where_the_client_is_made() -> None:
    with pytest.raises(ConfigError, match="CLAUDE_CODE_USE_BEDROCK"):
        gated(steering(), ClaudeAgentOptions(env={"CLAUDE_CODE_USE_BEDROCK": "1"}))


@pytest.mark.parametrize("module", ["aiohttp", "certifi"])
def test_without_its_extra_a_gateway_is_refused_where_the_client_is_made(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraMissing, match=rf"needs {module}: pip install 'aiohttp>=3.10,<4' certifi$"):
        gated(steering(), ClaudeAgentOptions())


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
