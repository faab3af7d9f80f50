"""A walk of one thread through the pure rules alone: commands in, events, head and rows out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from reasonblocks_threads.catalogue import Action, Bound, Catalogue
from reasonblocks_threads.codec import encode, head_json, head_of
from reasonblocks_threads.decide import decide
from reasonblocks_threads.entry import entry
from reasonblocks_threads.log import fold, fold_all
from reasonblocks_threads.phases import STAGES, Addition, Phase, Stage, Trigger
from reasonblocks_threads.policy import HANDS_OFF
from reasonblocks_threads.rules import Rules
from reasonblocks_threads.values import (
    SYSTEM,
    Actor,
    Cause,
    Command,
    Execution,
    ExpectVersion,
    Policy,
    Proposal,
    Report,
    Risk,
    Rows,
    Thread,
    ThreadEvent,
    thread_id_of,
)

MARA = Actor.person("mara")
OPERATOR = Actor.operator("olga")
AGENT = Actor.agent("coder")


class Deploy(BaseModel):
    service: str
    version: int = 1
    run_id: str | None = None


def ran(parameters: Deploy, execution: Execution) -> Report:
    return Report.ok()


GRAVE = Risk(irreversibility="high", amplifiers=frozenset({"external_effect"}))
ACTIONS = (
    Action("deploy", Deploy, ran, risk=GRAVE, bind={"run_id": "run_id"}),
    Action("tidy", Deploy, ran, risk=Risk(irreversibility="low", regret="low"), auto=True, idempotent=True),
    Action("check", Deploy, ran, auto=True, review=True),
)
RULES = Rules(
    catalogue=Catalogue.of(ACTIONS), installation=Policy(auto_advance=frozenset(STAGES)), cleaned=frozenset({"stall"})
)


def given(stage: Stage, *, confidence: float = 0.9, action: str = "deploy") -> Proposal:
    """A proposal of a stage."""
    if stage is Stage.ACTION:
        return Proposal.of_action(action, {"service": "web"}, confidence=confidence)
    return Proposal(stage=stage, body={"text": f"the {stage.value}"}, confidence=confidence)


class Walk:
    """A thread that only commands move. Every step checks what holds for all of them."""

    def __init__(self, *, policy: Policy = HANDS_OFF, rules: Rules = RULES, key: str = "k", **opening: Any) -> None:
        self.rules, self.now, self.sent, self.person = rules, 1_000.0, 0, MARA
        self.thread: Thread | None = None
        self.log: list[ThreadEvent] = []
        self.rows = Rows()
        cause = Cause(kind="stall", key=key, title="Web is stuck", run_id="run-1")
        self.id = thread_id_of("org", key)
        data = {"org_id": "org", "cause": encode(cause), "policy": plain_policy(policy), **opening}
        self.send(Addition.OPEN, data, by=AGENT)

    @property
    def head(self) -> Thread:
        assert self.thread is not None
        return self.thread

    @property
    def phase(self) -> Phase:
        return self.head.phase

    def command(self, trigger: Trigger | Addition, data: Mapping[str, Any], by: Actor) -> Command:
        self.sent += 1
        self.now += 1.0
        version = self.thread.version if self.thread else 0
        return Command(
            id=f"c{self.sent}", thread_id=self.id, trigger=trigger, expect=ExpectVersion(version=version), actor=by,
            at=self.now, data=data,
        )  # fmt: skip

    def send(
        self, trigger: Trigger | Addition, data: Mapping[str, Any] | None = None, *, by: Actor = SYSTEM
    ) -> tuple[ThreadEvent, ...]:
        """Decide a command, fold its events, and enter the phase. Raises what `decide` raises."""
        command = self.command(trigger, data or {}, by)
        events = decide(self.thread, command, self.rules)
        before = self.thread
        for event in events:
            self.thread = fold(self.thread, event)
            self.log.append(event)
        self.rows = entry(before, self.head, self.rules, at=self.now, events=events)
        return events

    def check(self) -> None:
        """Check that the log, the head and its stored form agree."""
        assert fold_all(self.log) == self.thread
        assert self.head.unreadable is None
        assert head_of(head_json(self.head)) == self.head
        assert [event.seq for event in self.log] == [*range(1, len(self.log) + 1)]

    def infer(self, *proposals: Proposal, **data: Any) -> Walk:
        """Start the inference of the present stage and end it with proposals."""
        self.send(Trigger.INFERENCE_STARTED, {"work": "w"})
        call = {"id": f"call{self.sent}", "tokens": 10, "usd": 0.01}
        found = [encode(each) for each in proposals or (given(self.head.stage),)]
        self.send(Trigger.INFERENCE_DONE, {"proposals": found, "call": call, "preconditions": [], **data})
        return self

    def bound(self) -> Bound:
        """The open action as it would run."""
        body = self.head.proposals[Stage.ACTION].body
        bound = self.rules.catalogue.bind(str(body["action"]), body["parameters"], self.head)
        assert isinstance(bound, Bound)
        return bound

    def execute(self) -> Walk:
        self.send(Trigger.EXECUTE, {"hash": self.bound().hash}, by=self.person)
        return self

    def started(self) -> Walk:
        execution = self.head.execution
        assert execution is not None
        data = {"execution": execution.id, "hash": execution.hash, "deadline_at": self.now + 60}
        self.send(Addition.EXECUTION_STARTED, data)
        return self

    def finish(self, report: Report, **data: Any) -> Walk:
        """End the present execution with a report."""
        execution = self.head.execution
        assert execution is not None
        trigger = Trigger.EXECUTION_DONE if report.succeeded else Trigger.EXECUTION_FAILED
        self.send(trigger, {"execution": execution.id, "report": encode(report), **data})
        return self

    def to_consent(self, action: str = "deploy") -> Walk:
        """Walk from proposed to the consent card of an action."""
        self.send(Trigger.BEGIN_INFERENCE)
        for _ in (Stage.INTENT, Stage.CONTEXT):
            self.infer().send(Trigger.CONFIRMED, by=MARA)
        return self.infer(given(Stage.ACTION, action=action))

    def to_executing(self, action: str = "deploy") -> Walk:
        return self.to_consent(action).execute().started()


def plain_policy(policy: Policy) -> Mapping[str, object]:
    from reasonblocks_threads.policy import policy_json

    return policy_json(policy)


CHILDREN = [{"cause": encode(Cause(kind="stall", key=f"child {n}", title="A part"))} for n in (1, 2)]


def reached(phase: Phase) -> Walk:
    """A walk that has just entered a phase."""
    walk = Walk()
    stage = next((each for each in STAGES if each.value in phase.value), Stage.INTENT)
    if phase is Phase.PROPOSED:
        return walk
    if phase is Phase.MONITORING:
        walk.send(Trigger.DECOMPOSED, {"children": CHILDREN})
    elif phase in (Phase.CLEANING_UP, Phase.DONE_CLEANUP_UNSUCCESSFUL, Phase.DONE_CLEANUP_SUCCESSFUL):
        _cleaned(walk, phase)
    elif phase in (Phase.DISMISSED, Phase.HANDED_OFF):
        trigger = Trigger.DISMISSED_BY_USER if phase is Phase.DISMISSED else Trigger.HANDED_OFF_BY_USER
        walk.send(trigger, {"to": "olga"}, by=MARA)
    elif phase is Phase.AWAITING_CONFIRMATION:
        walk.to_consent()
    elif phase in (Phase.EXECUTING, Phase.AWAITING_REVIEW, Phase.AWAITING_REDIRECT, Phase.DONE):
        _executed(walk, phase)
    else:
        _inferred(walk, phase, stage)
    assert walk.phase is phase
    return walk


def _cleaned(walk: Walk, phase: Phase) -> None:
    walk.send(Trigger.BEGIN_INFERENCE)
    walk.infer().send(Trigger.CLEANUP_REQUESTED, by=MARA)
    if phase is Phase.DONE_CLEANUP_UNSUCCESSFUL:
        walk.send(Trigger.CLEANUP_FAILED, {"detail": "no answer"})
    elif phase is Phase.DONE_CLEANUP_SUCCESSFUL:
        walk.send(Trigger.CLEANUP_SUCCEEDED)


def _executed(walk: Walk, phase: Phase) -> None:
    walk.to_executing("deploy" if phase is Phase.AWAITING_REVIEW else "tidy")
    if phase is Phase.AWAITING_REDIRECT:
        walk.finish(Report.failed("it broke"))
    elif phase is not Phase.EXECUTING:
        walk.finish(Report.ok("it worked"))


def _inferred(walk: Walk, phase: Phase, stage: Stage) -> None:
    walk.send(Trigger.BEGIN_INFERENCE)
    while walk.head.stage is not stage:
        walk.infer().send(Trigger.CONFIRMED, by=MARA)
    if phase is Phase.AWAITING_INFERENCE:
        return
    if phase.value.endswith("_confirmation"):
        walk.infer()
        return
    walk.send(Trigger.INFERENCE_STARTED, {"work": "w"})
    if phase.value.endswith("_clarification"):
        walk.send(Trigger.INFERENCE_FAILED, {"code": "failed", "detail": "no answer"})


def walk_cause(**changes: Any) -> Cause:
    return replace(Cause(kind="stall", key="k", title="Stuck"), **changes)
