"""Transcripts of the real CLI are read as the steps that the adapter has seen live."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AssistantMessage, ToolUseBlock

from reasonblocks import JsonlSink
from reasonblocks.types import Step, Usage
from reasonblocks_testing import ScriptedReasonBlocks, Turn, tool_call
from reasonblocks_testing.server import Asked, ProviderError
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.claude_agent.world import (
    AGENT,
    INSIDE,
    LOOK,
    TASK,
    Answer,
    Place,
    ask,
    by_opening,
    cli,
    in_time,
    in_turn,
    look,
    looks,
    place,
    result_in,
    session,
)
from tests.steered import steering

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")


def recorded(*paths: Path) -> list[RecordedRun]:
    found = [item for path in paths for item in read_runs(str(path))]
    runs = [item for item in found if isinstance(item, RecordedRun)]
    assert len(runs) == len(found)
    return runs


def transcripts(session_id: str) -> list[Path]:
    """The files of a session: its own, and those of its subagents."""
    projects = Path(os.environ["HOME"], ".claude", "projects")
    return [*projects.rglob(f"{session_id}.jsonl"), *projects.rglob(f"{session_id}/subagents/*.jsonl")]


def compared(step: Step) -> Step:
    """A step without its times, and with the numbers of its calls for their ids: our log does not keep the ids."""
    numbers = {call.id: str(number) for number, call in enumerate(step.tool_calls)}
    calls = (replace(call, id=numbers[call.id]) for call in step.tool_calls)
    results = (replace(one, call_id=numbers[one.call_id], duration_ms=None) for one in step.tool_results)
    return replace(step, tool_calls=tuple(calls), tool_results=tuple(results))


def stories(runs: Sequence[RecordedRun]) -> dict[str, list[Step]]:
    """The steps of the main agent's runs, by their prompts."""
    return {run.task: [compared(step) for step in run.steps] for run in runs if run.parent_run_id is None}


def logged(path: Path) -> ScriptedReasonBlocks:
    return steering(sinks=[JsonlSink(path)])


def lived(answer: Answer, tmp_path: Path, *prompts: str) -> tuple[list[RecordedRun], list[RecordedRun]]:
    """The runs of a session as our own log has them, and as the CLI's transcripts do."""
    log = tmp_path / "log.jsonl"

    async def run(here: Place) -> str:
        rb = logged(log)
        async with session(here, rb, **AGENT) as client:
            found = [result_in(await ask(client, prompt)).session_id for prompt in prompts]
        rb.close()
        return found[-1]

    with place(answer) as here:
        session_id = in_time(run(here))
    return recorded(log), recorded(*transcripts(session_id))


def test_prompts_failed_tools_and_subagents_are_read_as_they_were_seen(tmp_path: Path) -> None:
    asked_for = {"description": "look", "prompt": INSIDE, "subagent_type": "inner", "run_in_background": False}
    delegates = Turn(text="Somebody else is to look.", tool_calls=(tool_call("t1", "Task", asked_for),))
    thinks = Turn(reasoning="Which?", text="I look.", tool_calls=(tool_call("c8", LOOK, {"at": 8}),))
    outer = in_turn(look(1, -2), delegates, thinks, Turn(text="It is done."), *looks(1))
    seen, read = lived(by_opening({INSIDE: in_turn(*looks(2, "inner "))}, outer), tmp_path, TASK, "And now the linter.")
    assert stories(read) == stories(seen)
    assert [len(run.steps) for run in read] == [4, 2, 3]


def test_a_subagents_transcript_has_the_texts_that_hooks_do_not_see(tmp_path: Path) -> None:
    asked_for = {"description": "look", "prompt": INSIDE, "subagent_type": "inner", "run_in_background": False}
    outer = in_turn(Turn(text="Look.", tool_calls=(tool_call("t1", "Task", asked_for),)), Turn(text="It is done."))
    seen, read = lived(by_opening({INSIDE: in_turn(*looks(2, "inner "))}, outer), tmp_path, TASK)
    (live,), (saved,) = ([run for run in runs if run.parent_run_id is not None] for runs in (seen, read))
    assert (saved.task, saved.parent_run_id) == (INSIDE, read[0].run_id)
    assert [step.thought for step in saved.steps] == [
        "inner I look a 0. time.",
        "inner I look a 1. time.",
        "inner It is done.",
    ]
    assert [compared(replace(step, thought="")) for step in saved.steps[:2]] == [compared(step) for step in live.steps]


def test_tokens_of_a_transcript_are_those_of_the_provider(tmp_path: Path) -> None:
    counted = Turn(text="Done.", usage=Usage(input=100, output=10, cache_read=40, cache_write=20))
    _, (run,) = lived(in_turn(counted), tmp_path, TASK)
    assert run.usages == (Usage(input=100, output=10, cache_read=40, cache_write=20),)
    assert run.model == "agent-model"


def test_a_request_that_fails_ends_a_run_as_it_did_live(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Turn:
        if asked.answers:
            raise ProviderError("nobody is here", status=400)
        return look(0)

    seen, read = lived(answer, tmp_path, TASK)
    assert stories(read) == stories(seen)
    assert [run.outcome for run in read] == [run.outcome for run in seen] == ["failure: unknown"]


def test_the_prompt_after_an_interruption_continues_the_run_as_it_did_live(tmp_path: Path) -> None:
    async def never(arguments: Any) -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def run(here: Place) -> str:
        rb = logged(tmp_path / "log.jsonl")
        async with session(here, rb) as client:
            await client.query(TASK)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage) and isinstance(message.content[0], ToolUseBlock):
                    await client.interrupt()
            found = result_in(await ask(client, "Go on.")).session_id
        rb.close()
        return found

    with place(in_turn(look(0), *looks(0)), never) as here:
        session_id = in_time(run(here))
    (seen,), (read,) = recorded(tmp_path / "log.jsonl"), recorded(*transcripts(session_id))
    assert stories([read]) == stories([seen])
    assert [step.user_text for step in read.steps] == [step.user_text for step in seen.steps] == ["", "Go on."]
