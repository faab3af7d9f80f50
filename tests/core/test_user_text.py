"""What a user says during a run: read from any framework's messages, and carried wherever a step goes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.adapters import new_user_text, user_text
from reasonblocks.backends.http.texts import bounded_step
from reasonblocks.events import step_event
from reasonblocks.render import FRAME, with_guidance, with_message
from reasonblocks.types import Step, StepLogEntry, ToolCall, ToolResult
from reasonblocks.wire import WireStep

ASK = "Fix it."
SAID = "Only the parser."
CHAT: list[Any] = [
    {"role": "system", "content": "You fix bugs."},
    {"role": "user", "content": ASK},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
    {"role": "tool", "tool_call_id": "c", "content": "empty"},
]
RESPONSES: list[Any] = [
    {"role": "user", "content": ASK},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "empty"},
]
ANTHROPIC: list[Any] = [
    {"role": "user", "content": ASK},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "empty"}]},
]
LANGCHAIN: list[Any] = [
    SimpleNamespace(type="human", content=ASK),
    SimpleNamespace(type="ai", content="Hm."),
    SimpleNamespace(type="tool", content="empty"),
]
FORMS = {"chat": CHAT, "responses": RESPONSES, "anthropic": ANTHROPIC, "langchain": LANGCHAIN}
every_form = pytest.mark.parametrize("form", FORMS)


def message(form: str, content: object = SAID) -> Any:
    if form == "langchain":
        return SimpleNamespace(type="human", content=content)
    return {"role": "user", "content": content}


def told(messages: list[Any]) -> str:
    return new_user_text(reversed(messages))


@every_form
def test_a_message_after_an_answer_is_new(form: str) -> None:
    assert told([*FORMS[form], message(form), message(form, "Be quick.")]) == f"{SAID}\n\nBe quick."


@every_form
def test_the_task_and_results_of_tools_are_no_new_text(form: str) -> None:
    assert told(FORMS[form][:1]) == ""
    assert told(FORMS[form]) == ""


@every_form
def test_a_message_before_the_newest_answer_is_not_new_again(form: str) -> None:
    assert told([*FORMS[form], message(form), *FORMS[form][1:]]) == ""


def test_a_text_beside_a_result_is_new() -> None:
    beside = {"role": "user", "content": [*ANTHROPIC[-1]["content"], {"type": "text", "text": SAID}]}
    assert told([*ANTHROPIC[:-1], beside]) == SAID


def test_the_results_show_that_a_run_has_begun_whose_answers_the_server_keeps() -> None:
    assert told([RESPONSES[-1], message("responses")]) == SAID


def test_a_summary_of_removed_messages_is_not_new() -> None:
    summary = SimpleNamespace(type="human", content="So far: ...", additional_kwargs={"lc_source": "summarization"})
    assert told([*LANGCHAIN, summary]) == ""


@pytest.mark.parametrize("form", ["chat", "responses", "anthropic"])
def test_our_guidance_is_not_the_users(form: str) -> None:
    guidance = f"{FRAME}\nRead the assertion."
    assert told(with_message([*FORMS[form]], guidance)) == ""
    assert told(with_message([*FORMS[form], message(form)], guidance)) == SAID


@given(st.lists(st.text(), max_size=3), st.text(min_size=1))
def test_guidance_never_changes_what_is_read(texts: list[str], hint: str) -> None:
    own = [text for text in texts if FRAME not in text]
    assert user_text([with_guidance(text, f"{FRAME}\n{hint}") for text in own]) == user_text(own)


# ------------------------------------------------------------ where a step goes

STEPS = [
    Step(thought="Hm.", user_text=SAID),
    Step(
        tool_calls=(ToolCall(id="1", name="a"), ToolCall(id="2", name="b")),
        tool_results=(ToolResult(call_id="2", output="x"),),
        user_text=SAID,
    ),
]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_on_the_wire_has_it(step: Step) -> None:
    sent = WireStep.of(bounded_step(step)).model_dump_json(exclude_none=True)
    assert WireStep.model_validate_json(sent).step().user_text == SAID


def test_on_the_wire_it_is_as_short_as_any_text_of_a_step() -> None:
    long = "x" * 100_000
    assert bounded_step(Step(user_text=long)).user_text == bounded_step(Step(thought=long)).thought


def test_an_event_of_a_step_without_it_does_not_name_it() -> None:
    assert "user_text" not in step_event("r", StepLogEntry(step=1, timestamp=0.0), Step(thought="Hm."), {}).as_dict()
