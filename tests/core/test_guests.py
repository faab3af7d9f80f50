"""Steering is a guest, and so is a caller's code: what raises, hangs or answers nonsense never reaches the agent."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import BadAnswer, DeadlineExceeded, SwitchedOff
from reasonblocks.patterns import Curve, SimilarityCurves
from reasonblocks.requests import Retrieve
from reasonblocks.session import BoundedCall, SteeringSession, Workers
from reasonblocks.types import JSON, ETrace, FSMState, RunInfo, Step, StepInput
from tests.core.world import MODEL, Hang, arun, begin, called, client, final, found, hanging, longest_gap, run, step

SHORT_MS = 30


class Boom(Exception):
    pass


def raiser(error: BaseException) -> Callable[..., Any]:
    def raises(*given: object) -> Any:
        raise error

    return raises


def says(value: object) -> Callable[..., Any]:
    return lambda *given: value


class Watcher:
    """A caller's monitor around a function."""

    name = "watcher"
    failure_type = "watched"

    def __init__(self, answer: Callable[..., Any]) -> None:
        self._answer = answer

    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]:
        answer: tuple[float, JSON, tuple[int, ...]] = self._answer(step, memory, run)
        return answer


class Shelf:
    """A caller's store around a function."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self._answer = answer

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        answer: tuple[ETrace, ...] = self._answer(request)
        return answer


class Vectors:
    """A caller's embedder around a function; a store of ours calls it."""

    id = "vectors"
    dim = 1
    curves = SimilarityCurves(e1=Curve(((0.0, 0.0), (1.0, 1.0))), e2=Curve(((0.0, 0.0), (1.0, 1.0))))

    def __init__(self, answer: Callable[..., Any]) -> None:
        self._answer = answer

    def embed(self, text: str) -> tuple[float, ...]:
        answer: tuple[float, ...] = self._answer(text)
        return answer

    def embed_many(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        return [self.embed(text) for text in texts]


def session_with(place: str, answer: Callable[..., Any], **options: Any) -> SteeringSession:
    """A run whose caller's callable of one kind answers so."""
    made: dict[str, Callable[[], Any]] = {
        "scorer": lambda: answer,
        "transition": lambda: answer,
        "monitors": lambda: [Watcher(answer)],
        "pattern_store": lambda: Shelf(answer),
    }
    return client(**{place: made[place](), **options}).session(run_id="guest")


FAULTING = ("scorer", "transition")
"""What ends the step as a fault. A store that fails is an unavailable backend instead, a monitor silent by itself."""
ERRORS = [
    Boom("no"),
    SystemExit(3),
    StopIteration(),
    TimeoutError("own"),
    KeyError("k"),
    GeneratorExit(),
    RecursionError(),
]
NONSENSE: dict[str, list[object]] = {
    "scorer": [math.nan, math.inf, -0.01, 1.01, "0.5", None, True, [0.5], 1j],
    "transition": ["NORMAL", None, 0.5, FSMState],
}
ways = pytest.mark.parametrize("way", ["sync", "async"])
places = pytest.mark.parametrize("place", FAULTING)
errors = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
nonsense = pytest.mark.parametrize(
    ("place", "answer"), [(place, answer) for place, answers in NONSENSE.items() for answer in answers]
)


def assert_unsteered(session: SteeringSession) -> None:
    """Call 1 went on without steering, and nothing but the counter has moved."""
    entry, state = session.step_log[1], session.trace.state
    assert (entry.difficulty, entry.gate_decision, entry.skipped_reason) == (None, None, "fault")
    assert (state.difficulty_history, state.current_state, state.calls, state.steps) == ((), FSMState.INIT, 2, ())


def play(session: SteeringSession, way: str) -> None:
    """Make two calls."""
    if way == "sync":
        run(session, 2)
    else:
        asyncio.run(arun(session, 2))


@ways
@places
@errors
def test_a_callable_that_raises_leaves_the_step_unsteered(place: str, error: BaseException, way: str) -> None:
    session = session_with(place, raiser(error), strict=False, step_deadline_ms=1_000)
    play(session, way)
    assert_unsteered(session)


@nonsense
def test_a_callable_that_answers_nonsense_leaves_the_step_unsteered(place: str, answer: object) -> None:
    session = session_with(place, says(answer), strict=False)
    run(session, 2)
    assert_unsteered(session)


@nonsense
def test_with_strict_a_nonsense_answer_is_raised(place: str, answer: object) -> None:
    session = session_with(place, says(answer), strict=True)
    run(session, 1)
    with pytest.raises(BadAnswer):
        begin(session, 1)


@places
def test_with_strict_the_error_of_a_callable_is_raised_as_it_is_and_nothing_has_moved(place: str) -> None:
    session = session_with(place, raiser(Boom("mine")), strict=True)
    run(session, 1)
    before = session.trace.state
    with pytest.raises(Boom, match="mine"):
        begin(session, 1)
    assert session.trace.state == before


@errors
def test_on_the_async_path_a_callable_that_raises_is_not_taken_for_one_that_hangs(error: BaseException) -> None:
    session = session_with("scorer", raiser(error), strict=False, step_deadline_ms=1_000)
    started = time.perf_counter()
    asyncio.run(arun(session, 2))
    assert time.perf_counter() - started < 0.9


@ways
@places
def test_a_callable_that_hangs_leaves_the_step_unsteered(place: str, way: str) -> None:
    with hanging() as hang:
        session = session_with(place, hang, step_deadline_ms=SHORT_MS)
        play(session, way)
        assert_unsteered(session)


def test_a_step_is_not_delayed_past_its_deadline() -> None:
    with hanging() as hang:
        session = session_with("scorer", hang, step_deadline_ms=SHORT_MS)
        run(session, 1)
        started = time.perf_counter()
        begin(session, 1)
        assert time.perf_counter() - started < 10 * SHORT_MS / 1000


def test_one_deadline_is_shared_by_everything_that_a_step_asks() -> None:
    with hanging() as slow:
        rb = client(step_deadline_ms=2 * SHORT_MS, pattern_store=Shelf(slow), scorer=says(0.5))
        session = rb.session()
        started = time.perf_counter()
        run(session, 2)
        assert time.perf_counter() - started < 20 * SHORT_MS / 1000


def test_a_result_that_comes_after_the_deadline_moves_nothing() -> None:
    with hanging() as hang:

        def late(completed: Step) -> float:
            hang(completed)
            return 0.9

        session = session_with("scorer", late, step_deadline_ms=SHORT_MS)
        run(session, 2)
        before = session.trace.state
        hang.release()
        assert session.trace.state is before


def test_the_step_after_a_fault_is_judged_as_usual() -> None:
    errors = iter([Boom("once")])

    def scorer(completed: Step) -> float:
        for error in errors:
            raise error
        return 0.4

    session = session_with("scorer", scorer, strict=False)
    run(session, 3)
    assert (session.step_log[2].difficulty, session.step_log[2].fsm_state) == (0.4, "NORMAL")


def test_a_fault_is_counted_by_its_kind_and_said_once_per_run(caplog: pytest.LogCaptureFixture) -> None:
    rb = client(scorer=raiser(Boom("no")), strict=False)
    for name in ("one", "other"):
        session = rb.session(run_id=name)
        run(session, 4)
        assert session.faults == {"the scorer": 3}
    assert [record.getMessage() for record in caplog.records] == [
        f"run '{name}': the scorer failed (Boom: no); the agent continues (logged once per run)"
        for name in ("one", "other")
    ]


def test_a_fault_in_the_final_step_leaves_a_final_entry_that_says_so() -> None:
    session = session_with("scorer", raiser(Boom("no")), strict=False)
    run(session, 1)
    session.finish(completed=step(0))
    assert (final(session).gate_decision, final(session).skipped_reason, session.outcome) == (
        "final",
        "fault",
        "success",
    )


# ------------------------------------------------------------ stores and embedders


@errors
def test_a_store_that_raises_is_unavailable(error: BaseException) -> None:
    session = session_with("pattern_store", raiser(error), strict=False)
    run(session, 2)
    assert [(one.skipped_reason, one.difficulty is None) for one in session.step_log] == [
        ("unavailable", True),
        ("unavailable", False),
    ]


@pytest.mark.parametrize(
    "answer",
    [None, 5, ["text"], [ETrace(pattern=found("e3-a")[0].pattern, similarity=math.nan)], [None], "e3-a"],
    ids=repr,
)
def test_a_store_that_answers_nonsense_is_unavailable(answer: object) -> None:
    session = session_with("pattern_store", says(answer), strict=False)
    run(session, 2)
    assert [one.skipped_reason for one in session.step_log] == ["unavailable", "unavailable"]


def test_a_store_that_answers_without_end_delays_no_step() -> None:
    def endless(request: Retrieve) -> Iterator[ETrace]:
        while True:
            yield found("e3-a")[0]

    session = session_with("pattern_store", endless)
    run(session, 1)
    assert session.step_log[0].skipped_reason is None


def test_a_pattern_that_is_no_pattern_raises_nothing() -> None:
    broken = ETrace(pattern="e3-a", similarity=1.0)  # type: ignore[arg-type]  # a caller's mistake
    session = session_with("pattern_store", says([broken]), strict=False)
    run(session, 2)
    assert len(session.step_log) == 2


def test_a_store_that_hangs_is_unavailable_even_with_strict() -> None:
    with hanging() as hang:
        session = session_with("pattern_store", hang, step_deadline_ms=SHORT_MS, strict=True)
        assert begin(session, 0).skipped_reason == "unavailable"


def test_an_unavailable_store_is_asked_for_standing_rules_again() -> None:
    answers = iter([Boom("down"), found("e3-a")])

    def search(request: Retrieve) -> Any:
        answer = next(answers) if request.tier == "e3" else ()
        if isinstance(answer, Exception):
            raise answer
        return answer

    session = session_with("pattern_store", search, strict=False)
    run(session, 2)
    assert session.step_log[1].injection_sources == ("E3Injection",)


@pytest.mark.parametrize("answer", [says(None), says("text"), says(()), raiser(Boom("no")), raiser(SystemExit(1))])
def test_an_embedder_that_fails_never_reaches_the_agent(answer: Callable[..., Any]) -> None:
    from reasonblocks.backends.local_store import LocalStore
    from tests.core.world import pattern

    vectors = Vectors(says((1.0,)))
    store = LocalStore(patterns=[pattern("e2-a", exemplars=("text",))], embedder=vectors)
    vectors._answer = answer
    session = client(pattern_store=store, strict=False).session()
    run(session, 2)
    assert [one.error for one in session.step_log] == [None, None]


# ------------------------------------------------------------ the breaker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def late(guest: BoundedCall, hang: Hang, times: int) -> None:
    for _ in range(times):
        with pytest.raises(DeadlineExceeded):
            guest.call(hang, 0.01)


def guest_of(clock: Clock) -> BoundedCall:
    return BoundedCall("the scorer", Workers(), clock)


def test_after_3_deadlines_in_a_row_a_callable_is_off_for_60_seconds(caplog: pytest.LogCaptureFixture) -> None:
    with hanging() as hang:
        guest = guest_of(clock := Clock())
        late(guest, hang, 2)
        assert guest.call(says(7), 1.0) == 7
        late(guest, hang, 3)
        for clock.now in (0.0, 59.9):
            with pytest.raises(SwitchedOff):
                guest.call(says(7), 1.0)
        clock.now = 60.1
        assert guest.call(says(7), 1.0) == 7
    assert [(": off" in record.getMessage(), "switched on" in record.getMessage()) for record in caplog.records] == [
        (True, False), (False, True),
    ]  # fmt: skip


def test_while_it_is_tried_no_other_run_calls_it() -> None:
    with hanging() as hang:
        guest = guest_of(clock := Clock())
        late(guest, hang, 3)
        clock.now = 60.1

        def call_meanwhile() -> None:
            with pytest.raises(SwitchedOff):
                guest.call(says(7), 1.0)

        guest.call(call_meanwhile, 5.0)


@errors
def test_an_exception_never_switches_a_callable_off(error: BaseException) -> None:
    guest = guest_of(Clock())
    for _ in range(5):
        with pytest.raises(Exception):  # noqa: B017, PT011 - whichever it is
            guest.call(raiser(error), 1.0)
    assert guest.call(says(7), 1.0) == 7


def test_a_callable_that_is_off_does_not_run() -> None:
    with hanging() as hang:
        session = session_with("scorer", hang, step_deadline_ms=SHORT_MS)
        run(session, 8)
        assert hang.calls == 3


def test_a_breaker_is_shared_by_the_runs_of_a_client() -> None:
    with hanging() as hang:
        rb = client(scorer=hang, step_deadline_ms=SHORT_MS)
        for _ in range(5):
            run(rb.session(), 2)
        assert hang.calls == 3


# ------------------------------------------------------------ event loop and exit


def test_a_callable_never_blocks_the_event_loop() -> None:
    with hanging() as hang:
        session = session_with("scorer", hang, step_deadline_ms=200)
        assert asyncio.run(longest_gap(arun(session, 2))) < 0.1


def test_32_runs_on_one_loop_wait_for_a_hanging_scorer_at_the_same_time() -> None:
    async def all_of_them() -> float:
        with hanging() as hang:
            rb = client(scorer=hang, step_deadline_ms=200)
            started = time.perf_counter()
            await asyncio.gather(*(arun(rb.session(), 2) for _ in range(32)))
            return time.perf_counter() - started

    assert asyncio.run(all_of_them()) < 2.0


def test_a_cancelled_step_has_moved_nothing() -> None:
    async def cancelled() -> tuple[object, object]:
        with hanging() as hang:
            session = session_with("scorer", hang)
            first = await session.abegin_step(StepInput(default_model=MODEL))
            session.end_step(first, called(0))
            before = session.trace.state
            task = asyncio.ensure_future(session.abegin_step(StepInput(completed=step(0))))
            while not hang.calls:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return before, session.trace.state

    before, after = asyncio.run(cancelled())
    assert before is after


def test_a_hanging_embedder_does_not_hold_up_the_making_of_a_client() -> None:
    with hanging() as hang:
        ReasonBlocks(embedder=Vectors(hang))
        assert hang.calls == 0
