"""Evaluations over the wire: exact step by step, at once and after a fork; and accounts that no client has made."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from reasonblocks.account.observe import observe
from reasonblocks.backends.local import LocalEvaluator
from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.builtin import WEIGHTS
from reasonblocks.monitors.patience import after_step, rung_of
from reasonblocks.monitors.sightings import OWN_MEMORY, gather
from reasonblocks.requests import Evaluate
from reasonblocks.types import JSON, Account, Evaluation, Injected, Observed, Patience, Step, ToolCall, ToolResult
from reasonblocks.wire import EvaluateRequest, EvaluateResponse, WireStep, evaluate_request
from reasonblocks.wire._evaluate import MAX_SENT
from reasonblocks_server.serving import Evaluations

quick = settings(derandomize=True, deadline=None, database=None, max_examples=60)
TASK = "Fix the date parser so that leap years are accepted."
INJECTED = (Injected(step=2, monitor="semantic_loop"),)
ROLES = {"look_around": "list"}
TYPES = {"mine": "my trouble"}
CHECKED = Patience(rung="2 of 3", name="own: 2 of 3, 24 runs", checks=True)

calls = st.builds(
    lambda name, arguments: ToolCall(id="c", name=name, arguments=arguments),
    st.sampled_from(["run_tests", "read_file", "edit_file", "look_around"]),
    st.sampled_from(
        [{"path": "a.py"}, {"path": "b.py"}, {"path": "żółć.py", "lines": [1, 2.5, None]}, {}, None, "ls -la", ["a", 1]]
    ),
)
results = st.builds(
    lambda output, failed: ToolResult(call_id="c", output=output, is_error=failed),
    st.sampled_from(
        ["3 failed: test_a", "All tests passed.", "a.py\nb.py\nc.py\nd.py", "", "\U0001f600 1.5e-7", "Error: no file"]
    ),
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
FILES = "attic.txt\nbridge.txt\ncellar.txt\ndungeon.txt"


def read(name: str) -> Step:
    call = ToolCall(id="c", name="read_file", arguments={"path": name})
    return Step(tool_calls=(call,), tool_results=(ToolResult(call_id="c", output="Nothing is in here."),))


LISTED = [
    Step(
        tool_calls=(ToolCall(id="c", name="list_files", arguments={}),),
        tool_results=(ToolResult(call_id="c", output=FILES),),
    ),
    *map(read, ["attic.txt", "bridge.txt", "bridge.txt", "bridge.txt", "bridge.txt", "bridge.txt"]),
]
"""A run that reads two of four files, and then the second one again and again."""


def requests(done: Sequence[Step], *, own: bool = False) -> list[Evaluate]:
    """Return the questions of a run's engine, one for each step."""
    account, patience = Account(), CHECKED
    sightings: JSON = None
    found = []
    for index, step in enumerate(done):
        injected = INJECTED if index > 2 else ()
        told = injected[-1].step if injected else None
        account = observe(step, account, index, ROLES)
        patience = after_step(patience, index, told, dead=account.did.dead)
        sightings = gather(step, index, account, sightings, ROLES)
        observed = mine(index) if own else ()
        found.append(
            Evaluate(
                step=step,
                index=index,
                memories={} if sightings is None else {OWN_MEMORY: sightings},
                injected=injected,
                task=TASK,
                profile="coding",
                weights={**WEIGHTS["coding"], **({"mine": 0.0} if own else {})},
                account=account,
                patience=patience,
                observed=observed,
                run_id="run-1",
            )
        )
    return found


def mine(index: int) -> Observed:
    """The observation of a client's own monitor, which fires at every third step."""
    return (("mine", 0.9 if index % 3 == 2 else 0.0, {"count": index}, (index,)),)


def locally(asked: Evaluate) -> Evaluation:
    return LocalEvaluator(ROLES, TYPES).evaluate(asked)[0]


def over_the_wire(body: EvaluateRequest) -> EvaluateResponse:
    """Both bodies as JSON, as they travel."""
    received = EvaluateRequest.model_validate(json.loads(body.model_dump_json(exclude_none=True)))
    sent = json.dumps(Evaluations().answer(received).model_dump(), allow_nan=False)
    return EvaluateResponse.model_validate_json(sent)


def sent(asked: Evaluate) -> EvaluateRequest:
    return evaluate_request(asked, tool_roles=ROLES, failure_types=TYPES)


def whole(done: Sequence[Step]) -> EvaluateRequest:
    """The body of a client that sends all steps, and no account."""
    changes = {"from_step": 0, "steps": [WireStep.of(step) for step in done], "account": None, "sightings": None}
    return sent(requests(done)[-1]).model_copy(update={**changes, "patience": CHECKED})


@quick
@given(runs, st.booleans())
@example([LOOP] * 12, False)
@example(LISTED, False)
def test_each_way_to_evaluate_a_run_gives_the_same(done: list[Step], own: bool) -> None:
    asked = requests(done, own=own)
    answers = [over_the_wire(sent(one)) for one in asked]
    assert [answer.evaluation() for answer in answers] == [locally(one) for one in asked]
    assert not any(answer.partial for answer in answers)
    if not own:
        assert over_the_wire(whole(done)).evaluation() == locally(asked[-1])


def test_the_runs_of_these_tests_are_spoken_of() -> None:
    loop, listed = ([locally(one) for one in requests(done)] for done in ([LOOP] * 12, LISTED))
    assert any(evaluation.inject for evaluation in loop)
    assert any("cellar.txt" in (evaluation.intervention_text or "") for evaluation in listed)


def test_only_the_steps_before_an_unknown_past_make_an_answer_partial() -> None:
    request = whole([LOOP] * 3)
    assert not over_the_wire(request).partial
    assert over_the_wire(request.model_copy(update={"from_step": 4})).partial


def test_an_empty_trajectory_is_quiet() -> None:
    quiet = Evaluations().answer(EvaluateRequest(steps=[]))
    assert (quiet.evaluation(), quiet.partial) == (Evaluation(), False)


def test_every_step_of_a_trajectory_may_be_the_last_in_time() -> None:
    observed = []

    def go_on() -> None:
        observed.append(1)
        if len(observed) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        Evaluations().answer(whole([LOOP] * 9), go_on=go_on)
    assert len(observed) == 3


# --- what no client has made

LAST = requests([LOOP] * 6)[-1]
BODY: dict[str, Any] = json.loads(sent(LAST).model_dump_json(exclude_none=True))
HUGE = 10**4_000
"""A number of nearly as many digits as JSON is read with."""


def changed(field: str, value: Any) -> dict[str, Any]:
    """Return the body with one value replaced; `field` is its path, such as "account.did.letter"."""
    body: dict[str, Any] = json.loads(json.dumps(BODY))
    *path, name = field.split(".")
    at = body
    for part in path:
        at = at[part]
    at[name] = value
    return body


HOSTILE: list[tuple[str, Any]] = [
    ("account", []), ("account.letters", "A" * 25), ("account.letters", "AAX"), ("account.letters", None),
    ("account.did.letter", "a"), ("account.did.due", "now"), ("account.did", []),
    ("account.actions", [[0] * 7] * 33), ("account.actions", [[0] * 6]), ("account.actions", [[0] * 8]),
    ("account.actions", [[-1, 0, 0, 0, 0, 0, 0]]), ("account.actions", [[0, HUGE, 0, 0, 0, 0, 0]]),
    ("account.actions", [["x"] * 7]), ("account.actions", [[1.5] * 7]), ("account.changes", [0] * 65),
    ("account.changes", [-HUGE]), ("account.vain", [[1, 2]] * 7), ("account.vain", [[1, 2, 3]]),
    ("account.vain", [[1, HUGE]]), ("account.ids", [[1]] * 4), ("account.ids", [[HUGE]]), ("account.ids", [["x"]]),
    ("account.items", "A" * 644), ("account.items", "ż"), ("account.items", "AAA"), ("account.items", "AA=="),
    ("account.mark", -1), ("account.steps", HUGE), ("account.edits", HUGE), ("account.turn", HUGE),
    ("account.user", HUGE), ("account.check", [0, 0, 0, True, HUGE]), ("account.check", "red"),
    ("account.series", [[HUGE], 0, 0]), ("account.series", [[0], 0, HUGE]), ("patience", "3 of 5"),
    ("patience.rung", "9 of 9"), ("patience.rung", "often"), ("patience.offset", 2), ("patience.offset", -2),
    ("patience.counts", [[0, 0, 0]]), ("patience.counts", [[0, 0, HUGE]] * 7), ("patience.window", HUGE),
    ("patience.since", -2), ("patience.alone", HUGE), ("steps", []), ("steps", [{}, {}]),
    ("steps", [{}] * (MAX_SENT + 1)), ("from_step", 10**19), ("run_id", "x" * 300),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_no_client_has_made_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises((ValidationError, ConfigError)) as refused:
        Evaluations().answer(EvaluateRequest.model_validate(changed(field, value)))
    assert field.split(".")[0] in str(refused.value)


def test_a_trajectory_with_a_patience_of_another_form_is_refused() -> None:
    body = {"steps": [{}], "patience": {"counts": [[0, 0, 0]] * 3}}
    with pytest.raises(ValidationError, match=r"patience\.counts has 3 items, not one for each of the 7 rungs"):
        Evaluations().answer(EvaluateRequest.model_validate(body))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
SPOKEN = requests(LISTED)[-1]
SIGHTINGS: dict[str, Any] = dict(SPOKEN.memories[OWN_MEMORY])  # type: ignore[arg-type]  # an object
WITHOUT = locally(replace(SPOKEN, memories={}))


@quick
@given(st.sampled_from([*SIGHTINGS]), st.integers(0, 8), json_values)
def test_any_sightings_are_answered(field: str, at: int, value: Any) -> None:
    given_rows = SIGHTINGS[field]
    rows = [[*row[:at], value, *row[at + 1 :]] for row in given_rows] if isinstance(given_rows, list) else value
    for sightings in ({**SIGHTINGS, field: value}, {**SIGHTINGS, field: rows}, value):
        request = sent(SPOKEN).model_copy(update={"sightings": sightings})
        assert Evaluations().answer(request).evaluation().fired == WITHOUT.fired


def deep(levels: int) -> Any:
    return [] if levels == 0 else [deep(levels - 1)]


@pytest.mark.parametrize(
    "change",
    [
        lambda given: [],
        lambda given: "seen",
        lambda given: deep(200),
        lambda given: {**given, "shown": None},
        lambda given: {**given, "shown": [row[:4] for row in given["shown"]]},
        lambda given: {**given, "shown": [[*row, 5] for row in given["shown"]]},
        lambda given: {**given, "uses": [row[:6] for row in given["uses"]]},
        lambda given: {**given, "uses": [[*row, "x"] for row in given["uses"]]},
        lambda given: {**given, "used": "A"},
        lambda given: {**given, "used": "AAAA"},
        lambda given: {**given, "used": 5},
        lambda given: {**given, "last": "now"},
        lambda given: {**given, "after": HUGE},
        lambda given: {**given, "shown": [[*row, "x" * 9_000] for row in given["shown"]]},
        lambda given: {**given, "shown": [[*row, "\ud800"] for row in given["shown"]]},
    ],
)
def test_sightings_that_cannot_be_read_are_dropped(change: Callable[[dict[str, Any]], Any]) -> None:
    request = sent(SPOKEN).model_copy(update={"sightings": change(SIGHTINGS)})
    assert Evaluations().answer(request).evaluation() == WITHOUT != locally(SPOKEN)


@quick
@given(st.integers(0, 40), st.text("ABCDabcd.", max_size=24), st.sampled_from(["", *"ABCD"]), st.data())
def test_any_account_of_the_right_form_is_answered(index: int, letters: str, letter: str, data: st.DataObject) -> None:
    numbers = st.integers(0, 5) | st.just(2**53 - 1)
    step = st.integers(0, index)
    account = {
        "letters": letters,
        "did": {
            "letter": letter,
            "due": data.draw(st.sampled_from(["", "check", "series"])),
            "finished": data.draw(st.booleans()),
            "waiting": data.draw(st.booleans()),
        },
        "actions": data.draw(st.lists(st.tuples(step, *[numbers] * 6), max_size=32)),
        "vain": data.draw(st.lists(st.tuples(numbers, numbers), max_size=6)),
        "check": data.draw(st.none() | st.tuples(step, numbers, numbers, st.booleans(), numbers, numbers)),
        "series": [[], 0, data.draw(numbers)],
        "mark": data.draw(step),
        "steps": data.draw(numbers),
        "edits": data.draw(numbers),
    }
    body = {
        **BODY,
        "account": account,
        "from_step": index,
        "steps": [WireStep.of(data.draw(steps)).model_dump()],
        "injected": [],
    }
    answer = Evaluations().answer(EvaluateRequest.model_validate(json.loads(json.dumps(body))))
    assert EvaluateResponse.model_validate_json(answer.model_dump_json()) == answer


def test_the_rung_of_these_tests_is_one() -> None:
    assert rung_of(CHECKED.rung).name == CHECKED.rung
