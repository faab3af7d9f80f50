"""The head of a thread: the fold of its log, of at most 32 KB as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from ..phases import Phase, RunStatus, Stage
from ._action import Amplifier, Execution, Grade
from .json_values import MOST, Count, Flag, Number, Plain, Real, Share, Text, Whole, Words

HASH_CHARS = 32
_ID_CHARS = 20


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

    id: Text
    label: Words
    text: Words = ""
    blob: Text | None = None
    private: Flag = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The reason for which a thread was opened.

    `key` identifies the thread: the same key is the same thread. Only one thread of a `family` can be live.
    """

    kind: Text
    key: Text
    title: Text
    family: Text | None = None
    run_id: Text | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A suggestion for a stage, by an agent, an inferencer or a person. `id` is "" until it is in a log.

    `body` is `{"text"}` for an intent or a context, and `{"action", "parameters"}` for an action, or `{"question"}` if
    something is missing. `confidence` is in [0, 1]; no policy passes a proposal below its floor. `refs` are the ids of
    the evidence for it.
    """

    id: Text = ""
    stage: Stage
    body: Plain
    confidence: Share
    author: Text = "agent"
    refs: tuple[Text, ...] = ()

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


def thread_id_of(org_id: str, key: str) -> str:
    """Return the id of the thread of a key: the same in every process."""
    canonical = json.dumps([org_id, key], ensure_ascii=False, separators=(",", ":"))
    return f"th_{sha256(canonical.encode('utf-8', 'surrogatepass')).hexdigest()[:_ID_CHARS]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that the inferences of a thread may cost. A call is admitted only before any of them is reached."""

    calls: Whole = 8
    tokens: Whole = 200_000
    usd: Real = 0.50


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
    parameters: Plain
    hash: str
    by: str
    auto: Flag


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of a thread's inferences so far. Each call id counts once; `newest` has the last 16 ids."""

    calls: Whole = 0
    tokens: Whole = 0
    usd: Real = 0.0
    newest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A thread's child, and the phase in which it ended; None while it is live."""

    id: str
    ended: Phase | None = None


NOTHING = Budget(calls=0, tokens=0, usd=0.0)


def _from_nothing(value: object) -> object:
    """Return JSON of a budget with 0 in place of what is missing, which is no default of a policy."""
    return {**asdict(NOTHING), **value} if isinstance(value, Mapping) else value


def _within(costs: Any) -> Any:
    """Refuse costs that a sum must not have: negative ones, and those beyond every limit."""
    if not all(0 <= each <= MOST for each in (costs.calls, costs.tokens, costs.usd)):
        raise ValueError(f"costs are from 0 to {MOST}")
    return costs


Carved: TypeAlias = Annotated[Budget, BeforeValidator(_from_nothing), AfterValidator(_within)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One matter to decide. `version` is the seq of its last event, `entered` that of its last change of phase.

    `facts` has everything that persons said, `evidence` the newest 64 pieces, `proposals` the newest of each stage that
    no answer dropped. `problem` and `reason` explain the present phase. The order of the fields is that of a head.
    """

    id: str
    org_id: str
    cause: Cause
    phase: Phase
    stage: Stage
    version: Count
    entered: Count
    entered_at: Number
    opened_at: Number
    policy: Policy
    run: RunStatus = "unknown"
    rule: Literal["all_of", "alternatives"] = "all_of"
    """The rule that determines the thread's end from those of its children."""
    proposals: Mapping[Stage, Proposal] = field(default_factory=dict)
    spent: Annotated[Spent, AfterValidator(_within)] = field(default_factory=Spent)
    carved: Carved = NOTHING
    """The part of its budget that its children received."""
    reason: Words = ""
    redirects: Count = 0
    """The number of times that a person redirected it."""
    attempt: Count = 0
    """The number of executions so far."""
    facts_bytes: Count = 0
    evidence_bytes: Count = 0
    """The sizes of facts and evidence as JSON, which are limited to bound the head."""
    facts: tuple[Fact, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    ancestors: tuple[str, ...] = ()
    """The ids of the parent, the grandparent and so on, at most three."""
    children: tuple[Child, ...] = ()
    parent: str | None = None
    follows: str | None = None
    deferred_until: Number | None = None
    unreadable: str | None = None
    """The reason why the thread cannot change: its log has a kind or form that this version does not know."""
    problem: Problem | None = None
    last: Proposal | None = None
    """The proposal that a person redirected, until its stage has a new one."""
    approved: Approval | None = None
    execution: Execution | None = None
