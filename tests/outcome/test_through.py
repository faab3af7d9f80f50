"""Agents of the frameworks play the benchmark's tasks as its own loop does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from _outcome.rows import Made, Row
from _outcome.through import FRAMEWORKS, Endpoint, play_through
from _outcome.through.task import Task
from own_outcome_task import Meeting

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ConfigError
from reasonblocks.types import Usage
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked, ProviderError, ScriptedServer

SEED = 3
KEY = "a-secret-key"
USAGE = Usage(input=100, output=10, cache_read=40)
Answers = Callable[[Asked], Turn]

NEEDS = {"langchain": ("langchain_openai", "reasonblocks_langchain"), "openai-agents": ("reasonblocks_openai_agents",)}


@pytest.fixture(params=sorted(FRAMEWORKS))
def through(request: pytest.FixtureRequest) -> str:
    """Each framework that is installed with its client of OpenAI-compatible endpoints."""
    name: str = request.param
    for module in NEEDS[name]:
        pytest.importorskip(module, reason=f"{module} is not installed")
    return name


def meeting() -> Meeting:
    environment = Meeting()
    environment.reset(SEED)
    return environment


PEOPLE = [*meeting()._free]
COMMON = meeting()._common
TAKEN = next(hour for hour in map(str, range(9, 18)) if hour != COMMON)

numbers = count()


def calls(name: str, text: str = "", **arguments: str) -> Turn:
    return Turn(text=text, tool_calls=(tool_call("", name, arguments),), usage=USAGE)


def turn_by_turn(*turns: Turn) -> Answers:
    """Turn n answers a conversation of n answers, and the last one every longer conversation, with calls of new ids."""

    def answer(asked: Asked) -> Turn:
        turn = turns[min(asked.answers, len(turns) - 1)]
        return replace(turn, tool_calls=tuple(replace(call, id=f"call-{next(numbers)}") for call in turn.tool_calls))

    return answer


def client() -> ReasonBlocks:
    return ReasonBlocks(profile=None, e_traces_enabled=False)


def play(through: str, server: ScriptedServer, arm: str = "off") -> Row:
    endpoint = Endpoint(base_url=server.openai_url, model="agent-model", key=KEY, retries=0)
    return play_through(Meeting(), SEED, arm, through=through, endpoint=endpoint, rb=client(), family="meeting")


def test_a_run_ends_with_the_task_and_its_row_has_what_was_done(through: str) -> None:
    first, last = calls("free_hours", "I ask.", person=PEOPLE[0]), calls("book", hour=COMMON)
    with ScriptedServer(turn_by_turn(first, last)) as server:
        row = play(through, server)

    free = f"{PEOPLE[0]} is free at"
    assert (row.won, row.ended, row.steps, row.error, row.point, row.told) == (True, True, 2, None, None, ())
    assert [(made.name, made.arguments, made.is_error, made.thought) for made in row.calls] == [
        ("free_hours", {"person": PEOPLE[0]}, False, "I ask."),
        ("book", {"hour": COMMON}, False, ""),
    ]
    assert row.calls[0].output.startswith(free)
    assert (row.prompt, row.evaluated, row.completion) == (200, 120, 20)
    assert (row.model, row.through, row.phase, row.arm) == ("agent-model", through, "whole", "off")
    assert len(server.requests) == 2
    assert server.requests[0].system == Meeting.system
    assert server.requests[1].texts[-1].startswith(free)


def test_refusals_and_unknown_tools_are_results_that_the_agent_reads(through: str) -> None:
    turns = (calls("book", hour=TAKEN), calls("bok", hour="9"), calls("give_up", reason="No hour."))
    with ScriptedServer(turn_by_turn(*turns)) as server:
        row = play(through, server)

    assert [(made.name, made.is_error) for made in row.calls] == [("book", True), ("bok", True), ("give_up", False)]
    assert (row.won, row.ended, row.error) == (False, True, None)
    told = [server.requests[at].texts[-1] for at in (1, 2)]
    assert told == [made.output for made in row.calls[:2]]
    assert told[0].endswith(f"is busy at {TAKEN}")
    assert told[1] == "Error: unknown tool bok; the tools are free_hours, book, give_up"


def test_a_stuck_run_lasts_until_the_step_limit_and_only_steering_adds_text(through: str) -> None:
    rows, sent = {}, {}
    for arm in ("off", "steer"):
        with ScriptedServer(turn_by_turn(calls("book", "I book it.", hour=TAKEN))) as server:
            rows[arm] = play(through, server, arm)
            sent[arm] = [request.texts for request in server.requests]

    off, steer = rows["off"], rows["steer"]
    for row in (off, steer):
        assert (row.steps, row.ended, row.won, len(sent[row.arm])) == (Meeting.max_steps, False, False, row.steps)
    assert steer.calls == off.calls
    first = steer.told[0]
    assert (first.sources, first.step, first.monitor) == (("MonitorSteeringInjection",), steer.point, steer.monitor)
    assert first.monitor
    assert first.text in sent["steer"][first.step][-1]
    *before, last = sent["off"][first.step]
    assert [*sent["steer"][first.step][:-1]] == before
    assert sent["steer"][first.step][-1].startswith(f"{last}\n\n")
    assert sent["steer"][: first.step] == sent["off"][: first.step]
    assert off.told == ()


def test_an_answer_without_a_call_ends_the_run(through: str) -> None:
    with ScriptedServer(
        turn_by_turn(calls("book", hour=TAKEN), Turn(text="It cannot be done.", usage=USAGE))
    ) as server:
        row = play(through, server)
    assert (row.won, row.ended, row.steps) == (False, True, 2)
    assert row.calls[-1] == Made(name="", arguments={}, output="", thought="It cannot be done.")


@pytest.mark.parametrize("arm", ["off", "steer"])
def test_an_error_of_the_endpoint_is_in_the_row_without_the_key(through: str, arm: str) -> None:
    refused = Turn(error=ProviderError(f"the key {KEY} has no quota", status=403))
    with ScriptedServer(turn_by_turn(calls("book", hour=TAKEN), refused)) as server:
        row = play(through, server, arm)
    assert row.error is not None
    assert "the key *** has no quota" in row.error
    assert KEY not in row.error
    assert (row.won, row.ended, row.steps, len(row.calls), row.prompt) == (False, False, 1, 1, 100)


def test_several_calls_of_one_turn_are_made_in_their_order(through: str) -> None:
    hours = [hour for hour in map(str, range(9, 18)) if hour != COMMON][:4]
    wanted = tuple(tool_call("", "book", {"hour": hour}) for hour in [*hours, COMMON, hours[0]])
    with ScriptedServer(turn_by_turn(Turn(text="All at once.", tool_calls=wanted, usage=USAGE))) as server:
        row = play(through, server)
    assert [made.arguments["hour"] for made in row.calls] == [*hours, COMMON, hours[0]]
    assert [made.thought for made in row.calls] == ["All at once.", *[""] * 5]
    assert row.calls[-1].output == "Error: the task has ended"
    assert (row.won, row.steps) == (True, 1)


def test_an_unknown_arm_or_framework_names_the_valid_ones() -> None:
    endpoint = Endpoint(base_url="http://127.0.0.1:9", model="agent-model")
    with pytest.raises(ConfigError, match="valid: off, steer"):
        play_through(Meeting(), SEED, "of", through="langchain", endpoint=endpoint, rb=client(), family="meeting")
    with pytest.raises(ConfigError, match="did you mean 'langchain'"):
        play_through(Meeting(), SEED, "off", through="langchan", endpoint=endpoint, rb=client(), family="meeting")


def sampling(asked: Asked) -> tuple[Any, ...]:
    """The settings of a request. LangChain sends the limit of an answer under its newer name."""
    limit = asked.body.get("max_tokens", asked.body.get("max_completion_tokens"))
    return (asked.body.get("temperature"), limit, asked.body.get("tool_choice"))


def test_an_error_of_the_environment_is_in_the_row(through: str) -> None:
    class Broken(Meeting):
        def call(self, name: str, arguments: Mapping[str, Any]) -> str:
            raise ZeroDivisionError("the calendar is broken")

    with ScriptedServer(turn_by_turn(calls("book", hour=TAKEN))) as server:
        endpoint = Endpoint(base_url=server.openai_url, model="agent-model")
        row = play_through(Broken(), SEED, "off", through=through, endpoint=endpoint, rb=client(), family="meeting")
    assert row.error is not None
    assert "the calendar is broken" in row.error
    assert (row.steps, row.won) == (1, False)


@pytest.mark.parametrize("arm", ["off", "steer"])
def test_every_request_has_the_settings_that_are_given_and_no_others(through: str, arm: str) -> None:
    with ScriptedServer(turn_by_turn(calls("book", hour=TAKEN), calls("book", hour=COMMON))) as server:
        plain = Endpoint(base_url=server.openai_url, model="agent-model")
        for endpoint in (plain, replace(plain, temperature=0.25, max_tokens=64, tool_choice="required")):
            play_through(Meeting(), SEED, arm, through=through, endpoint=endpoint, rb=client(), family="meeting")
    assert [sampling(request) for request in server.requests] == [(None, None, None)] * 2 + [(0.25, 64, "required")] * 2


def test_a_key_that_no_header_can_carry_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint(base_url="http://127.0.0.1:9/v1", model="agent-model", key=f"{KEY}\n")
    assert KEY not in str(caught.value)
    assert KEY not in repr(Endpoint(base_url="http://127.0.0.1:9/v1", model="agent-model", key=KEY))


def test_langchain_plays_with_any_chat_model() -> None:
    pytest.importorskip("reasonblocks_langchain", reason="reasonblocks_langchain is not installed")
    from _outcome.through.langchain import play_with
    from langchain_core.messages import ToolMessage

    from tests.langchain import scripted

    task = Task(Meeting(), SEED, family="meeting", run_id="run")
    turns = [scripted.calls("book", "I book it.", id=str(at), hour=TAKEN) for at in range(8)]
    model = scripted.ScriptedModel(script=scripted.by_position(*turns, scripted.calls("book", id="last", hour=COMMON)))
    play_with(task, model, client())

    assert task.environment.success()
    assert (task.steps, [made.is_error for made in task.calls]) == (9, [True] * 8 + [False])
    assert (task.tokens(), task.stopped) == ({"prompt": 900, "evaluated": None, "completion": 90}, False)
    assert task.told[0].text in model.seen[task.told[0].step].text
    results = [message for message in model.seen[1].messages if isinstance(message, ToolMessage)]
    assert [message.status for message in results] == ["error"]
