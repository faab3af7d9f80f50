"""The news that each step of a run brings, and the chance that a run without news goes on like that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.monitors import novelty
from reasonblocks.monitors.persistence import Weights, chance
from reasonblocks.types import JSON, Novelty, Step, ToolCall, ToolResult

WORDS = st.lists(st.sampled_from([f"word{n}" for n in range(40)]), min_size=2, max_size=30)


def looked(output: str, **arguments: JSON) -> Step:
    """Return a step that called `look` with these arguments and got this result."""
    call = ToolCall(id="1", name="look", arguments=arguments)
    return Step(tool_calls=(call,), tool_results=(ToolResult(call_id="1", output=output),))


def brought(steps: Sequence[Step]) -> list[Novelty]:
    memory: JSON = None
    news = []
    for step in steps:
        one, memory = novelty.observe(step, memory)
        news.append(one)
    return news


def page(first: int, last: int) -> str:
    return "\n".join([f"line {n} holds item number {n * 7} of the list" for n in range(first, last)])


def test_the_same_result_for_other_arguments_brings_nothing() -> None:
    last = brought([looked(page(0, 10), path="a"), looked(page(0, 10), path="b")])[-1]
    assert (last.stale, last.elsewhere, last.same_call) == (True, True, False)


def test_a_part_of_a_page_that_was_read_brings_nothing() -> None:
    assert brought([looked(page(0, 20), path="a"), looked(page(4, 12), path="a", lines="4-12")])[-1].stale


def test_an_error_that_differs_in_a_number_is_the_same() -> None:
    said = "Error: connection {} of the pool to the store was refused by the peer"
    last = brought([looked(said.format(n), n=n) for n in (4, 17)])[-1]
    assert (last.same_error, last.same_result, last.stale) == (True, True, True)


def test_a_process_that_makes_progress_brings_something() -> None:
    polls = [looked(f'{{"job": "b77", "state": "at work", "percent": {n}}}', job="b77") for n in (15, 30, 45)]
    assert not any(one.stale for one in brought(polls))


def test_a_listing_that_grows_brings_something() -> None:
    assert not any(one.stale for one in brought([looked(page(0, size), path=".") for size in (5, 9, 14, 20)]))


def test_a_log_of_training_brings_something() -> None:
    logs = ["\n".join([f"epoch {e} loss {1 / (e + 1):.4f}" for e in range(n, n + 8)]) for n in (0, 8, 16)]
    assert not any(one.stale for one in brought([looked(log, run=n) for n, log in enumerate(logs)]))


@given(WORDS, WORDS)
def test_the_share_of_new_pairs_is_that_of_the_pairs_that_were_not_there(before: list[str], now: list[str]) -> None:
    known, pairs = {*pairwise(before)}, {*pairwise(now)}
    exact = len(pairs - known) / len(pairs)
    assert abs(brought([looked(" ".join(before), n=1), looked(" ".join(now), n=2)])[-1].fresh - exact) < 0.15


@given(st.lists(st.text(max_size=3_000), min_size=1, max_size=8))
def test_the_memory_stays_under_2_kb(outputs: list[str]) -> None:
    memory: JSON = None
    for n in range(60):
        _, memory = novelty.observe(looked(f"{outputs[n % len(outputs)]} {page(n * 40, n * 40 + 30)}", n=n), memory)
    assert len(json.dumps(memory, separators=(",", ":"))) <= 2_048


SHARES = st.tuples(*[st.floats(0, 1)] * 4)
POSITIVE = st.builds(
    Weights,
    threshold=st.just(0.8),
    base=st.floats(-5, 5),
    **dict.fromkeys(("known", "lasted", "failed", "repeated"), st.floats(0, 5)),
)


@given(SHARES, SHARES, POSITIVE)
def test_the_chance_is_a_share_that_grows_with_each_of_its_numbers(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float], weights: Weights
) -> None:
    most = (max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3]))
    assert 0 <= chance(one, weights) <= chance(most, weights) <= 1
