"""A completed step is the answer that began it, with what came back, wherever that stands."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from agents import function_tool
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.types import Step, ToolCall, ToolResult
from reasonblocks_openai_agents import SteeredRun, openai_hooks, openai_model, steering_of
from reasonblocks_openai_agents._convert import TOOL_FAILED, completed_step, newest_call_id, task_of
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked
from tests.openai_agents.world import (
    as_tool,
    by_model,
    every_way,
    family,
    fixer,
    named,
    place,
    said,
    whole_and_streamed,
)
from tests.steered import steering

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
        ([{"stdout": "out", "stderr": "err", "outcome": {"type": "exit", "exit_code": 1}}], "out\nerr"),
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


# ------------------------------------------------------------ call ids that repeat in every conversation


FIRST = "functions.look:0"
"""The id of each conversation's first call, as Kimi's models have it."""


@function_tool
async def look(path: str) -> str:
    """Looks at a file."""
    return f"{path} is empty"


@function_tool
async def fail(path: str) -> str:
    """Raises."""
    raise LookupError(path)


def looks(who: str, count: int, *, tool: str = "look") -> list[Turn]:
    """So many turns that call a tool, each with the id of its place in the conversation."""
    turns = [
        Turn(text=f"{who} looks {at}.", tool_calls=(tool_call(f"functions.look:{at}", tool, {"path": f"{who}{at}"}),))
        for at in range(count)
    ]
    return [*turns, said(f"{who} has seen all.")]


def both(*names: str) -> Turn:
    """Asks each at once; the ids are like those of the answers' own calls."""
    calls = tuple(
        tool_call(f"functions.look:{at}", f"ask_{name}", {"input": f"Look, {name}."}) for at, name in enumerate(names)
    )
    return Turn(text="I ask.", tool_calls=calls)


def thoughts(run: SteeredRun) -> list[str]:
    return [entry.thought_preview for entry in run.step_log[1:]]


def results(run: SteeredRun) -> list[str]:
    return [record.observation for record in run.trace.state.steps]


def assert_its_own(child: SteeredRun, name: str, count: int, parent: SteeredRun, call_id: str) -> None:
    about = child.session.run
    assert (about.agent_name, about.parent_run_id, about.parent_call_id) == (name, parent.run_id, call_id)
    assert [entry.step for entry in child.step_log] == list(range(count + 1))
    assert thoughts(child) == [f"{name} looks {at}." for at in range(count)]
    assert results(child)[:count] == [f"{name}{at} is empty" for at in range(count)]


@every_way
def test_agents_that_run_side_by_side_have_their_own_runs(way: str) -> None:
    answer = by_model(outer=[both("one", "two"), said()], one=looks("one", 3), two=looks("two", 3))
    outer_agent = named("outer", as_tool(named("one", look)), as_tool(named("two", look)))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), outer_agent))
    children = {run.session.run.agent_name: run for run in outer.children}
    assert family(outer)[:2] == ("outer", "success")
    assert len(outer.children) == 2
    for at, name in enumerate(("one", "two")):
        assert_its_own(children[name], name, 3, outer, f"functions.look:{at}")
        assert children[name].outcome == "success"
    assert thoughts(outer) == ["I ask."]


@every_way
def test_agents_of_a_tool_that_run_side_by_side_have_their_own_runs(way: str) -> None:
    """The SDK tells nothing of the tools of an agent that is a tool itself."""
    answer = by_model(
        outer=[both("middle"), said()], middle=[both("one", "two"), said()], one=looks("one", 3), two=looks("two", 3)
    )
    middle = named("middle", as_tool(named("one", look)), as_tool(named("two", look)))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), named("outer", as_tool(middle))))
    (child,) = outer.children
    runs = {run.session.run.agent_name: run for run in child.children}
    assert len(child.children) == 2
    for name in ("one", "two"):
        assert runs[name].session.run.parent_run_id == child.run_id
        assert thoughts(runs[name]) == [f"{name} looks {at}." for at in range(3)]
        assert results(runs[name])[:3] == [f"{name}{at} is empty" for at in range(3)]


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_runs_of_one_steered_model_side_by_side_keep_their_own_calls(way: str) -> None:
    scripts = {name: looks(name, 3) for name in ("one", "two")}

    def answer(asked: Asked) -> Turn:
        return scripts[asked.task][asked.answers]

    with place(answer, f"{way}/responses") as here:
        model = openai_model(steering(), here.model("own"))
        agent = fixer(model=model, tools=[look])

        async def together() -> None:
            await asyncio.gather(*(here.aplain(agent, name) for name in scripts))

        here.until(together())
        views = list(model.runs.values())
    assert sorted([entry.thought_preview for entry in view.step_log[1:]] for view in views) == [
        [f"{name} looks {at}." for at in range(3)] for name in scripts
    ]
    assert [view.outcome for view in views] == ["success"] * 2


@whole_and_streamed
def test_agents_within_agents_have_their_own_runs(way: str) -> None:
    inner = named("inner", look)
    answer = by_model(
        outer=[both("one", "two"), said()],
        one=[both("inner"), said()],
        two=[both("inner"), said()],
        inner=looks("inner", 2),
    )
    outer_agent = named("outer", as_tool(named("one", as_tool(inner))), as_tool(named("two", as_tool(inner))))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), outer_agent))
    assert len(outer.children) == 2
    for child in outer.children:
        (grandchild,) = child.children
        assert_its_own(grandchild, "inner", 2, child, FIRST)


@whole_and_streamed
def test_a_failure_marks_the_call_of_its_own_run_alone(way: str) -> None:
    answer = by_model(outer=[both("one", "two"), said()], one=looks("one", 2, tool="fail"), two=looks("two", 2))
    outer_agent = named("outer", as_tool(named("one", fail)), as_tool(named("two", look)))
    with place(answer, way) as here:
        outer = steering_of(here.run(steering(), outer_agent))
    children = {run.session.run.agent_name: run for run in outer.children}
    assert [record.is_error for record in children["one"].trace.state.steps[:2]] == [True, True]
    assert [record.is_error for record in children["two"].trace.state.steps[:2]] == [None, None]
    assert [record.is_error for record in outer.trace.state.steps[:1]] == [None]


@whole_and_streamed
def test_recorded_runs_side_by_side_keep_their_own_calls(way: str) -> None:
    hooks: Any = openai_hooks(steering())
    answer = by_model(outer=[both("one", "two"), said()], one=looks("one", 3), two=looks("two", 3))
    tools = [as_tool(named(name, look), hooks=hooks) for name in ("one", "two")]
    with place(answer, way) as here:
        here.plain(named("outer", *tools), hooks=hooks, run_config=here.config())
    logs = sorted([entry.thought_preview for entry in view.step_log[1:]] for view in hooks.runs.values())
    assert logs == [["I ask."], [f"one looks {at}." for at in range(3)], [f"two looks {at}." for at in range(3)]]
