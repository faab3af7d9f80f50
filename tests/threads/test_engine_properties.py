"""Random commands, crashes and clocks on real stores: after each, logs, heads, cards and works are the slow model's."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

from reasonblocks_threads import (
    Actor,
    Budget,
    CardClosed,
    Conflict,
    Evidence,
    Policy,
    Proposal,
    Refused,
    Stage,
)
from reasonblocks_threads._phases import RunStatus
from tests.threads import statement
from tests.threads.checks import check, check_asks, check_rest
from tests.threads.driver import ACTIONS, AGENT, ASK_ALL, END_TO_END, KNOWN, MARA, OPERATOR, Driver, plain_policy
from tests.threads.faults import Killed
from tests.threads.model import Matter, Replay
from tests.threads.statement import CARDS
from tests.whole import WHOLE

POLICIES: dict[str, Policy | None] = {
    "none": None,
    "plan": Policy(),
    "all": END_TO_END,
    "ask": ASK_ALL,
    "sure": Policy(auto_advance=frozenset(Stage), floor=0.95),
    "two calls": Policy(auto_advance=frozenset(Stage), budget=Budget(calls=2)),
    "no call": Policy(budget=Budget(calls=0)),
    "few actions": Policy(auto_advance=frozenset(Stage), actions=frozenset({"tidy", "plain"})),
}
MOODS = [
    "good", "low", "ahead", "nan", "nothing", "unknown evidence", "raise", "repaired", "question", "bad parameters",
    "unknown action", "die",
]  # fmt: skip
HOWS = ["ok", "partial", "hand_off", "fail", "raise", "late", "die", "cancelled"]
TEXTS = ["the disk is full", "no, the other one", "ask the team", "é\u202e\x00<b>"]
PROPOSALS: dict[str, tuple[Proposal, ...]] = {
    "none": (),
    "action": (Proposal.of_action("tidy", {"n": 1}, confidence=0.9),),
    "grave": (Proposal.of_action("ship", {"how": "partial"}, confidence=0.9),),
    "all": (
        Proposal.of_intent("why", confidence=0.9),
        Proposal.of_context("what", confidence=0.9),
        Proposal.of_action("touch", {"n": 2}, confidence=0.9),
    ),
    "unsure": (Proposal.of_intent("why", confidence=0.2), Proposal.of_action("plain", {}, confidence=0.9)),
    "unknown": (Proposal.of_action("rm_rf", {}, confidence=0.9),),
}
STEPS = st.sampled_from([1.0, 31.0, 61.0, 181.0, 1000.0, 100_000.0])
ACTORS = st.sampled_from([MARA, OPERATOR])


class ThreadsMachine(RuleBasedStateMachine):
    """Commands of persons, agents and the system on one file, which processes open, use and leave."""

    threads: Bundle[str] = Bundle("threads")

    @initialize(installation=st.sampled_from([END_TO_END, Policy()]))
    def begin(self, installation: Policy) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.driver = Driver(self.folder / "threads.db", policy=installation)
        self.replay = Replay(KNOWN, plain_policy(installation))
        self.closed: list[str] = []
        self.crashed = False
        self.key = 0

    # --- helpers

    def attempt(self, do: Callable[[], object]) -> bool:
        """Do something that the rules may refuse. Return False if its process died; another one then goes on."""
        try:
            do()
        except Killed:
            self.crashed = True
            self.driver = self.driver.again()
            return False
        except (Refused, Conflict):
            pass
        return True

    def now(self, id: str) -> Matter:
        return self.replay.matters[id]

    def see(self) -> None:
        """Take the new lines; asks are compared with the facts that there were before."""
        check_asks(self.driver, self.replay)
        check(self.driver, self.replay)

    # --- the world

    @rule(stage=st.sampled_from(statement.STAGES), mood=st.sampled_from(MOODS))
    def mood(self, stage: str, mood: str) -> None:
        self.driver.mind.mood[stage] = mood

    @rule(action=st.sampled_from([*ACTIONS]), how=st.sampled_from(HOWS), n=st.integers(0, 3))
    def wish(self, action: str, how: str, n: int) -> None:
        self.driver.mind.action, self.driver.mind.parameters = action, {"how": how, "n": n}
        self.driver.mind.mood = {}

    @rule(works=st.booleans())
    def broom(self, works: bool) -> None:
        self.driver.broom.works = works

    @rule(seconds=STEPS)
    def wait(self, seconds: float) -> None:
        self.driver.clock.advance(seconds)

    @rule(limit=st.sampled_from([1, 2, 3, None]))
    def drain(self, limit: int | None) -> None:
        self.attempt(lambda: self.driver.drain(limit=limit))

    @rule(commit=st.integers(1, 4), when=st.sampled_from(["before", "after"]))
    def break_at(self, commit: int, when: Literal["before", "after"]) -> None:
        faults = self.driver.faults
        faults.at, faults.when = faults.commits + commit, when

    @rule()
    def reopen(self) -> None:
        self.driver.threads.close()
        self.driver = self.driver.again()

    # --- opening

    @rule(
        target=threads,
        policy=st.sampled_from([*POLICIES]),
        proposals=st.sampled_from([*PROPOSALS]),
        children=st.sampled_from([0, 0, 0, 1, 3]),
        family=st.sampled_from([None, None, "family"]),
        run=st.sampled_from(["live", "ended", "unknown"]),
    )
    def open(self, policy: str, proposals: str, children: int, family: str | None, run: RunStatus) -> Any:
        assume(len(self.replay.matters) < 12)
        self.key += 1
        cause = self.driver.cause(f"key {self.key}", family=family, run_id="run-1")
        causes = [self.driver.cause(f"key {self.key} child {n}") for n in range(children)]
        given = {} if children else {"proposals": PROPOSALS[proposals]}

        def do() -> None:
            self.driver.open(cause=cause, policy=POLICIES[policy], children=causes, run=run, **given)

        self.attempt(do)
        return self.new()

    def new(self) -> Any:
        before = {*self.replay.matters}
        self.see()
        return multiple(*(id for id in self.replay.matters if id not in before))

    @rule(target=threads, above=threads, proposals=st.sampled_from([*PROPOSALS]), children=st.sampled_from([0, 2]))
    def open_below(self, above: str, proposals: str, children: int) -> Any:
        assume(len(self.replay.matters) < 12)
        self.key += 1
        cause = self.driver.cause(f"key {self.key}")
        causes = [self.driver.cause(f"key {self.key} child {n}") for n in range(children)]
        given = {} if children else {"proposals": PROPOSALS[proposals]}
        self.attempt(lambda: self.driver.open(cause=cause, parent=above, children=causes, **given))
        return self.new()

    @rule(target=threads, old=threads)
    def supersede(self, old: str) -> Any:
        assume(len(self.replay.matters) < 12)
        self.key += 1
        self.attempt(lambda: self.driver.open(f"key {self.key}", supersedes=old))
        return self.new()

    # --- answers

    @rule(id=threads, data=st.data(), by=ACTORS)
    def answer(self, id: str, data: st.DataObject, by: Actor) -> None:
        matter = self.now(id)
        assume(matter.phase in CARDS)
        card = self.driver.card(id)
        triggers = statement.answers(matter.phase, cleaner=True)
        offered = sorted(answer.name for answer in card.answers if answer.name != "later")
        what = data.draw(st.sampled_from(offered), label="answer")
        given = self.given(what, matter, data)
        moves = len(matter.path)
        if self.attempt(lambda: self.driver.threads.answer(card, what, by=by, **given)):
            self.see()
            assert len(matter.path) == moves + 1, f"{what} with {given} did not move {matter.phase}"
            assert matter.path[-1][0] == triggers[what]
        self.closed.append(card.id)

    def given(self, what: str, matter: Matter, data: st.DataObject) -> dict[str, Any]:
        """Return what a person adds to an answer."""
        text = data.draw(st.sampled_from(TEXTS), label="text")
        do = {"how": data.draw(st.sampled_from(HOWS)), "n": data.draw(st.integers(0, 3))}
        match what:
            case "edit":
                return {"parameters": do} if matter.phase == "awaiting_confirmation" else {"text": text}
            case "provide" if matter.phase == "awaiting_action_clarification" and data.draw(st.booleans()):
                return {"action": data.draw(st.sampled_from([*ACTIONS])), "parameters": do}
            case "provide":
                return {"text": text}
            case "redirect":
                stages = statement.STAGES[: statement.STAGES.index(matter.stage) + 1]
                return {"text": text, "stage": Stage(data.draw(st.sampled_from(stages), label="stage"))}
            case "take_over":
                return {"to": "mara"}
        return {}

    @precondition(lambda self: self.closed)
    @rule(data=st.data(), by=ACTORS)
    def answer_a_closed_card(self, data: st.DataObject, by: Actor) -> None:
        card = data.draw(st.sampled_from(self.closed))
        assume(card not in {one.id for one in self.driver.threads.cards(deferred=True)})
        what = data.draw(st.sampled_from(["accept", "approve", "dismiss", "redirect", "done"]))
        with pytest.raises((CardClosed, Killed)):
            self.driver.threads.answer(card, what, by=by)  # type: ignore[arg-type]
        if self.driver.faults.dead:
            self.crashed, self.driver = True, self.driver.again()
        assert not self.driver.lines(after=self.replay.position)

    @rule(id=threads, seconds=STEPS)
    def later(self, id: str, seconds: float) -> None:
        assume(self.now(id).phase in CARDS)
        until = self.driver.clock() + seconds
        self.attempt(lambda: self.driver.answer(id, "later", until=until))

    @rule(id=threads, what=st.sampled_from(["dismiss", "take_over", "cancel", "resolve"]), by=ACTORS)
    def end(self, id: str, what: str, by: Actor) -> None:
        threads = self.driver.threads
        does: dict[str, Callable[[], object]] = {
            "dismiss": lambda: threads.dismiss(id, by=by),
            "take_over": lambda: threads.take_over(id, by=by, to="mara"),
            "cancel": lambda: threads.cancel(id, by=by),
            "resolve": lambda: threads.resolve(id, "it is over"),
        }
        self.attempt(does[what])

    @rule(id=threads, what=st.sampled_from(["approve", "accept", "dismiss"]))
    def answer_children(self, id: str, what: Any) -> None:
        self.attempt(lambda: self.driver.threads.answer_children(id, what, by=MARA))

    # --- additions

    @rule(id=threads, policy=st.sampled_from([*POLICIES]), by=ACTORS)
    def policy(self, id: str, policy: str, by: Actor) -> None:
        if chosen := POLICIES[policy]:
            self.attempt(lambda: self.driver.threads.set_policy(id, chosen, by=by))

    @rule(id=threads, n=st.integers(0, 100), run=st.sampled_from([None, "live", "ended"]))
    def evidence(self, id: str, n: int, run: RunStatus | None) -> None:
        piece = Evidence(id=f"e{self.driver.clock()}.{n}", label="a line", text=f"line {n}")
        self.attempt(lambda: self.driver.threads.add_evidence(id, piece, by=AGENT, run=run))

    @rule(id=threads, text=st.sampled_from(TEXTS))
    def note(self, id: str, text: str) -> None:
        self.attempt(lambda: self.driver.threads.note(id, text, by=MARA))

    # --- what always holds

    @invariant()
    def rows_follow_from_the_logs(self) -> None:
        self.see()

    @invariant()
    def nothing_needs_repair(self) -> None:
        if not self.crashed:
            assert self.driver.threads.doctor() == ()

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            try:
                self.end_all()
            finally:
                self.driver.__exit__()
                shutil.rmtree(self.folder)

    def end_all(self) -> None:
        """At rest, everything has ended or asks somebody; then nobody answers, and time ends it all."""
        self.driver.faults.at = 0
        self.driver.mind.mood, self.driver.mind.parameters = {}, {}
        self.rest()
        check_rest(self.driver, self.replay)
        for _ in range(40):
            if all(matter.ended for matter in self.replay.matters.values()):
                break
            self.driver.clock.advance(9 * 86_400)
            self.rest()
        check_rest(self.driver, self.replay)
        assert {matter.phase for matter in self.replay.matters.values()} <= {*statement.TERMINAL}
        assert self.driver.threads.list(live=True) == ()

    def rest(self) -> None:
        """Do works until none is left but those of timers: short waits, so that leases and back-offs end."""
        for _ in range(12):
            while not self.attempt(self.driver.drain):
                pass
            self.see()
            self.driver.clock.advance(100)


TestThreads = ThreadsMachine.TestCase
TestThreads.settings = settings(
    max_examples=300 if WHOLE else 12,
    stateful_step_count=60 if WHOLE else 30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
