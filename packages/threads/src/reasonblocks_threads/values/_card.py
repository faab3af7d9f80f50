"""A card, which asks a person a question, and its possible answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..phases import AnswerName, CardKind, Phase, RunStatus, Stage
from ._action import Risk
from ._thread import Budget, Evidence, Fact, Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A gate that did not pass: its name, the value found, and the limit, as texts."""

    gate: str
    value: str
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A possible answer to a card. `needs` names its required fields, such as "text" or "to"."""

    name: AnswerName
    label: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    """The optional fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A question to a person. `id` consists of the thread's id and the seq of the event that opened the card.

    `proposal` is the text of an intent or context. `action` and `parameters` are an action exactly as it would run, and
    an approval names its `hash`, which is None if it could not run. `checked` is False if the parameters are invalid,
    or if the process that made the card does not have the action.
    """

    id: str
    thread_id: str
    org_id: str
    kind: CardKind
    phase: Phase
    stage: Stage
    title: str
    cause: str
    opened_at: float
    expires_at: float | None
    run_id: str | None = None
    run: RunStatus = "unknown"
    evidence: tuple[Evidence, ...] = ()
    facts: tuple[Fact, ...] = ()
    why_asking: tuple[Failed, ...] = ()
    problem: str = ""
    """A description of the last problem."""
    proposal: str = ""
    question: str = ""
    author: str = ""
    confidence: float | None = None
    action: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    hash: str | None = None
    checked: bool = True
    risk: Risk | None = None
    report: str = ""
    """The summary of the last execution."""
    passed: tuple[tuple[Stage, str], ...] = ()
    """The settled stages with their texts."""
    answers: tuple[Answer, ...] = ()
    actions: tuple[str, ...] = ()
    """The names of the actions that an answer may choose."""
    spent: Spent = field(default_factory=Spent)
    budget: Budget = field(default_factory=Budget)
    redirects: int = 0
    parent: str | None = None
    deferred_until: float | None = None
