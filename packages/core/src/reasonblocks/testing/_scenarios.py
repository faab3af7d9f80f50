"""What is decided, and what the model reads of it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from .._client import ReasonBlocks
from .._render import FRAME
from ..types import Evaluation, Step
from . import _world as world
from ._checks import by_attempt, decided, kept, misplaced, read, recorded, seconds, starts, threads_started, unharmed
from ._golden import Golden, World
from ._harness import Harness
from ._loop import LoopHarness
from ._script import Script, Turn
from ._scripted import Broken, ScriptedEvaluator, Watched


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


class RoutingScenarios:
    """Part of `ConformanceSuite`."""

    harness: ClassVar[Harness]

    def test_a_hard_run_is_routed_and_comes_back(self, mode: str) -> None:
        if self.harness.caps.routing == "none":
            pytest.skip("this framework cannot route")
        hard: dict[str, Any] = {"scorer": by_attempt({6: 0.1}, 0.7), "model_routing": {"SLOW": "strong-model"}}
        (ran,) = self.harness.run(world.client(**hard), world.looping(9), mode)
        assert [seen.model for seen in ran.seen] == ["agent-model"] * 5 + ["strong-model"] * 2 + ["agent-model"] * 2
        assert [entry.model_id for entry in ran.log] == [seen.model for seen in ran.seen]

    def test_a_model_that_cannot_be_built_leaves_the_steering(self, mode: str) -> None:
        if self.harness.caps.routing == "none":
            pytest.skip("this framework cannot route")
        client = world.client(scorer=lambda step: 0.7, model_routing={"SLOW": object()})
        (ran,) = self.harness.run(client, world.looping(9), mode)
        assert {seen.model for seen in ran.seen} == {"agent-model"}
        assert any(entry.fsm_state == "SLOW" and entry.intervention_texts for entry in ran.log)

    def test_an_agent_keeps_its_model_after_a_routed_run(self, mode: str) -> None:
        """A run that ends on a routed call leaves the agent unchanged: the next run begins with the agent's model."""
        if self.harness.caps.routing == "none":
            pytest.skip("this framework cannot route")
        client = world.client(scorer=lambda step: 0.7, model_routing={"SLOW": "strong-model"})
        for ran in self.harness.run(client, world.looping(7), mode, times=2):
            assert [seen.model for seen in ran.seen] == ["agent-model"] * 5 + ["strong-model"] * 2
            assert ran.agent_model in (None, "agent-model")


class FaultScenarios:
    """Part of `ConformanceSuite`."""

    harness: ClassVar[Harness]

    def test_a_model_error_passes_through_after_one_call(self, mode: str) -> None:
        failing = Turn(error=ConnectionError("the model is gone"))
        script = Script(turns=(world.busy_turn(0), failing))
        (ran,) = self.harness.run(world.client(), script, mode)
        kind = type(ran.error).__name__  # the script's own, or the one that a provider's client makes of it
        assert "the model is gone" in str(ran.error)
        assert len(ran.seen) == 2
        assert (ran.log[1].error or "").startswith(kind)
        assert ran.outcome == f"failure: {kind}"

    def test_a_retried_call_keeps_its_decision(self, mode: str) -> None:
        script = world.looping(4)
        turns = (script.turns[0], replace(script.turns[1], failures=1), *script.turns[2:])
        (ran,) = self.harness.run(world.client(), replace(script, turns=turns), mode)
        assert [entry.step for entry in ran.log] == [0, 1, 2, 3]
        assert ran.log[1].attempts == 2
        assert read(ran.seen[1]) == read(ran.seen[2]) != []

    def test_backends_that_are_down_leave_the_agent_alone(self, mode: str) -> None:
        (ran,) = self.harness.run(
            world.client(evaluator=world.Down(), pattern_store=world.Down()), world.looping(), mode
        )
        assert unharmed(ran)
        assert {entry.skipped_reason for entry in ran.log} == {"unavailable"}

    def test_a_slow_store_costs_its_deadline_at_most(self, mode: str) -> None:
        client = world.client(pattern_store=world.Slow(0.2), step_deadline_ms=20)
        (ran,) = self.harness.run(client, world.looping(2), mode)
        assert unharmed(ran)
        assert ran.log[0].overhead_ms < 150

    def test_a_hanging_store_is_switched_off(self, mode: str) -> None:
        store = world.Hanging()
        try:
            (ran,) = self.harness.run(world.client(pattern_store=store, step_deadline_ms=80), world.looping(9), mode)
        finally:
            store.let_go.set()
        assert unharmed(ran)
        assert store.asked == 3

    def test_backends_that_lie_are_not_believed(self, mode: str) -> None:
        lying: dict[str, Any] = {"evaluator": world.LyingEvaluator(), "pattern_store": world.Lying()}
        (ran,) = self.harness.run(world.client(**lying, strict=False), world.looping(), mode)
        assert unharmed(ran)
        assert all(entry.intervention_texts == () for entry in ran.log)

    def test_a_raising_scorer_leaves_the_agent_alone(self, mode: str) -> None:
        def scorer(step: object) -> float:
            raise ValueError("no")

        (ran,) = self.harness.run(world.client(scorer=scorer, strict=False), world.looping(), mode)
        assert unharmed(ran)
        assert [entry.skipped_reason for entry in ran.log] == [None, *["fault"] * 4]

    def test_a_cancelled_run_tells_what_it_did(self) -> None:
        ran = self.harness.run_cancelled(world.client(), world.looping(5), at=2)
        assert [entry.step for entry in ran.log] == [0, 1, 2]
        assert (ran.final, ran.outcome) == (None, None)

    def test_a_fault_in_deciding_a_call_leaves_the_agent_alone(self, mode: str) -> None:
        """If `begin_step` raises, the adapter's guard handles it, and the agent runs as if it were not steered."""
        client = world.made(Broken, broken=("begin_step", "abegin_step", "begin_flow"), strict=False)
        (ran,) = self.harness.run(client, world.looping(4), mode)
        assert (ran.error, len(ran.seen)) == (None, 4)
        assert not any(FRAME in seen.everything for seen in ran.seen)

    def test_a_fault_in_recording_an_answer_leaves_the_agent_alone(self, mode: str) -> None:
        """If `end_step` raises, the adapter's guard handles it, and each answer reaches the agent after one call."""
        client = world.made(Broken, broken=("end_step",), strict=False)
        (ran,) = self.harness.run(client, world.looping(4), mode)
        assert (ran.error, len(ran.seen)) == (None, 4)


GROWING = 2_000
THREADED = 100
"""The number of calls over which threads are counted."""
FEW_THREADS = 10
"""Allowed threads: workers for a caller's callables and an event loop's own pool, none started for each call."""
KEPT_RUNS = 256
"""Finished runs that a steering object keeps for its user (`Runs`)."""
SHORT_RUNS = KEPT_RUNS + 44
MIN_LET_GO = 4


def _changing(calls: int, threads: list[int] | None = None) -> ReasonBlocks:
    """Return a client whose monitor also speaks late in the run: the cap leaves its last text for the last tenth.

    `threads` gets the number of threads at each completed step.
    """
    late = [world.speaking(at) if at % (calls // 5) == calls // 10 else Evaluation() for at in range(calls)]

    def scorer(step: Step) -> float:
        if threads is not None:
            threads.append(threading.active_count())
        return 0.4

    return world.client(evaluator=ScriptedEvaluator(late), scorer=scorer)


class CostScenarios:
    """Part of `ConformanceSuite`."""

    harness: ClassVar[Harness]
    long_run: ClassVar[int]
    short_runs: ClassVar[int] = SHORT_RUNS
    kept_runs: ClassVar[int] = KEPT_RUNS

    def test_the_adapters_own_work_does_not_grow(self) -> None:
        step = self.harness.handwork(world.client(calls=GROWING))
        early = seconds(step, range(50))
        seconds(step, range(50, GROWING - 50))
        held = kept(step, range(GROWING - 50, GROWING))
        late = seconds(step, range(GROWING, GROWING + 50))
        assert late < 10 * early  # quadratic growth would be some 40 times
        assert held < 1_000_000

    def test_a_long_run_is_steered_to_its_end(self) -> None:
        mode = self.harness.modes[0]
        script = world.looping(self.long_run)
        threads: list[int] = []
        (ran,) = self.harness.run(_changing(self.long_run, threads), script, mode)
        (core,) = LoopHarness(self.harness.caps).run(_changing(self.long_run), script, "sync")
        assert decided(ran.log) == decided(core.log)
        assert [read(seen) for seen in ran.seen] == [read(seen) for seen in core.seen]
        assert ran.outcome == "success"
        assert max(threads[10:]) <= max(threads[:10]) + FEW_THREADS  # a pool may fill, but none grows with the run

    def test_sessions_of_ended_runs_are_let_go(self) -> None:
        """After `short_runs` runs, only the sessions of the newest finished runs are alive, as documented."""
        client = world.made(Watched, census=self.short_runs)
        self.harness.run(client, world.looping(1), self.harness.modes[0], times=self.short_runs)
        assert client.alive is not None, f"the harness made fewer than {self.short_runs} sessions"
        assert client.alive <= self.kept_runs + 2  # plus the one that begins and the one that ends

    def test_a_call_starts_no_thread(self) -> None:
        """The adapter's own work for 100 calls starts a handful of threads at most, ended ones counted."""
        step = self.harness.handwork(world.client(calls=THREADED))
        with threads_started() as started:
            for call in range(THREADED):
                step(call)
        assert len(started) <= FEW_THREADS
