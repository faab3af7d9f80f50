"""A callable that misses deadlines stays off for its time, whatever answers that began earlier."""

from __future__ import annotations

import pytest

from reasonblocks.exceptions import SwitchedOff
from reasonblocks.session.bounded_call import DEADLINES_IN_A_ROW, OFF_SECONDS, Breaker


def test_an_answer_that_began_before_the_switch_does_not_switch_it_on_again() -> None:
    now = [0.0]
    breaker = Breaker("the scorer", lambda: now[0])
    begun = [breaker.check() for _ in range(DEADLINES_IN_A_ROW + 1)]
    for _ in range(DEADLINES_IN_A_ROW):
        breaker.too_late()
    breaker.in_time(begun[-1])
    with pytest.raises(SwitchedOff):
        breaker.check()
    now[0] = OFF_SECONDS + 1
    trial = breaker.check()
    with pytest.raises(SwitchedOff):
        breaker.check()
    breaker.in_time(trial)
    assert breaker.check() == trial
