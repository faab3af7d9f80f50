"""Sessions of the real CLI: prompts and runs, how they end, the caller's own hooks, and clients of every kind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, HookMatcher, Message, ResultMessage, ToolUseBlock

from reasonblocks_claude_agent import SteeredClaudeClient, claude_hooks, query
from reasonblocks_testing import Turn
from reasonblocks_testing.server import Asked
from tests.claude_agent.world import (
    SECONDS,
    TASK,
    Place,
    ask,
    cli,
    everything,
    in_time,
    in_turn,
    look,
    looks,
    one_run,
    outcomes,
    place,
    result_in,
    session,
    told,
)
from tests.second_message import AT, LOOKS, SAID, Heard, check
from tests.steered import steering

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")


def test_a_run_that_needs_too_many_turns_has_failed() -> None:
    with place(in_turn(*looks(5))) as here:
        assert outcomes(one_run(here, steering(), max_turns=2).steering) == {"run": "failure: error_max_turns"}


def test_the_prompt_after_an_interruption_goes_on_with_the_run() -> None:
    async def never(arguments: Any) -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    with place(in_turn(look(0), *looks(0)), never) as here:

        async def run() -> tuple[dict[str, str | None], SteeredClaudeClient]:
            async with session(here, steering()) as client:
                await client.query(TASK)
                async for message in client.receive_response():
                    if isinstance(message, AssistantMessage) and isinstance(message.content[0], ToolUseBlock):
                        await client.interrupt()
                then = outcomes(client.steering)
                await ask(client, "Go on.")
            return then, client

        then, client = in_time(run())
        assert (then, outcomes(client.steering)) == ({"run": None}, {"run": "success"})
        assert [entry.thought_preview for entry in client.steering.step_log] == ["", "I look a 0. time."]


def test_what_the_user_says_after_an_interruption_moves_the_mark() -> None:
    heard = Heard()

    async def waits(arguments: Any) -> dict[str, Any]:
        if arguments["at"] == AT - 1:
            await asyncio.Event().wait()
        return {"content": [{"type": "text", "text": "empty"}]}

    def waits_now(message: Message) -> bool:
        blocks = message.content if isinstance(message, AssistantMessage) else []
        return any(isinstance(block, ToolUseBlock) and block.input == {"at": AT - 1} for block in blocks)

    with place(in_turn(*looks(LOOKS)), waits) as here:

        async def run() -> SteeredClaudeClient:
            async with session(here, steering(scorer=heard)) as client:
                await client.query(TASK)
                async for message in client.receive_response():
                    if waits_now(message):
                        await client.interrupt()
                await ask(client, SAID)
            return client

        check(heard.texts, in_time(run()).steering.trace.state)


def test_a_request_that_was_interrupted_is_asked_anew_and_told_once() -> None:
    """Interrupted before the model has said a word: the same call comes again, and its text is in the transcript."""
    again, let_go = threading.Event(), threading.Event()

    def held(asked: Asked) -> Turn:
        if asked.answers == 1 and not let_go.is_set():
            again.set()
            let_go.wait(SECONDS)
        return in_turn(*looks(1))(asked)

    with place(held) as here:

        async def run() -> SteeredClaudeClient:
            async with session(here, steering()) as client:
                await client.query(TASK)
                await asyncio.to_thread(again.wait, SECONDS)
                await client.interrupt()
                await everything(client.receive_response())
                let_go.set()
                await ask(client, "Go on.")
            return client

        client = in_time(run())
        assert outcomes(client.steering) == {"run": "success"}
        assert [len(told(asked)) for asked in here.asked()] == [1, 2, 2]
    assert [entry.step for entry in client.steering.step_log] == [0, 1]


# ------------------------------------------------------------ the caller's own hooks


def hanging(event: str, answer: dict[str, Any], heard: list[str]) -> dict[Any, list[HookMatcher]]:
    async def mine(given: Any, tool_use_id: Any, hook_context: Any) -> Any:
        heard.append(given["hook_event_name"])
        return answer

    return {event: [HookMatcher(hooks=[mine])]}


@pytest.mark.parametrize(
    ("event", "times"), [("UserPromptSubmit", 1), ("PostToolUse", 2), ("PostToolBatch", 2), ("Stop", 1)]
)
def test_the_callers_hooks_are_called(event: str, times: int) -> None:
    heard: list[str] = []
    with place(in_turn(*looks(2))) as here:
        one_run(here, steering(), hooks=hanging(event, {}, heard))
    assert heard == [event] * times


def test_the_callers_context_stands_before_ours() -> None:
    mine = {"hookSpecificOutput": {"hookEventName": "PostToolBatch", "additionalContext": "Mine."}}
    with place(in_turn(*looks(1))) as here:
        one_run(here, steering(), hooks=hanging("PostToolBatch", mine, []))
        said = "\n".join(here.asked()[1].texts)
    assert 0 < said.index("Mine.") < said.index("Step 0 looked again.")


def test_a_prompt_that_the_callers_hook_blocks_is_not_asked() -> None:
    with place(in_turn(*looks(1))) as here:
        one_run(here, steering(), hooks=hanging("UserPromptSubmit", {"decision": "block", "reason": "No."}, []))
        assert here.asked() == []


# ------------------------------------------------------------ clients of every kind


@pytest.mark.parametrize("passed_on", [True, False])
def test_a_client_of_the_callers_own_is_steered_by_hooks_alone(passed_on: bool) -> None:
    with place(in_turn(*looks(2))) as here:

        async def run() -> list[tuple[str | None, bool]]:
            hooks = claude_hooks(steering(), here.options(), run_id="run")
            async with ClaudeSDKClient(hooks.options) as client:
                await client.query(TASK)
                async for message in client.receive_response():
                    if passed_on:
                        await hooks.saw(message)
            return [(hooks.runs["run"].outcome, entry.thought_preview.startswith("I look")) for entry in hooks.step_log]

        assert in_time(run()) == [("success", False), ("success", passed_on), ("success", passed_on)]
        assert [len(told(asked)) for asked in here.asked()] == [1, 2, 2]


async def _prompts(here: Place) -> AsyncIterator[dict[str, Any]]:
    """The second one is sent when the first is answered: the CLI makes one of prompts that wait together.

    Then it waits for its own answer: once they have ended, an older SDK hears no hook after a result.
    """
    for at in range(2):
        content = f"{TASK} Part {at}."
        yield {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}
        while len(here.asked()) < 2 * (at + 1):
            await asyncio.sleep(0)


def test_query_asks_prompts_as_they_come() -> None:
    with place(in_turn(*looks(1), *looks(1))) as here:
        messages = in_time(everything(query(steering(), prompt=_prompts(here), options=here.options())))
        assert sum(isinstance(message, ResultMessage) for message in messages) == 2
        assert [len(told(asked)) for asked in here.asked()] == [1, 2, 3, 4]


def test_a_user_who_reads_at_the_end_alone_reads_everything() -> None:
    with place(in_turn(*looks(3))) as here:

        async def run() -> list[Message]:
            async with session(here, steering(), include_partial_messages=True) as client:
                await client.query(TASK)
                while client.steering.final is None:
                    await asyncio.sleep(0.01)
                return await everything(client.receive_response())

        assert not result_in(in_time(run())).is_error
