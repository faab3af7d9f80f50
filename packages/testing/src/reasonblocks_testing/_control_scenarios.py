"""Defines the scenarios of control: observing, stopping, replacing a text, operators' notes, and a second look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from reasonblocks.events import RunFinish
from reasonblocks.exceptions import RunStopped
from reasonblocks.render import FRAME
from reasonblocks.types import AdviceRequest, Budget, Doubt, Evaluation, Injection, Note

from . import _world as world
from ._checks import DECISIONS, GUIDANCE, decisions_of, guidance_of_parts
from ._loop import LoopHarness
from ._scripted import RecordingSink, ScriptedEvaluator, ScriptedMailbox
from .harness import Harness
from .script import Script, Turn

NO_STOP = "this framework cannot end a run before its next call"
NO_SECOND_LOOK = "this framework cannot continue a run that has ended"
DOUBTED = "The work was declared done, and nothing was run since. Run the tests."
TOUCHED = (
    "a request of the observed run (left) differs from that of a run without steering (right): with"
    " decision.mode == 'observe' leave the request as it is, and switch no model (the harness: `run_unsteered` runs the"
    " same agent without a steering object, and `Seen.raw` holds the whole request)"
)
NOTES = {0: Note(id="first", text="Leave the fixtures alone."), 2: Note(id="second", text="Use the staging host.")}
"""Notes of an operator by the call before which each arrives; the mailbox keeps them."""
TOLD = (
    "each note must be in the request of one call only: pass `begin_step` the call's"
    " own key, put decision.guidance into this request and no other, and pass the call's outcome to `end_step`"
)

ADVICE = "Read the log of attempt"
ADVISED = (
    "each text of a monitor must end in the advice that was asked for it: `begin_flow` asks by itself, unless the"
    " adapter's AdapterCaps say that its hooks may not wait (`advisor=False`)"
)
LAST = "This is the last call"
LEFT = ("4 of 4 calls are left", "3 calls are left", "2 of 4 calls are left", LAST)
"""Parts of what is said before each call of a budget of 4."""
BUDGET = "each request must have its own line of the budget: put the guidance of its decision into it, and no other"


def enough(run: Any) -> str | None:
    """Return a reason to end the run before its call 3; the newest entry belongs to the next call."""
    return "enough" if run.step_log[-1].step >= 3 else None


def changed(injection: Injection, run: object) -> str | None:
    """Drop standing rules, and change all other texts."""
    return None if injection.source == "E3Injection" else f"Changed: {injection.text}"


def done_twice() -> Script:
    """Return a script whose agent declares the work done, and does so again after a second look."""
    script = world.looping(3)
    return replace(script, turns=(*script.turns, Turn(text="Now it is really done.")))


def doubting() -> ScriptedEvaluator:
    """Return an evaluator that doubts both ends of `done_twice`."""
    doubt = Evaluation(
        fired=("verification_skip",),
        scores={"verification_skip": 1.0},
        composite=0.3,
        failure_type="unverified",
        doubts=(Doubt(monitor="verification_skip", text=DOUBTED),),
    )
    return ScriptedEvaluator([Evaluation(), Evaluation(), doubt, doubt])


class ControlScenarios:
    """The part of `ConformanceSuite` that tests the controls of a run: its user's, and its operators' notes."""

    harness: ClassVar[Harness]

    def test_an_observed_run_sends_the_requests_of_an_unsteered_one(self, mode: str) -> None:
        """With `mode="observe"` each request equals that of a run without steering, in every placement."""
        script, caps = world.looping(9), self.harness.caps
        plain = list(self.harness.run_unsteered(script, mode))
        routing = {} if caps.routing == "none" else {"model_routing": {"SLOW": "strong-model"}}
        for placement in sorted(caps.placements):
            for rules in ("first_call", "run"):
                options: dict[str, Any] = {"placement": placement, "standing_rules": rules, **routing}
                client = world.client(mode="observe", scorer=lambda step: 0.7, **options)
                (ran,) = self.harness.run(client, script, mode)
                assert list(ran.seen) == plain, f"placement={placement!r}, standing_rules={rules!r}: {TOUCHED}"
                assert any(entry.withheld_texts for entry in ran.log), "nothing was withheld: no entry has a text"

    def test_observing_records_what_steering_would_say(self, mode: str) -> None:
        """The entries of an observed run have the texts and routes of a steered run as withheld."""
        hard: dict[str, Any] = {"scorer": lambda step: 0.7, "model_routing": {"SLOW": "strong-model"}}
        (ran,) = self.harness.run(world.client(mode="observe", **hard), world.looping(9), mode)
        (core,) = LoopHarness(self.harness.caps).run(world.client(**hard), world.looping(9), "sync")
        withheld = [(entry.withheld_sources, entry.withheld_texts, entry.withheld_route) for entry in ran.log]
        told = [(entry.injection_sources, entry.intervention_texts, entry.route) for entry in core.log]
        assert withheld == told, f"what was withheld (left) differs from what steering tells (right): {DECISIONS}"
        assert {(entry.mode, entry.injections, entry.route) for entry in ran.log} == {("observe", (), None)}
        assert ran.outcome == "success"

    def test_a_stopped_run_makes_no_further_call(self, mode: str) -> None:
        """The run ends before the call for which `stop_when` returns a reason, with that reason as its outcome."""
        if not self.harness.caps.stop:
            pytest.skip(NO_STOP)
        sink = RecordingSink()
        client = world.client(stop_when=enough, sinks=[sink])
        (ran,) = self.harness.run(client, world.looping(6), mode)
        client.close()
        assert len(ran.seen) == 3, (
            "the model was called after the run was stopped: end the agent if `begin_flow` returns a decision with a"
            " `stop`, or let the `RunStopped` of `begin_step` pass"
        )
        assert ran.outcome == "stopped: enough", "the session sets the outcome: read `Ran.outcome` from the run"
        assert ran.error is None or isinstance(ran.error, RunStopped), "a stopped run raises RunStopped, or nothing"
        assert [entry.step for entry in ran.log] == [0, 1, 2], "a call that is not made has no entry: call no end_step"
        assert ran.final is not None
        assert (ran.final.stop, ran.final.gate_decision) == ("enough", "final")
        finishes = [event.outcome for event in sink.events if isinstance(event, RunFinish)]
        assert finishes == ["stopped: enough"], "a stopped run sends one finish event"

    def test_a_budget_is_told_and_ends_the_run(self, mode: str) -> None:
        """Each request has what is left of the budget, the last one that it is the last, and no further call is made.

        A framework that cannot end a run goes on, and says nothing of a last call.
        """
        (ran,) = self.harness.run(world.client(budget=Budget(calls=4, every_call=True)), world.looping(6), mode)
        if not self.harness.caps.stop:
            assert len(ran.seen) == 6
            assert not any(LAST in seen.everything for seen in ran.seen)
            return
        assert len(ran.seen) == 4, "the budget has 4 calls: end the agent if a decision has a `stop`"
        told = [[part for part in LEFT if part in "\n".join(guidance_of_parts(seen))] for seen in ran.seen]
        if self.harness.caps.ephemeral:
            assert told == [[part] for part in LEFT], BUDGET
        else:
            assert [texts[-1:] for texts in told] == [[part] for part in LEFT], BUDGET
        assert ran.outcome == "stopped: budget"
        assert ran.error is None or isinstance(ran.error, RunStopped), "a stopped run raises RunStopped, or nothing"

    def test_a_text_can_be_replaced_or_dropped(self, mode: str) -> None:
        """Requests contain the texts that `on_injection` returns, and none that it drops."""
        (ran,) = self.harness.run(world.client(on_injection=changed), world.looping(9), mode)
        (core,) = LoopHarness(self.harness.caps).run(world.client(on_injection=changed), world.looping(9), "sync")
        assert decisions_of(ran.log) == decisions_of(core.log), DECISIONS
        assert [guidance_of_parts(seen) for seen in ran.seen] == [guidance_of_parts(seen) for seen in core.seen], (
            GUIDANCE
        )
        everything = "\n".join(seen.everything for seen in ran.seen)
        assert (world.RULE_TEXT in everything, f"{FRAME}\nChanged: Step" in everything) == (False, True), GUIDANCE

    def test_an_advisor_is_asked_for_each_text(self, mode: str) -> None:
        """A monitor's text has its fact and the advice, in the request; the advisor is asked for it, and only then."""
        asked: list[AdviceRequest] = []

        def advise(request: AdviceRequest) -> str:
            asked.append(request)
            return f"{ADVICE} {len(asked)}"

        (ran,) = self.harness.run(world.client(advisor=advise), world.looping(9), mode)
        told = [text for entry in ran.log for text in entry.intervention_texts if world.RULE_TEXT not in text]
        if not self.harness.caps.advisor:
            assert (asked, any(ADVICE in text for text in told)) == ([], False), "this adapter declares no advisor"
            return
        assert len(asked) == len(told) > 1, ADVISED
        assert [f"{ADVICE} {at}" in text for at, text in enumerate(told, 1)] == [True] * len(told), ADVISED
        everything = "\n".join(seen.everything for seen in ran.seen)
        assert all(text in everything for text in told), GUIDANCE

    def test_a_note_of_an_operator_is_told_once(self, mode: str) -> None:
        """A note is in the request of one call, although the mailbox keeps it, and that call's entry has its id."""
        (ran,) = self.harness.run(world.client(mailbox=ScriptedMailbox(NOTES)), world.looping(4), mode)
        assert [entry.note_ids for entry in ran.log] == [("first",), (), ("second",), ()], TOLD
        sources = ["OperatorInjection" in entry.injection_sources for entry in ran.log]
        assert sources == [True, False, True, False], DECISIONS
        for at, note in NOTES.items():
            told = [seen.everything.count(note.text) for seen in ran.seen]
            if self.harness.caps.ephemeral:
                assert told == [int(call == at) for call in range(4)], TOLD
                assert not any(note.text in text for text in ran.history), "the note remained in the history"
            else:
                assert (told.index(1), max(told)) == (at, 1), TOLD

    def test_an_observed_run_is_told_no_note(self, mode: str) -> None:
        """A run with `mode="observe"` asks for no note, and its requests stay those of an unsteered run."""
        script = world.looping(4)
        client = world.client(mode="observe", mailbox=ScriptedMailbox(NOTES))
        (ran,) = self.harness.run(client, script, mode)
        assert list(ran.seen) == list(self.harness.run_unsteered(script, mode)), TOUCHED
        assert [entry.note_ids for entry in ran.log] == [()] * 4, DECISIONS

    def test_a_second_look_is_one_more_call(self, mode: str) -> None:
        """An agent that declares doubtful work done gets one more call with the doubt, but only once."""
        if not self.harness.caps.second_look:
            pytest.skip(NO_SECOND_LOOK)
        (plain,) = self.harness.run(world.client(evaluator=doubting()), done_twice(), mode)
        assert len(plain.seen) == 3, "without `second_look` a run ends with its first answer without tools"
        sink = RecordingSink()
        client = world.client(evaluator=doubting(), second_look="unchecked", sinks=[sink])
        (ran,) = self.harness.run(client, done_twice(), mode)
        client.close()
        assert len(ran.seen) == len(ran.log) == 4, (
            "the run must go on with one call more: ask `second_look_flow` when the agent has ended by itself, and"
            " continue the agent if it returns a decision"
        )
        assert DOUBTED in "\n".join(guidance_of_parts(ran.seen[3])), (
            "the request of the second look must hold the doubt's text"
        )
        if self.harness.caps.ephemeral:
            assert not any(FRAME in text for text in ran.history), "the doubt's text remained in the history"
        (text,) = ran.log[3].intervention_texts
        assert DOUBTED in text, DECISIONS
        assert (ran.outcome, ran.error) == ("success", None)
        assert ran.final is not None
        assert ran.final.step == 4, "the final step is that of the second look"
        finishes = [event.outcome for event in sink.events if isinstance(event, RunFinish)]
        assert finishes == ["success"], "a run with a second look sends one finish event, at its end"
