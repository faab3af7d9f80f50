"""Events are read back from their JSON, and contain the completed step."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.events import Event, RunFinish, RunStart, StepEvent, completed_of, entry_of, event_of, step_event
from reasonblocks.exceptions import EventError
from reasonblocks.types import DifficultyParts, Doubt, RunInfo, Step, StepLogEntry, ToolCall, ToolResult
from reasonblocks.util.json import canonical

TEXTS = st.text(max_size=12)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.builds(ToolCall, id=TEXTS, name=TEXTS, arguments=JSONS)
RESULTS = st.builds(
    ToolResult,
    call_id=TEXTS,
    output=TEXTS,
    name=TEXTS,
    is_error=st.none() | st.booleans(),
    duration_ms=st.none() | st.floats(0, 1e6),
)
STEPS = st.builds(
    Step,
    thought=TEXTS,
    reasoning=TEXTS,
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    tool_results=st.lists(RESULTS, max_size=2).map(tuple),
    user_text=TEXTS,
)
ENTRIES = st.builds(
    StepLogEntry,
    step=st.integers(0, 10_000),
    timestamp=st.floats(0, 2e9),
    difficulty=st.none() | st.floats(0, 1),
    difficulty_parts=st.none() | st.builds(DifficultyParts, hedging=st.floats(0, 1)),
    injections=st.lists(TEXTS, max_size=2).map(tuple),
    note_ids=st.lists(TEXTS, max_size=2).map(tuple),
    tokens=st.none() | st.integers(0, 10**6),
    attempts=st.integers(0, 3),
    doubts=st.lists(st.builds(Doubt, monitor=TEXTS, text=TEXTS), max_size=1).map(tuple),
)
LONGEST = StepLogEntry(
    step=1, timestamp=0.0, difficulty=0.5, difficulty_parts=DifficultyParts(), fsm_state="SLOW", gate_decision="quiet",
    finding_kind="k", injections_dropped=("E1Injection",), retrieved={"e1": ("p",)}, pattern_ids=("p",),
    note_ids=("n",), cache_tokens_at_risk=1, skipped_reason="fast", route="SLOW", mode="observe",
    withheld_sources=("E1Injection",), withheld_texts=("t",), withheld_route="SLOW", withheld_stop="s",
    interrupt="i", withheld_interrupt="i", model_id="m", tool_calls=("ls",), cache_write_tokens=1, latency_ms=1.0,
    judged_by="own", attempts=1, stop="s", doubts=(Doubt(monitor="m", text="t"),),
)  # fmt: skip
"""An entry that leaves out no field but `error`."""
SCORES = st.dictionaries(TEXTS, st.floats(0, 1), max_size=2)
STEP = StepEvent(run_id="r", step_index=1, timestamp=2.0)


def through_json(event: Event) -> Any:
    return json.loads(json.dumps(event.as_dict()))


@given(ENTRIES, STEPS, SCORES)
def test_a_step_event_is_read_back_as_it_was(entry: StepLogEntry, step: Step, scores: dict[str, float]) -> None:
    event = step_event("r", entry, step, scores)
    assert event_of(through_json(event)) == event


@given(ENTRIES, STEPS, SCORES)
def test_the_log_entry_is_read_from_the_event(entry: StepLogEntry, step: Step, scores: dict[str, float]) -> None:
    event = event_of(json.loads(json.dumps(step_event("r", entry, step, scores).as_dict())))
    assert isinstance(event, StepEvent)
    sent_notes = () if entry.error is not None else entry.note_ids
    assert entry_of(event) == replace(entry, thought_preview="", note_ids=sent_notes)


IN_METADATA = frozenset(step_event("r", LONGEST, None, {}).metadata) - {"final"}


@pytest.mark.parametrize("name", sorted(IN_METADATA))
@given(entry=ENTRIES, odd=st.sampled_from([[[]], [{"monitor": 1}, 2], 1e400, {"hedging": "x", "e1": 7}, None]))
def test_metadata_of_another_type_is_ignored(name: str, entry: StepLogEntry, odd: Any) -> None:
    event = step_event("r", entry, None, {})
    without = {key: value for key, value in event.metadata.items() if key != name}
    with_odd = entry_of(replace(event, metadata={**without, name: odd}))
    assert with_odd == entry_of(replace(event, metadata=without))


@given(TEXTS, st.dictionaries(TEXTS, JSONS, max_size=2), st.floats(0, 2e9))
def test_a_run_start_is_read_back_as_it_was(text: str, metadata: dict[str, Any], at: float) -> None:
    event = RunStart(run=RunInfo(run_id="r", task=text, parent_run_id=text, metadata=metadata), timestamp=at)
    assert event_of(through_json(event)) == event


@given(TEXTS, st.floats(0, 2e9), st.lists(st.builds(Doubt, monitor=TEXTS, text=TEXTS), max_size=2))
def test_a_run_finish_is_read_back_as_it_was(outcome: str, at: float, doubts: list[Doubt]) -> None:
    event = RunFinish(run_id="r", outcome=outcome, timestamp=at, doubts=tuple(doubts))
    assert event_of(through_json(event)) == event


def told(step: Step) -> tuple[Any, ...]:
    """Return everything of a step that steering reads, without the ids of its calls."""
    calls = [(call.name, canonical(call.arguments)) for call in step.tool_calls]
    results = [(result.name, result.output, result.is_error) for result in step.tool_results]
    texts = (step.thought, step.reasoning, step.scored_text, step.action_input, step.observation, step.user_text)
    return *texts, calls, results


@given(STEPS)
def test_the_completed_step_is_in_the_event(step: Step) -> None:
    event = step_event("r", StepLogEntry(step=1, timestamp=0.0), step, {})
    read_back = event_of(through_json(event))
    assert isinstance(read_back, StepEvent)
    read, results = completed_of(read_back), step.tool_results
    if not event.tool_results:  # a flat event has no name of its own for the result
        results = tuple(replace(result, name=step.action) for result in results)
    same = step.reasoning != "" and step.reasoning == step.thought
    assert told(read) == told(replace(step, tool_results=results, thought="" if same else step.thought))
    assert [orders(call.arguments) for call in read.tool_calls] == [orders(call.arguments) for call in step.tool_calls]


def orders(arguments: Any) -> list[str]:
    return list(arguments) if isinstance(arguments, dict) else []


def test_a_step_with_one_call_and_one_result_stays_flat() -> None:
    step = Step(
        thought="I look.",
        tool_calls=(ToolCall(id="c", name="read", arguments={"path": "a.py"}),),
        tool_results=(ToolResult(call_id="c", name="read", output="x = 1"),),
    )
    body = step_event("r", StepLogEntry(step=1, timestamp=0.0), step, {}).as_dict()
    assert not {"tool_calls", "tool_results", "reasoning"} & body.keys()


def test_half_of_a_pair_of_surrogates_in_an_event_is_replaced() -> None:
    event = replace(STEP, action="run", action_input=r'{"text": "\ud83d"}')
    assert completed_of(event).tool_calls[0].arguments == {"text": "\ufffd"}


def test_an_event_is_json_whatever_the_arguments_of_its_calls_hold() -> None:
    odd: Any = {"nan": float("nan"), "infinite": float("-inf"), "huge": 2**70, "path": Path("a.py")}
    step = Step(tool_calls=(ToolCall(id="1", name="run", arguments=odd), ToolCall(id="2", name="run", arguments={})))
    body = step_event("r", StepLogEntry(step=1, timestamp=0.0), step, {}).as_dict()
    read = event_of(json.loads(json.dumps(body, allow_nan=False)))
    assert isinstance(read, StepEvent)
    assert read.tool_calls[0].arguments == {
        "nan": "NaN", "infinite": "-Infinity", "huge": str(2**70), "path": "a.py"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"event": "step_begin"}, "event"), ({"run_id": 5}, "run_id"), ({"step_index": -1}, "step_index"),
        ({"step_index": True}, "step_index"), ({"timestamp": float("nan")}, "timestamp"),
        ({"timestamp": "now"}, "timestamp"), ({"timestamp": 10**400}, "timestamp"), ({"thought": None}, "thought"),
        ({"tokens": 1.5}, "tokens"), ({"injections": "one"}, "injections"), ({"scores": {"a": "high"}}, "scores"),
        ({"scores": {"a": 1e308}}, "scores"), ({"composite": -0.5}, "composite"), ({"metadata": []}, "metadata"),
        ({"is_error": "no"}, "is_error"), ({"tool_calls": [5]}, "tool_calls"),
        ({"tool_calls": [{"id": "1"}]}, "name"), ({"tool_results": [{"call_id": "1", "output": 5}]}, "output"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(EventError) as caught:
        event_of({**STEP.as_dict(), **change})
    assert caught.value.field == field


def test_a_missing_field_is_named() -> None:
    body = STEP.as_dict()
    del body["step_index"]
    with pytest.raises(EventError, match="'step_index' is None: is missing"):
        event_of(body)


def test_fields_of_a_later_version_are_ignored() -> None:
    assert event_of({**STEP.as_dict(), "colour": "red"}) == STEP


@pytest.mark.parametrize("number", [10**400, -(10**400)], ids=["large", "small"])
@pytest.mark.parametrize("field", ["timestamp", "composite", "scores"])
def test_a_number_that_no_float_holds_is_refused(field: str, number: int) -> None:
    value = {"loop": number} if field == "scores" else number
    with pytest.raises(EventError, match=field):
        event_of({"event": "step", "run_id": "r", "step_index": 1, "timestamp": 1.0, field: value})
