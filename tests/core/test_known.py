"""A trouble is told once, until the agent was out of it for four steps, unless there is a way on to name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks import SteeringSession
from reasonblocks.engine.gates import is_known
from reasonblocks.types import Injected, Step, StepInput, StepLogEntry, StepOutcome
from tests.core.steps import acted
from tests.core.world import real

quick = settings(derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
FAILS = acted("deploy", {"to": "prod"}, "Error: quota exceeded", is_error=True)
CHECK = acted(
    "bash", {"command": "pytest a.py"}, "FAILED a.py::test_x - assert 1 == 2\n1 failed in 0.1s", is_error=True
)


def read(at: int) -> Step:
    return acted("read_file", {"path": f"{at}.py"}, f"text {at}")


def edit(at: int) -> Step:
    return acted("edit_file", {"path": "a.py", "text": f"x = {at}"}, "ok")


def played(steps: Sequence[Step], **options: Any) -> tuple[list[StepLogEntry], list[str], SteeringSession]:
    """Play a run; return the log of its calls, and the letters of the account before each of them."""
    session = real(**{"e_traces_enabled": False, **options}).session()
    letters = []
    for number in range(len(steps) + 1):
        done = steps[number - 1] if number else None
        decision = session.begin_step(StepInput(key=str(number), completed=done))
        letters.append(session.trace.state.account.letters)
        session.end_step(decision, StepOutcome(model="m"))
    return session.step_log, letters, session


def told(steps: Sequence[Step], **options: Any) -> list[int]:
    """The calls before which a monitor's text was injected."""
    return [entry.step for entry in played(steps, **options)[0] if entry.gate_decision == "inject"]


@pytest.mark.parametrize(("live", "times"), [(0, 1), (3, 1), (4, 2), (5, 2)])
def test_four_live_steps_make_another_trouble(live: int, times: int) -> None:
    steps = [*[FAILS] * 5, *map(read, range(live)), *[FAILS] * 5]
    assert len(told(steps)) == times


def test_a_known_trouble_is_told_again_with_a_way_on() -> None:
    hall = acted("go", {"door": "hall"}, "You are in the hall. Doors: attic, cellar, pantry.")
    cellar = acted("go", {"door": "cellar"}, "You are in the cellar. Doors: hall.")
    assert len(told([hall, cellar] * 10)) > 1


def test_a_check_that_ends_in_the_same_way_is_told_once() -> None:
    steps = [one for at in range(10) for one in (edit(at), CHECK)]
    assert told(steps) == [8]


def test_that_an_act_was_answered_is_no_way_on() -> None:
    again = acted("refund_order", {"order": "A-1"}, "The refund was sent.")
    assert len(told([again] * 12)) == 1


def test_an_advisor_is_asked_for_a_way_on_and_its_advice_is_told() -> None:
    asked = []

    def advise(request: Any) -> str:
        asked.append(request)
        return "Read the log." if len(asked) > 1 else ""

    assert len(told([FAILS] * 12, advisor=advise)) > 1
    assert len(asked) > 1


@pytest.mark.parametrize(
    ("monitor", "known"), [("semantic_loop", True), ("mine", False), ("claim_contradiction", False)]
)
def test_only_a_text_about_a_loop_makes_it_known(monitor: str, *, known: bool) -> None:
    *_, session = played([FAILS] * 4)
    state = replace(session.trace.state, injected=(Injected(step=2, monitor=monitor),))
    assert is_known(state) is known


runs = st.lists(st.one_of(st.just(FAILS), st.builds(read, st.integers(0, 30)), st.just(CHECK)), min_size=5, max_size=24)


@settings(quick, max_examples=100)
@given(runs)
def test_a_fact_alone_is_told_after_four_live_steps_and_else_never_again(steps: list[Step]) -> None:
    log, letters, _ = played(steps, patience="2 of 3")
    last = None
    for entry, before in zip(log, letters, strict=True):
        lasts = last is not None and re.search(r"\.{4}", before[last:]) is None
        if entry.gate_decision == "inject":
            assert not lasts
            last = entry.step
        elif entry.gate_decision == "duplicate":
            assert lasts
