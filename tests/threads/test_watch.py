"""The rules by which a run's events call for a person, against a slow statement of them over all events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.types import Doubt, RunInfo, ToolCall, ToolResult
from reasonblocks_threads.watch import NUMBERS, Noticed, Numbers, WatchMemory, cause_of, family_of, watch
from tests.whole import WHOLE

INJECTED = ("MonitorSteeringInjection",)
Told = tuple[str, str, int, "str | None", int]
"""A notice: what, family, call, kind, first call."""


def call(
    at: int,
    state: str = "NORMAL",
    *,
    fires: str | None = None,
    gate: str = "quiet",
    kind: str | None = None,
    sources: tuple[str, ...] | None = None,
    **metadata: Any,
) -> StepEvent:
    """The event of call `at`; `fires` is the type of what the monitors found before it."""
    extra = {"finding_kind": kind} if kind else {}
    return StepEvent(
        run_id="r",
        step_index=at,
        timestamp=float(at),
        thought=f"thought {at}",
        injection_sources=(INJECTED if gate == "inject" else ()) if sources is None else sources,
        monitors_fired=("a monitor",) if fires else (),
        failure_type=fires,
        metadata={"fsm_state": state, "gate_decision": gate, **extra, **metadata},
    )


def ends(outcome: str = "success", *doubts: Doubt) -> RunFinish:
    return RunFinish(run_id="r", outcome=outcome, timestamp=0.0, doubts=doubts)


def told(events: Iterable[Event], numbers: Numbers = NUMBERS) -> list[Noticed]:
    memory, found = WatchMemory(), list[Noticed]()
    for event in events:
        memory, noticed = watch(memory, event, numbers)
        found += noticed
    return found


def brief(noticed: Iterable[Noticed], *what: str) -> list[Told]:
    shown = what or ("raised", "over", "lasts")
    return [(one.what, one.family, one.call, one.kind, one.first) for one in noticed if one.what in shown]


def calls(*stretches: tuple[str, int]) -> list[StepEvent]:
    """Calls in these states, each so many times."""
    states = [state for state, times in stretches for _ in range(times)]
    return [call(at, state) for at, state in enumerate(states)]


# --- the three rules


def test_entering_skip_is_a_stall_until_the_run_gets_on() -> None:
    found = told(calls(("NORMAL", 3), ("SLOW", 5), ("SKIP", 4), ("NORMAL", 2), ("SKIP", 1)))
    assert brief(found, "raised", "over") == [
        ("raised", "stall", 8, "run_stalled", 8),
        ("over", "stall", 12, None, 0),
        ("raised", "stall", 14, "run_stalled", 14),
    ]
    assert brief(found, "lasts") == [("lasts", "stall", at, "run_stalled", 8) for at in (9, 10, 11)]


def slow(*, injected: Sequence[int], most: int = 14) -> list[StepEvent]:
    gates = ["inject" if at in injected else "quiet" for at in range(most)]
    return [call(at, "SLOW", gate=gate, fires="loop" if gate == "inject" else None) for at, gate in enumerate(gates)]


def test_twelve_slow_calls_with_two_injections_are_struggling() -> None:
    found = told(slow(injected=(2, 6)))
    assert brief(found, "raised") == [("raised", "stall", 11, "run_struggling", 0)]


def test_three_findings_after_an_injection_are_unheeded_until_five_quiet_steps() -> None:
    gates = ["inject", "cooldown", "cooldown", "cooldown", "cooldown", *["quiet"] * 5]
    events = [call(at, fires=None if gate == "quiet" else "loop", gate=gate) for at, gate in enumerate(gates)]
    assert brief(told(events)) == [
        ("raised", "type:loop", 3, "monitor_unheeded", 0),
        ("lasts", "type:loop", 4, "monitor_unheeded", 0),
        ("over", "type:loop", 9, None, 0),
    ]


def test_a_finding_that_the_cap_keeps_back_is_unheeded_at_once() -> None:
    assert brief(told([call(4, fires="drift", gate="cap")])) == [("raised", "type:drift", 4, "monitor_unheeded", 4)]


def test_the_type_is_that_of_the_finding_in_the_text() -> None:
    noticed = told([call(0, fires="churn", gate="cap", kind="waiting")])
    assert [one.family for one in noticed] == ["type:loop"]


# --- what is no call


@pytest.mark.parametrize("metadata", [{"final": True}, {"error": "late"}, {"skipped_reason": "auxiliary"}])
def test_what_is_no_call_that_returned_counts_for_nothing(metadata: dict[str, Any]) -> None:
    memory, noticed = watch(WatchMemory(), call(0, "SKIP", **metadata))
    assert (memory, noticed) == (WatchMemory(), ())


def test_an_observed_run_was_told_nothing() -> None:
    events = [call(at, fires="loop", gate="cap", mode="observe", sources=()) for at in range(5)]
    assert told(events) == []


# --- the end of a run


def test_success_ends_every_cause() -> None:
    events: list[Event] = [call(0, "SKIP", fires="loop", gate="cap"), ends()]
    assert brief(told(events), "over") == [("over", "stall", 0, None, 0), ("over", "type:loop", 0, None, 0)]


@pytest.mark.parametrize(
    "end", [ends("failure: ValueError"), ends("stopped: stalled"), ends("success", Doubt(monitor="a", text="x"))]
)
def test_any_other_end_leaves_the_question(end: RunFinish) -> None:
    assert brief(told([call(0, "SKIP"), end]), "over") == []


def test_a_run_that_starts_again_under_its_id_is_a_new_one() -> None:
    events: list[Event] = [started("r"), *calls(("SKIP", 3)), started("r"), *calls(("NORMAL", 1), ("SKIP", 1))]
    assert brief(told(events), "raised") == [
        ("raised", "stall", 0, "run_stalled", 0),
        ("raised", "stall", 1, "run_stalled", 1),
    ]


def test_a_run_seen_from_its_middle_is_told_apart() -> None:
    assert [one.partial for one in told([call(57, "SKIP")])] == [True]
    assert [one.partial for one in told([call(0), call(1, "SKIP")])] == [False]


# --- causes


def started(run_id: str) -> RunStart:
    return RunStart(run=RunInfo(run_id=run_id, agent_name="bugfixer", task="Fix it. " * 90), timestamp=0.0)


def test_a_cause_names_the_run_and_has_its_newest_steps() -> None:
    memory, noticed = WatchMemory(), tuple[Noticed, ...]()
    events: list[Event] = [started("r"), *calls(("NORMAL", 9), ("SKIP", 1))]
    for event in events:
        memory, noticed = watch(memory, event)
    cause = cause_of("r", memory, noticed[0])
    assert (cause.kind, cause.key, cause.family, cause.run_id) == ("run_stalled", "run_stalled/9/r", "stall/r", "r")
    assert cause.title.startswith("bugfixer is stalled: Fix it.")
    assert [one.id for one in cause.evidence] == ["run_stalled-9", "step-6", "step-7", "step-8"]


def evidence_of(**step: Any) -> str:
    """Return the evidence that a run has after a step."""
    memory, _ = watch(WatchMemory(), replace(call(1), thought="", **step))
    (piece,) = memory.steps
    return piece.text


def test_evidence_has_the_lines_of_arguments_and_results() -> None:
    assert evidence_of(
        action="write_file",
        action_input='{"content":"def f():\\n    return 1","n":3,"path":"a.py"}',
        observation='{"stdout": "one\\ntwo", "codes": [1, null], "more": {}}',
        metadata={"argument_order": ["path", "content", "n"], "gate_decision": "quiet"},
    ).split("\n") == [
        "write_file:", "  path: a.py", "  content:", "    def f():", "        return 1", "  n: 3",
        "stdout:", "  one", "  two", "codes:", "  - 1", "  - null", "more:",
    ]  # fmt: skip


def test_evidence_of_several_calls_names_each_with_its_arguments() -> None:
    calls = (ToolCall(id="a", name="look", arguments={"at": {"deep": ["x"]}}), ToolCall(id="b", name="list"))
    results = (ToolResult(call_id="a", output="found\nit"), ToolResult(call_id="b", output='"a\\nb"'))
    assert evidence_of(action="look + list", tool_calls=calls, tool_results=results).split("\n") == [
        "look:", "  at:", "    deep:", "      - x", "list:", "found", "it", "", "a", "b",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["[" * 50_000, '{"a": 1', "[1] of 2", "{}", "[]", '{"a": ' + "9" * 5_000 + "}"])
def test_a_result_that_is_no_json_is_shown_as_it_is(text: str) -> None:
    assert evidence_of(action="look", observation=text).startswith(f"look:\n{text[:100]}")


@settings(max_examples=40)
@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=90), st.text(max_size=90))
def test_names_are_bounded_and_of_one_run_alone(one: str, other: str, family: str, second: str) -> None:
    names = [family_of(one, f"type:{family}"), family_of(other, f"type:{second}")]
    assert all(len(name) <= 200 for name in names)
    if one != other:
        assert names[0] != names[1]
    noticed = Noticed(what="raised", family=f"type:{family}", call=3, kind="monitor_unheeded", first=3, text=second)
    keys = [cause_of(run, WatchMemory(agent=one, task=other), noticed).key for run in (one, other)]
    assert all(len(key) <= 200 for key in keys)
    assert (keys[0] == keys[1]) == (one == other)


# --- the statement

ANY_NUMBERS = st.builds(
    Numbers,
    slow_calls=st.integers(1, 5),
    injections=st.integers(0, 3),
    firings=st.integers(1, 3),
    quiet_steps=st.integers(1, 4),
)
STATES = st.sampled_from(("INIT", "FAST", "NORMAL", "SLOW", "SLOW", "SKIP", "END"))
GATES = st.sampled_from(("quiet", "cap", "cooldown", "duplicate", "inject", "unavailable"))
TYPES = st.sampled_from((None, "loop", "drift", "own"))
MARKS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    ({}, {}, {}, {}, {"final": True}, {"error": "x"}, {"skipped_reason": "auxiliary"})
)


@st.composite
def runs(draw: st.DrawFn) -> list[StepEvent]:
    events, at = list[StepEvent](), draw(st.sampled_from((0, 0, 7)))
    for state, times in draw(st.lists(st.tuples(STATES, st.integers(1, 6)), max_size=8)):
        for _ in range(times):
            found = draw(TYPES)
            gate = draw(GATES) if found else "quiet"
            events.append(call(at, state, fires=found, gate=gate, **draw(MARKS)))
            at = max(0, at + draw(st.sampled_from((1, 1, 1, 1, 1, 2, 0, -1))))
    return events


def counted(events: Sequence[StepEvent]) -> list[StepEvent]:
    """The first returned call of each number, as long as the numbers rise."""
    kept: list[StepEvent] = []
    for event in events:
        dropped = {"final", "error", "skipped_reason"} & event.metadata.keys()
        if not dropped and all(event.step_index > before.step_index for before in kept):
            kept.append(event)
    return kept


def state_of(event: StepEvent) -> str:
    return str(event.metadata["fsm_state"])


def gate_of(event: StepEvent) -> str:
    return str(event.metadata["gate_decision"])


def stalls(events: Sequence[StepEvent], numbers: Numbers) -> list[Told]:
    """The notices of the newest call about the family "stall", from all calls so far."""
    *before, newest = events
    easy = [place for place, event in enumerate(events) if state_of(event) in ("NORMAL", "FAST")]
    at = newest.step_index
    if state_of(newest) in ("NORMAL", "FAST"):
        return [("over", "stall", at, None, 0)] if before and in_trouble(before, numbers) else []
    stretch = events[easy[-1] + 1 :] if easy else events
    if state_of(newest) == "SKIP":
        first = next(event for event in stretch if state_of(event) == "SKIP").step_index
        return [("raised" if first == at else "lasts", "stall", at, "run_stalled", first)]
    if state_of(newest) == "SLOW" and (raised := struggles(events, stretch, numbers)) is not None:
        first = next(event for event in stretch if state_of(event) == "SLOW").step_index
        return [("raised" if raised == at else "lasts", "stall", at, "run_struggling", first)]
    return []


def in_trouble(events: Sequence[StepEvent], numbers: Numbers) -> bool:
    """True if the stretch since the last easy call was noticed."""
    stretch = list(events)
    for place, event in enumerate(events):
        if state_of(event) in ("NORMAL", "FAST"):
            stretch = list(events[place + 1 :])
    stalled = any(state_of(event) == "SKIP" for event in stretch)
    return stalled or struggles(events, stretch, numbers) is not None


def struggles(events: Sequence[StepEvent], stretch: Sequence[StepEvent], numbers: Numbers) -> int | None:
    """The first call of the stretch at which both counts were reached."""
    for event in stretch:
        so_far = [one for one in events if one.step_index <= event.step_index]
        injections = sum(gate_of(one) == "inject" for one in so_far)
        slow_calls = sum(state_of(one) == "SLOW" for one in stretch if one in so_far)
        if state_of(event) == "SLOW" and slow_calls >= numbers.slow_calls and injections >= numbers.injections:
            return event.step_index
    return None


def findings(events: Sequence[StepEvent], numbers: Numbers) -> list[Told]:
    """The notices of the newest call about findings, from all calls so far."""
    known = [event for event in events if gate_of(event) != "unavailable"]
    if not known or known[-1] is not events[-1]:
        return []
    quiet = 0
    window: list[StepEvent] = []
    for event in known:
        if quiet >= numbers.quiet_steps:
            window = []
        quiet = 0 if event.failure_type else quiet + 1
        window.append(event)
    at, kind = events[-1].step_index, events[-1].failure_type
    if kind is not None:
        raised = unheeded(window, kind, numbers)
        first = next((one.step_index for one in window if is_told(one, kind)), 0)
        what = "raised" if raised == at else "lasts"
        return [] if raised is None else [(what, f"type:{kind}", at, "monitor_unheeded", first)]
    if quiet != numbers.quiet_steps:
        return []
    ended = {str(one.failure_type) for one in window if one.failure_type}
    return [("over", f"type:{name}", at, None, 0) for name in ended if unheeded(window, name, numbers) is not None]


def is_told(event: StepEvent, kind: str) -> bool:
    return event.failure_type == kind and gate_of(event) in ("inject", "cap")


def unheeded(window: Sequence[StepEvent], kind: str, numbers: Numbers) -> int | None:
    """The first call of the window at which the type was unheeded."""
    since: list[StepEvent] = []
    for event in window:
        if event.failure_type == kind and (since or is_told(event, kind)):
            since.append(event)
            if gate_of(event) == "cap" or len(since) - 1 >= numbers.firings:
                return event.step_index
    return None


@settings(max_examples=3_000 if WHOLE else 150, deadline=None)
@given(runs(), ANY_NUMBERS)
def test_the_rules_are_those_of_the_statement(events: list[StepEvent], numbers: Numbers) -> None:
    memory = WatchMemory()
    for place, event in enumerate(events):
        memory, noticed = watch(memory, event, numbers)
        so_far = counted(events[: place + 1])
        new = bool(so_far) and so_far[-1] is event
        expected = stalls(so_far, numbers) + findings(so_far, numbers) if new else []
        assert sorted(brief(noticed), key=repr) == sorted(expected, key=repr)


@settings(max_examples=1_000 if WHOLE else 60, deadline=None)
@given(runs(), ANY_NUMBERS)
def test_what_was_raised_is_over_once(events: list[StepEvent], numbers: Numbers) -> None:
    live: set[str] = set()
    for one in told([*events, ends()], numbers):
        if one.what == "over":
            live.remove(one.family)
        elif one.what == "raised":
            live.add(one.family)
        else:
            assert one.family in live
    assert live == set()


def test_the_memory_does_not_grow() -> None:
    def size(memory: WatchMemory) -> int:
        return len(repr(asdict(memory)))

    sizes, memory = [], WatchMemory()
    for at in range(600):
        event = call(at, ("SLOW", "SKIP")[at % 2], fires=f"type {at}", gate="cap")
        memory, _ = watch(memory, event)
        sizes.append(size(memory))
    assert max(sizes[50:]) < 1.1 * sizes[50] + 500
