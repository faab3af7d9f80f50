"""Random commands, crashes and clocks on real stores: after each, logs, heads, cards and works are the slow model's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reasonblocks_threads import Actor, Budget, CardClosed, Conflict, Evidence, Policy, Proposal, Refused, Stage
from reasonblocks_threads.phases import AnswerName, RunStatus
from tests.threads import statement
from tests.threads.checks import check, check_asks, check_rest
from tests.threads.driver import ACTIONS, AGENT, ASK_ALL, END_TO_END, KNOWN, MARA, OPERATOR, Driver, plain_policy
from tests.threads.faults import Killed, quick_folder
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


PICKS = st.integers(0, 60)
"""The choice of a thread, card or answer: the remainder after division by their number."""
Item = TypeVar("Item")


def pick(number: int, among: Sequence[Item]) -> Item:
    return among[number % len(among)]


class ThreadsMachine(RuleBasedStateMachine):
    """Commands of persons, agents and the system on one file, which processes open, use and leave."""

    @initialize(installation=st.sampled_from([END_TO_END, Policy()]), policy=st.sampled_from([*POLICIES]))
    def begin(self, installation: Policy, policy: str) -> None:
        self.folder = quick_folder()
        self.driver = Driver(self.folder.__enter__() / "threads.db", policy=installation)
        self.replay = Replay(KNOWN, plain_policy(installation))
        self.crashed = False
        self.key = 0
        self.open(policy, "none", 0, None, "unknown")

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

    def thread(self, number: int) -> Matter:
        return pick(number, [*self.replay.matters.values()])

    def live(self, number: int) -> Matter:
        """Return a thread that has not ended, if there is one."""
        all_of_them = [*self.replay.matters.values()]
        return pick(number, [matter for matter in all_of_them if not matter.ended] or all_of_them)

    @property
    def room(self) -> bool:
        return len(self.replay.matters) < 14

    def see(self) -> None:
        """Take the new lines; asks are compared with the facts that there were before."""
        check_asks(self.driver, self.replay)
        check(self.driver, self.replay, only_changed=True)

    # --- the world

    @rule(stage=st.sampled_from(statement.STAGES), mood=st.sampled_from(MOODS))
    def mood(self, stage: str, mood: str) -> None:
        self.driver.mind.mood = {stage: mood}

    @rule(action=st.sampled_from([*ACTIONS]), how=st.sampled_from(HOWS), n=st.integers(0, 3))
    def wish(self, action: str, how: str, n: int) -> None:
        self.driver.mind.action, self.driver.mind.parameters = action, {"how": how, "n": n}
        self.driver.mind.mood = {}

    @rule(seconds=STEPS, works=st.booleans())
    def wait(self, seconds: float, works: bool) -> None:
        self.driver.clock.advance(seconds)
        self.driver.broom.works = works

    @rule(limit=st.integers(1, 4))
    def drain(self, limit: int) -> None:
        self.attempt(lambda: self.driver.drain(limit=limit))

    @rule()
    def drain_all(self) -> None:
        self.attempt(self.driver.drain)

    @rule(number=PICKS, what=st.sampled_from(["dismiss", "take over"]), mood=st.sampled_from(["good", "raise"]))
    def decide_during_the_next_call(self, number: int, what: str, mood: str) -> None:
        """A person ends a thread while an inferencer thinks."""
        id, threads = self.live(number).id, self.driver.threads
        ends: dict[str, Callable[[], object]] = {
            "dismiss": lambda: threads.dismiss(id, by=MARA),
            "take over": lambda: threads.take_over(id, by=MARA, to="mara"),
        }

        def during() -> None:
            with suppress(Refused, Conflict):
                ends[what]()

        self.driver.mind.mood = dict.fromkeys(statement.STAGES, mood)
        self.driver.mind.during = during
        self.attempt(lambda: self.driver.drain(limit=3))
        self.driver.mind.during = None

    @rule(commit=st.integers(1, 5), when=st.sampled_from(["before", "after"]))
    def break_at(self, commit: int, when: Literal["before", "after"]) -> None:
        faults = self.driver.faults
        faults.at, faults.when = faults.commits + commit, when
        self.attempt(self.driver.drain)

    @rule()
    def reopen(self) -> None:
        self.driver.threads.close()
        self.driver = self.driver.again()

    # --- opening

    @precondition(lambda self: self.room)
    @rule(
        policy=st.sampled_from([*POLICIES]),
        proposals=st.sampled_from([*PROPOSALS]),
        children=st.sampled_from([0, 0, 0, 1, 3]),
        family=st.sampled_from([None, None, "family"]),
        run=st.sampled_from(["live", "ended", "unknown"]),
    )
    def open(self, policy: str, proposals: str, children: int, family: str | None, run: RunStatus) -> None:
        self.key += 1
        cause = self.driver.cause(f"key {self.key}", family=family, run_id="run-1")
        causes = [self.driver.cause(f"key {self.key} child {n}") for n in range(children)]
        given: dict[str, Any] = {} if children else {"proposals": PROPOSALS[proposals]}
        rule: Any = "alternatives" if self.key % 2 else "all_of"

        def do() -> None:
            self.driver.open(cause=cause, policy=POLICIES[policy], children=causes, rule=rule, run=run, **given)

        self.attempt(do)

    @precondition(lambda self: self.room)
    @rule(
        action=st.sampled_from([*ACTIONS]),
        how=st.sampled_from(HOWS),
        policy=st.sampled_from(["all", "plan"]),
        stored=st.booleans(),
        limit=st.integers(1, 8),
    )
    def go(self, action: str, how: str, policy: str, stored: bool, limit: int) -> None:
        """Open a thread and let it go some way without a fault."""
        self.wish(action, how, 0)
        self.key += 1
        proposals = [Proposal.of_action(action, {"how": how}, confidence=0.9)] if stored else []
        given: dict[str, Any] = {"policy": POLICIES[policy], "proposals": proposals}
        if self.attempt(lambda: self.driver.open(f"key {self.key}", **given)):
            self.see()
            self.attempt(lambda: self.driver.drain(limit=limit))

    @precondition(lambda self: self.room)
    @rule(number=PICKS, proposals=st.sampled_from([*PROPOSALS]), children=st.sampled_from([0, 2]))
    def open_below(self, number: int, proposals: str, children: int) -> None:
        self.key += 1
        cause = self.driver.cause(f"key {self.key}")
        causes = [self.driver.cause(f"key {self.key} child {n}") for n in range(children)]
        given: dict[str, Any] = {} if children else {"proposals": PROPOSALS[proposals]}
        self.attempt(lambda: self.driver.open(cause=cause, parent=self.live(number).id, children=causes, **given))

    @precondition(lambda self: self.room)
    @rule(number=PICKS, key=st.booleans())
    def supersede(self, number: int, key: bool) -> None:
        self.key += key
        self.attempt(lambda: self.driver.open(f"key {self.key}", supersedes=self.live(number).id))

    # --- answers

    def asking(self) -> list[Matter]:
        return [matter for matter in self.replay.matters.values() if matter.phase in CARDS]

    @precondition(lambda self: self.asking())
    @rule(number=PICKS, which=PICKS, by=ACTORS, data=st.data())
    def answer(self, number: int, which: int, by: Actor, data: st.DataObject) -> None:
        self.do_answer(pick(number, self.asking()), which, by, data)

    @precondition(lambda self: self.asking())
    @rule(number=PICKS, which=PICKS, by=ACTORS, data=st.data())
    def answer_forward(self, number: int, which: int, by: Actor, data: st.DataObject) -> None:
        """Answer so that the thread goes on, which random answers seldom do."""
        self.driver.mind.mood = {}
        matter = pick(number, self.asking())
        for _ in range(3):
            if matter.phase in CARDS:
                self.do_answer(matter, which, by, data, main=True)
                self.attempt(lambda: self.driver.drain(limit=4))
                self.see()

    def do_answer(self, matter: Matter, which: int, by: Actor, data: st.DataObject, *, main: bool = False) -> None:
        card = self.driver.card(matter.id)
        triggers = statement.answers(matter.phase, cleaner=True)
        offered = [answer.name for answer in card.answers if answer.name != "later"]
        what = pick(which, offered[:1] if main else offered)
        given = self.given(what, matter, data)
        moves = len(matter.path)
        if self.attempt(lambda: self.driver.threads.answer(card, what, by=by, **given)):
            self.see()
            assert len(matter.path) == moves + 1, f"{what} with {given} did not move {matter.phase}"
            assert matter.path[-1][0] == triggers[what]

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

    def closed(self) -> list[str]:
        return [card for matter in self.replay.matters.values() for card in matter.cards if card != matter.card]

    @precondition(lambda self: self.closed())
    @rule(number=PICKS, which=PICKS, by=ACTORS)
    def answer_a_closed_card(self, number: int, which: int, by: Actor) -> None:
        card = self.driver.threads.card(pick(number, self.closed())).card
        answer = pick(which, card.answers)
        whole: dict[str, Any] = {"text": "again", "to": "mara", "until": self.driver.clock() + 7, "parameters": {}}
        # An edit or a provided thing needs nothing in particular, but something.
        more = answer.takes[:1] if answer.name in ("edit", "provide") and not answer.needs else ()
        whole["action"] = "plain"
        given = {name: whole[name] for name in (*answer.needs, *more)}
        with pytest.raises((CardClosed, Killed)):
            self.driver.threads.answer(card, answer.name, by=by, **given)
        if self.driver.faults.dead:
            self.crashed, self.driver = True, self.driver.again()
        assert not self.driver.lines(after=self.replay.position)

    @precondition(lambda self: self.asking())
    @rule(number=PICKS, seconds=STEPS)
    def later(self, number: int, seconds: float) -> None:
        until = self.driver.clock() + seconds
        self.attempt(lambda: self.driver.answer(pick(number, self.asking()).id, "later", until=until))

    @rule(number=PICKS, what=st.sampled_from(["dismiss", "take_over", "cancel", "resolve"]), by=ACTORS)
    def end(self, number: int, what: str, by: Actor) -> None:
        threads, id = self.driver.threads, self.live(number).id
        does: dict[str, Callable[[], object]] = {
            "dismiss": lambda: threads.dismiss(id, by=by),
            "take_over": lambda: threads.take_over(id, by=by, to="mara"),
            "cancel": lambda: threads.cancel(id, by=by),
            "resolve": lambda: threads.resolve(id, "it is over"),
        }
        self.attempt(does[what])

    @precondition(lambda self: any(matter.children for matter in self.replay.matters.values()))
    @rule(number=PICKS, what=st.sampled_from(["approve", "accept", "dismiss"]))
    def answer_children(self, number: int, what: AnswerName) -> None:
        parents = [matter.id for matter in self.replay.matters.values() if matter.children]
        self.attempt(lambda: self.driver.threads.answer_children(pick(number, parents), what, by=MARA))

    # --- additions

    @rule(number=PICKS, policy=st.sampled_from([*POLICIES]), by=ACTORS)
    def policy(self, number: int, policy: str, by: Actor) -> None:
        if chosen := POLICIES[policy]:
            self.attempt(lambda: self.driver.threads.set_policy(self.live(number).id, chosen, by=by))

    @rule(number=PICKS, run=st.sampled_from([None, "live", "ended"]), text=st.sampled_from(TEXTS))
    def add(self, number: int, run: RunStatus | None, text: str) -> None:
        id = self.thread(number).id
        piece = Evidence(id=f"e{self.replay.position}", label="a line", text=text)
        self.attempt(lambda: self.driver.threads.add_evidence(id, piece, by=AGENT, run=run))
        self.attempt(lambda: self.driver.threads.note(id, text, by=MARA))

    # --- what always holds

    @invariant()
    def rows_follow_from_the_logs(self) -> None:
        self.see()

    @rule()
    def nothing_needs_repair(self) -> None:
        check(self.driver, self.replay)
        if not self.crashed:
            assert self.driver.threads.doctor() == ()

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            try:
                self.end_all()
            finally:
                self.driver.__exit__()
                self.folder.__exit__(None, None, None)

    def end_all(self) -> None:
        """At rest, everything has ended or asks somebody; then nobody answers, and time ends it all."""
        self.nothing_needs_repair()
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
    max_examples=300 if WHOLE else 15,
    stateful_step_count=60 if WHOLE else 30,
    phases=[*Phase] if WHOLE else [Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
