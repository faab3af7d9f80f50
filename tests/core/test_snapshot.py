"""A run that goes on in another process goes on as if it had never stopped, and its state stays small."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ConfigError, SnapshotError
from reasonblocks.session import SteeringSession
from reasonblocks.types import (
    JSON,
    ETrace,
    FSMState,
    Note,
    RunInfo,
    ScoreMemory,
    Step,
    StepDecision,
    StepInput,
    StepOutcome,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.core.world import (
    begin,
    called,
    client,
    code_bytes,
    found,
    nothing,
    pattern,
    real,
    run,
    speaks,
    step,
    through_json,
)
from tests.whole import in_whole

KB = 1_024
MOST = 64 * KB
TYPICAL = 12 * KB
WORDS = "read the file and run pytest again maybe the error in forms.py line 42 fails because value is None".split()

FLAGS = (None, True, False)


def random_step(dice: Random, number: int) -> Step:
    calls = tuple(
        ToolCall(id=f"c{number}.{at}", name=dice.choice(["read_file", "run_tests"]), arguments={"n": dice.random()})
        for at in range(dice.randint(0, 3))
    )
    results = tuple(
        ToolResult(call_id=call.id, output=" ".join(dice.choices(WORDS, k=20)), is_error=dice.choice(FLAGS))
        for call in calls
    )
    thought = " ".join(dice.choices(WORDS, k=dice.randint(0, 60)))
    return Step(thought=thought, tool_calls=calls, tool_results=results)


def outcome(completed: Step) -> StepOutcome:
    usage = Usage(input=100, output=20)
    return StepOutcome(model="m", usage=usage, text=completed.thought, tool_calls=completed.tool_calls)


def decisions(rb: ReasonBlocks, steps: list[Step], stops: set[int]) -> list[StepDecision]:
    """A whole run that goes through JSON into a new session before each call of `stops`."""
    session: SteeringSession = rb.session(run_id="run", task="make the tests pass")
    told: list[StepDecision] = []
    for number in range(len(steps) + 1):
        if number in stops:
            snapshot = through_json(session.trace.snapshot())
            session = rb.session(task="make the tests pass", snapshot=snapshot)
        completed = steps[number - 1] if number else None
        told.append(session.begin_step(StepInput(key=f"k{number}", completed=completed, default_model="m")))
        if number < len(steps):
            session.end_step(told[-1], outcome(steps[number]))
    return told


@pytest.mark.parametrize("seed", range(12))
def test_a_run_resumed_before_any_of_its_calls_decides_as_if_it_had_never_stopped(seed: int) -> None:
    dice = Random(seed)
    steps = [random_step(dice, number) for number in range(14)]
    if seed % 2:
        steps[5:12] = [replace(steps[4], thought="maybe the error is in forms.py, run it again")] * 7
    rb = real(pattern_store=StubStore(), standing_rules=dice.choice(["first_call", "run"]))
    stops = {dice.randint(1, 14) for _ in range(dice.randint(1, 6))}
    assert decisions(rb, steps, stops) == decisions(rb, steps, set())


class StubStore:
    """Has one pattern of each tier, and now and then nothing."""

    def search(self, request: Any) -> tuple[ETrace, ...]:
        return tuple(found(f"{request.tier}-a")) if len(request.query) % 3 != 1 else ()


def test_a_resumed_run_keeps_its_id_and_another_is_refused() -> None:
    rb = real()
    kept = through_json(rb.session(run_id="first").trace.snapshot())
    assert rb.session(snapshot=kept).run.run_id == "first"
    with pytest.raises(ConfigError, match="run_id='second': the snapshot is of run 'first'"):
        rb.session(run_id="second", snapshot=kept)


@pytest.mark.parametrize("run_id", ["first", "first" * 100])
def test_the_run_id_of_the_snapshot_may_be_given_again(run_id: str) -> None:
    rb = real()
    kept = rb.session(run_id=run_id).trace.snapshot()
    assert rb.session(run_id=run_id, snapshot=kept).run.run_id == kept["trace_id"]


def test_a_snapshot_shares_nothing_with_the_state() -> None:
    session = real().session()
    run(session, 4)
    before = json.dumps(session.trace.snapshot())
    snapshot: dict[str, Any] = session.trace.snapshot()
    snapshot["memories"].clear()
    snapshot["steps"].clear()
    assert json.dumps(session.trace.snapshot()) == before


def test_a_snapshot_of_a_new_run_can_be_restored() -> None:
    rb = client()
    session = rb.session(snapshot=through_json(rb.session(run_id="new").trace.snapshot()))
    assert run(session, 2)[-1].fsm_state is FSMState.NORMAL


def test_a_session_restored_to_an_earlier_step_logs_the_new_call_in_its_own_entry() -> None:
    rb = client()
    session = rb.session()
    run(session, 2)
    snapshot = through_json(session.trace.snapshot())
    run(session, 5, start=2)
    session.trace.restore(snapshot)
    decision = begin(session, 2)
    session.end_step(decision, StepOutcome(model="after the restore"))
    assert (session.step_log[-1].step, session.step_log[-1].model_id) == (2, "after the restore")


# ------------------------------------------------------------ what cannot be read


@pytest.fixture
def snapshot() -> dict[str, Any]:
    """One where every field holds something."""
    rb = client(*[speaks(f"Text {at}.", failure_type="loop") for at in range(6)], store=lambda one: found("e2-a"))
    session = rb.session(run_id="run")
    run(session, 5)
    session.end_step(begin(session, 5, key="k5"), called(5))
    return through_json(session.trace.snapshot())


def test_an_unknown_key_is_ignored(snapshot: dict[str, Any]) -> None:
    inner = {name: {**snapshot[name], "from_tomorrow": 2} for name in ("e1", "last", "pending")}
    with_more = {**snapshot, **inner, "from_tomorrow": 1}
    assert client().session(snapshot=with_more).trace.state == client().session(snapshot=snapshot).trace.state


def test_a_newer_version_is_refused(snapshot: dict[str, Any]) -> None:
    with pytest.raises(SnapshotError, match=r"'version'.*newer"):
        client().session(snapshot={**snapshot, "version": snapshot["version"] + 1})


def test_an_older_version_begins_to_judge_anew() -> None:
    rb = real(monitors=[Greedy("greedy")])
    session = rb.session(task="t")
    run(session, 4)
    older = {**through_json(session.trace.snapshot()), "version": 1}
    state = rb.session(snapshot=older).trace.state
    assert (state.score_memory, set(state.memories)) == (ScoreMemory(), {"greedy"})


@pytest.mark.parametrize("given", [{"version": None}, {"version": "1"}, {"version": True}, {"version": 1.0}, {}])
def test_a_version_that_is_no_int_or_missing_is_refused(snapshot: dict[str, Any], given: dict[str, Any]) -> None:
    del snapshot["version"]
    with pytest.raises(SnapshotError, match="'version'"):
        client().session(snapshot={**snapshot, **given})


@pytest.mark.parametrize("other", [5, "text", [1, 2]])
def test_what_is_no_object_is_refused(other: Any) -> None:
    with pytest.raises(SnapshotError, match="JSON object"):
        client().session(snapshot=other)


NO_CALL = {"step": 1, "fsm_state": "NORMAL"}
WRONG: list[tuple[str, Any, str, str]] = [
    ("trace_id", 5, "trace_id", "must be text"),
    ("current_state", "FOO", "current_state", "must be 'INIT', "),
    ("difficulty_history", "0.5", "difficulty_history", "must be a list"),
    ("difficulty_history", [1.5], "difficulty_history", "must be numbers in [0, 1]"),
    ("difficulty_history", [float("nan")], "difficulty_history", "must be a finite number"),
    ("steps", [5], "steps", "must be an object"),
    ("steps", [{"step": "x"}], "step", "must be a whole number"),
    ("total_tokens", -1, "total_tokens", "must be at least 0"),
    ("calls", True, "calls", "must be a whole number"),
    ("evaluated", 1, "evaluated", "must be true or false"),
    ("memories", [["a", 1]], "memories", "must be an object"),
    ("memories", {"steps": {5: 1}}, "memories", "it has a key of type int"),
    ("memories", {5: None}, "memories", "must be text"),
    ("keys", ["half of an emoji: \ud83d"], "keys", "it has a string with an unpaired surrogate"),
    ("account", {"vain": [[1]]}, "vain", "has too few items"),
    ("injected", [{"step": 1}], "injected.monitor", "give all that snapshot() gave"),
    ("e1", None, "e1", "must be an object"),
    ("pending", {"tool_calls": [5]}, "tool_calls", "must be an object"),
    ("last", {"step": 1}, "last.fsm_state", "give all that snapshot() gave"),
    ("last", {**NO_CALL, "injections": [{"source": "E2Injection", "text": 5}]}, "text", "must be text"),
    ("last", {**NO_CALL, "scores": {"text": "high"}}, "scores", "must be a finite number"),
]


@pytest.mark.parametrize(("field", "value", "named", "rule"), WRONG, ids=lambda value: repr(value)[:40])
def test_a_malformed_field_is_refused_by_its_name(
    snapshot: dict[str, Any], field: str, value: Any, named: str, rule: str
) -> None:
    with pytest.raises(SnapshotError) as caught:
        client().session(snapshot={**snapshot, field: value})
    assert caught.value.field == named
    assert caught.value.rule.startswith(rule)


@pytest.mark.parametrize("check", ["text", [1, 2], [1, 2, 3, True, 1, 0, 7], [1, 2, 3, "yes"]], ids=repr)
def test_a_named_tuple_with_other_items_is_refused_by_its_name(snapshot: dict[str, Any], check: Any) -> None:
    with pytest.raises(SnapshotError, match="'check"):
        client().session(snapshot={**snapshot, "account": {"check": check}})


def test_a_snapshot_without_its_run_says_that_it_is_missing() -> None:
    with pytest.raises(SnapshotError, match=r"^snapshot field 'trace_id' is missing: give all that snapshot\(\) gave$"):
        client().session(snapshot={"version": 1})


def test_a_refused_restore_moves_nothing(snapshot: dict[str, Any]) -> None:
    session = client().session()
    run(session, 2)
    before = session.trace.state
    with pytest.raises(SnapshotError):
        session.trace.restore({**snapshot, "keys": 5})
    assert (session.trace.state, session.run.run_id) == (before, before.trace_id)


def test_a_client_remembers_no_session_whose_snapshot_was_refused(snapshot: dict[str, Any]) -> None:
    rb = client()
    with pytest.raises(SnapshotError):
        rb.session(snapshot={**snapshot, "calls": -1})
    rb.close()


# ------------------------------------------------------------ size

HOSTILE = {
    "latin": "x" * 1_000_000,
    "quotes": '"\\' * 500_000,
    "control": "\x00\x1b" * 500_000,
    "cjk": "数据" * 500_000,
    "emoji": "🤖" * 500_000,
    "lone surrogates": "\ud800" * 100_000,
    "words": "maybe the error fails again " * 40_000,
    "lines": "\n\t" * 400_000,
}


def hostile_step(text: str, number: int) -> Step:
    call = ToolCall(id=f"c{number}", name=text[:5_000] or "x", arguments={"text": text, "n": number})
    other = ToolCall(id=text[:1_000], name="edit", arguments={"path": text, "n": number})
    results = (
        ToolResult(call_id=f"c{number}", output=text, name=text[:100], is_error=True),
        ToolResult(call_id=text[:1_000], output=f"{number}{text}"),
    )
    thought = text if number % 3 else f"{number} {text}"
    return Step(thought=thought, reasoning=text, tool_calls=(call, other), tool_results=results)


class Greedy:
    """A monitor that remembers all it may, and always fires."""

    failure_type = "greed"

    def __init__(self, name: str) -> None:
        self.name = name

    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]:
        return 1.0, "数" * 1_020, ()


def greedy(text: str, **options: Any) -> SteeringSession:
    """A run whose patterns, monitors and task are as long as they may be."""
    long = pattern("e2-a", fields=dict.fromkeys(("diagnosis", "intervention", "anti_pattern"), text[:9_000]))
    rules = pattern("e3-a", fields={"instruction": text[:9_000]})
    store = StoreOf(ETrace(pattern=long), ETrace(pattern=rules))
    monitors = [Greedy(f"greedy-{at}") for at in range(4)]
    return real(monitors=monitors, pattern_store=store, standing_rules="run", **options).session(task=text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_snapshot_stays_under_64_kb_whatever_the_steps_hold(text: str) -> None:
    session = greedy(text)
    largest = 0
    for number in range(12):
        completed = hostile_step(text, number - 1) if number else None
        decision = session.begin_step(StepInput(key=f"{number}{text}", completed=completed, default_model="m"))
        said = hostile_step(text, number)
        outcome = StepOutcome(model="m", text=text, reasoning=text, tool_calls=said.tool_calls)
        session.end_step(decision, outcome)
        largest = max(largest, code_bytes(session.trace.snapshot()))
    assert largest <= MOST


class Notes:
    """Always has a new note, with the longest id and the longest text."""

    def __init__(self, text: str) -> None:
        self.text, self.asked = text, 0

    def waiting(self, run_id: str) -> tuple[Note, ...]:
        self.asked += 1
        return (Note(id=f"{self.asked:064}", text=self.text[:3_000]),)


@pytest.mark.parametrize("name", ["quotes", "cjk", "words"])
def test_a_snapshot_with_many_notes_stays_under_64_kb(name: str) -> None:
    text = HOSTILE[name][:20_000]
    session = greedy(text, mailbox=Notes(text))
    for number in range(70):
        completed = hostile_step(text, number - 1) if number else None
        decision = session.begin_step(StepInput(key=f"{number}{text}", completed=completed, default_model="m"))
        session.end_step(decision, StepOutcome(model="m", text=text, tool_calls=hostile_step(text, number).tool_calls))
        if number % 23 == 0 or number == 69:
            assert code_bytes(session.trace.snapshot()) <= MOST
    assert len(session.trace.state.notes_told) == 64


class StoreOf:
    """Answers all its traces of a tier."""

    def __init__(self, *traces: ETrace) -> None:
        self.traces = traces

    def search(self, request: Any) -> tuple[ETrace, ...]:
        return tuple(trace for trace in self.traces if trace.pattern.tier == request.tier)


def test_a_typical_run_takes_under_12_kb() -> None:
    dice = Random(7)
    session = real().session(task="make the tests pass")
    sizes = []
    for number in range(40):
        completed = random_step(dice, number) if number else None
        session.end_step(session.begin_step(StepInput(key=f"k{number}", completed=completed)), outcome(step(number)))
        sizes.append(code_bytes(session.trace.snapshot()))
    assert max(sizes) < TYPICAL


def test_the_state_of_a_run_of_1000_steps_is_that_of_one_of_200() -> None:
    dice = Random(3)
    session = real().session(task="make the tests pass")
    sizes = {}
    for number in range(1_000):
        completed = random_step(dice, number) if number else None
        session.end_step(session.begin_step(StepInput(key=f"k{number}", completed=completed)), outcome(step(number)))
        sizes[number] = code_bytes(session.trace.snapshot())
    assert max(list(sizes.values())[800:]) <= 1.2 * max(list(sizes.values())[200:400])


@in_whole
def test_a_run_of_1000_hostile_steps_stays_under_64_kb() -> None:
    session = real(pattern_store=StoreOf()).session()
    for number in range(1_000):
        text = f"{number} " + '"数\\' * 700
        completed = hostile_step(text, number) if number else None
        session.end_step(session.begin_step(StepInput(key=f"k{number}", completed=completed)), outcome(step(number)))
    assert code_bytes(session.trace.snapshot()) <= MOST


@pytest.mark.parametrize("name", ["text", "action_input", "observation"])
def test_a_step_record_is_bounded_and_a_hash_stands_for_what_was_cut(name: str) -> None:
    session = client(store=nothing).session()
    begin(session, 0)
    session.begin_step(StepInput(completed=hostile_step("数" * 100_000, 1)))
    kept: str = getattr(session.trace.state.steps[-1], name)
    assert (len(kept.encode()) <= (2_000 if name == "text" else 500), " #" in kept) == (True, True)
