"""An agent of an experiment is steered or left alone by its unit, and so are the agents in its tools."""

from __future__ import annotations

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_openai_agents import SteeredRun, openai_hooks, steering_of
from tests.openai_agents.world import as_tool, asking, by_model, fixer, in_turn, look, looks, named, place, said
from tests.steered import steering

ARMS = [("d", "on", "steer"), ("a", "off", "observe")]
"""Units of the experiment "lessons" (tests/core/test_experiments.py)."""


@pytest.mark.parametrize(("unit", "arm", "mode"), ARMS)
def test_the_unit_decides(unit: str, arm: str, mode: str) -> None:
    with place(in_turn(*looks(3))) as here:
        result = here.run(steering(), fixer(), experiment_id="lessons", unit_id=unit, on_fraction=0.5)
        assert any(here.guided) == (arm == "on")
    info = steering_of(result).session.run
    assert (info.mode, info.metadata["arm"], info.metadata["assignment_unit"]) == (mode, arm, unit)


@pytest.mark.parametrize(("run_id", "arm", "mode"), ARMS)
def test_an_agent_in_a_tool_is_in_the_arm_of_its_caller(run_id: str, arm: str, mode: str) -> None:
    """The unit is the run, and the agent in the tool has a run of its own."""
    inner = named("inner", look)
    with place(by_model(outer=[asking("inner", "What?"), said()], inner=looks(2))) as here:
        outer = named("outer", as_tool(inner))
        result = here.run(steering(), outer, run_id=run_id, experiment_id="lessons")
    run: SteeredRun = steering_of(result)
    infos = [run.session.run, *[child.session.run for child in run.children]]
    assert len(infos) == 2
    assert {info.mode for info in infos} == {mode}
    assert infos[0].metadata == infos[1].metadata


def test_hooks_take_part_in_no_experiment() -> None:
    with pytest.raises(ConfigError, match=r"^experiment_id='lessons': hooks of the SDK cannot change a request"):
        openai_hooks(steering(), experiment_id="lessons")
