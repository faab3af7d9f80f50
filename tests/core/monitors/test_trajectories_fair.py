"""Legitimate work, from the first step to the last: the agent is told nothing."""

from __future__ import annotations

import pytest

from tests.core.monitors import fair_coding, fair_coding_2, fair_errors, fair_languages, fair_react, fair_service
from tests.core.monitors.trajectories import Fair, play

FAIR = {
    **fair_coding.FAIR,
    **fair_coding_2.FAIR,
    **fair_errors.FAIR,
    **fair_service.FAIR,
    **fair_react.FAIR,
    **fair_languages.FAIR,
}


@pytest.mark.parametrize("work", [pytest.param(work, id=name) for name, work in FAIR.items()])
def test_legitimate_work_is_told_nothing(work: Fair) -> None:
    told = play(work.task, work.steps).told
    assert [(one.step, one.failure_type, one.text) for one in told] == []
