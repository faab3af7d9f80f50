"""Real runs of the core with the sink and the mailbox: a stuck run is handed over, and told the answer once."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from reasonblocks import LocalStore, ReasonBlocks, SteeringSession
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.exceptions import Refused as CoreRefused
from reasonblocks.exceptions import Unavailable
from reasonblocks.ports import BatchSink, Mailbox, TelemetrySink
from reasonblocks.types import Doubt, FSMState, RunInfo, Step, StepDecision, StepInput, StepOutcome
from reasonblocks_threads import Cause, Evidence, Phase, StoreUnavailable, Thread, Threads, Trigger
from reasonblocks_threads.builtin import LETTER_S
from reasonblocks_threads.render import render_text
from reasonblocks_threads.steering._letters import CALLS
from reasonblocks_threads.steering._sink import MOST_OPEN, NOT_OPENED, QUIET_CALLS, RunSink
from tests.threads.driver import MARA, Clock, report_of
from tests.threads.test_watch import call

ADVICE = "Read the parser before you edit it again."
SAID = f"An operator of this run says: {ADVICE}"


class Pumped:
    """A sink that keeps the events for the test's own thread."""

    def __init__(self) -> None:
        self.events: Queue[Event] = Queue()

    def emit(self, event: Event) -> None:
        self.events.put(event)

    def close(self) -> None:
        pass


class Stuck:
    """A transition function: the state that a test sets."""

    def __init__(self) -> None:
        self.state = FSMState.NORMAL

    def __call__(self, state: FSMState, history: tuple[float, ...]) -> FSMState:
        return self.state


class Desk:
    """The threads of one process with a client of the core, whose events the test hands to the sink itself."""

    def __init__(self, database: Path | None = None, *, clock: Clock | None = None, **options: Any) -> None:
        self.clock = clock or Clock()
        self.threads = Threads(database, clock=self.clock)
        self.sink = self.threads.sink()
        self.state, self._pumped = Stuck(), Pumped()
        given = {"strict": True, "pattern_store": LocalStore(), "step_deadline_ms": 20_000, "transition": self.state}
        self.rb = ReasonBlocks(sinks=[self._pumped], mailbox=self.threads.mailbox(), **{**given, **options})

    def step(self, session: SteeringSession, *, error: str | None = None) -> StepDecision:
        """Make the next call of a run, and hand over the event of the call before."""
        self.clock.advance(1.0)
        at, goes_on = session.trace.state.calls, bool(session.step_log)
        decision = session.begin_step(
            StepInput(key=f"call-{at}", completed=Step(thought=f"I try {at}.") if at else None)
        )
        session.end_step(decision, StepOutcome(text=f"I try {at + 1}.", error=error))
        if goes_on or not at:  # a resumed run has no event of the call before
            self._hand_over(StepEvent if at else RunStart)
        return decision

    def steps(self, session: SteeringSession, number: int) -> list[StepDecision]:
        return [self.step(session) for _ in range(number)]

    def finish(self, session: SteeringSession, outcome: str = "success") -> None:
        session.finish(outcome)
        self._hand_over(RunFinish)

    def pause(self, session: SteeringSession) -> None:
        session.pause()
        self._hand_over(StepEvent)

    def stall(self, session: SteeringSession) -> Thread:
        """Let a run enter SKIP, and return the thread that is opened."""
        self.steps(session, 2)
        self.state.state = FSMState.SKIP
        self.steps(session, 2)
        (listed,) = self.threads.list(run_id=session.run.run_id)
        return self.threads.get(listed.id)

    def advise(self, thread: Thread, text: str = ADVICE) -> Thread:
        """Answer as a person who has guidance for the run; it waits for a call then."""
        self.clock.advance(1.0)
        self.threads.drain()
        card = next(card for card in self.threads.cards() if card.thread_id == thread.id)
        edited = self.threads.answer(card, "edit", by=MARA, parameters={"text": text})
        card = next(card for card in self.threads.cards() if card.thread_id == edited.id)
        self.threads.answer(card, "approve", by=MARA)
        self.threads.drain()
        return self.threads.get(thread.id)

    def _hand_over(self, until: type[RunStart] | type[StepEvent] | type[RunFinish]) -> None:
        while True:
            event = self._pumped.events.get(timeout=20)
            self.sink.emit(event)
            if isinstance(event, until):
                return

    def close(self) -> None:
        self.rb.close()
        self.threads.close()


@contextmanager
def desk(database: Path | None = None, **options: Any) -> Iterator[Desk]:
    made = Desk(database, **options)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def at() -> Iterator[Desk]:
    with desk() as made:
        yield made


@pytest.fixture
def session(at: Desk) -> SteeringSession:
    return at.rb.session(run_id="r")


def telling(decisions: Sequence[StepDecision]) -> list[int]:
    """The calls whose guidance has the person's words."""
    return [decision.step for decision in decisions if SAID in decision.guidance]


# --- a run is handed over


def test_the_card_of_a_stuck_run_has_real_lines_and_no_escaped_json() -> None:
    arguments = '{"command":"pytest -q","why":"one\\ntwo"}'
    events = [call(at, "SKIP" if at == 2 else "NORMAL") for at in range(3)]
    done: dict[str, Any] = {
        "action": "shell",
        "action_input": arguments,
        "observation": '{"stdout": "1 failed\\n\\tsee a.py"}',
    }
    with Threads(None) as threads:
        sink = threads.sink()
        for event in events:
            sink.emit(replace(event, **done))
        threads.drain()
        (card,) = threads.cards()
    shown = render_text(card)
    assert "\\" not in shown
    for line in ("|   why:", "|     one", "| stdout:", "|   1 failed", "|     see a.py", "|   > Evidence:"):
        assert f"\n  {line}\n" in shown


def test_a_stuck_run_is_handed_over_and_told_in_one_call() -> None:
    with desk() as at, at.rb.session(run_id="r", agent_name="bugfixer", task="Fix the parser") as session:
        thread = at.stall(session)
        assert (thread.cause.kind, thread.cause.run_id, thread.run) == ("run_stalled", "r", "live")
        assert thread.cause.title == "bugfixer is stalled: Fix the parser"
        assert "I try 2." in "".join(one.text for one in thread.evidence)
        waiting = at.advise(thread)
        assert waiting.phase is Phase.EXECUTING
        assert telling(at.steps(session, 3)) == [4]
        done = at.threads.get(thread.id)
        assert (done.phase, done.execution and done.execution.report and done.execution.report.succeeded) == (
            Phase.DONE,
            True,
        )
        at.finish(session)


def test_the_sink_and_the_mailbox_are_those_of_the_core(at: Desk) -> None:
    mailbox = at.threads.mailbox()
    assert isinstance(at.sink, TelemetrySink)
    assert isinstance(at.sink, BatchSink)
    assert isinstance(mailbox, Mailbox)
    assert getattr(mailbox, "inline", False) is True


def test_events_reach_the_threads_through_the_client() -> None:
    with Threads(None) as threads:
        stuck = Stuck()
        rb = ReasonBlocks(strict=True, pattern_store=LocalStore(), sinks=[threads.sink()], transition=stuck)
        session = rb.session(run_id="r")
        for at in range(4):
            stuck.state = FSMState.SKIP if at else FSMState.NORMAL
            done = Step(thought=f"I try {at}.") if at else None
            session.end_step(session.begin_step(StepInput(key=str(at), completed=done)), StepOutcome(text="I go on."))
        session.finish("stopped: stalled")
        rb.close()
        (thread,) = threads.list()
        assert threads.get(thread.id).run == "ended"


def test_a_failed_call_does_not_use_up_its_letter(at: Desk, session: SteeringSession) -> None:
    thread = at.advise(at.stall(session))
    decisions = [at.step(session, error="TimeoutError: late"), at.step(session)]
    assert telling(decisions) == [4, 5]
    assert at.threads.get(thread.id).phase is Phase.EXECUTING
    decisions = at.steps(session, 3)
    assert telling(decisions) == []
    assert at.threads.get(thread.id).phase is Phase.DONE


def test_a_retried_call_has_the_letter_again_and_it_is_told_once(at: Desk, session: SteeringSession) -> None:
    thread = at.advise(at.stall(session))
    at.step(session)
    again = session.begin_step(StepInput(key="call-4", completed=Step(thought="I try 4.")))
    assert (again.replayed, telling([again])) == (True, [4])
    session.end_step(again, StepOutcome(text="I try 5."))
    assert telling(at.steps(session, 2)) == []
    reports = [event for event in at.threads.log(thread.id) if event.kind == "execution_finished"]
    assert len(reports) == 1


def test_a_resumed_run_is_told_once(tmp_path: Path) -> None:
    with desk(tmp_path / "t.db") as first, desk(tmp_path / "t.db", clock=first.clock) as second:
        session = first.rb.session(run_id="r")
        thread = first.advise(first.stall(session))
        before = session.trace.snapshot()
        second.state.state = FSMState.SKIP
        resumed = second.rb.session(snapshot=before)
        decisions = [second.step(resumed)]
        second.pause(resumed)
        assert first.threads.get(thread.id).phase is Phase.DONE
        decisions += second.steps(second.rb.session(snapshot=resumed.trace.snapshot()), 2)
        assert telling(decisions) == [4]
        assert len(first.threads.list(live=False)) == 1


def test_a_letter_whose_report_was_lost_is_told_once_and_its_card_says_so(at: Desk, session: SteeringSession) -> None:
    thread = at.advise(at.stall(session))
    told = session.begin_step(StepInput(key="call-4", completed=Step(thought="I try 4.")))
    session.end_step(told, StepOutcome(text="I try 5."))
    resumed = at.rb.session(snapshot=session.trace.snapshot())
    assert telling([told, *at.steps(resumed, CALLS + 2)]) == [4]
    asked = at.threads.get(thread.id)
    assert asked.phase is Phase.AWAITING_REDIRECT
    (card,) = at.threads.cards()
    assert "may have read" in card.report + card.problem


# --- letters that nobody carries


def test_a_letter_that_ten_calls_do_not_carry_is_withdrawn(at: Desk) -> None:
    session = at.rb.session(run_id="r", mode="observe")
    thread = at.advise(at.stall(session))
    at.steps(session, CALLS)
    assert at.threads.get(thread.id).phase is Phase.EXECUTING
    at.step(session)
    asked = at.threads.get(thread.id)
    assert asked.phase is Phase.AWAITING_REDIRECT
    assert report_of(asked).code == "not_carried"
    assert "may have read" in report_of(asked).summary
    assert at.threads.mailbox().waiting("r") == ()
    at.finish(session)


def test_a_letter_is_withdrawn_at_the_end_of_its_run(at: Desk, session: SteeringSession) -> None:
    thread = at.advise(at.stall(session))
    at.finish(session, "failure: ValueError")
    asked = at.threads.get(thread.id)
    assert (asked.phase, asked.run) == (Phase.AWAITING_REDIRECT, "ended")
    assert at.threads.mailbox().waiting("r") == ()


def test_a_letter_is_not_handed_out_after_half_an_hour(at: Desk, session: SteeringSession) -> None:
    thread = at.advise(at.stall(session))
    at.clock.advance(LETTER_S + 1)
    assert telling(at.steps(session, 2)) == []
    at.threads.drain()
    assert at.threads.get(thread.id).phase is Phase.AWAITING_REDIRECT


def test_another_run_cannot_tell_a_letter(at: Desk, session: SteeringSession) -> None:
    thread = at.advise(at.stall(session))
    (note,) = at.threads.mailbox().waiting("r")
    at.sink.emit(replace(call(4, note_ids=[note.id]), run_id="other"))
    assert at.threads.get(thread.id).phase is Phase.EXECUTING


def test_letters_of_another_organisation_are_not_handed_out(tmp_path: Path) -> None:
    with desk(tmp_path / "t.db") as at, Threads(tmp_path / "t.db", org_id="other", clock=at.clock) as other:
        session = at.rb.session(run_id="r")
        thread = at.advise(at.stall(session))
        assert other.mailbox().waiting("r") == ()
        sink = other.sink()
        sink.emit(call(9, "NORMAL", note_ids=[at.threads.mailbox().waiting("r")[0].id]))
        sink.emit(RunFinish(run_id="r", outcome="failure", timestamp=0.0))
        assert at.threads.get(thread.id).phase is Phase.EXECUTING
        assert len(at.threads.mailbox().waiting("r")) == 1
        at.finish(session)


# --- the end of a run


def test_the_success_of_a_run_settles_its_causes(at: Desk, session: SteeringSession) -> None:
    thread = at.stall(session)
    at.threads.drain()
    at.finish(session)
    ended = at.threads.get(thread.id)
    assert (ended.phase, at.threads.log(thread.id)[-1].data["trigger"]) == (
        Phase.DISMISSED,
        Trigger.SOURCE_RESOLVED.value,
    )
    assert not at.threads.cards()


def test_a_success_settles_a_thread_whose_letter_nobody_carried(at: Desk, session: SteeringSession) -> None:
    thread = at.advise(at.stall(session))
    at.finish(session)
    assert at.threads.get(thread.id).phase is Phase.DISMISSED
    assert at.threads.mailbox().waiting("r") == ()


def test_a_restarted_process_settles_the_causes_of_a_success(tmp_path: Path) -> None:
    with Threads(tmp_path / "t.db") as threads:
        feed(threads.sink(), stalled("r", 1, 5))
    with Threads(tmp_path / "t.db") as threads:
        threads.sink().emit(RunFinish(run_id="r", outcome="success", timestamp=0.0))
        (thread,) = threads.list(live=False)
        assert thread.phase is Phase.DISMISSED


def test_a_run_that_gets_on_settles_its_causes(at: Desk, session: SteeringSession) -> None:
    thread = at.stall(session)
    at.state.state = FSMState.NORMAL
    at.steps(session, 2)
    assert at.threads.get(thread.id).phase is Phase.DISMISSED


@pytest.mark.parametrize("outcome", ["failure: ValueError", "stopped: stalled", "failure: abandoned"])
def test_any_other_end_leaves_the_card_and_says_so(at: Desk, session: SteeringSession, outcome: str) -> None:
    thread = at.stall(session)
    at.threads.drain()
    at.finish(session, outcome)
    (card,) = at.threads.cards()
    assert (card.thread_id, card.run) == (thread.id, "ended")
    assert f"the run has ended: {outcome}" in [one.text for one in at.threads.get(thread.id).evidence]


def test_a_success_in_doubt_settles_nothing(at: Desk) -> None:
    thread = at.stall(at.rb.session(run_id="r"))
    doubt = Doubt(monitor="unverified", text="The tests were never run.")
    at.sink.emit(RunFinish(run_id="r", outcome="success", timestamp=0.0, doubts=(doubt,)))
    asked = at.threads.get(thread.id)
    assert (asked.phase.is_terminal, asked.run) == (False, "ended")
    assert "never run" in asked.evidence[-1].text


def test_a_run_that_goes_on_after_its_end_is_live_again(at: Desk, session: SteeringSession) -> None:
    thread = at.stall(session)
    at.finish(session, "stopped: stalled")
    at.sink.emit(call(20, "SKIP"))
    assert at.threads.get(thread.id).run == "live"


def test_threads_of_agents_learn_of_the_end_and_stay(at: Desk) -> None:
    asked = at.threads.open(Cause(kind="proposal", key="k", title="Deploy?", run_id="r"), run="live")
    at.sink.emit(call(0))
    at.sink.emit(RunFinish(run_id="r", outcome="success", timestamp=0.0))
    found = at.threads.get(asked.id)
    assert (found.phase.is_terminal, found.run) == (False, "ended")


# --- once


def stalled(run_id: str, first: int, last: int) -> list[Event]:
    """The events of a run that is in SKIP in these calls; from call 1 on, also those before."""
    calls = [replace(call(at, "SKIP"), run_id=run_id) for at in range(first, last)]
    start = RunStart(run=RunInfo(run_id=run_id), timestamp=0.0)
    return [start, replace(call(0), run_id=run_id), *calls] if first == 1 else list(calls)


def feed(sink: TelemetrySink, events: Sequence[Event]) -> None:
    for event in events:
        sink.emit(event)


def test_a_restarted_process_opens_no_second_thread(tmp_path: Path) -> None:
    with Threads(tmp_path / "t.db") as threads:
        feed(threads.sink(), stalled("r", 1, 5))
        (listed,) = threads.list()
    with Threads(tmp_path / "t.db") as threads:
        feed(threads.sink(), stalled("r", 5, 9))
        assert [one.id for one in threads.list(live=False)] == [listed.id]
        threads.dismiss(listed.id, by=MARA)
        feed(threads.sink(), stalled("r", 9, 9 + 2 * QUIET_CALLS))
        assert [one.id for one in threads.list(live=False)] == [listed.id]


def test_a_dismissed_family_is_quiet_for_some_calls() -> None:
    clock = Clock()
    with Threads(None, clock=clock) as threads:
        sink = threads.sink()

        def run(state: str, numbers: range) -> None:
            for at in numbers:
                clock.advance(1.0)
                sink.emit(call(at, state))

        run("NORMAL", range(3))
        run("SKIP", range(3, 5))
        (first,) = threads.list()
        threads.dismiss(first.id, by=MARA)
        run("NORMAL", range(5, 7))
        run("SKIP", range(7, 5 + QUIET_CALLS - 1))
        assert len(threads.list(live=False)) == 1
        run("SKIP", range(5 + QUIET_CALLS - 1, 5 + QUIET_CALLS + 2))
        assert [one.id for one in threads.list()] != [first.id]
        assert len(threads.list(live=False)) == 2


def test_causes_are_only_counted_over_a_hundred_threads() -> None:
    with Threads(None) as threads:
        for at in range(MOST_OPEN):
            threads.open(Cause(kind="proposal", key=str(at), title="Deploy?"))
        sink = threads.sink()
        assert isinstance(sink, RunSink)
        feed(sink, stalled("r", 1, 4))
        assert len(threads.list(limit=200)) == MOST_OPEN
        assert sink.not_opened == 1
        with threads._engine.store.read() as reading:
            assert reading.meta(NOT_OPENED) == {f"{NOT_OPENED}default": "1"}


def test_interleaved_runs_are_those_of_each_alone() -> None:
    runs = [stalled(name, 1, 6) for name in ("a", "b", "a/b")]
    mixed = [event for events in itertools.zip_longest(*runs) for event in events if event is not None]
    with Threads(None) as threads, Threads(None) as alone:
        feed(threads.sink(), mixed)
        sink = alone.sink()
        for events in runs:
            feed(sink, events)

        def shape(found: Threads) -> list[tuple[str | None, str, tuple[Evidence, ...]]]:
            heads = [found.get(one.id) for one in found.list()]
            return sorted((one.cause.run_id, one.cause.key, one.evidence) for one in heads)

        assert len(shape(threads)) == 3
        assert shape(threads) == shape(alone)


# --- a store that fails


class Failing:
    """The engine's store, which is not available while `down`."""

    def __init__(self, store: Any) -> None:
        self._store, self.down = store, False

    def __getattr__(self, name: str) -> Any:
        if self.down:
            raise StoreUnavailable("the disk is full")
        return getattr(self._store, name)


def test_events_wait_while_the_store_is_not_available() -> None:
    with Threads(None) as threads:
        sink, store = threads.sink(), Failing(threads._engine.store)
        assert isinstance(sink, RunSink)
        threads._engine.store = store
        events = stalled("r", 1, 4)
        store.down = True
        with pytest.raises(Unavailable):
            sink.emit_many(events, 5.0)
        store.down = False
        assert sink.emit_many(events, 5.0) == len(events)
        assert len(threads.list()) == 1


def test_a_mailbox_without_its_store_has_no_notes() -> None:
    with Threads(None) as threads:
        store = Failing(threads._engine.store)
        threads._engine.store = store
        mailbox = threads.mailbox()
        store.down = True
        assert mailbox.waiting("r") == ()
        store.down = False


def test_redact_hides_texts_from_the_threads() -> None:
    with Threads(None) as threads:
        feed(threads.sink(redact=lambda text: text.replace("thought", "***")), stalled("r", 1, 4))
        (listed,) = threads.list()
        texts = "".join(one.text for one in threads.get(listed.id).evidence)
        assert "***" in texts
        assert "thought" not in texts


def test_the_sink_remembers_a_bounded_number_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonblocks_threads.steering._sink.MOST_RUNS", 3)
    with Threads(None) as threads:
        sink = threads.sink()
        assert isinstance(sink, RunSink)
        for at in range(9):
            feed(sink, stalled(f"r{at}", 1, 2)[:2])
        assert len(sink._runs) == 3


def test_an_event_that_fails_is_dropped_alone() -> None:
    with Threads(None) as threads:
        sink = threads.sink()
        assert isinstance(sink, RunSink)
        unstorable, good = stalled("r\x00", 1, 2), stalled("r", 1, 3)
        queue = [*unstorable, *good]
        dropped = 0
        while queue:
            try:
                queue = queue[sink.emit_many(queue, 5.0) :]
            except CoreRefused as exc:
                dropped, queue = dropped + (exc.events or len(queue)), queue[1:]
        assert dropped == 1
        assert [one.run_id for one in threads.list()] == ["r"]


FEEDER = """
import json
import sys
from pathlib import Path
from reasonblocks.events import event_of
from reasonblocks_threads import Threads

database, events = map(Path, sys.argv[1:])
with Threads(database) as threads:
    sink, lines = threads.sink(), events.read_text().splitlines()
    print("ready", flush=True)
    for line in lines:
        sink.emit(event_of(json.loads(line)))
"""


def test_processes_that_race_open_each_thread_once(tmp_path: Path) -> None:
    file, recorded = tmp_path / "t.db", tmp_path / "events.jsonl"
    events = [event for step in zip(*[stalled(f"r{at}", 1, 5) for at in range(8)]) for event in step]
    recorded.write_text("".join(json.dumps(event.as_dict()) + "\n" for event in events))
    command = [sys.executable, "-c", FEEDER, str(file), str(recorded)]
    with Threads(file) as threads:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            feed(threads.sink(), events)
            assert (other.communicate()[1], other.returncode) == ("", 0)
        assert sorted(str(one.run_id) for one in threads.list(live=False)) == [f"r{at}" for at in range(8)]
        assert not threads.doctor()
