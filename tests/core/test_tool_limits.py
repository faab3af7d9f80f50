"""The calls of a tool that a budget limits are counted, told and refused: each sentence is compared with what came."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import Budget
from reasonblocks.session import SteeringSession
from reasonblocks.types import AdapterCaps, Step, StepInput, StepOutcome, ToolCall
from tests.core.test_budget import DELIVER, LAST
from tests.core.world import client, through_json

quick = settings(derandomize=True, deadline=None, database=None, max_examples=150)
CAPS = AdapterCaps(tool_limits=True)
NAMES = ("search", "fetch", "edit")


def step(number: int, names: list[str]) -> Step:
    calls = tuple(ToolCall(id=f"c{number}.{at}", name=name, arguments={"n": number}) for at, name in enumerate(names))
    return Step(thought=f"Step {number}.", tool_calls=calls)


def play(session: SteeringSession, turns: list[list[str]], start: int = 0) -> tuple[list[str], list[str]]:
    """Play these answers; return the line before each call, "" for none, and the tools that ran, in order."""
    lines, ran = [], []
    for number, names in enumerate(turns, start):
        done = step(number - 1, turns[number - start - 1]) if number > start else None
        decision = session.begin_step(StepInput(key=str(number), completed=done))
        said = [told.text for told in decision.injections if told.source == "BudgetInjection"]
        lines += said or [""]
        session.end_step(decision, StepOutcome(tool_calls=step(number, names).tool_calls))
        ran += [n for at, n in enumerate(names) if session.tool_refusal(n, names[:at].count(n)) is None]
    return lines, ran


limits = st.dictionaries(st.sampled_from(NAMES[:2]), st.integers(1, 6), min_size=1)
answers = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), min_size=1, max_size=12)


@quick
@given(limits, answers, st.none() | st.integers(13, 20), st.booleans(), st.booleans())
def test_each_sentence_about_a_tool_is_true(
    tools: dict[str, int], turns: list[list[str]], calls: int | None, every_call: bool, refuses: bool
) -> None:
    rb = client(budget=Budget(tools=tools, calls=calls, every_call=every_call), strict=False)
    lines, ran = play(rb.session(caps=AdapterCaps(tool_limits=refuses)), turns)
    seen = []
    for number, line in enumerate(lines):
        assert len(line.encode()) <= 200
        if found := re.fullmatch(r"Budget: (\d+) of (\d+) calls of (\w+) (is|are) left\.", line):
            used = [name for names in turns[:number] for name in names].count(found[3])
            assert (int(found[1]), int(found[2])) == (max(0, tools[found[3]] - used), tools[found[3]])
            assert (found[4] == "is") is (found[1] == "1")
            seen.append((found[3], found[1]))
        elif found := re.fullmatch(
            r"(\w+) may not be called any more: its (\d+ calls are|only call is) used up\.", line
        ):
            used = [name for names in turns[:number] for name in names].count(found[1])
            assert refuses
            assert used >= tools[found[1]]
            seen.append((found[1], "0"))
    assert len(set(seen)) == len(seen)
    for name, limit in tools.items():
        asked = [name for names in turns for name in names].count(name)
        assert ran.count(name) == (min(asked, limit) if refuses else asked)


def test_a_tool_is_told_at_the_marks_and_when_it_is_used_up() -> None:
    session = client(budget=Budget(tools={"search": 10})).session(caps=CAPS)
    lines, ran = play(session, [["search"]] * 13)
    assert {number: line for number, line in enumerate(lines) if line} == {
        5: "Budget: 5 of 10 calls of search are left.",
        8: "Budget: 2 of 10 calls of search are left.",
        9: "Budget: 1 of 10 calls of search is left.",
        10: "search may not be called any more: its 10 calls are used up.",
    }
    assert len(ran) == 10
    assert session.tool_refusal("search") == "search may not be called any more: its 10 calls are used up."
    assert session.outcome is None


def test_a_line_that_finds_no_place_beside_the_end_is_told_at_the_next_call() -> None:
    session = client(budget=Budget(tools={"search": 4}, calls=5)).session(caps=CAPS)
    lines, _ = play(session, [["search"]] * 4 + [[]])
    assert lines == [
        "",
        "",
        f"3 calls are left, this one included. {DELIVER}",
        "Budget: 1 of 4 calls of search is left.",
        LAST,
    ]


def test_where_a_framework_cannot_refuse_the_agent_is_only_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        session = client(budget=Budget(tools={"search": 1})).session()
        lines, ran = play(session, [["search"]] * 3)
    assert lines == ["", "Budget: 0 of 1 calls of search are left.", ""]
    assert len(ran) == 3
    assert [record.message.partition(": ")[2] for record in caplog.records] == [
        "'custom' cannot do this: budget.tools is told, and no call is refused"
    ]


@pytest.mark.parametrize("options", [{"mode": "observe"}, {"budget": None}])
def test_an_observed_run_refuses_nothing(options: dict[str, Any]) -> None:
    session = client(**{"budget": Budget(tools={"search": 1}), **options}).session(caps=CAPS)
    assert play(session, [["search"]] * 3)[1] == ["search"] * 3


def test_a_restored_run_goes_on_with_its_tools() -> None:
    rb = client(budget=Budget(tools={"search": 3}))
    session = rb.session(caps=CAPS)
    play(session, [["search"], ["search"]])
    again = rb.session(caps=CAPS, snapshot=through_json(session.trace.snapshot()))
    decision = again.begin_step(StepInput(key="2", completed=step(1, ["search"])))
    again.end_step(decision, StepOutcome())
    assert (again.tool_refusal("search"), again.tool_refusal("search", 1)) == (
        None,
        "search may not be called any more: its 3 calls are used up.",
    )


def test_calls_are_counted_after_a_fault_too() -> None:
    def broken(done: Step) -> float:
        raise ValueError("no score")

    session = client(budget=Budget(tools={"search": 2}), scorer=broken, strict=False).session(caps=CAPS)
    assert play(session, [["search"]] * 4)[1] == ["search"] * 2
