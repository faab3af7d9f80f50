"""Random sequences of calls on a session: what was decided to end, to observe or to look at again stays so."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks
from reasonblocks.events import RunFinish, StepEvent
from reasonblocks.exceptions import RunStopped
from reasonblocks.types import Doubt, Evaluation, StepDecision, StepInput, StepOutcome, Usage
from reasonblocks_testing import RecordingSink
from tests.core.world import begin, called, client, found, speaks, step, through_json

quick = settings(derandomize=True, deadline=None, database=None, max_examples=150)
ACTIONS = ("begin", "again", "keyless", "auxiliary", "end", "restore", "look", "finish")


def stopping(number: int) -> Any:
    return lambda view: "enough" if view.step_log[-1].step >= number else None


# ------------------------------------------------------------ random sequences


class Play:
    """Plays actions on a run, as a framework with retries, pauses and other processes does."""

    def __init__(self, rb: ReasonBlocks, **options: Any) -> None:
        self.rb, self.options = rb, options
        self.session = rb.session(run_id="r", **options)
        self.number = 0
        self.open: StepDecision | None = None
        self.stopped, self.looks, self.decisions = False, 0, list[StepDecision]()

    def act(self, action: str) -> None:
        getattr(self, f"_{action}")()

    def _decide(self, key: str | None) -> None:
        try:
            decision = self.open = begin(self.session, self.number, key=key)
            self.decisions.append(decision)
        except RunStopped:
            self.stopped = True

    def _begin(self) -> None:
        self._end()
        self._decide(f"call-{self.number}")

    def _again(self) -> None:
        if self.open is not None:
            self._decide(self.open.key)

    def _keyless(self) -> None:
        if self.open is None:
            self._decide(None)

    def _auxiliary(self) -> None:
        decision = self.session.begin_step(StepInput(auxiliary=True))
        self.session.end_step(decision, StepOutcome(text="a plan", usage=Usage(input=1)))

    def _end(self) -> None:
        if self.open is not None:
            self.session.end_step(self.open, called(self.number))
            self.number, self.open = self.number + 1, None

    def _restore(self) -> None:
        kept = through_json(self.session.trace.snapshot())
        self.session.pause()
        self.session = self.rb.session(snapshot=kept, **self.options)

    def _look(self) -> None:
        self._end()
        completed = step(self.number - 1) if self.number else None
        decision = self.session.second_look(StepInput(key=f"call-{self.number}", completed=completed))
        if decision is not None and not decision.replayed:
            self.looks += 1
        self.open = decision or self.open

    def _finish(self) -> None:
        self.session.finish(completed=step(self.number - 1) if self.number else None)


@quick
@given(st.lists(st.sampled_from(ACTIONS), max_size=24), st.integers(1, 4))
def test_a_stopped_run_stays_stopped_and_its_last_step_is_judged_once(actions: list[str], number: int) -> None:
    sink = RecordingSink()
    rb = client(stop_when=stopping(number), sinks=[sink])
    play_ = Play(rb)
    outcomes: list[str | None] = []
    for action in actions:
        if outcomes and outcomes[-1] == "success":
            break  # a framework begins no call after the end
        play_.act(action)
        outcomes.append(play_.session.outcome)
        if play_.stopped:
            assert play_.session.outcome == "stopped: enough"
            assert play_.session.final is not None
    rb.close()
    if play_.stopped:
        finishes = [event.outcome for event in sink.events if isinstance(event, RunFinish)]
        assert finishes == ["stopped: enough"]
        finals = [event for event in sink.events if isinstance(event, StepEvent) and event.metadata.get("final")]
        assert len(finals) == 1
        records = [record.step for record in play_.session.trace.state.steps]
        assert records == sorted(set(records))


@quick
@given(st.lists(st.sampled_from(ACTIONS), max_size=24))
def test_a_run_has_at_most_one_second_look(actions: list[str]) -> None:
    doubt = Evaluation(doubts=(Doubt(monitor="verification_skip", text="Nothing was run. Run it."),))
    play_ = Play(client(*[doubt] * 30, second_look="unchecked"))
    for action in actions:
        if play_.session.outcome is not None:
            break
        play_.act(action)
        assert play_.looks <= 1
    records = [record.step for record in play_.session.trace.state.steps]
    assert records == sorted(set(records))


@quick
@given(st.lists(st.sampled_from(ACTIONS), max_size=20), st.integers(0, 19))
def test_whatever_is_restored_as_observed_reaches_no_call(actions: list[str], switch: int) -> None:
    rb = client(
        *[speaks(f"Text {at}.", monitor="m") for at in range(30)],
        store=lambda request: found("e3-a") if request.tier == "e3" else [],
        standing_rules="run",
        stop_when=stopping(4),
        second_look="unchecked",
        scorer=lambda done: 0.7,
        fsm_thresholds={"slow_window": 1},
        model_routing={"SLOW": "strong"},
    )
    play_ = Play(rb)
    for at, action in enumerate(actions):
        if at == switch:
            play_.options = {"mode": "observe"}
            play_.act("restore")
            play_.decisions.clear()
            play_.stopped, play_.open = False, None
        if play_.session.outcome == "success":
            break
        play_.act(action)
    if len(actions) > switch:
        assert not play_.stopped
        for decision in play_.decisions:
            shown = (decision.guidance, decision.standing_rules, decision.injections, decision.route, decision.stop)
            assert not any((*shown, decision.interrupt)), decision
