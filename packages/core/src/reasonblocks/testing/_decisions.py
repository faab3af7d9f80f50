"""What is decided, and what the model reads of it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from ..render import FRAME
from . import _world as world
from ._checks import decided, misplaced, read, recorded, starts
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
        (ran,) = self.harness.run(world.client(), world.looping(3), mode)  # no placement was requested
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

    def test_standing_rules_are_shown_at_every_call(self, mode: str) -> None:
        """With `standing_rules="run"` every request has the decision's `standing_rules`, wherever guidance is."""
        if not self.harness.caps.ephemeral:
            pytest.skip("guidance stays in this framework's history: standing rules are shown once")
        for placement in sorted(self.harness.caps.placements):
            client = world.client(placement=placement, standing_rules="run")
            (ran,) = self.harness.run(client, world.looping(4), mode)
            assert [seen.everything.count(world.RULE_TEXT) for seen in ran.seen] == [1, 1, 1, 1], placement

    def test_the_tail_is_a_message_of_its_own(self, mode: str) -> None:
        """After tools, guidance at the tail is a separate user message; the tools' outputs are unchanged."""
        if "tail" not in self.harness.caps.placements:
            pytest.skip("this framework has no tail placement")
        script = world.looping(9)
        (ran,) = self.harness.run(world.client(placement="tail"), script, mode)
        outputs = [result.output for turn in script.turns for result in turn.results]
        told = [bool(entry.intervention_texts) for entry in ran.log]
        assert any(told[1:])
        for call, seen in enumerate(ran.seen):
            assert len(seen.roles) == len(seen.texts), "the harness must give `Seen` the role of each text"
            tools = [text for role, text in zip(seen.roles, seen.texts, strict=True) if role == "tool"]
            assert bool(tools) == bool(call)
            assert tools == outputs[call - len(tools) : call]  # `texts` may hold only the new messages
            if told[call]:
                assert (seen.roles[-1], FRAME in seen.texts[-1]) == ("user", True)
                assert call == 0 or seen.texts[-1].startswith(FRAME)  # call 0 follows a user's message and may join it

    def test_a_run_has_the_name_of_its_agent(self, mode: str) -> None:
        """The run's start event has `agent_name`, the agent's name in its framework."""
        client, events = recorded()
        self.harness.run(client, replace(world.looping(2), agent_name="reviewer"), mode)
        assert [event.run.agent_name for event in starts(client, events)] == ["reviewer"]
