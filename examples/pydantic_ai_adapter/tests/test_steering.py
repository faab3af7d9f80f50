"""What the framework has beside what every framework has: thinking, structured output, `run_stream`, instructions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, UsageLimits
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from reasonblocks import ReasonBlocks
from reasonblocks.adapters import RunView
from reasonblocks.exceptions import ConfigError, RunStopped, SnapshotError
from reasonblocks.render import FRAME
from reasonblocks.types import Mode
from reasonblocks_pydantic_ai._convert import completed_step

from .harness import ScriptedModel, answers

LOOPS = 4
SIGNED = ThinkingPart(content="Hm.", signature="of its author")


def run_tests() -> str:
    """Runs the tests."""
    return "3 failed"


def looping(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if answers(messages) == LOOPS:
        return ModelResponse(parts=[TextPart("Done.")])
    return ModelResponse(parts=[SIGNED, TextPart("I run the tests."), ToolCallPart("run_tests", {})])


def agent(rb: ReasonBlocks, model: FunctionModel, **options: Any) -> tuple[Agent[None, Any], Any]:
    steering = rb.pydantic_ai()
    return Agent(model, tools=[Tool(run_tests)], capabilities=[steering], **options), steering


@pytest.fixture
def rb() -> ReasonBlocks:
    return ReasonBlocks()


def test_the_recorded_instructions_are_the_agent_s_own(rb: ReasonBlocks) -> None:
    fixer, steering = agent(rb, FunctionModel(looping), instructions="You fix bugs.")
    messages = asyncio.run(fixer.run("Fix it.")).all_messages()
    assert {one.instructions for one in messages if isinstance(one, ModelRequest)} == {"You fix bugs."}
    assert any(entry.intervention_texts for entry in steering.step_log)


def test_in_the_instructions_guidance_stands_after_what_a_provider_caches() -> None:
    seen: list[AgentInfo] = []

    def listening(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info)
        return looping(messages, info)

    fixer, _ = agent(ReasonBlocks(placement="system"), FunctionModel(listening), instructions="You fix bugs.")
    asyncio.run(fixer.run("Fix it."))
    parts = seen[0].model_request_parameters.instruction_parts or []
    assert [(part.dynamic, part.content.startswith(FRAME)) for part in parts] == [(False, False), (True, True)]


def test_a_routed_model_is_not_sent_the_thinking_that_another_has_signed() -> None:
    thoughts: list[int] = []

    def strong(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        thoughts.append(sum(SIGNED in message.parts for message in messages))
        return looping(messages, info)

    routed = ReasonBlocks(model_routing={"NORMAL": FunctionModel(strong, model_name="strong")})
    fixer, _ = agent(routed, FunctionModel(looping, model_name="own"))
    result = asyncio.run(fixer.run("Fix it."))
    assert thoughts == [0, 1, 2, 3]  # its own are left
    assert sum(SIGNED in message.parts for message in result.all_messages()) == LOOPS


@pytest.mark.parametrize(("mode", "expected"), [("steer", [0, 1, 2, 3]), ("observe", [1, 2, 3, 4])])
def test_an_observed_run_leaves_the_thinking_of_another_model(mode: Mode, expected: list[int]) -> None:
    thoughts: list[int] = []

    def listening(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        thoughts.append(sum(SIGNED in message.parts for message in messages))
        return looping(messages, info)

    before: list[ModelMessage] = [
        ModelRequest.user_text_prompt("Look."),
        ModelResponse(parts=[SIGNED], model_name="another"),
    ]
    fixer, _ = agent(ReasonBlocks(mode=mode, model_routing={"SLOW": "strong"}), FunctionModel(listening))
    asyncio.run(fixer.run("Fix it.", message_history=before))
    assert thoughts == expected


def test_what_the_user_says_between_two_answers_belongs_to_the_second() -> None:
    answer = ModelResponse(parts=[ToolCallPart("look", {}, "c")])
    returned = ModelRequest(parts=[ToolReturnPart("look", "empty", "c"), UserPromptPart("A picture of the tool's.")])
    begun: list[ModelMessage] = [ModelRequest.user_text_prompt("Fix it."), answer]
    assert completed_step(begun).user_text == ""
    assert completed_step([*begun, returned, answer]).user_text == ""
    said = completed_step([*begun, returned, ModelRequest.user_text_prompt("Go on."), answer, returned])
    assert (said.user_text, said.observation) == ("Go on.", "empty")


def enough(run: RunView) -> str | None:
    """Return a reason to end the run before its call 2."""
    return "enough" if len(run.step_log) > 2 else None


def test_a_run_that_is_stopped_raises_in_whatever_way_it_runs() -> None:
    fixer, steering = agent(ReasonBlocks(stop_when=enough), FunctionModel(looping))

    async def by_hand() -> None:
        async with fixer.iter("Fix it.") as run:
            async for _ in run:
                pass

    for run in (fixer.run("Fix it."), by_hand()):
        with pytest.raises(RunStopped, match="enough"):
            asyncio.run(run)
    assert [(one.outcome, len(one.step_log)) for one in steering.runs.values()] == [("stopped: enough", 2)] * 2


def claiming(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Say that the tests pass, after they have failed."""
    if not answers(messages):
        return ModelResponse(parts=[ToolCallPart("run_tests", {})])
    return ModelResponse(parts=[TextPart("All tests pass now.")])


def test_a_second_look_is_a_message_although_guidance_stands_in_the_instructions() -> None:
    ends: list[str] = []

    def listening(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        ends.append(str(messages[-1].parts[-1]))
        return claiming(messages, info)

    fixer, steering = agent(ReasonBlocks(placement="system", second_look="unchecked"), FunctionModel(listening))
    result = asyncio.run(fixer.run("Fix it."))
    assert [FRAME in end for end in ends] == [False, False, True]  # a provider may refuse to go on from an answer
    assert [len(message.parts) for message in result.all_messages()] == [1, 1, 1, 1, 0, 1]
    (run,) = steering.runs.values()
    assert (run.outcome, len(run.step_log)) == ("success", 3)


def test_a_second_look_needs_a_call_that_the_caller_s_limits_allow() -> None:
    fixer, steering = agent(ReasonBlocks(second_look="unchecked"), FunctionModel(claiming))
    result = asyncio.run(fixer.run("Fix it.", usage_limits=UsageLimits(request_limit=2)))
    (run,) = steering.runs.values()
    assert (result.output, run.outcome, len(run.step_log)) == ("All tests pass now.", "success", 2)


def test_an_output_of_run_stream_gets_no_second_look() -> None:
    fixer, steering = agent(ReasonBlocks(second_look="unchecked"), ScriptedModel(claiming, model_name="own"))

    async def main() -> str:
        async with fixer.run_stream("Fix it.") as result:
            return str(await result.get_output())

    assert asyncio.run(main()) == "All tests pass now."
    (run,) = steering.runs.values()
    assert (run.outcome, len(run.step_log)) == ("success", 2)


def test_a_run_that_was_approved_goes_on_under_its_own_id_with_its_own_task(rb: ReasonBlocks) -> None:
    def deploying(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
        return ModelResponse(parts=[TextPart("Done.") if done else ToolCallPart("deploy", {}, "call-1")])

    fixer: Agent[None, str | DeferredToolRequests] = Agent(
        FunctionModel(deploying),
        output_type=[str, DeferredToolRequests],
        tools=[Tool(run_tests, name="deploy", requires_approval=True)],
    )
    before = rb.pydantic_ai()
    waiting = asyncio.run(fixer.run("Deploy it.", capabilities=[before]))
    after = rb.pydantic_ai(snapshot=before.trace.snapshot())
    approved = DeferredToolResults(approvals={"call-1": True})
    asyncio.run(fixer.run(message_history=waiting.all_messages(), deferred_tool_results=approved, capabilities=[after]))
    (first,), (second,) = before.runs.values(), after.runs.values()
    assert (first.outcome, second.outcome) == (None, "success")
    assert (second.run_id, second.run.task) == (first.run_id, "Deploy it.")


def test_a_run_that_ends_in_structured_output_is_a_success(rb: ReasonBlocks) -> None:
    def answering(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"response": 7})])

    fixer, steering = agent(rb, FunctionModel(answering), output_type=int)
    assert asyncio.run(fixer.run("How many?")).output == 7
    (run,) = steering.runs.values()
    assert (run.outcome, len(run.step_log)) == ("success", 1)


def test_run_stream_is_steered_to_the_output_that_it_stops_at(rb: ReasonBlocks) -> None:
    fixer, steering = agent(rb, ScriptedModel(looping, model_name="own"))

    async def main() -> str:
        async with fixer.run_stream("Fix it.") as result:
            return str(await result.get_output())

    assert asyncio.run(main()) == "I run the tests."  # text is its final output, whatever else was said
    (run,) = steering.runs.values()
    assert (run.outcome, len(run.step_log)) == ("success", 1)


def test_a_tool_that_raises_ends_the_run_as_failed_with_its_last_step(rb: ReasonBlocks) -> None:
    def raising() -> str:
        raise ZeroDivisionError

    steering = rb.pydantic_ai()
    fixer: Agent[None, str] = Agent(
        FunctionModel(looping), tools=[Tool(raising, name="run_tests")], capabilities=[steering]
    )
    with pytest.raises(ZeroDivisionError):
        asyncio.run(fixer.run("Fix it."))
    (run,) = steering.runs.values()
    assert run.outcome == "failure: ZeroDivisionError"
    assert run.final is not None
    assert run.final.thought_preview == "I run the tests."


def test_a_run_within_a_tool_knows_the_call_that_started_it(rb: ReasonBlocks) -> None:
    steering = rb.pydantic_ai()
    child: Agent[None, str] = Agent(FunctionModel(looping), tools=[Tool(run_tests)], capabilities=[steering])

    async def delegate() -> str:
        return (await child.run("Look.")).output

    def once(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        part = TextPart("Done.") if answers(messages) else ToolCallPart("delegate", {}, "call-1")
        return ModelResponse(parts=[part])

    parent: Agent[None, str] = Agent(FunctionModel(once), tools=[Tool(delegate)], capabilities=[steering])
    asyncio.run(parent.run("Fix it."))
    outside, inside = steering.runs.values()
    assert (inside.run.parent_run_id, inside.run.parent_call_id) == (outside.run_id, "call-1")


def test_a_disabled_client_leaves_every_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    fixer, steering = agent(ReasonBlocks(), FunctionModel(looping))
    assert asyncio.run(fixer.run("Fix it.")).output == "Done."
    assert dict(steering.runs) == {}


def test_a_wrong_option_is_refused_with_the_right_one(rb: ReasonBlocks) -> None:
    with pytest.raises(ConfigError, match="agent_name"):
        rb.pydantic_ai(agentname="fixer")


def test_a_snapshot_that_cannot_be_read_is_refused_where_it_is_given(rb: ReasonBlocks) -> None:
    with pytest.raises(SnapshotError):
        rb.pydantic_ai(snapshot={"version": 1})
