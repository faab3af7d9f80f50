"""What LangChain's messages say in our words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, messages_to_dict

from reasonblocks.messages.langchain import reasoning_of, usage_of
from reasonblocks.types import Step, Usage
from reasonblocks_langchain._convert import completed_step, newest_answer, outcome_of, task_of
from reasonblocks_workbench.traces import RecordedRun, read_runs


def answer(id: str, content: object = "", **fields: object) -> AIMessage:
    return AIMessage.model_validate({"content": content, "id": id, **fields})


def result(call_id: str, content: object = "ok", **fields: object) -> ToolMessage:
    return ToolMessage.model_validate({"content": content, "tool_call_id": call_id, **fields})


def call(id: str, name: str = "look") -> dict[str, object]:
    return {"id": id, "name": name, "args": {"path": id}}


ASKED = HumanMessage("Fix it.", id="h1")


# --- which answer names the next call


def test_before_the_first_answer_nothing_names_a_call() -> None:
    assert newest_answer([ASKED], None, None) is None


def test_the_last_answer_names_the_next_call() -> None:
    assert newest_answer([ASKED, answer("a1"), result("c"), answer("a2"), result("d")], None, "a2") == "a2"


def test_answers_of_earlier_runs_name_none() -> None:
    assert newest_answer([ASKED, answer("a1"), HumanMessage("More.")], "a1", None) is None


def test_an_answer_that_was_summarised_away_still_names_the_call() -> None:
    assert newest_answer([HumanMessage("So far: ...")], None, "a2") == "a2"
    assert newest_answer([answer("a1"), result("c")], None, "a2") == "a2"


def test_an_answer_that_no_call_of_ours_gave_goes_first() -> None:
    assert newest_answer([answer("a1"), answer("cached")], None, "a1") == "cached"


@given(st.integers(1, 30), st.integers(0, 30))
def test_every_call_of_a_run_has_a_name_of_its_own(answers: int, cut: int) -> None:
    messages: list[BaseMessage] = [ASKED]
    names = []
    for at in range(answers):
        messages += [answer(f"a{at}"), result(f"c{at}")]
        names.append(newest_answer(messages[cut:], None, f"a{at}"))
    assert names == [f"a{at}" for at in range(answers)]


# --- the completed step


def test_of_an_answer_that_is_gone_the_results_are_left() -> None:
    step = completed_step([HumanMessage("So far: ..."), result("c1", "one"), result("c2", "two")], "gone")
    assert step == Step(tool_results=step.tool_results if step else ())
    assert step is not None
    assert [found.output for found in step.tool_results] == ["one", "two"]


def test_what_a_tool_keeps_for_itself_is_not_its_output() -> None:
    step = completed_step(
        [
            answer("a", tool_calls=[call("c")]),
            result("c", [{"type": "text", "text": "seen"}], artifact={"raw": "x" * 99}),
        ],
        "a",
    )
    assert step is not None
    assert step.observation == "seen"


def test_redacted_thinking_says_nothing() -> None:
    assert reasoning_of(answer("a", [{"type": "redacted_thinking", "data": "xyz"}])) == ""


def test_the_task_is_the_first_thing_that_this_run_was_asked() -> None:
    messages = [HumanMessage("Old.", id="h0"), answer("a0"), HumanMessage("New.", id="h1"), HumanMessage("Also.")]
    assert task_of(messages, "a0") == "New."
    assert task_of(messages, None) == "Old."
    assert task_of([], None) == ""


def test_a_live_step_reads_as_the_same_step_recorded(tmp_path: Path) -> None:
    messages = [
        ASKED,
        answer("a", [{"type": "thinking", "thinking": "hm"}, "Looking."], tool_calls=[call("c1"), call("c2", "run")]),
        result("c1", "one"),
        result("c2", [{"type": "text", "text": "two"}], status="error"),
    ]
    file = tmp_path / "run.json"
    file.write_text(json.dumps(messages_to_dict(messages)), encoding="utf-8")
    (recorded,) = read_runs(str(file))
    assert isinstance(recorded, RecordedRun)
    assert [completed_step(messages, "a")] == list(recorded.steps)


# --- the outcome


def test_cache_writes_by_lifetime_are_added_up() -> None:
    details = {"cache_creation": 0, "ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 5}
    tokens = {"input_tokens": 40, "output_tokens": 1, "total_tokens": 41, "input_token_details": details}
    assert usage_of(answer("a", usage_metadata=tokens)).cache_write == 35


@pytest.mark.parametrize(
    "said",
    [
        {"token_usage": {"prompt_tokens": 9, "completion_tokens": 2}},
        {"usage": {"input_tokens": 9, "output_tokens": 2}},
    ],
)
def test_without_usage_metadata_the_providers_own_counts(said: dict[str, object]) -> None:
    assert usage_of(answer("a", response_metadata=said)) == Usage(input=9, output=2)


def test_the_model_that_answered_goes_before_the_one_that_was_asked() -> None:
    said = answer("a", "yes", response_metadata={"model_name": "really", "finish_reason": "stop"})
    outcome = outcome_of(said, model="asked", latency_ms=1.5)
    assert (outcome.model, outcome.stop_reason, outcome.text, outcome.latency_ms) == ("really", "stop", "yes", 1.5)
    assert outcome_of(answer("a"), model="asked", latency_ms=1.5).model == "asked"
