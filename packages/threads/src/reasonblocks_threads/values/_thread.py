"""The head of a thread: the fold of its log, of at most 32 KB as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, TypeAlias

from ..phases import Phase, RunStatus, Stage
from ._action import Amplifier, Execution, Grade

HASH_CHARS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The author of a line of the log: "person", "operator" (a person who may loosen policies), "agent" or "system"."""

    kind: Literal["person", "operator", "agent", "system"]
    name: str

    @classmethod
    def person(cls, name: str) -> Actor:
        return cls(kind="person", name=name)

    @classmethod
    def operator(cls, name: str) -> Actor:
        return cls(kind="operator", name=name)

    @classmethod
    def agent(cls, name: str) -> Actor:
        return cls(kind="agent", name=name)

    @property
    def is_human(self) -> bool:
        return self.kind in ("person", "operator")


SYSTEM = Actor(kind="system", name="threads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A piece of evidence: data that agents and tools wrote. In a head, `text` has at most 400 characters.

    The text of `private` evidence is stored apart as a `blob`, so that it can be erased; in logs and heads it is "".
    """

    id: str
    label: str
    text: str = ""
    blob: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The reason for which a thread was opened.

    `key` identifies the thread: the same key is the same thread. Only one thread of a `family` can be live.
    """

    kind: str
    key: str
    title: str
    family: str | None = None
    run_id: str | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A suggestion for a stage, by an agent, an inferencer or a person. `id` is "" until it is in a log.

    `body` is `{"text"}` for an intent or a context, and `{"action", "parameters"}` for an action, or `{"question"}` if
    something is missing. `confidence` is in [0, 1]; no policy passes a proposal below its floor. `refs` are the ids of
    the evidence for it.
    """

    stage: Stage
    body: Mapping[str, object]
    confidence: float
    author: str = "agent"
    id: str = ""
    refs: tuple[str, ...] = ()

    @classmethod
    def of_intent(cls, text: str, *, confidence: float) -> Proposal:
        return cls(stage=Stage.INTENT, body={"text": text}, confidence=confidence)

    @classmethod
    def of_context(cls, text: str, *, confidence: float) -> Proposal:
        return cls(stage=Stage.CONTEXT, body={"text": text}, confidence=confidence)

    @classmethod
    def of_action(cls, action: str, parameters: Mapping[str, object], *, confidence: float) -> Proposal:
        return cls(stage=Stage.ACTION, body={"action": action, "parameters": dict(parameters)}, confidence=confidence)

    @classmethod
    def of_question(cls, question: str, *, confidence: float = 0.0) -> Proposal:
        """Return a proposal that asks a person for missing information."""
        return cls(stage=Stage.ACTION, body={"question": question}, confidence=confidence)

    @property
    def hash(self) -> str:
        """The hash of stage and body."""
        return digest({"stage": self.stage.value, "body": self.body})

    @property
    def question(self) -> str | None:
        """The question of a proposal that asks instead of naming an action."""
        found = self.body.get("question") if self.stage is Stage.ACTION else None
        return found if isinstance(found, str) else None


def digest(value: Mapping[str, object]) -> str:
    """Return the hash of plain JSON; equal values have equal hashes in every process. Raises ValueError for NaN."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that the inferences of a thread may cost. A call is admitted only before any of them is reached."""

    calls: int = 8
    tokens: int = 200_000
    usd: float = 0.50


Gate: TypeAlias = Literal[
    "auto_advance", "confidence", "consent_for", "kind", "name", "irreversibility", "regret", "amplifiers",
    "preconditions", "auto",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The conditions under which a stage passes without a person. An empty set allows nothing; None allows all names.

    `auto_advance`: the stages that may pass. `floor`: the least confidence. `consent_for`: actions that always need a
    person. `kinds`, `actions`: the kinds and names of actions that may pass. `irreversibility`, `regret`: the worst
    grades that may pass. `amplifiers`: those that may pass.
    """

    auto_advance: frozenset[Stage] = frozenset({Stage.INTENT, Stage.CONTEXT})
    floor: float = 0.6
    consent_for: frozenset[str] = frozenset()
    kinds: frozenset[str] | None = None
    actions: frozenset[str] | None = None
    irreversibility: Grade = "medium"
    regret: Grade = "medium"
    amplifiers: frozenset[Amplifier] = frozenset()
    review_above: Grade = "medium"
    """A person reviews the outcome of an action with a worse irreversibility."""
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A text that a person gave: an answer, a correction or the feedback of a redirect."""

    id: str
    by: str
    text: str
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The last problem of a thread, which its card shows: a `code` and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The approved action as it will run. `hash` covers the action, its parameters and version, and the run."""

    proposal: str
    action: str
    parameters: Mapping[str, object]
    hash: str
    by: str
    auto: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of a thread's inferences so far. Each call id counts once; `newest` has the last 16 ids."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    newest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A thread's child, and the phase in which it ended; None while it is live."""

    id: str
    ended: Phase | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One matter to decide. `version` is the seq of its last event, `entered` that of its last change of phase.

    `facts` has everything that persons said, `evidence` the newest 64 pieces, `proposals` the newest of each stage that
    no answer dropped. `problem` and `reason` explain the present phase.
    """

    id: str
    org_id: str
    cause: Cause
    phase: Phase
    stage: Stage
    version: int
    entered: int
    entered_at: float
    opened_at: float
    policy: Policy
    run: RunStatus = "unknown"
    facts: tuple[Fact, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    proposals: Mapping[Stage, Proposal] = field(default_factory=dict)
    approved: Approval | None = None
    execution: Execution | None = None
    spent: Spent = field(default_factory=Spent)
    parent: str | None = None
    ancestors: tuple[str, ...] = ()
    """The ids of the parent, the grandparent and so on, at most three."""
    children: tuple[Child, ...] = ()
    rule: Literal["all_of", "alternatives"] = "all_of"
    """The rule that determines the thread's end from those of its children."""
    problem: Problem | None = None
    follows: str | None = None
    reason: str = ""
    redirects: int = 0
    """The number of times that a person redirected it."""
    last: Proposal | None = None
    """The proposal that a person redirected, until its stage has a new one."""
    deferred_until: float | None = None
    attempt: int = 0
    """The number of executions so far."""
    carved: Budget = field(default_factory=lambda: Budget(calls=0, tokens=0, usd=0.0))
    """The part of its budget that its children received."""
    facts_bytes: int = 0
    evidence_bytes: int = 0
    """The sizes of facts and evidence as JSON, which are limited to bound the head."""
    unreadable: str | None = None
    """The reason why the thread cannot change: its log has a kind or form that this version does not know."""
