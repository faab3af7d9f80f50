"""Legitimate work, from the first step to the last: the agent is told nothing."""

from __future__ import annotations

import pytest

from tests.core.monitors import fair_coding, fair_coding_2, fair_errors, fair_languages, fair_react, fair_service
from tests.core.monitors.trajectories import Fair, play

FIRST_FORM: frozenset[str] = frozenset(
    {
        "a shell agent retries an install after a network error",
        "a shell agent runs a test five times as the user asked",
        "a service agent asks for the same quote five times as the user wished",
        "a react agent rolls a die five times as asked",
    }
)
"""Trajectories in which the first form of the monitors speaks."""

FAIR = {
    **fair_coding.FAIR,
    **fair_coding_2.FAIR,
    **fair_errors.FAIR,
    **fair_service.FAIR,
    **fair_react.FAIR,
    **fair_languages.FAIR,
}
FIRST = pytest.mark.xfail(strict=False, reason="first form")


@pytest.mark.parametrize(
    "work", [pytest.param(work, id=name, marks=[FIRST] * (name in FIRST_FORM)) for name, work in FAIR.items()]
)
def test_legitimate_work_is_told_nothing(work: Fair) -> None:
    told = play(work.task, work.steps).told
    assert [(one.step, one.failure_type, one.text) for one in told] == []
