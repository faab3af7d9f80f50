"""Scenarios of decisions and guidance, of routing, and of faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from reasonblocks.render import FRAME
from reasonblocks.types import Escalate, Evaluation

from . import _world as world
from ._checks import (
    DECISIONS,
    GUIDANCE,
    HARMED,
    MISPLACED,
    NO_GUIDANCE,
    READING,
    by_attempt,
    decisions_of,
    find_misplaced,
    guidance_of_parts,
    is_unharmed,
    recording_client,
    starts,
)
from ._golden import Golden, World
from ._loop import LoopHarness
from ._scripted import FaultyClient, ScriptedEvaluator
from .harness import Harness
from .script import Script, Turn

NO_TAIL = "this framework has no tail placement"
NO_ROUTING = "this framework cannot route"
KEPT_MODEL = (
    "each run must call 'agent-model' five times and then 'strong-model', and leave the agent with 'agent-model':"
    " route with a model for one call, and do not change the agent object"
)


class DecisionScenarios:
    """Part of `ConformanceSuite`: decisions equal the core's, and their guidance reaches the model unchanged."""

    harness: ClassVar[Harness]

    def test_golden_runs_decide_as_written(self, golden: Golden, mode: str) -> None:
        """The adapter's step log equals the golden run, in every placement."""
        for placement in sorted(self.harness.caps.placements):
            answers = World(golden)
            client = golden.client(answers, placement=placement)
            (ran,) = self.harness.run(client, golden.script, mode, resume_at=golden.resumes)
            told_once = not self.harness.caps.ephemeral
            found = golden.differences(ran.log, ran.final, answers, told_once=told_once)
            assert found == [], f"with placement={placement!r} the step log differs from {golden.name}.jsonl: {READING}"
            placements = {entry.placement for entry in ran.log}
            assert placements == {placement}, "the adapter changed the requested placement: pass it on as it is"
            assert find_misplaced(ran) == [], MISPLACED

    def test_the_model_reads_the_guidance_that_the_core_decides(self, mode: str) -> None:
        """Every request holds the same guidance as that of a hand-written loop, in every placement."""
        for placement in sorted(self.harness.caps.placements):
            (ran,) = self.harness.run(world.client(placement=placement), world.looping(9), mode)
            (core,) = LoopHarness(self.harness.caps).run(world.client(placement=placement), world.looping(9), "sync")
            assert decisions_of(ran.log) == decisions_of(core.log), DECISIONS
            assert [guidance_of_parts(seen) for seen in ran.seen] == [guidance_of_parts(seen) for seen in core.seen], (
                GUIDANCE
            )
            assert find_misplaced(ran) == [], MISPLACED

    def test_guidance_at_the_tail_reaches_the_call(self, mode: str) -> None:
        """Without a requested placement, guidance is in the last message of the request."""
        if "tail" not in self.harness.caps.placements:
            pytest.skip(NO_TAIL)
        (ran,) = self.harness.run(world.client(), world.looping(3), mode)  # no placement was requested
        last, system = ran.seen[0].texts[-1], ran.seen[0].system
        assert FRAME in last, "call 0 has no guidance in its last message: append decision.guidance to the request"
        assert FRAME not in system, "call 0 has guidance in its system prompt, though decision.placement is 'tail'"

    def test_history_stays_clean(self, mode: str) -> None:
        """Guidance is in requests only, and never in the history that the framework keeps."""
        placements = self.harness.caps.placements if self.harness.caps.ephemeral else ()
        for placement in sorted(placements):
            (ran,) = self.harness.run(world.client(placement=placement), world.looping(9), mode)
            assert any(FRAME in seen.everything for seen in ran.seen), f"placement={placement!r}: {NO_GUIDANCE}"
            kept = [text for text in ran.history if FRAME in text]
            assert kept == [], (
                f"placement={placement!r}: guidance remained in the history: add it to a copy of the request,"
                " in a hook whose changes the framework does not keep"
            )

    def test_an_agent_without_a_system_prompt_is_steered(self, mode: str) -> None:
        """The first request holds the standing rule, although the agent has no system prompt."""
        (ran,) = self.harness.run(world.client(), replace(world.looping(3), system_prompt=None), mode)
        assert "Check before you say" in ran.seen[0].everything, (
            "call 0 has no guidance: the agent's system prompt is None here, which `render.place` accepts"
        )

    def test_a_second_run_on_the_same_object_starts_anew(self, mode: str) -> None:
        """Two runs of one script on one agent get the same decisions."""
        first, second = self.harness.run(world.client(), world.looping(5), mode, times=2)
        assert decisions_of(second.log) == decisions_of(first.log), (
            "the second run was decided differently from the first: begin a new session for each run, and keep no state"
            " of a run in the steering object (the harness: start each run with an empty history)"
        )

    def test_standing_rules_are_shown_at_every_call(self, mode: str) -> None:
        """With `standing_rules="run"` every request has the decision's `standing_rules`, wherever guidance is."""
        if not self.harness.caps.ephemeral:
            pytest.skip("guidance remains in this framework's history, so standing rules are shown once")
        for placement in sorted(self.harness.caps.placements):
            client = world.client(placement=placement, standing_rules="run")
            (ran,) = self.harness.run(client, world.looping(4), mode)
            shown = [seen.everything.count(world.RULE_TEXT) for seen in ran.seen]
            assert shown == [1, 1, 1, 1], (
                f"placement={placement!r}: every request must hold the standing rule once: put decision.standing_rules"
                " into the system prompt of every request, also if there is no guidance"
            )

    def test_the_tail_adds_no_message(self, mode: str) -> None:
        """Guidance at the tail follows the text of the last message, after a blank line; nothing else changes."""
        if "tail" not in self.harness.caps.placements:
            pytest.skip(NO_TAIL)
        script = world.looping(9)
        (ran,) = self.harness.run(world.client(placement="tail"), script, mode)
        plain = self.harness.run_unsteered(script, mode)
        assert any(entry.intervention_texts for entry in ran.log[1:]), f"nothing was injected after call 0: {READING}"
        for call, (entry, seen, without) in enumerate(zip(ran.log, ran.seen, plain, strict=True)):
            assert len(seen.roles) == len(seen.texts), "the harness must give `Seen` the role of each text"
            assert (seen.roles, seen.texts[:-1]) == (without.roles, without.texts[:-1]), (
                f"call {call}: the messages differ from those of a run without steering: add guidance to a copy of the"
                " last message (`render.with_guidance`), because some providers refuse another message after it"
            )
            added = f"\n\n{FRAME}" if entry.intervention_texts else ""
            assert seen.texts[-1].startswith(f"{without.texts[-1]}{added}"), (
                f"call {call}: the last message must keep its text, and the guidance follows after a blank line"
            )

    def test_a_run_has_the_name_of_its_agent(self, mode: str) -> None:
        """The run's start event has `agent_name`, the agent's name in its framework."""
        client, events = recording_client()
        self.harness.run(client, replace(world.looping(2), agent_name="reviewer"), mode)
        names = [event.run.agent_name for event in starts(client, events)]
        assert names == ["reviewer"], (
            "the run's start event has another agent name: pass the agent's name to `options.session(agent_name=...)`"
            " (the harness: name the agent `script.agent_name`)"
        )


class RoutingScenarios:
    """Part of `ConformanceSuite`: calls go to the routed model, and only those."""

    harness: ClassVar[Harness]

    def test_a_hard_run_is_routed_and_comes_back(self, mode: str) -> None:
        """Calls in SLOW go to the model that is mapped to it; the calls before and after go to the agent's own."""
        if self.harness.caps.routing == "none":
            pytest.skip(NO_ROUTING)
        hard: dict[str, Any] = {"scorer": by_attempt({6: 0.1}, 0.7), "model_routing": {"SLOW": "strong-model"}}
        (ran,) = self.harness.run(world.client(**hard), world.looping(9), mode)
        models = [seen.model for seen in ran.seen]
        assert models == ["agent-model"] * 5 + ["strong-model"] * 2 + ["agent-model"] * 2, (
            "calls went to other models (left) than decided: use rb.model_routing[decision.route] for this one call,"
            " and the agent's own model if decision.route is None"
        )
        assert [entry.model_id for entry in ran.log] == models, (
            "the step log names other models than those that were called: report the called model as StepOutcome.model"
        )

    def test_a_stuck_run_is_escalated_and_comes_back(self, mode: str) -> None:
        """The calls of an escalation go to its model; those before and after go to the agent's own.

        It begins when the tenth value of a series has been tried in vain.
        """
        if self.harness.caps.routing == "none":
            pytest.skip(NO_ROUTING)
        quiet = ScriptedEvaluator([Evaluation()] * 14)
        client = world.client(evaluator=quiet, escalate=Escalate(model="strong-model", after=0, dwell=2, times=1))
        (ran,) = self.harness.run(client, world.looping(14), mode)
        models = [seen.model for seen in ran.seen]
        assert models == ["agent-model"] * 10 + ["strong-model"] * 2 + ["agent-model"] * 2, (
            "calls went to other models (left) than decided: rb.model_routing has the model of an escalation, too, and"
            ' the decisions of its calls have the route "ESCALATE"'
        )
        assert [entry.route for entry in ran.log] == [None] * 10 + ["ESCALATE"] * 2 + [None] * 2, DECISIONS

    def test_a_model_that_cannot_be_built_leaves_the_steering(self, mode: str) -> None:
        """If the mapped model is unusable, the agent's own model is called, and guidance continues."""
        if self.harness.caps.routing == "none":
            pytest.skip(NO_ROUTING)
        client = world.client(scorer=lambda step: 0.7, model_routing={"SLOW": object()})
        (ran,) = self.harness.run(client, world.looping(9), mode)
        assert {seen.model for seen in ran.seen} == {"agent-model"}, (
            "model_routing maps SLOW to a plain object(): call the agent's own model if the mapped one cannot be built"
        )
        assert any(entry.fsm_state == "SLOW" and entry.intervention_texts for entry in ran.log), (
            "nothing was injected in SLOW: a route that fails must not end the guidance. Build the model within"
            " `session.routing(decision.route)`, after the guidance is placed"
        )

    def test_an_agent_keeps_its_model_after_a_routed_run(self, mode: str) -> None:
        """A run that ends on a routed call leaves the agent unchanged: the next run begins with the agent's model."""
        if self.harness.caps.routing == "none":
            pytest.skip(NO_ROUTING)
        client = world.client(scorer=lambda step: 0.7, model_routing={"SLOW": "strong-model"})
        for ran in self.harness.run(client, world.looping(7), mode, times=2):
            models = [seen.model for seen in ran.seen]
            assert models == ["agent-model"] * 5 + ["strong-model"] * 2, KEPT_MODEL
            assert ran.agent_model in (None, "agent-model"), KEPT_MODEL


class FaultScenarios:
    """Part of `ConformanceSuite`: a fault of the model, a backend or the adapter does not change the agent's run."""

    harness: ClassVar[Harness]

    def test_a_model_error_passes_through_after_one_call(self, mode: str) -> None:
        """An exception of the model reaches the caller; it is in the step log and in the run's outcome."""
        failing = Turn(error=ConnectionError("the model is gone"))
        script = Script(turns=(world.busy_turn(0), failing))
        (ran,) = self.harness.run(world.client(), script, mode)
        kind = type(ran.error).__name__  # the script's own class, or that of a provider's client
        assert "the model is gone" in str(ran.error), (
            "the agent did not raise the model's ConnectionError: let it pass (the harness: return it as `Ran.error`)"
        )
        assert len(ran.seen) == 2, "the failing call was repeated, or the run continued: never call the model again"
        assert (ran.log[1].error or "").startswith(kind), (
            f"entry 1 does not have the error {kind}: call `session.end_step` with `failure_of(exc, ...)` and raise"
        )
        assert ran.outcome == f"failure: {kind}", "call `session.finish` with 'failure: ' and the exception's class"

    def test_a_retried_call_keeps_its_decision(self, mode: str) -> None:
        """A call that the framework retries is one entry with two attempts, and both requests hold its guidance."""
        script = world.looping(4)
        turns = (script.turns[0], replace(script.turns[1], failures=1), *script.turns[2:])
        (ran,) = self.harness.run(world.client(), replace(script, turns=turns), mode)
        assert [entry.step for entry in ran.log] == [0, 1, 2, 3], (
            "call 1 was retried once, and 4 calls must give 4 entries: both attempts need the same `StepInput.key`"
            " (a framework that repeats no calls: declare this in `expected_failures`)"
        )
        assert ran.log[1].attempts == 2, "entry 1 must count both attempts: call `end_step` for the failed one, too"
        assert guidance_of_parts(ran.seen[1]) == guidance_of_parts(ran.seen[2]) != [], (
            "both attempts of call 1 must hold the same guidance"
        )

    def test_backends_that_are_down_leave_the_agent_alone(self, mode: str) -> None:
        """If evaluator and store are unavailable, the run succeeds without guidance, and each entry has the reason."""
        down: dict[str, Any] = {"evaluator": world.Unreachable(), "pattern_store": world.Unreachable()}
        (ran,) = self.harness.run(world.client(**down), world.looping(), mode)
        assert is_unharmed(ran), HARMED
        assert {entry.skipped_reason for entry in ran.log} == {"unavailable"}, (
            "with all backends down each entry must have skipped_reason 'unavailable': call `begin_step` at every call"
        )

    def test_a_slow_store_costs_its_deadline_at_most(self, mode: str) -> None:
        """A store that takes 200 ms does not hold up a step whose deadline is 20 ms."""
        client = world.client(pattern_store=world.SlowStore(0.2), step_deadline_ms=20)
        (ran,) = self.harness.run(client, world.looping(2), mode)
        assert is_unharmed(ran), HARMED
        assert ran.log[0].overhead_ms < 150, (
            "call 0 took that many ms, though step_deadline_ms is 20: leave waiting for backends to the session"
        )

    def test_a_hanging_store_is_switched_off(self, mode: str) -> None:
        """A store that never answers is asked three times, and then no longer."""
        store = world.HangingStore()
        try:
            (ran,) = self.harness.run(world.client(pattern_store=store, step_deadline_ms=80), world.looping(9), mode)
        finally:
            store.released.set()
        assert is_unharmed(ran), HARMED
        assert store.asked == 3, (
            "the hanging store must be asked 3 times and then be switched off: keep one session for the whole run"
        )

    def test_backends_that_lie_are_not_believed(self, mode: str) -> None:
        """Answers of the wrong type are dropped: the run succeeds, and nothing is injected."""
        invalid: dict[str, Any] = {"evaluator": world.InvalidEvaluator(), "pattern_store": world.InvalidStore()}
        (ran,) = self.harness.run(world.client(**invalid, strict=False), world.looping(), mode)
        assert is_unharmed(ran), HARMED
        texts = [text for entry in ran.log for text in entry.intervention_texts]
        assert texts == [], "text was injected although every backend answered nonsense: inject only decision.guidance"

    def test_a_raising_scorer_leaves_the_agent_alone(self, mode: str) -> None:
        """If the caller's scorer raises, the run succeeds, and each entry after call 0 has the reason."""

        def scorer(step: object) -> float:
            raise ValueError("no")

        (ran,) = self.harness.run(world.client(scorer=scorer, strict=False), world.looping(), mode)
        assert is_unharmed(ran), HARMED
        assert [entry.skipped_reason for entry in ran.log] == [None, *["fault"] * 4], (
            "each call after call 0 must have skipped_reason 'fault': pass the completed step to `begin_step`"
        )

    def test_a_cancelled_run_tells_what_it_did(self) -> None:
        """A run that is cancelled during call 2 has three entries, no final entry and no outcome."""
        ran = self.harness.run_cancelled(world.client(), world.looping(5), at=2)
        assert [entry.step for entry in ran.log] == [0, 1, 2], (
            "the run was cancelled during call 2: its step log must have the entries 0, 1 and 2"
        )
        assert (ran.final, ran.outcome) == (None, None), (
            "a cancelled run has neither a final entry nor an outcome: do not call `finish` on CancelledError"
        )

    def test_a_fault_in_deciding_a_call_leaves_the_agent_alone(self, mode: str) -> None:
        """If `begin_step` raises, the adapter's guard handles it, and the agent runs as if it were not steered."""
        client = world.client_of(FaultyClient, faulty=("begin_step", "abegin_step", "begin_flow"), strict=False)
        (ran,) = self.harness.run(client, world.looping(4), mode)
        assert (ran.error, len(ran.seen)) == (None, 4), (
            "`begin_step` raised: the agent must run as if it were not steered, here 4 calls without an error. Call it"
            " within `session.guard(...)`"
        )
        steered = [call for call, seen in enumerate(ran.seen) if FRAME in seen.everything]
        assert steered == [], "these calls have guidance although no decision was made: keep none of another call"

    def test_a_fault_in_recording_an_answer_leaves_the_agent_alone(self, mode: str) -> None:
        """If `end_step` raises, the adapter's guard handles it, and each answer reaches the agent after one call."""
        client = world.client_of(FaultyClient, faulty=("end_step",), strict=False)
        (ran,) = self.harness.run(client, world.looping(4), mode)
        assert (ran.error, len(ran.seen)) == (None, 4), (
            "`end_step` raised: each answer must reach the agent after one call, here 4 calls without an error. Call it"
            " within `session.guard(...)`, and return the answer after the guard"
        )
