"""Evaluations over the wire: exact step by step, at once, after a fork; and memories that nobody else may write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from reasonblocks.backends.local import LocalEvaluator
from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.builtin import WEIGHTS
from reasonblocks.ports import Evaluate
from reasonblocks.types import Evaluation, Injected, Memories, Observed, OwnLevel, Step, ToolCall, ToolResult
from reasonblocks.wire import (
    SERVER_MEMORY,
    EvaluateRequest,
    EvaluateResponse,
    WireStep,
    evaluate_request,
)
from reasonblocks.wire._evaluate import MAX_SENT
from reasonblocks_server.serving import MEMORY_VERSION, Evaluations, Seal
from reasonblocks_workbench.calibration import shipped

quick = settings(derandomize=True, deadline=None, database=None, max_examples=60)
ORG, RUN = "ours", "run-1"
SEAL = Seal(b"a secret")
TASK = "Fix the date parser so that leap years are accepted."
INJECTED = (Injected(step=2, monitor="semantic_loop"),)
OWN_LEVEL = OwnLevel(name="own", thresholds={"persistence": 0.4, "composite": 0.2, "semantic_loop": 0.3})
TYPES = {"mine": "my trouble"}

calls = st.builds(
    lambda name, arguments: ToolCall(id="c", name=name, arguments=arguments),
    st.sampled_from(["run_tests", "read_file", "edit_file"]),
    st.sampled_from([{"path": "a.py"}, {"path": "żółć.py", "lines": [1, 2.5, None]}, {}, None, "ls -la", ["a", 1]]),
)
results = st.builds(
    lambda output, failed: ToolResult(call_id="c", output=output, is_error=failed),
    st.sampled_from(["3 failed: test_a", "All tests passed.", "def leap(year): ...", "", "\U0001f600 1.5e-7"]),
    st.sampled_from([None, True, False]),
)
thoughts = st.sampled_from(
    ["I run the tests once more.", "All tests pass, so the task is done.", "Perhaps the file is wrong.", ""]
)
steps = st.builds(
    lambda thought, reasoning, call, result: Step(
        thought=thought, reasoning=reasoning, tool_calls=call, tool_results=result[: len(call)]
    ),
    thoughts,
    thoughts,
    st.lists(calls, max_size=2).map(tuple),
    st.lists(results, min_size=2, max_size=2).map(tuple),
)
runs = st.lists(steps, min_size=1, max_size=12)
LOOP = Step(
    thought="I run the tests once more.",
    tool_calls=(ToolCall(id="c", name="run_tests", arguments={"path": "tests"}),),
    tool_results=(ToolResult(call_id="c", output="3 failed: test_a", is_error=True),),
)


def request(step: Step, index: int, memories: Memories, observed: Observed = ()) -> Evaluate:
    return Evaluate(
        step=step,
        index=index,
        memories=memories,
        injected=INJECTED if index > 2 else (),
        task=TASK,
        profile="coding",
        weights={**WEIGHTS["coding"], **({"mine": 0.0} if observed else {})},
        observed=observed,
        own_level=OWN_LEVEL,
        run_id=RUN,
    )


def locally(done: Sequence[Step], *, own: bool = False) -> list[Evaluation]:
    """The evaluations of a run's steps in this process."""
    evaluator = LocalEvaluator(shipped(), failure_types=TYPES)
    memories: Memories = {}
    found = []
    for index, step in enumerate(done):
        evaluation, memories = evaluator.evaluate(request(step, index, memories, mine(index) if own else ()))
        found.append(evaluation)
    return found


def mine(index: int) -> Observed:
    """The observation of a client's own monitor, which fires at every third step."""
    return (("mine", 0.9 if index % 3 == 2 else 0.0, {"count": index}, (index,)),)


def over_the_wire(body: EvaluateRequest) -> EvaluateResponse:
    """Both bodies as JSON, as they travel."""
    received = EvaluateRequest.model_validate(json.loads(body.model_dump_json(exclude_none=True)))
    sent = json.dumps(Evaluations(SEAL).answer(received, org=ORG).model_dump(), allow_nan=False)
    return EvaluateResponse.model_validate_json(sent)


def one_by_one(
    done: Sequence[Step], *, start: int = 0, memory: Any = None, own: bool = False
) -> list[tuple[Evaluation, Any]]:
    """Each step's evaluation by a server, with the memory that travels on."""
    found = []
    for index, step in enumerate(done, start):
        asked = request(step, index, {SERVER_MEMORY: memory}, mine(index) if own else ())
        answer = over_the_wire(evaluate_request(asked, failure_types=TYPES))
        assert answer.partial is False
        memory = answer.memory
        found.append((answer.evaluation(), memory))
    return found


def at_once(done: Sequence[Step]) -> Evaluation:
    last = evaluate_request(request(done[-1], len(done) - 1, {}))
    whole = last.model_copy(update={"from_step": 0, "steps": [WireStep.of(step) for step in done]})
    return over_the_wire(whole).evaluation()


@quick
@given(runs)
@example([LOOP] * 12)
def test_each_way_to_evaluate_a_run_gives_the_same(done: list[Step]) -> None:
    expected = locally(done)
    assert [evaluation for evaluation, _ in one_by_one(done)] == expected
    assert at_once(done) == expected[-1]


@quick
@given(runs)
@example([LOOP] * 12)
def test_a_monitor_of_the_client_changes_nothing_but_its_part(done: list[Step]) -> None:
    assert [evaluation for evaluation, _ in one_by_one(done, own=True)] == locally(done, own=True)


@quick
@given(runs, runs, runs)
@example([LOOP] * 3, [LOOP] * 6, [Step(thought="Done.")])
def test_two_forks_of_a_run_are_exact(before: list[Step], one: list[Step], other: list[Step]) -> None:
    start = len(before)
    memory = one_by_one(before)[-1][1]
    branches = [one_by_one(branch, start=start, memory=memory) for branch in (one, other)]
    for branch, done in zip(branches, (one, other), strict=True):
        assert [evaluation for evaluation, _ in branch] == locally([*before, *done])[start:]


def test_the_loop_of_these_tests_is_one_that_monitors_speak_of() -> None:
    assert any(evaluation.inject for evaluation in locally([LOOP] * 12))


# --- whose memory it is


def answered(memory: Any, *, index: int = 1, run_id: str = RUN, org: str = ORG, seal: Seal = SEAL) -> EvaluateResponse:
    body = evaluate_request(request(LOOP, index, {SERVER_MEMORY: memory}))
    return Evaluations(seal).answer(body.model_copy(update={"run_id": run_id}), org=org)


SEALED: dict[str, Any] = answered(None, index=0).memory
UNKNOWN = answered(None)
"""The answer to step 1 without a memory of step 0."""


def test_a_memory_is_of_a_version_an_org_a_run_and_its_steps() -> None:
    assert set(SEALED) == {"version", "org", "of", "memories", "mac"}
    assert (SEALED["version"], SEALED["org"]) == (MEMORY_VERSION, ORG)
    assert SEALED["of"] == {"run_id": RUN, "steps": 1}
    assert (answered(SEALED).partial, UNKNOWN.partial) == (False, True)


@quick
@given(runs)
@example([LOOP] * 12)
def test_a_client_without_floats_of_whole_numbers_returns_a_memory_as_it_was(done: list[Step]) -> None:
    def as_in_javascript(value: Any) -> Any:
        return json.loads(
            json.dumps(value), parse_float=lambda text: float(text) if float(text) % 1 else int(float(text))
        )

    (_, memory) = one_by_one(done)[-1]
    assert answered(as_in_javascript(memory), index=len(done)) == answered(memory, index=len(done))
    assert answered(as_in_javascript(memory), index=len(done)).partial is False


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"steps": [{}] * (MAX_SENT + 1)}, "steps"),
        ({"steps": [{"action": "run"}], "from_step": 10**19}, "from_step"),
        ({"steps": [{}], "tool_roles": {f"tool {at}": "read" for at in range(5_000)}}, "tool_roles"),
    ],
)
def test_what_would_keep_a_server_busy_or_full_is_refused(body: dict[str, Any], error: str) -> None:
    with pytest.raises((ValidationError, ConfigError), match=error):
        Evaluations(SEAL).answer(EvaluateRequest.model_validate(body), org=ORG)


def test_the_order_of_keys_does_not_matter() -> None:
    assert answered(dict(reversed(SEALED.items()))).partial is False


@pytest.mark.parametrize(
    "memory",
    [
        {**SEALED, "memories": SEALED["memories"].replace("0", "1", 1)},
        {**SEALED, "memories": json.loads(SEALED["memories"])},
        {**SEALED, "of": {"run_id": RUN, "steps": 0}},
        {**SEALED, "version": MEMORY_VERSION + 1},
        {**SEALED, "org": "theirs"},
        {**SEALED, "more": 1},
        {**SEALED, "mac": SEALED["mac"][::-1]},
        {**SEALED, "mac": "żółć"},
        {**SEALED, "mac": None},
        {name: value for name, value in SEALED.items() if name != "mac"},
        {**SEALED, "memories": {"semantic_loop": "\ud800"}},
        {**SEALED, "memories": {"semantic_loop": float("nan")}},
        {**SEALED, "memories": {1: "a", "b": "c"}},
        {},
        [],
        "memory",
        7,
    ],
)  # fmt: skip
def test_a_forged_memory_is_dropped(memory: Any) -> None:
    assert answered(memory) == UNKNOWN


def test_a_memory_is_dropped_under_another_secret_org_or_run() -> None:
    assert answered(SEALED, seal=Seal(b"another secret")).partial is True
    assert answered(SEALED, org="theirs").partial is True
    assert answered(SEALED, run_id="run-2").partial is True


def test_a_memory_of_later_steps_is_dropped() -> None:
    (_, later) = one_by_one([LOOP] * 3)[-1]
    assert later["of"]["steps"] == 3
    assert answered(later, index=2) == answered(None, index=2)
    assert answered(later, index=3).partial is False


def test_a_step_without_an_evaluation_is_a_gap_as_in_this_process() -> None:
    evaluator, expected = LocalEvaluator(shipped()), Evaluation()
    memories: Memories = {}
    for index in (0, 1, 4):
        expected, memories = evaluator.evaluate(request(LOOP, index, memories))
    (_, memory) = one_by_one([LOOP] * 2)[-1]
    ((found, _),) = one_by_one([LOOP], start=4, memory=memory)
    assert found == expected


def test_a_dropped_memory_begins_anew() -> None:
    begun = answered("forged", index=5)
    assert begun.partial is True
    assert answered(begun.memory, index=6).partial is False


def test_an_empty_trajectory_is_quiet() -> None:
    quiet = Evaluations(SEAL).answer(EvaluateRequest(steps=[]), org=ORG)
    assert (quiet.evaluation(), quiet.partial) == (Evaluation(), False)
