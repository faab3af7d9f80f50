"""What goes wrong, in the model, in a backend, or by a cancellation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ..render import FRAME
from . import _world as world
from ._checks import read, unharmed
from ._harness import Harness
from ._script import Script, Turn
from ._watched import Broken


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
        client = world.made(Broken, broken=("begin_step", "abegin_step"), strict=False)
        (ran,) = self.harness.run(client, world.looping(4), mode)
        assert (ran.error, len(ran.seen)) == (None, 4)
        assert not any(FRAME in seen.everything for seen in ran.seen)

    def test_a_fault_in_recording_an_answer_leaves_the_agent_alone(self, mode: str) -> None:
        """If `end_step` raises, the adapter's guard handles it, and each answer reaches the agent after one call."""
        client = world.made(Broken, broken=("end_step",), strict=False)
        (ran,) = self.harness.run(client, world.looping(4), mode)
        assert (ran.error, len(ran.seen)) == (None, 4)
