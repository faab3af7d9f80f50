"""An agent of an experiment is steered or left alone by its unit, and so are the agents within it."""

from __future__ import annotations

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_langchain import middleware
from tests.langchain.scripted import ScriptedModel, by_position, calls
from tests.langchain.world import QUESTION, agent, handing_over, scripted
from tests.steered import steering

ARMS = [("d", "on", "steer"), ("a", "off", "observe")]
"""Units of the experiment "lessons" (tests/core/test_experiments.py)."""


@pytest.mark.parametrize(("unit", "arm", "mode"), ARMS)
def test_the_unit_decides(unit: str, arm: str, mode: str) -> None:
    model = scripted()
    with middleware(steering(), run_id="r", experiment_id="lessons", unit_id=unit, on_fraction=0.5) as mw:
        agent(model, mw).invoke(QUESTION)
    info = mw.runs["r"].run
    assert (info.mode, info.metadata["arm"], info.metadata["assignment_unit"]) == (mode, arm, unit)
    assert any("[REASONBLOCKS]" in seen.text for seen in model.seen) == (arm == "on")


@pytest.mark.parametrize(("unit", "arm", "mode"), ARMS)
def test_an_agent_in_a_tool_is_in_the_arm_of_its_caller(unit: str, arm: str, mode: str) -> None:
    rb = steering()
    inside = middleware(rb, agent_name="inner")
    inner = agent(scripted(2), inside)

    turns = by_position(calls("delegate", "I ask.", task="What is in it?"), "Done.")
    with middleware(rb, agent_name="outer", experiment_id="lessons", unit_id=unit) as outside:
        agent(ScriptedModel(script=turns), outside, tools=(handing_over(inner),)).invoke(QUESTION)
    (outer,), (within,) = outside.runs.values(), inside.runs.values()
    assert within.run.parent_run_id == outer.run_id
    assert [view.run.mode for view in (outer, within)] == [mode, mode]
    assert outer.run.metadata == within.run.metadata


def test_an_experiment_chooses_the_mode() -> None:
    with pytest.raises(ConfigError, match="an experiment chooses the mode"):
        middleware(steering(), experiment_id="lessons", mode="steer")
