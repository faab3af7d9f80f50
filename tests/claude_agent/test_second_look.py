"""An end that is in doubt: the agent of the real CLI goes on once, and is told why."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest
from claude_agent_sdk import HookMatcher

from reasonblocks.types import Doubt, Evaluation, Usage
from reasonblocks_claude_agent import SteeredClaudeClient, Steering, claude_hooks
from reasonblocks_claude_agent._client import Mode
from reasonblocks_testing import ScriptedEvaluator, ScriptedReasonBlocks, ScriptedStore, Turn
from reasonblocks_testing.server import Asked, ProviderError
from tests.claude_agent.harness import answers
from tests.claude_agent.test_subagents import asking, until
from tests.claude_agent.world import (
    AGENT,
    INSIDE,
    PROMPTS,
    SECONDS,
    TASK,
    Place,
    ask,
    both_modes,
    by_opening,
    cli,
    everything,
    hooked,
    in_time,
    in_turn,
    look,
    looks,
    outcomes,
    place,
    run_in,
)
from tests.steered import steering
from tests.whole import in_whole

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")
DOUBTED = "The work was declared done, and nothing was run since. Run the tests."
DONE = Turn(text="All is done.", usage=Usage(input=70, output=7))


def doubting(**options: Any) -> ScriptedReasonBlocks:
    """A client that doubts every end, and has nothing else to say."""
    doubt = Evaluation(
        fired=("verification_skip",),
        scores={"verification_skip": 1.0},
        composite=0.3,
        failure_type="unverified",
        doubts=(Doubt(monitor="verification_skip", text=DOUBTED),),
    )
    given = {"evaluator": ScriptedEvaluator([doubt] * 9), "pattern_store": ScriptedStore(lambda asked: [])}
    return steering(**{**given, "second_look": "unchecked", **options})


def doubts_in(asked: Asked) -> int:
    return sum(text.count(DOUBTED) for text in (asked.system, *asked.texts))


@both_modes
@pytest.mark.parametrize("partial", [True, False])
def test_a_second_look_is_told_once_and_recorded(mode: Mode, partial: bool) -> None:
    with place(in_turn(look(0), DONE, look(1), *looks(0))) as here:
        steered = run_in(here, doubting(), mode, include_partial_messages=partial)
        assert [doubts_in(asked) for asked in here.asked()] == [0, 0, 1, 1]
    log = steered.step_log
    assert [DOUBTED in "".join(entry.intervention_texts) for entry in log] == [False, False, True, False]
    counted = partial or mode == "gateway"
    assert [(entry.input_tokens, entry.output_tokens) for entry in log[1:3]] == [
        (70, 7 if counted else None),
        (101, 10 if counted else None),
    ]
    assert [entry.attempts for entry in log] == [1] * 4
    assert outcomes(steered) == {"run": "success"}
    assert steered.final is not None
    assert (steered.final.step, steered.final.thought_preview) == (4, "It is done.")


class Slow:
    """A model that is asked for the third answer, and does not give it until it is let go."""

    def __init__(self) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()

    def __call__(self, asked: Asked) -> Turn:
        if answers(asked) == 2 and not self.let_go.is_set():
            self.asked.set()
            self.let_go.wait(SECONDS)
            raise ProviderError("overloaded", status=529)
        return in_turn(look(0), DONE, look(1), *looks(0))(asked)

    async def until_asked(self) -> None:
        await asyncio.to_thread(self.asked.wait, SECONDS)


def gone_on(here: Place) -> list[int]:
    return [doubts_in(asked) for asked in here.asked() if any("Go on." in text for text in asked.texts)]


@both_modes
def test_a_second_look_that_was_interrupted_is_told_once(mode: Mode) -> None:
    slow = Slow()
    with place(slow) as here:

        async def run() -> Steering:
            async with SteeredClaudeClient(doubting(), here.options(), mode=mode, run_id="run") as client:
                await client.query(TASK)
                await slow.until_asked()
                await client.interrupt()
                await everything(client.receive_response())
                slow.let_go.set()
                await ask(client, "Go on.")
            return client.steering

        steered = in_time(run())
        assert gone_on(here) == [1, 1]
    told = ["".join(entry.intervention_texts) for entry in steered.step_log]
    assert [DOUBTED in text for text in told] == [False, False, True, False]
    assert outcomes(steered) == {"run": "success"}


@pytest.mark.parametrize("mode", ["hooks", pytest.param("gateway", marks=in_whole)])
def test_a_second_look_that_was_left_is_told_once_when_it_is_resumed(mode: Mode) -> None:
    slow, rb, session_id = Slow(), doubting(), str(uuid4())
    with place(slow) as here:

        async def run() -> Steering:
            async with SteeredClaudeClient(rb, here.options(session_id=session_id), mode=mode, run_id="run") as client:
                await client.query(TASK)
                await slow.until_asked()
            slow.let_go.set()
            async with SteeredClaudeClient(rb, here.options(resume=session_id), mode=mode) as client:
                await ask(client, "Go on.")
            return client.steering

        steered = in_time(run())
        assert gone_on(here) == [1, 1]
    assert [entry.step for entry in steered.step_log] == [2, 3]
    assert outcomes(steered) == {"run": "success"}


def test_the_next_prompt_after_a_second_look_begins_another_run() -> None:
    with place(in_turn(DONE, *looks(0), DONE, *looks(0))) as here:
        steered = run_in(here, doubting(), "hooks", PROMPTS)
        assert [doubts_in(asked) for asked in here.asked()] == [0, 1, 1, 2]
    assert {run_id: len(view.step_log) for run_id, view in steered.runs.items()} == {"run": 2, "run.2": 2}


@pytest.mark.parametrize("passed_on", [True, False])
def test_hooks_alone_take_a_second_look(passed_on: bool) -> None:
    with place(in_turn(look(0), DONE, look(1), *looks(0))) as here:

        async def run() -> Steering:
            hooks = claude_hooks(doubting(), here.options(), run_id="run")
            async with hooked(hooks, passed_on) as client:
                await ask(client)
            return hooks

        steered = in_time(run())
        assert [doubts_in(asked) for asked in here.asked()] == [0, 0, 1, 1]
    assert outcomes(steered) == {"run": "success"}
    told = ["".join(entry.intervention_texts) for entry in steered.step_log]
    assert [DOUBTED in text for text in told] == [False, False, True, False]


def test_a_look_goes_to_the_model_of_the_runs_state() -> None:
    with place(in_turn(*map(look, range(4)), DONE, *looks(0))) as here:
        log = run_in(here, doubting(scorer=lambda step: 0.7, model_routing={"SLOW": "strong-model"}), "hooks").step_log
        models = [asked.model for asked in here.asked()]
    assert [entry.route for entry in log] == [None] * 5 + ["SLOW"]
    assert [entry.model_id for entry in log] == models == ["agent-model"] * 5 + ["strong-model"]


@pytest.mark.parametrize(("most", "calls"), [(2, 2), (3, 3)])
def test_a_look_that_the_cli_would_refuse_is_not_taken(most: int, calls: int) -> None:
    """One beyond `max_turns` would turn a success into a failure."""
    with place(in_turn(look(0), DONE, *looks(0))) as here:
        steered = run_in(here, doubting(), "hooks", max_turns=most)
        assert len(here.asked()) == calls
    assert outcomes(steered) == {"run": "success"}


def test_a_run_is_looked_at_when_its_subagents_are_done() -> None:
    outer = in_turn(asking(background=True), Turn(text="It looks."), DONE, *looks(0))
    with place(by_opening({INSIDE: in_turn(*looks(1, "inner "))}, outer)) as here:

        async def run() -> SteeredClaudeClient:
            async with SteeredClaudeClient(doubting(), here.options(**AGENT), run_id="run") as client:
                await until(client, 2)
            return client

        steered = in_time(run()).steering
        assert [doubts_in(asked) for asked in here.asked()] == [0, 0, 0, 1]
        assert [doubts_in(asked) for asked in here.asked(INSIDE)] == [0, 0]
    assert outcomes(steered) == {"run": "success"}


def test_a_fault_leaves_the_end_as_it_is() -> None:
    def scorer(step: Any) -> float:
        raise RuntimeError

    with place(in_turn(DONE)) as here:
        steered = run_in(here, doubting(scorer=scorer, strict=False), "hooks")
        assert len(here.asked()) == 1
    assert outcomes(steered) == {"run": "success"}


def test_the_callers_stop_hook_keeps_its_say() -> None:
    """It sends the agent on as well, at the same time: the second look is one call, with both texts."""

    async def mine(given: Any, tool_use_id: Any, hook_context: Any) -> Any:
        return {} if given["stop_hook_active"] else {"decision": "block", "reason": "Mine."}

    with place(in_turn(DONE, *looks(0))) as here:
        steered = run_in(here, doubting(), "hooks", hooks={"Stop": [HookMatcher(hooks=[mine])]})
        assert len(here.asked()) == 2
        assert ("Mine." in "".join(here.asked()[1].texts), doubts_in(here.asked()[1])) == (True, 1)
    assert {run_id: len(view.step_log) for run_id, view in steered.runs.items()} == {"run": 2}
