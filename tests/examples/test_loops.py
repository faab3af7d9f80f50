"""The hand-written loops, each in its three ways, on the real clients against the scripted provider."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anthropic
import anthropic_loop
import openai
import openai_loop
import pytest
from loop_agent import SCRIPT, SYSTEM_PROMPT, TASK, run_tools

from reasonblocks import ReasonBlocks, SteeringSession, StepLogEntry
from reasonblocks.exceptions import RunStopped
from reasonblocks.render import FRAME
from reasonblocks_testing import LoopHarness, Script, Turn, tool_call
from reasonblocks_testing.server import Asked, ScriptedServer

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = ["openai_loop.py", "anthropic_loop.py"]
KEY = "not needed"
ERRORS = (openai.BadRequestError, anthropic.BadRequestError)

Way = Callable[[ScriptedServer, SteeringSession, Callable[[str], object]], str]


# --- the six ways


def openai_sync(server: ScriptedServer, session: SteeringSession, say: Callable[[str], object]) -> str:
    with openai.OpenAI(base_url=server.openai_url, api_key=KEY) as client:
        return openai_loop.run(client, session, TASK)


def openai_async(server: ScriptedServer, session: SteeringSession, say: Callable[[str], object]) -> str:
    async def main() -> str:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key=KEY) as client:
            return await openai_loop.run_async(client, session, TASK)

    return asyncio.run(main())


def openai_streamed(server: ScriptedServer, session: SteeringSession, say: Callable[[str], object]) -> str:
    with openai.OpenAI(base_url=server.openai_url, api_key=KEY) as client:
        return openai_loop.run_streamed(client, session, TASK, say)


def anthropic_sync(server: ScriptedServer, session: SteeringSession, say: Callable[[str], object]) -> str:
    with anthropic.Anthropic(base_url=server.anthropic_url, api_key=KEY) as client:
        return anthropic_loop.run(client, session, TASK)


def anthropic_async(server: ScriptedServer, session: SteeringSession, say: Callable[[str], object]) -> str:
    async def main() -> str:
        async with anthropic.AsyncAnthropic(base_url=server.anthropic_url, api_key=KEY) as client:
            return await anthropic_loop.run_async(client, session, TASK)

    return asyncio.run(main())


def anthropic_streamed(server: ScriptedServer, session: SteeringSession, say: Callable[[str], object]) -> str:
    with anthropic.Anthropic(base_url=server.anthropic_url, api_key=KEY) as client:
        return anthropic_loop.run_streamed(client, session, TASK, say)


STREAMED = (openai_streamed, anthropic_streamed)
ANTHROPIC = (anthropic_sync, anthropic_async, anthropic_streamed)
WAYS: tuple[Way, ...] = (openai_sync, openai_async, openai_streamed, *ANTHROPIC)
ids = [way.__name__ for way in WAYS]
each_way = pytest.mark.parametrize("way", WAYS, ids=ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of a loop: what it gave or raised, what the provider was asked, and the session after it."""

    answer: str
    error: BaseException | None
    said: list[str]
    requests: list[Asked]
    session: SteeringSession

    @property
    def log(self) -> list[StepLogEntry]:
        return self.session.step_log


def ran(way: Way, script: Script = SCRIPT, **options: Any) -> Ran:
    session, said = ReasonBlocks(strict=True, **options).session(task=TASK), list[str]()
    answer, error = "", None
    with ScriptedServer(script) as server:
        try:
            answer = way(server, session, said.append)
        except (*ERRORS, RunStopped) as exc:
            error = exc
    return Ran(answer=answer, error=error, said=said, requests=server.requests, session=session)


@pytest.fixture(scope="module", params=WAYS, ids=ids)
def steered(request: pytest.FixtureRequest) -> Ran:
    return ran(request.param)


# --- a run


def test_a_loop_gives_the_agent_s_answer(steered: Ran) -> None:
    assert (steered.answer, steered.session.outcome) == (SCRIPT.turns[-1].text, "success")


def test_each_call_is_one_request_and_one_entry(steered: Ran) -> None:
    assert [request.answers for request in steered.requests] == [entry.step for entry in steered.log] == [*range(7)]


def test_guidance_reaches_exactly_the_calls_that_it_is_for(steered: Ran) -> None:
    read = [request.texts[-1].partition(f"{FRAME}\n")[2] for request in steered.requests]
    assert read == ["\n\n".join(entry.intervention_texts) for entry in steered.log]
    assert [bool(text) for text in read] == [True, *[False] * 4, True, False]


def test_guidance_is_in_no_request_but_its_own(steered: Ran) -> None:
    assert [json.dumps(request.body).count(FRAME) for request in steered.requests] == [1, 0, 0, 0, 0, 1, 0]


def test_the_system_prompt_stays_the_agent_s_own(steered: Ran) -> None:
    assert {request.system for request in steered.requests} == {SYSTEM_PROMPT}


@each_way
def test_in_the_system_placement_guidance_follows_the_prompt(way: Way) -> None:
    run = ran(way, placement="system")
    read = [request.system.partition(f"\n\n{FRAME}\n")[2] for request in run.requests]
    assert read == ["\n\n".join(entry.intervention_texts) for entry in run.log]
    histories = [request.body.get("input") or request.body["messages"] for request in run.requests]
    assert FRAME not in json.dumps(histories)


def test_a_run_is_decided_as_the_core_decides_it(steered: Ran) -> None:
    turns = tuple(replace(turn, results=run_tools(turn.tool_calls)) for turn in SCRIPT.turns)
    (core,) = LoopHarness().run(ReasonBlocks(strict=True), replace(SCRIPT, turns=turns), "sync")
    assert list(map(decided, steered.log)) == list(map(decided, core.log))
    assert steered.session.final is not None
    assert core.final is not None
    assert decided(steered.session.final) == decided(core.final)


def decided(entry: StepLogEntry) -> tuple[object, ...]:
    return entry.difficulty, entry.fsm_state, entry.monitors_fired, entry.gate_decision, entry.intervention_texts


def test_the_log_holds_what_each_call_did(steered: Ran) -> None:
    tools = [[call.name for call in turn.tool_calls] for turn in SCRIPT.turns]
    assert [list(entry.tool_calls) for entry in steered.log] == tools
    assert [entry.model_id for entry in steered.log] == [request.model for request in steered.requests]
    assert all(entry.latency_ms for entry in steered.log)


def test_the_log_counts_tokens_as_the_script_has_them(steered: Ran) -> None:
    counted = [(entry.input_tokens, entry.output_tokens, entry.cache_read_tokens) for entry in steered.log]
    usages = [turn.usage for turn in SCRIPT.turns]
    assert counted == [(usage.input, usage.output, usage.cache_read or 0) for usage in usages]


def test_the_next_request_holds_the_tools_outputs(steered: Ran) -> None:
    results = {result.call_id: result.output for turn in SCRIPT.turns for result in run_tools(turn.tool_calls)}
    assert steered.requests[-1].tool_outputs == results


@pytest.mark.parametrize("way", STREAMED, ids=lambda way: way.__name__)
def test_a_streamed_loop_says_the_words_as_they_come(way: Way) -> None:
    said = ran(way).said
    assert "".join(said) == "".join(turn.text for turn in SCRIPT.turns)
    assert len(said) > len(SCRIPT.turns)


@pytest.mark.parametrize("way", ANTHROPIC, ids=lambda way: way.__name__)
def test_the_anthropic_loop_caches_its_prompt_and_never_the_guidance(way: Way) -> None:
    assert cached(ran(way)) == [[True]] * 7
    assert cached(ran(way, placement="system")) == [[True, False], *[[True]] * 4, [True, False], [True]]


def cached(run: Ran) -> list[list[bool]]:
    return [["cache_control" in block for block in request.body["system"]] for request in run.requests]


# --- control


@each_way
def test_an_observed_loop_sends_what_it_sends_without_steering(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    observed = ran(way, mode="observe")
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    plain = ran(way)
    assert sent(observed) == sent(plain)
    assert [bool(entry.withheld_texts) for entry in observed.log] == [True, *[False] * 4, True, False]


def sent(run: Ran) -> list[str]:
    """Return the bodies of all requests, without the part of an id that is the server's own."""
    return [re.sub(r'("[a-z]+_)[0-9a-f]{8}', r"\1", json.dumps(request.body)) for request in run.requests]


@each_way
def test_a_loop_that_is_stopped_raises_before_its_next_call(way: Way) -> None:
    run = ran(way, stop_when=lambda run: "enough" if len(run.step_log) > 2 else None)
    assert isinstance(run.error, RunStopped)
    assert (len(run.requests), run.session.outcome) == (2, "stopped: enough")


@pytest.mark.parametrize("way", WAYS[:3], ids=ids[:3])
def test_a_loop_takes_a_second_look_at_an_answer_that_its_run_contradicts(way: Way) -> None:
    turns = (SCRIPT.turns[0], Turn(text="All tests pass now."), Turn(text="One test fails still."))
    run = ran(way, replace(SCRIPT, turns=turns), second_look="unchecked")
    assert (run.answer, run.session.outcome) == ("One test fails still.", "success")
    assert "The newest check, 1 step before this answer, failed" in run.requests[2].texts[-1]
    assert ran(way, replace(SCRIPT, turns=turns)).answer == "All tests pass now."


# --- trouble


@each_way
def test_an_error_of_the_call_is_recorded_and_raised(way: Way) -> None:
    broken = replace(SCRIPT, turns=(SCRIPT.turns[0], Turn(error=ValueError("no such model"))))
    run = ran(way, broken)
    assert isinstance(run.error, ERRORS)
    assert (len(run.requests), len(run.log), run.session.outcome) == (2, 2, "failure: BadRequestError")
    assert "no such model" in (run.log[-1].error or "")


@each_way
def test_a_tool_that_fails_is_told_to_the_model(way: Way) -> None:
    calls = (tool_call("c1", "read_file", {"path": "nowhere"}), tool_call("c2", "no_such_tool"))
    run = ran(way, replace(SCRIPT, turns=(Turn(tool_calls=calls), Turn(text="I give up."))))
    assert (run.answer, run.session.outcome) == ("I give up.", "success")
    assert run.requests[-1].tool_outputs == {"c1": "KeyError: 'nowhere'", "c2": "KeyError: 'no_such_tool'"}


def test_arguments_that_are_no_json_are_told_to_the_model() -> None:
    call = replace(tool_call("c1", "read_file"), arguments='{"path": ')
    run = ran(openai_sync, replace(SCRIPT, turns=(Turn(tool_calls=(call,)), Turn(text="I give up."))))
    assert run.answer == "I give up."
    assert run.requests[-1].tool_outputs["c1"].startswith("TypeError: ")


def test_a_cancelled_call_is_recorded() -> None:
    session = ReasonBlocks(strict=True).session(task=TASK)
    arrived, let_go = threading.Event(), threading.Event()

    def never(asked: Asked) -> Turn:
        arrived.set()
        let_go.wait(60)
        return SCRIPT.turns[0]

    async def main(server: ScriptedServer) -> None:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key=KEY) as client:
            run = asyncio.ensure_future(openai_loop.run_async(client, session, TASK))
            await asyncio.to_thread(arrived.wait, 60)
            run.cancel()
            await asyncio.wait([run])

    with ScriptedServer(never) as server:
        asyncio.run(main(server))
        let_go.set()
    assert (session.outcome, session.step_log[-1].error) == ("failure: CancelledError", "CancelledError")


# --- the programs


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_prints_what_the_model_read(program: str) -> None:
    command = [sys.executable, str(EXAMPLES / program)]
    shown = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert (
        "run_tests() has failed in the same way 5 times (your last step, and 1, 2, 3 and 4 steps before it)"
        in shown.stdout
    )
    assert "success: 7 calls, 7 requests" in shown.stdout
