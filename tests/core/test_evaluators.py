"""A caller's evaluator gets the step's deadline, never blocks an event loop, and its answer is bounded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.exceptions import BadAnswer, DeadlineExceeded, Unavailable
from reasonblocks.monitors.sightings import OWN_MEMORY
from reasonblocks.ports import Evaluator
from reasonblocks.requests import Evaluate
from reasonblocks.types import JSON, Evaluation, Memories
from reasonblocks.util.json import compact
from reasonblocks_testing import ScriptedReasonBlocks
from tests.core.test_guests import Watcher
from tests.core.world import QUIET, ScriptedStore, arun, hanging, longest_gap, nothing, run, speaks

Answer = tuple[Evaluation, Memories]


class Evaluates:
    """An evaluator around a function."""

    def __init__(self, answer: Callable[[Evaluate], Any]) -> None:
        self._answer = answer
        self.asked: list[Evaluate] = []
        self.threads: list[str] = []

    def evaluate(self, request: Evaluate) -> Answer:
        self.asked.append(request)
        self.threads.append(threading.current_thread().name)
        answer: Answer = self._answer(request)
        return answer


class Awaits(Evaluates):
    """An evaluator with both faces; `evaluate` may not be called on an event loop."""

    def __init__(self, answer: Callable[[Evaluate], Awaitable[Answer]]) -> None:
        super().__init__(lambda request: (QUIET, {}))
        self._aanswer = answer
        self.awaited = 0

    async def aevaluate(self, request: Evaluate) -> Answer:
        self.awaited += 1
        self.threads.append(threading.current_thread().name)
        return await self._aanswer(request)


class InPlace(Evaluates):
    inline = True


def session_of(evaluator: Evaluator, **options: Any) -> SteeringSession:
    given = {"strict": True, "step_deadline_ms": 20_000, "pattern_store": ScriptedStore(nothing), **options}
    return ScriptedReasonBlocks(evaluator=evaluator, **given).session()


def quiet(request: Evaluate) -> Answer:
    return QUIET, request.memories


async def aquiet(request: Evaluate) -> Answer:
    return quiet(request)


# ------------------------------------------------------------ where and how long


def test_an_evaluator_runs_in_a_worker_also_on_an_event_loop() -> None:
    evaluator = Evaluates(quiet)
    run(session_of(evaluator), 2)
    asyncio.run(arun(session_of(evaluator), 2))
    assert evaluator.threads == ["reasonblocks-worker"] * 2


def test_aevaluate_is_awaited_on_an_event_loop_and_evaluate_called_without_one() -> None:
    evaluator = Awaits(aquiet)
    asyncio.run(arun(session_of(evaluator), 2))
    assert (evaluator.awaited, evaluator.threads) == (1, [threading.current_thread().name])
    run(session_of(evaluator), 2)
    assert (evaluator.awaited, len(evaluator.asked)) == (1, 1)


def test_an_inline_evaluator_is_called_in_place() -> None:
    evaluator = InPlace(quiet)
    run(session_of(evaluator), 2)
    assert evaluator.threads == [threading.current_thread().name]


def test_the_built_in_evaluator_is_inline() -> None:
    assert ReasonBlocks(strict=True)._backends.evaluator.inline is True  # type: ignore[attr-defined]


def test_an_evaluator_that_hangs_costs_one_deadline() -> None:
    with hanging() as hang:
        session = session_of(Evaluates(hang), step_deadline_ms=120)
        started = time.monotonic()
        run(session, 2)
        assert time.monotonic() - started < 2.0
    assert (session.step_log[1].gate_decision, session.step_log[1].difficulty is None) == ("unavailable", False)


def test_an_evaluator_that_hangs_is_switched_off_after_3_deadlines() -> None:
    with hanging() as hang:
        run(session_of(Evaluates(hang), step_deadline_ms=60), 8)
        assert hang.calls == 3


def test_an_aevaluate_that_hangs_costs_one_deadline_and_blocks_no_loop() -> None:
    async def forever(request: Evaluate) -> Answer:
        await asyncio.Event().wait()
        return QUIET, {}

    session = session_of(Awaits(forever), step_deadline_ms=150)
    assert asyncio.run(longest_gap(arun(session, 2))) < 0.12
    assert session.step_log[1].gate_decision == "unavailable"


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(1), StopIteration(), KeyboardInterrupt()], ids=repr)
def test_an_evaluator_that_raises_is_unavailable_for_that_step(error: BaseException) -> None:
    def raises(request: Evaluate) -> Any:
        raise error

    session = session_of(Evaluates(raises), strict=False)
    run(session, 2)
    assert (session.step_log[1].gate_decision, session.faults) == ("unavailable", {"the evaluator": 1})


@pytest.mark.parametrize(
    "error", [RuntimeError("no"), TimeoutError("own"), asyncio.CancelledError(), SystemExit(1)], ids=repr
)
def test_an_aevaluate_that_raises_is_unavailable_for_that_step(error: BaseException) -> None:
    async def raises(request: Evaluate) -> Any:
        raise error

    session = session_of(Awaits(raises), strict=False)
    asyncio.run(arun(session, 2))
    assert (session.step_log[1].gate_decision, session.faults) == ("unavailable", {"the evaluator": 1})


def test_an_unavailable_evaluator_is_no_fault_even_with_strict() -> None:
    def gone(request: Evaluate) -> Any:
        raise Unavailable("the server", "it is down", retry_after=3.0)

    session = session_of(Evaluates(gone))
    run(session, 2)
    assert (session.step_log[1].gate_decision, session.faults) == ("unavailable", {})


# ------------------------------------------------------------ one clock


def test_evaluator_and_store_get_the_deadline_of_the_step() -> None:
    evaluator, store = Evaluates(quiet), ScriptedStore(nothing)
    session = session_of(evaluator, pattern_store=store)
    run(session, 1)
    before = time.monotonic()
    run(session, 2, start=1)
    after = time.monotonic()
    ends = {evaluator.asked[0].ends, *(request.ends for request in store.asked[1:])}
    assert len(ends) == 1
    assert len(store.asked) > 1
    assert before + 20 <= ends.pop() <= after + 20  # type: ignore[operator]  # a number, since each has one


# ------------------------------------------------------------ bounds

SCORES = {"semantic_loop": 0.5}


def evaluated(evaluation: Any, memories: Any = None, **options: Any) -> SteeringSession:
    answer = (evaluation, {} if memories is None else memories)
    session = session_of(Evaluates(lambda request: answer), strict=False, **options)
    run(session, 2)
    return session


def is_refused(session: SteeringSession) -> bool:
    gone = session.step_log[1].gate_decision == "unavailable"
    assert session.faults == ({"the evaluator": 1} if gone else {})
    return gone


@pytest.mark.parametrize(("count", "refused"), [(64, False), (65, True)])
def test_an_evaluation_has_at_most_64_scores(count: int, refused: bool) -> None:
    assert is_refused(evaluated(Evaluation(scores={f"m{at}": 0.1 for at in range(count)}))) is refused


@pytest.mark.parametrize(("fired", "refused"), [((), False), (("a",), False), (("a", "b"), False),
                                                (("c",), True), (("a", "c"), True), (("a", "a"), True)])  # fmt: skip
def test_fired_names_monitors_that_have_a_score(fired: tuple[str, ...], refused: bool) -> None:
    assert is_refused(evaluated(Evaluation(scores={"a": 0.9, "b": 0.8}, fired=fired))) is refused


@pytest.mark.parametrize("letter", ["x", "é", "数", "🤖", "\ud800"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_text_has_at_most_8192_bytes(letter: str, over: int) -> None:
    size = len(letter.encode(errors="replace"))
    text = letter * (8_192 // size + over)
    assert is_refused(evaluated(replace(speaks("Look."), intervention_text=text))) is bool(over)


def left_by(session: SteeringSession) -> dict[str, JSON]:
    """The memories that the evaluator left; the engine adds its own, of the lists in results."""
    return {name: memory for name, memory in session.trace.state.memories.items() if name != OWN_MEMORY}


def memory_of(length: int) -> dict[str, JSON]:
    """Memories of exactly this many bytes of JSON."""
    bare: dict[str, JSON] = {"a": [1, None], "b": ""}
    return {**bare, "b": "x" * (length - len(compact(bare)))}


@pytest.mark.parametrize(("length", "refused"), [(16_384, False), (16_385, True)])
def test_memories_have_at_most_16_kb(length: int, refused: bool) -> None:
    session = evaluated(QUIET, memory_of(length))
    assert (is_refused(session), bool(left_by(session))) == (refused, not refused)


def test_the_memory_of_a_callers_monitor_does_not_count() -> None:
    big = "x" * 3_000
    watcher = Watcher(lambda step, memory, run: (0.0, big, ()))

    def kept(request: Evaluate) -> Answer:
        own = {name: memory for name, _, memory, _ in request.observed}
        return QUIET, {**memory_of(16_384), **own}

    session = session_of(Evaluates(kept), monitors=[watcher])
    run(session, 2)
    assert session.trace.state.memories["watcher"] == big


def test_memories_without_end_are_refused_at_once() -> None:
    class Endless(Mapping[str, JSON]):
        def __getitem__(self, key: str) -> JSON:
            return 0

        def __iter__(self) -> Any:
            number = 0
            while True:
                yield f"m{number}"
                number += 1

        def __len__(self) -> int:
            return 1

    assert is_refused(evaluated(QUIET, Endless()))


NUMBERS = st.floats(0.0, 1.0) | st.sampled_from([-0.1, 1.1, float("nan"), None, "0.5", True])
NAMES = st.sampled_from(["a", "b", "数" * 66, "x" * 200, "", "x" * 201, "a \ud800 half", 5, None])
TEXTS = st.sampled_from([None, "", "Look.", "x" * 8_192, "x" * 8_193, "é" * 4_096, "é" * 4_097, 5, b"bytes"])
MEMORIES = st.dictionaries(
    st.sampled_from(["a", "b", "", "x" * 201]) | st.just(7),
    st.sampled_from([None, 1, "x" * 8_000, ["x" * 9_000], {"k": 2**70}, float("inf"), object()]),
    max_size=3,
)


def is_name(value: Any) -> bool:
    """Restated: a string of 1 to 200 bytes of JSON, valid as UTF-8."""
    if not isinstance(value, str) or not value:
        return False
    try:
        return len(compact(value).encode()) - 2 <= 200
    except UnicodeEncodeError:
        return False


def is_unit(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value <= 1.0


def is_plain(value: Any) -> bool:
    """Restated: JSON of 64-bit integers and finite floats."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    if isinstance(value, float):
        return abs(value) < float("inf")
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or isinstance(value, str)


def is_usable(evaluation: Any, memories: Any) -> bool:
    """The port's promise, stated on its own."""
    text = evaluation.intervention_text
    return (
        len(evaluation.scores) <= 64
        and all(is_name(name) and is_unit(score) for name, score in evaluation.scores.items())
        and all(is_name(name) and name in evaluation.scores for name in evaluation.fired)
        and len(set(evaluation.fired)) == len(evaluation.fired)
        and is_unit(evaluation.composite)
        and (text is None or (isinstance(text, str) and len(text.encode()) <= 8_192))
        and all(is_name(name) and is_plain(memory) for name, memory in memories.items())
        and len(compact(memories).encode()) <= 16_384
    )


@given(
    scores=st.dictionaries(NAMES, NUMBERS, max_size=3),
    fired=st.lists(NAMES, max_size=2),
    composite=NUMBERS,
    text=TEXTS,
    memories=MEMORIES,
)
def test_exactly_what_the_port_promises_is_taken(
    scores: Any, fired: list[Any], composite: Any, text: Any, memories: Any
) -> None:
    evaluation = Evaluation(scores=scores, fired=tuple(fired), composite=composite, intervention_text=text)
    session = evaluated(evaluation, memories)
    assert is_refused(session) is not is_usable(evaluation, memories)
    if is_usable(evaluation, memories):
        assert (left_by(session), session.step_log[1].monitors_fired) == (memories, tuple(fired))


def test_with_strict_an_unusable_evaluation_is_raised() -> None:
    session = session_of(Evaluates(lambda request: (Evaluation(fired=("a",)), {})))
    run(session, 1)
    with pytest.raises(BadAnswer, match="fired"):
        run(session, 2, start=1)


def test_a_deadline_is_unavailable_and_says_how_long_it_was() -> None:
    assert (DeadlineExceeded("the evaluator", 0.5).seconds, DeadlineExceeded("x", 0.5).retry_after) == (0.5, None)
