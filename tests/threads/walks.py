"""The thirty golden walks as paths, and a walker that goes on from wherever a walk is, also in a new process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasonblocks_threads import Budget, Policy, RuleInferencer, Stage, Threads
from tests.threads.driver import ASK_ALL, END_TO_END, KNOWN, MARA, Driver, plain_policy
from tests.threads.model import Matter, Replay
from tests.threads.statement import CARDS, EARLIEST, HUMAN, answers

BEGIN = "begin_inference awaiting_inference "


def seek(stage: str, then: str) -> str:
    """Return the part of a path in which a stage is inferred."""
    return f"inference_started inferring_{stage} inference_done {then} "


INTENT, CONTEXT = seek("intent", "awaiting_inference"), seek("context", "awaiting_inference")
ACTION = seek("action", "awaiting_confirmation")
CONSENT = BEGIN + INTENT + CONTEXT + ACTION
RUN = "execute executing "
DONE = "execution_done done "
LOW_INTENT = BEGIN + seek("intent", "awaiting_intent_confirmation")


@dataclass(frozen=True)
class Walk:
    """A path of triggers and phases, the policy, the action, and what the person adds to each answer, by trigger."""

    path: str
    policy: Policy = field(default_factory=Policy)
    action: str = "tidy"
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    children: bool = False
    """The thread is opened with two children, which are dismissed."""
    rule: str = "all_of"
    how: str | None = None
    """The parameter of the action, if it does not follow from its outcome."""
    below: bool = False
    """The thread is opened below another, and a third one below it; the one above is dismissed."""

    @property
    def moves(self) -> list[tuple[str, str]]:
        words = self.path.split()
        return list(zip(words[::2], words[1::2], strict=True))


HOW = {
    ("execution_done", "awaiting_review"): "ok",
    ("execution_done", "handed_off"): "hand_off",
    ("execution_failed", "awaiting_redirect"): "fail",
}
"""The parameter of an action by its outcome."""
PICK = {"provided": {"action": "tidy", "parameters": {"n": 4}}}
WORDS = {"provided": {"text": "the database is slow"}}
WALKS: Mapping[str, Walk] = {
    "W1": Walk(
        LOW_INTENT
        + "confirmed awaiting_inference "
        + seek("context", "awaiting_context_confirmation")
        + "confirmed awaiting_inference "
        + ACTION
        + RUN
        + DONE,
        policy=ASK_ALL,
    ),
    "W2": Walk(CONSENT),
    "W3": Walk(BEGIN + INTENT + CONTEXT + seek("action", "executing") + DONE, policy=END_TO_END),
    "W4": Walk(CONSENT + RUN + "execution_done awaiting_review review_accepted done", policy=END_TO_END, action="ship"),
    "W5": Walk(LOW_INTENT, policy=END_TO_END),
    "W6": Walk(
        BEGIN
        + "inference_started inferring_intent inference_failed awaiting_intent_clarification "
        + "provided awaiting_inference "
        + INTENT,
        given=WORDS,
    ),
    "W7": Walk(
        BEGIN + "inference_rejected awaiting_intent_clarification dismissed_by_user dismissed",
        policy=Policy(budget=Budget(calls=0)),
    ),
    "W8": Walk(BEGIN + "timeout awaiting_intent_clarification timeout dismissed"),
    "W9": Walk("dismissed_by_user dismissed"),
    "W10": Walk(LOW_INTENT + "confirmed awaiting_inference dismissed_by_user dismissed"),
    "W11": Walk(
        LOW_INTENT + "redirected awaiting_inference " + seek("intent", "awaiting_intent_confirmation"),
        given={"redirected": {"text": "look at the network"}},
    ),
    "W12": Walk(
        CONSENT + "redirected awaiting_inference " + ACTION,
        given={"redirected": {"text": "another one", "stage": Stage.ACTION}},
    ),
    "W13": Walk(
        CONSENT + "redirected awaiting_inference inference_started inferring_intent",
        given={"redirected": {"text": "all wrong", "stage": Stage.INTENT}},
    ),
    "W14": Walk(
        CONSENT + "edited awaiting_confirmation " + RUN + DONE, given={"edited": {"parameters": {"n": 7, "how": "ok"}}}
    ),
    "W15": Walk(CONSENT + "rejected dismissed"),
    "W16": Walk(
        BEGIN
        + INTENT
        + CONTEXT
        + seek("action", "awaiting_action_clarification")
        + "provided awaiting_confirmation "
        + RUN,
        given=PICK,
    ),
    "W17": Walk(
        BEGIN
        + INTENT
        + CONTEXT
        + seek("action", "awaiting_action_clarification")
        + "provided awaiting_inference inference_started inferring_action",
        given=WORDS,
    ),
    "W18": Walk(
        CONSENT + RUN + "execution_failed awaiting_redirect provided awaiting_inference " + ACTION + RUN + DONE,
        given=WORDS,
    ),
    "W19": Walk(
        CONSENT + RUN + "execution_done awaiting_review redirected awaiting_inference",
        action="check",
        given={"redirected": {"text": "do it again"}},
    ),
    "W20": Walk(CONSENT + RUN + "execution_done awaiting_review timeout done", action="check"),
    "W21": Walk(
        CONSENT + RUN + "execution_failed awaiting_redirect dismissed_by_user dismissed", action="touch", how="die"
    ),
    "W22": Walk(CONSENT + RUN + "execution_done handed_off"),
    "W23": Walk(
        BEGIN
        + INTENT
        + "inference_started inferring_context inference_failed awaiting_context_clarification "
        + "handed_off_by_user handed_off"
    ),
    "W24": Walk(CONSENT + RUN + "execution_done monitoring execution_done done", action="decompose"),
    "W25": Walk("decomposed monitoring execution_done dismissed", children=True, rule="alternatives"),
    "W26": Walk("decomposed monitoring parent_force_close dismissed", children=True, below=True),
    "W27": Walk(CONSENT + "cleanup_requested cleaning_up cleanup_succeeded done_cleanup_successful"),
    "W28": Walk(
        LOW_INTENT
        + "cleanup_requested cleaning_up cleanup_failed done_cleanup_unsuccessful "
        + "retry_cleanup cleaning_up cleanup_failed done_cleanup_unsuccessful accept_cleanup_failure done"
    ),
    "W29": Walk(CONSENT + "source_resolved dismissed"),
    "W30": Walk(BEGIN + "dismissed_by_user dismissed"),
}

ANSWERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "confirmed": ("accept", {}),
    "edited": ("edit", {"text": "it is another thing"}),
    "redirected": ("redirect", {"text": "try again"}),
    "provided": ("provide", {"text": "it is like that"}),
    "execute": ("approve", {}),
    "rejected": ("reject", {}),
    "review_accepted": ("done", {}),
    "cleanup_requested": ("clean_up", {}),
    "retry_cleanup": ("retry", {}),
    "accept_cleanup_failure": ("accept_failure", {}),
    "dismissed_by_user": ("dismiss", {}),
    "handed_off_by_user": ("take_over", {"to": "mara"}),
}
"""The answer that pulls each human trigger, with the least that it needs."""


class Walker:
    """Goes on with a walk from wherever its thread is; every process makes one of its own.

    After a crash the walk may take a detour: an execution or a clean-up whose end nobody saw asks a person, who has it
    done once more.
    """

    def __init__(self, driver: Driver, walk: Walk) -> None:
        self.driver, self.walk = driver, walk
        self.replay = Replay(KNOWN, plain_policy(driver.policy))
        self.id = self._open()

    def _open(self) -> str:
        """Open the thread, or find it: the same key is the same thread."""
        driver, walk = self.driver, self.walk
        if walk.below:
            above = driver.open("above")
            thread = driver.open("walk", parent=above.id)
            driver.open("leaf", parent=thread.id, policy=ASK_ALL)
            return thread.id
        children = [driver.cause("one"), driver.cause("two")] if walk.children else []
        return driver.open("walk", policy=walk.policy, children=children, rule=walk.rule).id

    @property
    def matter(self) -> Matter:
        self.replay.take_all(self.driver.lines(after=self.replay.position))
        return self.replay.matters[self.id]

    def along(self) -> tuple[int, str | None]:
        """Return how many moves of the walk are done, and the phase that a detour leads back to."""
        done, lost, here = 0, None, "proposed"
        moves = self.walk.moves
        for move in self.matter.path:
            if lost is not None:
                lost = None if move[1] == lost else lost
            elif done < len(moves) and move == moves[done]:
                done += 1
            else:
                lost = here
            here = move[1]
        return done, lost

    def go(self) -> Matter:
        """Walk to the end."""
        for _ in range(200):
            done, lost = self.along()
            if done == len(self.walk.moves) and lost is None:
                return self.matter
            self.prepare(done)
            trigger = self.walk.moves[done][0]
            if lost is None:
                self.pull(trigger)
            else:
                self.return_to()
        raise AssertionError(f"{self.id} does not come to an end: {self.matter.path}")

    def prepare(self, done: int) -> None:
        """Set the inferencer, the actions and the cleaner so that the next outcome is the walk's."""
        driver, rest = self.driver, self.walk.moves[done:]
        outcomes = [move for move in rest if move[0] in ("execution_done", "execution_failed", "timeout")]
        how = self.walk.how or next((HOW[move] for move in outcomes if move in HOW), "ok")
        driver.mind.action, driver.mind.parameters = self.walk.action, {"how": how}
        if self.walk.action == "decompose":
            parts = [{"key": "one", "title": "One"}, {"key": "two", "title": "Two"}]
            driver.mind.parameters = {"children": parts}
        driver.mind.mood = self._mood(rest)
        ends = [trigger for trigger, _ in rest if trigger in ("cleanup_succeeded", "cleanup_failed")]
        driver.broom.works = ends[:1] != ["cleanup_failed"]

    def _mood(self, rest: list[tuple[str, str]]) -> dict[str, str]:
        if len(rest) == 1 and rest[0][0] == "inference_started":
            return dict.fromkeys(("intent", "context", "action"), "die")
        for trigger, phase in rest:
            if trigger == "inference_failed":
                return {phase.split("_")[1]: "raise"}
            if trigger == "inference_done":
                asks = phase in ("awaiting_intent_confirmation", "awaiting_context_confirmation")
                question = {"action": "question"} if phase == "awaiting_action_clarification" else {}
                return {phase.split("_")[1]: "low"} if asks else question
        return {}

    def pull(self, trigger: str) -> None:
        """Do what leads to the next move of the walk."""
        threads, here = self.driver.threads, self.matter.phase
        if trigger in HUMAN and here in CARDS:
            what, needs = ANSWERS[trigger]
            offered = answers(here, cleaner=True)
            what = what if what in offered else next(name for name, pulls in offered.items() if pulls == trigger)
            self.driver.answer(self.id, what, **(self.walk.given.get(trigger) or needs))
        elif trigger == "dismissed_by_user":
            threads.dismiss(self.id, by=MARA)
        elif trigger == "source_resolved":
            threads.resolve(self.id, "the run has recovered")
        elif trigger == "timeout":
            self._timeout(here)
        else:
            self._close_others(trigger, here)
            self.do_one()

    def _close_others(self, trigger: str, here: str) -> None:
        """End the children of a walk that waits for them, or the thread above it."""
        others = [id for id, one in self.replay.matters.items() if id != self.id and not one.ended]
        if (trigger, here) == ("execution_done", "monitoring"):
            ends = [id for id in others if self.driver.get(id).parent == self.id]
        else:
            ends = [id for id in others if self.driver.get(id).cause.key == "above"] * (trigger == "parent_force_close")
        for id in ends:
            self.driver.threads.dismiss(id, by=MARA)

    def do_one(self) -> None:
        """Do the most urgent work; if none is due, wait for the end of a lease that a dead process holds."""
        for _ in range(60):
            before = self.matter.version
            if self.driver.dies() or self.matter.version > before:
                return
            self.driver.clock.advance(5)
        raise AssertionError(f"nothing is due, and {self.id} is {self.matter.phase}")

    def _timeout(self, here: str) -> None:
        driver = self.driver
        driver.clock.advance(901 if here == "awaiting_inference" else EARLIEST[here])
        if here == "awaiting_inference":
            # Nobody who can infer is there: another process, with another inferencer, does what is due.
            with Threads(driver.store, inferencer=RuleInferencer(), clock=driver.clock, policy=driver.policy) as other:
                other.drain()
        else:
            driver.drain()

    def return_to(self) -> None:
        """Take the next step of a detour."""
        self.driver.mind.mood = {}
        match self.matter.phase:
            case "awaiting_redirect":
                self.driver.answer(self.id, "provide", text="nobody saw how it ended")
            case "done_cleanup_unsuccessful":
                self.driver.answer(self.id, "retry")
            case "awaiting_confirmation":
                self.driver.answer(self.id, "approve")
            case _:
                self.do_one()
