"""Legitimate work, from the first step to the last: the agent is told nothing."""

from __future__ import annotations

import pytest

from tests.core.monitors.trajectories import FAIR, Fair, play


@pytest.mark.parametrize("work", [pytest.param(work, id=name) for name, work in FAIR.items()])
def test_legitimate_work_is_told_nothing(work: Fair) -> None:
    told = play(work.task, work.steps).told
    assert [(one.step, one.failure_type, one.text) for one in told] == []
