"""Runs of a session that is played back: prompts, answers, tools, subagents, and how they end. No CLI is needed."""

from __future__ import annotations

import asyncio
from typing import Any

from reasonblocks.types import Step
from reasonblocks_claude_agent import SteeredClaudeClient, claude_hooks
from reasonblocks_claude_agent._steering import Steering
from tests.claude_agent.replay import (
    Hook,
    Line,
    Move,
    Replay,
    answer,
    call,
    done,
    init,
    interrupted,
    looked,
    prompted,
    result,
    text,
    turn,
)
from tests.claude_agent.world import ask, outcomes
from tests.second_message import Heard
from tests.steered import steering

RULE_SAID = "[REASONBLOCKS]\n- Check before you say that it is done."
STEP_0_SAID = "[REASONBLOCKS]\nStep 0 looked again. Read what it said."
STEP_3_SAID = "[REASONBLOCKS]\nStep 3 looked again. Read what it said."
A_TASK_ENDED = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
HARD: dict[str, Any] = {"scorer": lambda step: 0.7, "model_routing": {"SLOW": "strong-model"}}


def played(cli: Replay, prompts: int = 1, **options: Any) -> Steering:
    """What was steered, when every prompt is answered and the client is gone."""

    async def run() -> Steering:
        async with SteeredClaudeClient(steering(**options), transport=cli, run_id="run") as client:
            for _ in range(prompts):
                await ask(client)
        return client.steering

    return asyncio.run(run())


def test_guidance_is_what_the_hook_before_the_request_answers() -> None:
    cli = Replay(turn(5))
    played(cli)
    assert cli.told == [
        ("UserPromptSubmit", RULE_SAID),
        ("PostToolBatch", STEP_0_SAID),
        ("PostToolBatch", STEP_3_SAID),
    ]


def test_an_entry_has_the_thought_before_it_and_the_tools_of_its_call() -> None:
    log = played(Replay(turn(2))).step_log
    assert [entry.thought_preview for entry in log] == ["", "I look a 0. time.", "I look a 1. time."]
    assert [list(entry.tool_calls) for entry in log] == [["look"], ["look"], []]


def test_a_run_ends_with_its_result_and_is_judged_to_the_end() -> None:
    steered = played(Replay(turn(2)))
    assert steered.final is not None
    assert (outcomes(steered), steered.final.thought_preview) == ({"run": "success"}, "It is done.")


def test_two_prompts_are_two_runs() -> None:
    steered = played(Replay(turn(1), turn(2)), prompts=2)
    assert {run_id: len(view.step_log) for run_id, view in steered.runs.items()} == {"run": 2, "run.2": 3}


def test_a_prompt_that_was_sent_early_begins_a_run_of_its_own() -> None:
    async def both() -> Steering:
        cli = Replay([*turn(1), *turn(1, who="second ")], [])
        async with SteeredClaudeClient(steering(scorer=lambda step: 0.4), transport=cli, run_id="run") as client:
            await client.query("Fix the failing tests.")
            for _ in range(2):
                assert [message async for message in client.receive_response()]
        return client.steering

    assert outcomes(asyncio.run(both())) == {"run": "success", "run.2": "success"}


def test_a_failed_result_is_a_failed_run_and_the_call_that_it_prevented_is_logged_as_not_made() -> None:
    steered = played(Replay([*prompted(), *looked(0), result("error_max_turns", is_error=True)]))
    assert outcomes(steered) == {"run": "failure: error_max_turns"}
    assert [entry.error for entry in steered.step_log] == [None, "not called"]


def test_the_model_is_switched_in_mid_run_and_the_next_run_begins_with_the_agents_own() -> None:
    cli = Replay(turn(6), turn(1))
    played(cli, prompts=2, **HARD)
    assert cli.models == ["strong-model", "agent-model"]


def test_what_the_session_calls_its_model_is_the_agents_own() -> None:
    steered = played(Replay(turn(1), turn(1)), prompts=2)
    assert steered.runs["run.2"].run.model == "agent-model"


# ------------------------------------------------------------ interruptions


def test_an_interrupted_run_is_neither_finished_nor_failed() -> None:
    cli = Replay([*prompted(), *looked(0), interrupted()])
    assert outcomes(played(cli)) == {"run": None}


def test_the_prompt_after_an_interruption_goes_on_with_the_run() -> None:
    cli = Replay([*prompted(), *looked(0), *answer("m1", text("Hm."), call(1)), interrupted()], turn(1))
    steered = played(cli, prompts=2)
    assert outcomes(steered) == {"run": "success"}
    assert [entry.thought_preview for entry in steered.step_log] == [
        "",
        "I look a 0. time.",
        "Hm.",
        "I look a 0. time.",
    ]


def test_the_prompt_after_an_interruption_is_what_the_user_said_to_the_next_request() -> None:
    heard = Heard()
    cli = Replay(
        [*prompted(), *looked(0), interrupted("aborted_streaming")],
        [*prompted("Go on."), Hook(event="UserPromptSubmit", given={"prompt": A_TASK_ENDED}), *looked(1), *done()],
    )
    steered = played(cli, prompts=2, scorer=heard)
    assert heard.texts == ["", "Go on.", ""]
    assert steered.trace.state.account.mark == 1


def test_a_prompt_that_begins_a_run_is_its_task_alone() -> None:
    heard = Heard()
    played(Replay(turn(1), turn(1, prompt="And now the linter.")), prompts=2, scorer=heard)
    assert heard.texts == [""] * 4


def test_a_request_that_was_interrupted_is_not_told_a_second_time() -> None:
    cli = Replay([*prompted(), *looked(0), interrupted("aborted_streaming")], [*prompted("Go on."), *done()])
    steered = played(cli, prompts=2)
    assert cli.told == [("UserPromptSubmit", RULE_SAID), ("PostToolBatch", STEP_0_SAID)]
    assert [entry.step for entry in steered.step_log] == [0, 1]


# ------------------------------------------------------------ subagents, and what goes on in the background

AGENT: Line = {"agent_id": "a1", "agent_type": "inner"}
STARTED: Line = {
    "type": "system",
    "subtype": "task_started",
    "task_id": "a1",
    "tool_use_id": "t1",
    "description": "look",
    "uuid": "u",
    "session_id": "session",
}
INSIDE: list[Move] = [
    STARTED,
    Hook(event="SubagentStart", given=AGENT),
    *looked(0, "in", "t1", AGENT),
    *answer("inlast", text("It was empty."), owner="t1"),
    Hook(event="SubagentStop", given=AGENT),
]
NOTIFIED = "<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>\n</task-notification>"


def in_background(*ids: str) -> Line:
    tasks = [{"task_id": one} for one in ids]
    return {"type": "system", "subtype": "background_tasks_changed", "tasks": tasks, "session_id": "session"}


def test_a_subagent_is_a_run_of_its_own_within_the_agents() -> None:
    (view,) = played(Replay([*prompted(), *INSIDE, *done()])).children()
    assert (view.run.parent_run_id, view.run.parent_call_id, view.run.agent_name) == ("run", "t1", "inner")
    assert (view.outcome, [entry.thought_preview for entry in view.step_log]) == (
        "success",
        ["", "inI look a 0. time."],
    )


def test_subagents_are_found_by_the_run_that_they_belong_to() -> None:
    steered = played(Replay([*prompted(), *INSIDE, *done()], turn(1)), prompts=2)
    found = {run_id: [view.run.parent_run_id for view in steered.children(run_id)] for run_id in ("run", "run.2", "no")}
    assert (found, steered.children()) == ({"run": ["run"], "run.2": [], "no": []}, [])


def test_a_session_without_runs_has_no_subagents() -> None:
    assert claude_hooks(steering()).children() == []


def test_a_subagent_is_told_at_its_start_and_after_its_tools() -> None:
    cli = Replay([*prompted(), *INSIDE, *done()])
    played(cli)
    assert cli.told[1:] == [("SubagentStart", RULE_SAID), ("PostToolBatch", STEP_0_SAID)]


def test_the_turn_that_a_background_tasks_end_begins_belongs_to_the_run_that_started_the_task() -> None:
    first = [*prompted(), STARTED, Hook(event="SubagentStart", given=AGENT), in_background("a1"), *done("It is begun.")]
    then = [Hook(event="SubagentStop", given=AGENT), in_background(), *prompted(NOTIFIED), *done()]
    steered = played(Replay(first, turn(1), then), prompts=3)
    assert {run_id: len(view.step_log) for run_id, view in steered.runs.items()} == {"run": 2, "run.2": 2}


def over(task_id: str, status: str = "completed") -> list[Line]:
    """The CLI's stream says that a task is over; its prompt to the agent comes later, or while other tools run."""
    ended = {"task_id": task_id, "status": status, "output_file": "", "summary": "", "uuid": "u"}
    told = {"type": "system", "subtype": "task_notification", "session_id": "session", **ended}
    return [told, in_background()]


def test_a_task_that_ends_before_the_result_of_its_turn_leaves_no_step_to_be_judged_twice() -> None:
    judged: list[str] = []

    def scorer(step: Step) -> float:
        judged.append(step.thought)
        return 0.4

    first = [*prompted(), STARTED, in_background("a1"), *looked(0), *over("a1"), *done("It is begun.")]
    steered = played(Replay(first, [*prompted(NOTIFIED), *done()]), prompts=2, scorer=scorer)
    assert judged == ["I look a 0. time.", "It is begun.", "It is done."]
    assert (outcomes(steered), len(steered.step_log)) == ({"run": "success"}, 3)


def test_a_task_whose_end_was_told_while_the_turn_went_on_holds_no_run_open() -> None:
    told = Hook(event="UserPromptSubmit", given={"prompt": NOTIFIED})
    cli = Replay([*prompted(), STARTED, in_background("a1"), *looked(0), *over("a1"), told, *done()])

    async def run() -> tuple[str | None, int]:
        async with SteeredClaudeClient(steering(), transport=cli, run_id="run") as client:
            await ask(client)
            outcome = client.steering.runs["run"].outcome
        return outcome, len(cli.told)

    assert asyncio.run(run()) == ("success", 2)


def test_a_task_that_was_stopped_is_told_to_nobody() -> None:
    first = [*prompted(), STARTED, in_background("a1"), *over("a1", "stopped"), *done("It is begun.")]
    assert outcomes(played(Replay(first, turn(1)), prompts=2)) == {"run": "success", "run.2": "success"}


def test_a_run_is_open_while_a_task_of_it_is_at_work() -> None:
    async def run() -> tuple[str | None, str | None]:
        first = [*prompted(), STARTED, in_background("a1"), *done("It is begun.")]
        cli = Replay(first, [in_background(), *prompted(NOTIFIED), *done()])
        async with SteeredClaudeClient(steering(), transport=cli, run_id="run") as client:
            await ask(client)
            before = client.steering.runs["run"].outcome
            await ask(client)
        return before, client.steering.runs["run"].outcome

    assert asyncio.run(run()) == (None, "success")


def test_a_task_that_dies_with_its_session_leaves_the_run_as_its_turn_ended() -> None:
    cli = Replay([*prompted(), STARTED, in_background("a1"), *done("It is begun.")])
    assert outcomes(played(cli)) == {"run": "success"}


def test_messages_without_a_hook_before_them_are_harmless() -> None:
    cli = Replay([init(), *answer("m", text("Hello.")), result()])
    assert outcomes(played(cli)) == {}
