"""The card of a wait phase: everything that a person needs to answer, and the answers that the table allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from .catalogue import Bound
from .errors import Refused
from .phases import STAGES, Addition, AnswerName, CardKind, Phase, Stage, Trigger
from .policy import GateResult
from .table import CARD_KINDS, CELLS
from .values import Answer, Card, Failed, Proposal, Risk, Thread

if TYPE_CHECKING:
    from .rules import Rules

MANY_REDIRECTS = 3
"""The number of redirects from which on a card offers `take_over` among its first answers."""

Answers: TypeAlias = Mapping[AnswerName, "Trigger | Addition"]

ANSWERS: Mapping[CardKind, Answers] = MappingProxyType(
    {
        "confirmation": {
            "accept": Trigger.CONFIRMED, "edit": Trigger.EDITED, "redirect": Trigger.REDIRECTED,
        },
        "clarification": {"provide": Trigger.PROVIDED, "skip": Trigger.DISMISSED_BY_USER},
        "consent": {"approve": Trigger.EXECUTE, "edit": Trigger.EDITED, "reject": Trigger.REJECTED},
        "review": {
            "done": Trigger.REVIEW_ACCEPTED, "redirect": Trigger.REDIRECTED, "drop": Trigger.DISMISSED_BY_USER,
        },
        "redirect": {"provide": Trigger.PROVIDED, "skip": Trigger.DISMISSED_BY_USER},
        "cleanup_failure": {
            "retry": Trigger.RETRY_CLEANUP, "accept_failure": Trigger.ACCEPT_CLEANUP_FAILURE,
        },
    }
)  # fmt: skip
"""The answers that each kind of card offers first."""
ALSO: Answers = MappingProxyType(
    {
        "redirect": Trigger.REDIRECTED,
        "take_over": Trigger.HANDED_OFF_BY_USER,
        "clean_up": Trigger.CLEANUP_REQUESTED,
        "later": Addition.DEFER,
        "dismiss": Trigger.DISMISSED_BY_USER,
    }
)
"""The other answers, which a card offers if the table has their cell and no first answer has the same trigger."""


def answers_of(phase: Phase) -> Answers:
    """Return every answer that the table allows in a wait phase, and none in other phases."""
    first = ANSWERS[CARD_KINDS[phase]] if phase in CARD_KINDS else {}
    also = {
        name: trigger
        for name, trigger in ALSO.items()
        if first and trigger not in first.values() and (trigger is Addition.DEFER or (phase, trigger) in CELLS)
    }
    return {**first, **also}


def trigger_of(card: Card, answer: str) -> Trigger | Addition:
    """Return the trigger of an answer. Raises `Refused` for one that the card does not offer."""
    offered = {each.name for each in card.answers}
    for name, trigger in answers_of(card.phase).items():
        if name == answer and name in offered:
            return trigger
    shown = ", ".join(each.name for each in card.answers)
    raise Refused(card.thread_id, answer, f"the card {card.id!r} offers: {shown}")


_NEEDS: Mapping[tuple[AnswerName, CardKind | None], tuple[str, ...]] = {
    ("edit", "confirmation"): ("text",),
    ("provide", "redirect"): ("text",),
    ("take_over", None): ("to",),
    ("later", None): ("until",),
}
_TAKES: Mapping[tuple[AnswerName, CardKind | None], tuple[str, ...]] = {
    ("edit", "consent"): ("parameters", "action", "text"),
    ("redirect", None): ("text", "stage"),
    ("provide", "redirect"): ("stage",),
    ("skip", None): ("reason",),
    ("reject", None): ("reason",),
    ("drop", None): ("reason",),
    ("dismiss", None): ("reason",),
    ("take_over", None): ("reason",),
}
_LABELS: Mapping[AnswerName, str] = {
    "accept": "Accept this",
    "edit": "Correct it",
    "redirect": "Ask again, with other words or from an earlier stage",
    "provide": "Say what is missing",
    "skip": "Drop the matter",
    "approve": "Run it exactly as shown",
    "reject": "Do not run it",
    "done": "Accept the outcome",
    "drop": "Close the matter without accepting the outcome",
    "retry": "Try the clean-up again",
    "accept_failure": "Leave it as it is",
    "take_over": "Hand the matter to a person or team",
    "dismiss": "Close the matter",
    "clean_up": "It was solved elsewhere: clean up its cause",
    "later": "Ask again later",
}


HOW_TO_GO_ON = "Say what to do next"
"""The label of "provide" after a failed execution."""


def card_of(
    thread: Thread, rules: Rules, *, at: float, expires_at: float | None, gates: Sequence[GateResult] = ()
) -> Card | None:
    """Return the card of a thread's wait phase, with the `gates` that were judged on entering; None in other phases."""
    kind = CARD_KINDS.get(thread.phase)
    if kind is None:
        return None
    subject = _subject(thread, kind, rules)
    return Card(
        id=f"{thread.id}.{thread.entered}", thread_id=thread.id, org_id=thread.org_id, kind=kind, phase=thread.phase,
        stage=thread.stage, title=thread.cause.title, cause=thread.cause.kind, opened_at=at, expires_at=expires_at,
        run_id=thread.cause.run_id, run=thread.run, evidence=thread.evidence, facts=thread.facts,
        why_asking=tuple(Failed(gate=g.gate, value=g.value, limit=g.limit) for g in gates if not g.passed),
        problem=_problem(thread, subject), proposal=subject.text, question=subject.question, author=subject.author,
        confidence=subject.confidence, action=subject.action, parameters=subject.parameters, hash=subject.hash,
        checked=subject.checked, risk=subject.risk, report=_report(thread, kind), passed=_passed(thread, kind),
        answers=tuple(_offered(thread, kind, subject, rules)), actions=_pickable(thread, kind, rules),
        spent=thread.spent, budget=rules.in_force(thread).budget, redirects=thread.redirects, parent=thread.parent,
        deferred_until=thread.deferred_until,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """The thing that the card asks about: a text, a question, or an action."""

    text: str = ""
    question: str = ""
    author: str = ""
    confidence: float | None = None
    action: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    hash: str | None = None
    checked: bool = True
    risk: Risk | None = None
    fault: str = ""
    """The reason why the action could not run as proposed."""


def _subject(thread: Thread, kind: CardKind, rules: Rules) -> _Subject:
    if kind in ("review", "redirect") and thread.approved:
        done = thread.approved
        spec = rules.catalogue.specs.get(done.action)
        return _Subject(
            author=done.by,
            action=done.action,
            parameters=done.parameters,
            hash=done.hash,
            risk=spec.risk if spec else None,
        )
    proposal = thread.proposals.get(thread.stage)
    if proposal is None or kind == "cleanup_failure":
        return _Subject()
    if thread.stage is Stage.ACTION and proposal.question is None:
        return _action(proposal, thread, rules)
    return _Subject(
        text=_text(proposal), question=proposal.question or "", author=proposal.author, confidence=proposal.confidence
    )


def _action(proposal: Proposal, thread: Thread, rules: Rules) -> _Subject:
    """Return the proposed action as it would run; without a hash if it could not."""
    name, parameters = proposal.body.get("action"), proposal.body.get("parameters", {})
    bound = rules.catalogue.bind(name, parameters, thread)
    author, confidence = proposal.author, proposal.confidence
    if isinstance(bound, Bound):
        return _Subject(
            author=author, confidence=confidence, action=bound.action, parameters=bound.parameters, hash=bound.hash,
            checked=bound.checked, risk=bound.spec.risk,
        )  # fmt: skip
    spec = rules.catalogue.specs.get(name) if isinstance(name, str) else None
    return _Subject(
        author=author, confidence=confidence, action=name if isinstance(name, str) else None,
        parameters=parameters if isinstance(parameters, Mapping) else {}, checked=False,
        risk=spec.risk if spec else None, fault=bound,
    )  # fmt: skip


def _text(proposal: Proposal) -> str:
    found = proposal.body.get("text", "")
    return found if isinstance(found, str) else ""


def _problem(thread: Thread, subject: _Subject) -> str:
    known = thread.problem.text if thread.problem else ""
    return "; ".join(filter(None, (known, subject.fault)))


def _report(thread: Thread, kind: CardKind) -> str:
    report = thread.execution.report if thread.execution and kind in ("review", "redirect") else None
    return report.summary if report else ""


def _passed(thread: Thread, kind: CardKind) -> tuple[tuple[Stage, str], ...]:
    """Return the stages before the present one with their texts."""
    before = STAGES[: STAGES.index(thread.stage)]
    return tuple((stage, _text(thread.proposals[stage])) for stage in before if stage in thread.proposals)


def _offered(thread: Thread, kind: CardKind, subject: _Subject, rules: Rules) -> Iterable[Answer]:
    names = [*answers_of(thread.phase)]
    if "approve" in names and subject.hash is None:
        names.remove("approve")
    if "clean_up" in names and thread.cause.kind not in rules.cleaned:
        names.remove("clean_up")
    if "take_over" in names and thread.redirects >= MANY_REDIRECTS:
        names.remove("take_over")
        names.insert(sum(name in ANSWERS[kind] for name in names), "take_over")
    for name in names:
        needs, takes = _NEEDS.get((name, kind)) or _NEEDS.get((name, None), ()), _TAKES.get((name, kind))
        takes = takes or _TAKES.get((name, None), ())
        if name == "provide" and kind == "clarification":
            needs, takes = _provided(thread.stage)
        label = HOW_TO_GO_ON if name == "provide" and kind == "redirect" else _LABELS[name]
        yield Answer(name=name, label=label, needs=needs, takes=takes)


def _provided(stage: Stage) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields of an answer to a clarification: words, or, at the action stage, a chosen action."""
    return ((), ("text", "action", "parameters")) if stage is Stage.ACTION else (("text",), ())


def _pickable(thread: Thread, kind: CardKind, rules: Rules) -> tuple[str, ...]:
    if thread.stage is not Stage.ACTION or kind not in ("clarification", "consent"):
        return ()
    return tuple(offered.name for offered in rules.catalogue.offered(thread) if offered.unavailable is None)
