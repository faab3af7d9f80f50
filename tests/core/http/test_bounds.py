"""Requests are bounded: texts are cut where no monitor reads, so that the answers stay the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks.account.observe import observe
from reasonblocks.backends.http.texts import bounded_step
from reasonblocks.backends.local import LocalEvaluator
from reasonblocks.monitors.sightings import OWN_MEMORY, gather
from reasonblocks.requests import Evaluate
from reasonblocks.types import JSON, Account, Patience, Step, ToolCall, ToolResult
from reasonblocks.wire import evaluate_request
from reasonblocks_testing.rb_api import ScriptedRbApi
from tests.core.http.world import EVALUATE, asked, at, client, run

LOCAL = LocalEvaluator()


def asked_of(run: Sequence[Step]) -> Iterator[Evaluate]:
    """Yield the questions of a run's engine, with the account of the whole steps."""
    account = Account()
    seen: JSON = None
    for index, step in enumerate(run):
        account = observe(step, account, index, {})
        seen = gather(step, index, account, seen, {})
        memories = {} if seen is None else {OWN_MEMORY: seen}
        patience = Patience(rung="2 of 3", checks=True)
        yield asked(step=step, index=index, memories=memories, account=account, patience=patience)


PIECES = st.sampled_from(
    [
        "error: no such file or directory: 'a.py'\n", "1 failed, 2 passed in 0.03s\n", "x", " ", "\n", "é",
        "Traceback (most recent call last):\n  File \"a\"\nValueError: no\n", "a.py\nb.py\nc.py\n", "0x7f3a12ff ",
        '{"name": "attic"}, ',
        "still running, try again later. ", "I have fixed it and all tests pass. ", "not found", "docs/a.md:12: word\n",
        "curl http://example.com ",
    ]
)  # fmt: skip
LENGTHS = st.sampled_from([1, 3, 30, 400, 2_000, 7_990, 16_100, 40_000])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Texts of a few pieces, each repeated up to a length; the longest has some 100,000 characters."""
    parts = draw(st.lists(st.tuples(PIECES, LENGTHS), max_size=3))
    return "".join([(piece * (length // len(piece) + 1))[:length] for piece, length in parts])


ARGUMENTS: st.SearchStrategy[JSON] = st.one_of(
    texts(),
    st.dictionaries(st.sampled_from(["command", "path", "query", "content", "n"]), texts() | st.integers(), max_size=3),
    st.dictionaries(
        st.sampled_from(["items", "edits"]),
        st.lists(st.integers(), max_size=40) | st.lists(texts(), max_size=3),
        max_size=2,
    ),
)
NAMES = st.sampled_from(["bash", "read_file", "edit_file", "search", "web_fetch", "run_tests", "finish", "thing"])


@st.composite
def steps(draw: st.DrawFn) -> Step:
    names = draw(st.lists(NAMES, max_size=3))
    calls = tuple([ToolCall(id=f"c{at}", name=name, arguments=draw(ARGUMENTS)) for at, name in enumerate(names)])
    flags = st.sampled_from([None, True, False])
    results = [
        ToolResult(call_id=call.id, output=draw(texts()), name=call.name, is_error=draw(flags)) for call in calls
    ]
    return Step(thought=draw(texts()), reasoning=draw(texts()), tool_calls=calls, tool_results=tuple(results))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(steps(), min_size=1, max_size=3))
def test_the_monitors_judge_the_bounded_steps_as_the_whole_ones(run: list[Step]) -> None:
    for one in asked_of(run * 3):
        assert LOCAL.evaluate(replace(one, step=bounded_step(one.step))) == LOCAL.evaluate(one)


@given(steps())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_bounding_twice_changes_nothing(step: Step) -> None:
    assert bounded_step(bounded_step(step)) == bounded_step(step)


def as_output(text: str) -> Step:
    return Step(thought="I read.", tool_results=(ToolResult(call_id="c", output=text),))


def as_argument(text: str) -> Step:
    return Step(thought="I write.", tool_calls=(ToolCall(id="c", name="write", arguments={"content": [{"a": text}]}),))


@pytest.mark.parametrize("of", [as_output, as_argument, lambda text: Step(thought=text)])
def test_a_step_of_five_megabytes_is_a_small_request(api: ScriptedRbApi, of: Callable[[str], Step]) -> None:
    from reasonblocks.types import StepInput

    session = client(api, strict=True).session()
    run(session, 1)
    session.begin_step(StepInput(key="large", completed=of("word " * 1_000_000)))
    (received,) = at(api, EVALUATE)
    assert received.status == 200
    assert received.up < 20_000


CALLS = tuple([ToolCall(id=f"c{n}", name="search", arguments={"query": str(n % 3)}) for n in range(20_000)])
RESULTS = tuple([ToolResult(call_id=call.id, output=f"{call.id} not found", name="search") for call in CALLS])
MANY = [
    Step(thought="I read.", tool_calls=CALLS, tool_results=RESULTS),
    Step(thought="I read.", tool_calls=CALLS[:1], tool_results=RESULTS),
    Step(tool_calls=(ToolCall(id="c", name="write", arguments={"rows": [*range(200_000)]}),), tool_results=RESULTS[:1]),
    Step(tool_calls=(ToolCall(id="c", name="write", arguments={f"k{n}": n for n in range(100_000)}),)),
    Step(tool_calls=(ToolCall(id="c" * 1_000_000, name="b" * 1_000_000, arguments={"k" * 1_000_000: 1}),)),
]


@pytest.mark.parametrize("step", MANY, ids=range(len(MANY)))
def test_a_step_of_many_parts_is_a_small_request(step: Step) -> None:
    bounded = bounded_step(step)
    assert len(evaluate_request(asked(step=bounded)).model_dump_json(exclude_none=True)) < 70_000
    assert bounded_step(bounded) == bounded


def test_the_monitors_judge_many_calls_by_the_first_and_the_last() -> None:
    for count in (33, 64):
        step = replace(MANY[0], tool_calls=CALLS[:count], tool_results=RESULTS[:count])
        assert bounded_step(step) == step
    same = replace(MANY[0], tool_results=tuple([replace(result, output="1 failed") for result in RESULTS]))
    *_, last = asked_of([same] * 6)
    answer, _ = LOCAL.evaluate(replace(last, step=bounded_step(last.step)))
    assert (answer.inject, answer) == (True, LOCAL.evaluate(last)[0])
