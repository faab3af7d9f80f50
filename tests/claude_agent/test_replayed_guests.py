"""Steering is a guest in a session that is played back: the caller's hooks, readers and faults. No CLI is needed."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, CLIConnectionError, HookMatcher

from reasonblocks import ReasonBlocks
from reasonblocks.requests import Retrieve
from reasonblocks.types import ETrace
from reasonblocks_claude_agent import SteeredClaudeClient, Steering, claude_hooks
from tests.claude_agent.replay import Replay, Until, answer, done, looked, prompted, text, turn
from tests.claude_agent.world import TASK, ask, everything, first_of, in_time
from tests.steered import steering


async def steered(cli: Replay, rb: ReasonBlocks, prompts: int = 1, **options: Any) -> Steering:
    async with SteeredClaudeClient(rb, ClaudeAgentOptions(**options), cli, run_id="run") as client:
        for _ in range(prompts):
            await ask(client)
    return client.steering


# ------------------------------------------------------------ what is the caller's stays the caller's


def test_the_callers_hooks_are_asked_before_ours() -> None:
    async def mine(given: Any, tool_use_id: Any, hook_context: Any) -> Any:
        return {"systemMessage": "mine"}

    cli = Replay(turn(1))
    in_time(steered(cli, steering(), hooks={"PostToolBatch": [HookMatcher(hooks=[mine])]}))
    first, second = (said for event, said in cli.answers if event == "PostToolBatch")
    assert (first, "hookSpecificOutput" in second) == ({"systemMessage": "mine"}, True)


def test_the_callers_options_are_left_as_they_are() -> None:
    hooks: dict[Any, list[HookMatcher]] = {"Stop": [HookMatcher(hooks=[])]}
    options = ClaudeAgentOptions(hooks=hooks)
    SteeredClaudeClient(steering(), options)
    assert (list(hooks), len(hooks["Stop"]), options.hooks is hooks) == (["Stop"], 1, True)


def test_disabled_leaves_the_options_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    options = ClaudeAgentOptions()
    assert claude_hooks(steering(), options).options is options


def test_disabled_is_the_sdks_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    cli = Replay(turn(2))
    in_time(steered(cli, steering()))
    assert cli.answers == []


# ------------------------------------------------------------ a client of the caller's own


async def hooked(cli: Replay, prompts: int, passed_on: bool) -> Steering:
    hooks = claude_hooks(steering(), run_id="run")
    async with ClaudeSDKClient(hooks.options, cli) as client:
        for _ in range(prompts):
            await client.query(TASK)
            async for message in client.receive_response():
                if passed_on:
                    await hooks.saw(message)
    return hooks


@pytest.mark.parametrize("passed_on", [True, False])
def test_hooks_alone_end_a_run_with_its_last_answer(passed_on: bool) -> None:
    hooks = in_time(hooked(Replay(turn(1), turn(2)), 2, passed_on))
    assert {run_id: (view.outcome, len(view.step_log)) for run_id, view in hooks.runs.items()} == {
        "run": ("success", 2),
        "run.2": ("success", 3),
    }


def test_hooks_alone_know_the_last_answer() -> None:
    hooks = in_time(hooked(Replay(turn(1)), 1, passed_on=False))
    assert hooks.final is not None
    assert hooks.final.thought_preview == "It is done."


@pytest.mark.parametrize("passed_on", [True, False])
def test_hooks_alone_say_the_same(passed_on: bool) -> None:
    cli = Replay(turn(3))
    in_time(hooked(cli, 1, passed_on))
    assert [event for event, _ in cli.told] == ["UserPromptSubmit", "PostToolBatch"]


# ------------------------------------------------------------ readers


def test_a_user_who_reads_nothing_does_not_hold_the_session_up() -> None:
    """Behind a full buffer of the SDK's the hooks would not be heard."""

    async def unread() -> list[int]:
        chatter = [line for at in range(500) for line in answer(f"m{at}", text("Hm."))]
        cli = Replay([*prompted(), *chatter, *looked(0), *done()])
        async with SteeredClaudeClient(steering(), transport=cli) as client:
            await client.query(TASK)
            while not client.steering.final:
                await asyncio.sleep(0)
        return [entry.step for entry in client.steering.step_log]

    assert in_time(unread()) == [0, 1]


def test_a_reader_is_told_when_the_client_is_gone() -> None:
    async def left() -> int:
        cli = Replay([*prompted(), Until(event=asyncio.Event())])
        async with SteeredClaudeClient(steering(), transport=cli) as client:
            await client.query(TASK)
            reading = asyncio.ensure_future(everything(client.receive_messages()))
            await asyncio.sleep(0)
        return len(await reading)

    assert in_time(left()) < 2


def test_whoever_reads_again_after_the_end_reads_nothing() -> None:
    async def twice() -> None:
        cli = Replay(turn(1))
        async with SteeredClaudeClient(steering(), transport=cli) as client:
            await ask(client)
            await cli.end_input()
            await everything(client.receive_messages())
            again = await everything(client.receive_messages())
        assert again == []

    in_time(twice())


def test_a_client_that_is_gone_says_so() -> None:
    async def gone() -> None:
        async with SteeredClaudeClient(steering(), transport=Replay()) as client:
            pass
        with pytest.raises(CLIConnectionError):
            await everything(client.receive_messages())

    in_time(gone())


def test_leaving_in_mid_run_leaves_no_task_behind() -> None:
    async def left() -> set[Any]:
        before = asyncio.all_tasks()
        cli = Replay([*prompted(), *looked(0), Until(event=asyncio.Event())])
        async with SteeredClaudeClient(steering(), transport=cli) as client:
            await client.query(TASK)
            await first_of(client.receive_messages())
        return asyncio.all_tasks() - before

    assert in_time(left()) == set()


def test_a_client_that_connects_again_begins_anew() -> None:
    async def twice() -> Steering:
        first, cli = [*prompted(), *looked(0), Until(event=asyncio.Event())], Replay()
        cli._turns = [first, turn(1)]
        client = SteeredClaudeClient(steering(), transport=cli, run_id="run", snapshots={})
        await client.connect()
        await client.query(TASK)
        while len(cli.told) < 2:
            await asyncio.sleep(0)
        await client.disconnect()
        client.steering._session._snapshots.clear()
        await client.connect()
        await ask(client)
        await client.disconnect()
        return client.steering

    assert {run_id: view.outcome for run_id, view in in_time(twice()).runs.items()} == {"run": None, "run.2": "success"}


# ------------------------------------------------------------ faults


def test_a_fault_of_ours_is_an_empty_answer() -> None:
    def scorer(step: object) -> float:
        raise ValueError("no")

    cli = Replay(turn(2))
    log = in_time(steered(cli, steering(scorer=scorer, strict=False))).step_log
    assert [entry.skipped_reason for entry in log] == [None, "fault", "fault"]
    assert [said for event, said in cli.answers if event == "PostToolBatch"] == [{}, {}]


def test_a_store_that_hangs_costs_the_deadline_and_no_more() -> None:
    let_go = threading.Event()

    class Hanging:
        def search(self, request: Retrieve) -> tuple[ETrace, ...]:
            let_go.wait(60)
            return ()

    rb = steering(pattern_store=Hanging(), step_deadline_ms=20)
    try:
        ended = in_time(steered(Replay(turn(2)), rb))
    finally:
        let_go.set()
    assert [entry.skipped_reason for entry in ended.step_log] == ["unavailable"] * 3
    assert ended.runs["run"].outcome == "success"
