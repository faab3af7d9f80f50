"""What is decided, and what the model reads of it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from ..render import FRAME
from . import _world as world
from ._checks import decided, misplaced, read
from ._golden import Golden, World
from ._harness import Harness
from ._loop import LoopHarness


class DecisionScenarios:
    """Part of `ConformanceSuite`."""

    harness: ClassVar[Harness]

    def test_golden_runs_decide_as_written(self, golden: Golden, mode: str) -> None:
        for placement in sorted(self.harness.caps.placements):
            answers = World(golden)
            client = golden.client(answers, placement=placement)
            (ran,) = self.harness.run(client, golden.script, mode, resume_at=golden.resumes)
            told_once = not self.harness.caps.ephemeral
            assert golden.differences(ran.log, ran.final, answers, told_once=told_once) == []
            assert {entry.placement for entry in ran.log} == {placement}
            assert misplaced(ran) == []

    def test_the_model_reads_the_guidance_that_the_core_decides(self, mode: str) -> None:
        for placement in sorted(self.harness.caps.placements):
            (ran,) = self.harness.run(world.client(placement=placement), world.looping(9), mode)
            (core,) = LoopHarness(self.harness.caps).run(world.client(placement=placement), world.looping(9), "sync")
            assert decided(ran.log) == decided(core.log)
            assert [read(seen) for seen in ran.seen] == [read(seen) for seen in core.seen]
            assert misplaced(ran) == []

    def test_guidance_at_the_tail_reaches_the_call(self, mode: str) -> None:
        if "tail" not in self.harness.caps.placements:
            pytest.skip("this framework has no tail placement")
        (ran,) = self.harness.run(world.client(), world.looping(3), mode)  # nobody asked for a placement
        assert FRAME in ran.seen[0].texts[-1]
        assert FRAME not in ran.seen[0].system

    def test_history_stays_clean(self, mode: str) -> None:
        placements = self.harness.caps.placements if self.harness.caps.ephemeral else ()
        for placement in sorted(placements):
            (ran,) = self.harness.run(world.client(placement=placement), world.looping(9), mode)
            assert any(FRAME in seen.everything for seen in ran.seen)
            assert not any(FRAME in text for text in ran.history)

    def test_an_agent_without_a_system_prompt_is_steered(self, mode: str) -> None:
        (ran,) = self.harness.run(world.client(), replace(world.looping(3), system_prompt=None), mode)
        assert "Check before you say" in ran.seen[0].everything

    def test_a_second_run_on_the_same_object_starts_anew(self, mode: str) -> None:
        first, second = self.harness.run(world.client(), world.looping(5), mode, times=2)
        assert decided(second.log) == decided(first.log)
