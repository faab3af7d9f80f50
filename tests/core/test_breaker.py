"""A circuit breaker switches off after failures in a row, whatever answers that began earlier, and is tested after."""

from __future__ import annotations

import pytest

from reasonblocks.concurrency.breaker import Breaker
from reasonblocks.exceptions import SwitchedOff

OFF_S, REFUSED_S, SECONDS = 30.0, 60.0, 5.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def breaker() -> tuple[Breaker, Clock]:
    clock = Clock()
    made = Breaker(
        "the server",
        off_seconds=OFF_S,
        off_line="%s failed %d times (%s): off for %d s",
        on_line="%s is on",
        monotonic=clock,
    )
    return made, clock


def fails(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.failed(breaker.begin("the evaluator", SECONDS), "HTTP 500")


def is_off(breaker: Breaker) -> bool:
    try:
        breaker.abandoned(breaker.begin("the evaluator", SECONDS))
    except SwitchedOff:
        return True
    return False


def test_three_failures_in_a_row_switch_off() -> None:
    tested, clock = breaker()
    fails(tested, 2)
    assert not is_off(tested)
    fails(tested, 1)
    assert is_off(tested)
    clock.now = OFF_S - 0.1
    assert is_off(tested)


def test_a_try_that_is_never_handed_back_gives_way_to_another() -> None:
    tested, clock = breaker()
    fails(tested, 3)
    clock.now = OFF_S
    tested.begin("the evaluator", 2.0)  # by a task of an event loop that is never run again
    assert is_off(tested)
    clock.now += 2.0
    tested.answered(tested.begin("the evaluator", 2.0))
    assert not is_off(tested)


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_try_that_misses_its_deadline_switches_off_again(is_refused: bool) -> None:
    tested, clock = breaker()
    if is_refused:
        tested.refused(tested.begin("the evaluator", SECONDS), REFUSED_S)
    else:
        fails(tested, 3)
    clock.now = OFF_S + REFUSED_S
    turn = tested.begin("the evaluator", 2.0)
    clock.now += 2.0
    tested.failed(turn, "no answer in time")
    assert is_off(tested)


def test_an_answer_between_failures_keeps_it_on() -> None:
    tested, _ = breaker()
    fails(tested, 2)
    tested.answered(tested.begin("the evaluator", SECONDS))
    fails(tested, 2)
    assert not is_off(tested)


def test_one_request_tries_it_after_the_pause() -> None:
    tested, clock = breaker()
    fails(tested, 3)
    clock.now = OFF_S
    turn = tested.begin("the evaluator", SECONDS)
    assert is_off(tested)
    tested.answered(turn)
    assert not is_off(tested)


def test_a_failed_try_costs_another_pause() -> None:
    tested, clock = breaker()
    fails(tested, 3)
    clock.now = OFF_S
    fails(tested, 1)
    assert is_off(tested)
    clock.now = 2 * OFF_S
    assert not is_off(tested)


def test_an_abandoned_try_leaves_room_for_another() -> None:
    tested, clock = breaker()
    fails(tested, 3)
    clock.now = OFF_S
    tested.abandoned(tested.begin("the evaluator", SECONDS))
    tested.answered(tested.begin("the evaluator", SECONDS))
    assert not is_off(tested)


def test_a_late_answer_from_before_the_switch_changes_nothing() -> None:
    tested, _ = breaker()
    late = tested.begin("the evaluator", SECONDS)
    fails(tested, 3)
    tested.answered(late)
    assert is_off(tested)


def test_a_refusal_switches_off_at_once_for_its_own_time() -> None:
    tested, clock = breaker()
    assert tested.refused(tested.begin("the evaluator", SECONDS), REFUSED_S)
    clock.now = REFUSED_S - 0.1
    assert is_off(tested)
    clock.now = REFUSED_S
    assert not is_off(tested)


def test_each_switch_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    tested, clock = breaker()
    fails(tested, 3)
    for _ in range(3):
        clock.now += OFF_S
        fails(tested, 1)
    clock.now += OFF_S
    tested.answered(tested.begin("the evaluator", SECONDS))
    assert [record.getMessage() for record in caplog.records] == [
        "the server failed 3 times (HTTP 500): off for 30 s",
        "the server is on",
    ]
