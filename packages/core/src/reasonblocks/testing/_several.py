"""Runs at once, later, and within each other."""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar

from . import _world as world
from ._checks import decided, longest_gap
from ._harness import Harness
from ._script import Script, Turn, tool_call, tool_result

AT_ONCE = 32
SLOW_SCORER_SECONDS = 0.3
LOOP_GAP_SECONDS = 0.1
"""Of a loop whose scorer takes 0.3 s: what the machine's noise may add to a gap that would be 0.3 s if we blocked."""


class RunScenarios:
    """Part of `ConformanceSuite`."""

    harness: ClassVar[Harness]

    def test_runs_at_once_on_one_agent_do_not_mix(self, mode: str) -> None:
        scripts = [world.looping(5, run_id=f"run-{at}") for at in range(AT_ONCE)]
        several = self.harness.run_at_once(world.client(), scripts, mode)
        (alone,) = self.harness.run(world.client(), world.looping(5), mode)
        assert sorted(ran.run_id for ran in several) == sorted(script.run_id for script in scripts)
        assert [decided(ran.log) for ran in several] == [decided(alone.log)] * AT_ONCE

    def test_a_run_goes_on_in_another_process(self, mode: str) -> None:
        (whole,) = self.harness.run(world.client(), world.looping(9), mode)
        (parts,) = self.harness.run(world.client(), world.looping(9), mode, resume_at=(2, 5, 6))
        assert decided(parts.log) == decided(whole.log)

    def test_an_agent_within_a_tool_has_a_run_of_its_own(self, mode: str) -> None:
        call = tool_call("d0", "delegate", {"task": "look"})
        outer = Script(
            turns=(
                Turn(text="I hand that over.", tool_calls=(call,), results=(tool_result("d0", "inner is done"),)),
                Turn(text="Done."),
            ),
            run_id="outer",
        )
        outside, inside = self.harness.run_nested(world.client(), outer, world.looping(3, run_id="inner"), mode)
        assert len(outside.log) == 2
        assert len(inside.log) == 3
        assert inside.parent_run_id == outside.run_id

    def test_the_event_loop_goes_on_while_a_scorer_works(self) -> None:
        def scorer(step: object) -> float:
            time.sleep(SLOW_SCORER_SECONDS)
            return 0.4

        client = world.client(scorer=scorer, step_deadline_ms=2_000)
        assert asyncio.run(longest_gap(self.harness, client, world.looping(3))) < LOOP_GAP_SECONDS
