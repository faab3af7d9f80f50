"""A completed step is the answer that began it, with what came back, wherever that stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.types import Step, ToolCall, ToolResult
from reasonblocks_openai_agents._convert import TOOL_FAILED, completed_step, newest_call_id, task_of

TASK: dict[str, Any] = {"role": "user", "content": "Fix it."}


def called(*ids: str, thought: str = "I look.") -> Step:
    return Step(thought=thought, tool_calls=tuple(ToolCall(id=one, name=f"tool {one}", arguments={}) for one in ids))


def call(id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": f"tool {id}", "arguments": "{}"}


def output(id: str, text: Any = None) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": f"{id} is empty" if text is None else text}


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def done(items: Sequence[Any], answer: Step | None, **known: Any) -> Step:
    return completed_step(items, answer, known.get("ended", {}), known.get("failed", ()))


def outputs(step: Step) -> list[tuple[str, str, str]]:
    return [(one.call_id, one.name, one.output) for one in step.tool_results]


def test_a_step_has_the_outputs_of_its_calls() -> None:
    step = done([TASK, message("I look."), call("a"), output("a")], called("a"))
    assert outputs(step) == [("a", "tool a", "a is empty")]


@given(st.permutations(["a", "b", "c", "d"]), st.sets(st.sampled_from(["a", "b", "c", "d"])))
def test_outputs_may_come_in_any_order_and_some_of_them_not_at_all(order: list[str], missing: set[str]) -> None:
    items = [TASK, *map(call, "abcd"), *(output(one) for one in order if one not in missing)]
    step = done(items, called(*"abcd"))
    assert outputs(step) == [(one, f"tool {one}", f"{one} is empty") for one in "abcd" if one not in missing]


@given(st.lists(st.text(max_size=5), max_size=5))
def test_what_is_said_after_the_outputs_hides_none(later: list[str]) -> None:
    items = [TASK, call("a"), output("a"), *({"role": "user", "content": text} for text in later)]
    assert outputs(done(items, called("a"))) == [("a", "tool a", "a is empty")]


def test_an_id_that_comes_again_means_the_newest_output() -> None:
    items = [TASK, call("a"), output("a", "old"), call("a"), output("a", "new")]
    assert outputs(done(items, called("a"))) == [("a", "tool a", "new")]


def test_an_output_that_was_taken_out_is_known_from_the_tool() -> None:
    ended = {"a": ToolResult(call_id="a", name="", output="as the tool gave it", duration_ms=3.0)}
    assert done([TASK], called("a"), ended=ended).tool_results == (
        ToolResult(call_id="a", name="tool a", output="as the tool gave it", duration_ms=3.0),
    )


def test_what_the_model_reads_of_a_result_counts_where_it_is_there() -> None:
    ended = {"a": ToolResult(call_id="a", name="", output="as the tool gave it", duration_ms=3.0)}
    assert done([output("a", "as the model reads it")], called("a"), ended=ended).tool_results == (
        ToolResult(call_id="a", name="tool a", output="as the model reads it", duration_ms=3.0),
    )


def test_results_of_other_calls_are_not_of_this_step() -> None:
    ended = {"z": ToolResult(call_id="z", name="", output="another's")}
    items = [call("y"), output("y"), message("I look."), call("a"), output("a")]
    assert outputs(done(items, called("a"), ended=ended)) == [("a", "tool a", "a is empty")]


def test_a_step_without_calls_has_no_outputs() -> None:
    assert done([call("y"), output("y"), message("Done.")], called(thought="Done.")).tool_results == ()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("as it is", "as it is"),
        ([{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}], "one\ntwo"),
        ([{"type": "input_image", "image_url": "data:"}], ""),
        ([{"stdout": "out", "stderr": "err", "outcome": {"type": "exit", "exit_code": 1}}], "out\nerr"),
        ({"type": "computer_screenshot", "image_url": "data:"}, ""),
        ("", ""),
    ],
)
def test_an_output_is_read_as_text(text: object, read: str) -> None:
    assert outputs(done([output("a", text)], called("a"))) == [("a", "tool a", read)]


@pytest.mark.parametrize(
    ("item", "failed", "is_error"),
    [
        (output("a"), [], None),
        (output("a", f"{TOOL_FAILED} Error: no such file"), [], True),
        (output("a", "In the caller's own words."), ["a"], True),
        (output("a", "In the caller's own words."), ["b"], None),
        ({**output("a"), "type": "apply_patch_call_output", "status": "failed"}, [], True),
    ],
)
def test_a_failed_call_is_an_error(item: Any, failed: list[str], is_error: bool | None) -> None:
    (result,) = done([item], called("a"), failed=failed).tool_results
    assert result.is_error is is_error


def test_what_the_provider_ran_itself_stays() -> None:
    hosted = ToolResult(call_id="h", name="search", output="found")
    answer = Step(tool_calls=(*called("h").tool_calls, *called("a").tool_calls), tool_results=(hosted,))
    assert outputs(done([output("a")], answer)) == [("h", "search", "found"), ("a", "tool a", "a is empty")]


def test_an_answer_of_another_process_is_the_newest_one_in_the_items() -> None:
    items = [TASK, message("Old."), call("a"), output("a"), message("New."), call("b"), call("c"), *map(output, "bc")]
    step = done(items, None)
    assert (step.thought, [one.id for one in step.tool_calls]) == ("New.", ["b", "c"])
    assert outputs(step) == [("b", "tool b", "b is empty"), ("c", "tool c", "c is empty")]


def test_of_an_answer_that_the_server_keeps_the_results_are_known() -> None:
    step = done([output("b"), output("c")], None)
    assert (step.thought, step.tool_calls) == ("", ())
    assert outputs(step) == [("b", "", "b is empty"), ("c", "", "c is empty")]


@given(st.integers(min_value=0, max_value=3_000))
def test_only_the_newest_items_are_looked_at(before: int) -> None:
    items = [*[message("Old.")] * before, call("a"), output("a")]
    assert outputs(done(items, called("a", "lost"))) == [("a", "tool a", "a is empty")]


# ------------------------------------------------------------ what was asked


@pytest.mark.parametrize(
    ("asked", "task"),
    [
        ("Fix it.", "Fix it."),
        ([TASK], "Fix it."),
        ([{"role": "developer", "content": "Be brief."}, TASK], "Fix it."),
        ([TASK, message("Done."), {"role": "user", "content": "And now?"}], "And now?"),
        ([TASK, call("a"), output("a"), {"role": "user", "content": "And now?"}], "And now?"),
        ([TASK, message("Done.")], "Fix it."),
        ([{"role": "user", "content": [{"type": "input_text", "text": "Look:"}, {"type": "input_image"}]}], "Look:"),
        ([TASK, {"role": "user", "content": "Please."}], "Fix it."),
        ([], ""),
    ],
)
def test_the_task_is_the_first_message_after_what_was_said_before(asked: Any, task: str) -> None:
    assert task_of(asked) == task


# ------------------------------------------------------------ whose request it is


@pytest.mark.parametrize(
    ("items", "call_id"),
    [
        ([TASK], None),
        ([TASK, call("a"), output("a")], "a"),
        ([TASK, call("a"), call("b"), output("b"), output("a")], "a"),
        ([TASK, call("a"), output("a"), {"role": "user", "content": "guidance"}], "a"),
        ([TASK, call("a"), output("a"), message("Done."), {"role": "user", "content": "And now?"}], None),
    ],
)
def test_a_request_goes_on_with_the_call_whose_result_it_brings(items: list[Any], call_id: str | None) -> None:
    assert newest_call_id(items) == call_id
