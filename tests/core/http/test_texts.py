"""Texts pass the caller's `redact` before they leave, and it has no more than the step's time."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks_testing.rb_api import ScriptedRbApi
from tests.core.http.world import EVALUATE, RETRIEVE, answered, arun, at, client, completed, gates, given, run

SECRET = "sk-very-secret"


def hide(text: str) -> str:
    return text.replace(SECRET, "***")


def sent(api: ScriptedRbApi) -> str:
    return json.dumps([received.body for received in api.requests])


def with_secrets(rb: ReasonBlocks) -> None:
    """A run whose task, thought, arguments and results hold a secret."""
    from reasonblocks.types import Step, StepInput, ToolCall, ToolResult

    call = ToolCall(id="c", name="bash", arguments={"env": [{"KEY": SECRET, SECRET: 1}], "command": f"login {SECRET}"})
    results = (ToolResult(call_id="c", output=f"hello {SECRET}"),)
    session = rb.session(task=f"Use {SECRET}.")
    run(session, 1)
    for thought, reasoning in ((f"I use {SECRET}.", ""), ("", f"Maybe {SECRET}.")):
        step = Step(thought=thought, reasoning=reasoning, tool_calls=(call,), tool_results=results)
        session.end_step(session.begin_step(StepInput(completed=step)), answered(1))


def test_no_text_leaves_without_redaction(api: ScriptedRbApi) -> None:
    with client(api, redact=hide, e_traces_enabled=True, live_streaming_enabled=True, strict=True) as rb:
        with_secrets(rb)
    assert SECRET not in sent(api)
    assert (len(at(api, EVALUATE)), at(api, RETRIEVE) != [], "login ***" in sent(api)) == (3, True, True)


def test_without_redaction_the_secret_is_sent(api: ScriptedRbApi) -> None:
    with client(api, e_traces_enabled=True) as rb:
        with_secrets(rb)
    assert SECRET in sent(api)


def raises(text: str) -> str:
    raise ValueError(text)


def exits(text: str) -> str:
    raise SystemExit(3)


def answers_none(text: str) -> str:
    return None  # type: ignore[return-value]  # the point


@pytest.mark.parametrize("redact", [raises, exits, answers_none])
def test_a_text_that_cannot_be_redacted_is_replaced(api: ScriptedRbApi, redact: Callable[[str], str]) -> None:
    decided = gates(run(client(api, redact=redact).session(task="t"), 3))
    assert "unavailable" not in decided
    body = at(api, EVALUATE)[-1].body
    assert (body["task"], body["steps"][0]["thought"], body["steps"][0]["tool_results"][0]["output"]) == (
        *["[redaction failed]"] * 3,
    )
    assert body["steps"][0]["reasoning"] == ""


def test_one_bad_text_leaves_the_others(api: ScriptedRbApi) -> None:
    def picky(text: str) -> str:
        return text if "failed" not in text else raises(text)

    run(client(api, redact=picky).session(), 2)
    (step,) = at(api, EVALUATE)[0].body["steps"]
    assert (step["thought"], step["tool_results"][0]["output"]) == ("I run the tests.", "[redaction failed]")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_redaction_that_hangs_costs_half_of_a_deadline(api: ScriptedRbApi, asynchronous: bool) -> None:
    released = threading.Event()

    def hangs(text: str) -> str:
        released.wait(30)
        return text

    session = client(api, redact=hangs, step_deadline_ms=2_000).session()
    begun = time.monotonic()
    decided = gates(asyncio.run(arun(session, 2)) if asynchronous else run(session, 2))
    assert time.monotonic() - begun < 1.9
    released.set()
    assert decided[1] != "unavailable"
    (body,) = [received.body for received in at(api, EVALUATE)]
    assert (body["steps"][0]["thought"], "I run" in json.dumps(body)) == ("[redaction failed]", False)


def test_a_redaction_that_hangs_again_and_again_is_left_alone(api: ScriptedRbApi) -> None:
    released = threading.Event()
    calls: list[str] = []

    def hangs(text: str) -> str:
        calls.append(text)
        released.wait(30)
        return text

    run(client(api, redact=hangs, step_deadline_ms=2_000).session(), 8)
    released.set()
    assert len(calls) == 3
    assert len(at(api, EVALUATE)) == 7


def test_a_redaction_does_not_change_the_run_itself(api: ScriptedRbApi) -> None:
    session = client(api, redact=lambda text: "x", strict=True).session()
    run(session, 3)
    assert session.trace.state.steps[-1].text == completed(1).thought
    assert given(1).completed == completed(0)
