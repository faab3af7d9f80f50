"""Ports of threads: the store, the inferencer, the cleaner of a cause, and the notifier."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ._phases import AnswerName, Phase, RunStatus, Stage
from ._values import Card, Evidence, Fact, Letter, NewWork, Problem, Proposal, Rows, Thread, ThreadEvent, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A thread as lists show it, read from columns without its head."""

    id: str
    org_id: str
    title: str
    kind: str
    phase: Phase
    stage: Stage
    version: int
    run_id: str | None
    parent: str | None
    card: str | None
    """The id of its open card."""
    opened_at: float
    changed_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The result of a command that was submitted before: `content` identifies what it asked for."""

    command_id: str
    thread_id: str
    content: str
    first: int
    last: int
    """The seqs that it wrote; `last` is `first - 1` if it wrote nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedCard:
    """The end of a card: `by` and `answer` are None if the thread moved on without an answer."""

    card: Card
    state: str
    """"open", "answered" or "withdrawn"."""
    by: str | None = None
    answer: AnswerName | None = None


class Reading(Protocol):
    """A consistent look at the store."""

    def head(self, thread_id: str) -> Thread | None: ...
    def is_stored_as(self, head: Thread, *, with_card: bool = False) -> bool:
        """Return True if the columns by which the thread is found and listed are those of this head."""
        ...

    def by_key(self, org_id: str, key: str) -> str | None:
        """Return the id of the thread of this key."""
        ...

    def by_family(self, org_id: str, family: str) -> str | None:
        """Return the id of the live thread of this family."""
        ...

    def log(self, thread_id: str, *, after: int = 0, limit: int = 10_000) -> Sequence[ThreadEvent]: ...
    def feed(self, *, after: int = 0, limit: int = 1_000, org_id: str | None = None) -> Sequence[ThreadEvent]:
        """Return the events of all threads after this position; a later call never finds one before the last."""
        ...

    def listed(
        self,
        *,
        org_id: str | None = None,
        live: bool = True,
        run_id: str | None = None,
        phase: Phase | None = None,
        parent: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[Listed]:
        """Return the newest threads first (by `changed_at`, then id), in one query that reads no head."""
        ...

    def cards(
        self, *, org_id: str | None = None, run_id: str | None = None, now: float | None = None, limit: int = 100
    ) -> Sequence[Card]:
        """Return the open cards, the oldest first; with `now`, without those that are deferred to a later time."""
        ...

    def card(self, card_id: str) -> ClosedCard | None: ...
    def open_card(self, thread_id: str) -> Card | None: ...
    def work(self, work_id: str) -> Work | None: ...
    def works(self, thread_id: str | None = None) -> Sequence[Work]:
        """Return the live works, the doctor's view: pending, leased, and those whose attempts are used up."""
        ...

    def letters(self, run_id: str, *, state: str = "waiting") -> Sequence[Letter]: ...
    def letter(self, letter_id: str) -> Letter | None: ...
    def known(self, command_id: str) -> Known | None: ...
    def blob(self, hash: str) -> str | None: ...
    def meta(self, prefix: str = "") -> Mapping[str, str]: ...
    def open_count(self, org_id: str) -> int:
        """Return the number of live threads of an organisation."""
        ...

    def last_of_family(self, org_id: str, family: str) -> Thread | None:
        """Return the newest thread of a family, live or not."""
        ...


class Writing(Reading, Protocol):
    """One transaction: everything in it happens, or nothing."""

    def append(
        self, before: Thread | None, after: Thread, events: Sequence[ThreadEvent], rows: Rows, command: Known
    ) -> Sequence[Work]:
        """Append to the log, replace the head where its version is still `before`'s, and change cards and works.

        Returns the works that it added. Raises `Conflict` if the version is another one, or if a unique key exists.
        """
        ...

    def close_card(self, card_id: str, *, by: str, answer: AnswerName) -> None:
        """Mark the open card as answered, before `append` withdraws it."""
        ...

    def withdraw_card(self, thread_id: str) -> None:
        """Withdraw the open card of a thread outside a change of phase, as the doctor does."""
        ...

    def claim(
        self,
        *,
        now: float,
        lease: str,
        has: Collection[str],
        leases: Mapping[str, float],
        most: Mapping[str, int],
        org_id: str | None = None,
    ) -> Work | None:
        """Lease the most urgent due work that this process can do and return it, with one attempt more.

        `has` are the values of `needs` that it can do ("" always), `leases` the seconds of a lease by kind, `most` the
        attempts that a kind has; `data["lease_s"]` and `data["attempts"]` of a work replace them. A work whose lease is
        over can be claimed again if attempts are left.
        """
        ...

    def expired(self, *, now: float, most: Mapping[str, int], org_id: str | None = None) -> Sequence[Work]:
        """Return works whose attempts are used up and whose last lease is over."""
        ...

    def finish_work(self, work_id: str, lease: str) -> bool:
        """Remove a work. Returns False if it is not leased with this token any more."""
        ...

    def put_back(self, work_id: str, lease: str, *, due_at: float, error: str) -> bool:
        """Return a leased work to the queue with its error, due later. Returns False as `finish_work` does."""
        ...

    def add_works(self, thread_id: str, entered: int, works: Sequence[NewWork]) -> None:
        """Add works outside a change of phase, as the doctor does."""
        ...

    def remove_works(self, thread_id: str, kinds: Collection[str] | None = None) -> int: ...
    def put_card(self, card: Card) -> None:
        """Add or replace the open card of a thread, as the doctor does."""
        ...

    def move_timer(self, thread_id: str, due_at: float) -> None:
        """Set the time of the thread's timeout. Who has leased it loses the lease: what it is about to end goes on."""
        ...

    def add_letter(self, letter: Letter) -> None: ...
    def change_letter(self, letter_id: str, *, state: str | None = None, calls: int | None = None) -> None: ...
    def reserve_call(self, call_id: str, thread_id: str, *, tokens: int, usd: float) -> None: ...
    def settle_call(self, call_id: str, *, tokens: int, usd: float) -> bool:
        """Book what a call really cost. Returns False if it is settled already."""
        ...

    def put_blob(self, hash: str, text: str) -> None: ...
    def erase_blobs(self, thread_id: str) -> int:
        """Erase the private evidence of a thread. Returns the number of erased texts."""
        ...

    def set_meta(self, values: Mapping[str, str]) -> None: ...
    def set_head(self, head: Thread) -> None:
        """Replace a head by the fold of the log, as the doctor does."""
        ...


class Store(Protocol):
    """Holds the threads. Every method may raise `StoreUnavailable`."""

    def write(self, thread_ids: Sequence[str] = (), *, durable: bool = True) -> AbstractContextManager[Writing]:
        """Begin a transaction that no other process changes these threads in; commit at the end, or roll back.

        Without `durable` it is fast, and a power cut soon after it may undo it, but no other failure.
        """
        ...

    def read(self) -> AbstractContextManager[Reading]: ...
    def waiting(self, run_id: str) -> Sequence[Letter]:
        """Return the waiting letters of a run; about 5 µs if nothing was written since the last call."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """An action as an inferencer sees it: its schema without what is bound, and why it is not available if so."""

    name: str
    purpose: str
    schema: Mapping[str, object]
    unavailable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What an inferencer is asked for: a proposal of `stage`. Evidence is data that agents and tools wrote.

    `accepted` has the proposals of the settled stages, `facts` everything that persons said. The answer must come
    within `seconds`.
    """

    thread_id: str
    stage: Stage
    cause_kind: str
    title: str
    run_id: str | None
    run: RunStatus = "unknown"
    evidence: tuple[Evidence, ...] = ()
    facts: tuple[Fact, ...] = ()
    accepted: tuple[Proposal, ...] = ()
    last: Proposal | None = None
    """The proposal that a person redirected."""
    problem: Problem | None = None
    actions: tuple[Offered, ...] = ()
    seconds: float = 60.0
    tokens: int = 0
    """Tokens that are left of the thread's budget."""
    errors: tuple[str, ...] = ()
    """Why the last answer to this question was not usable, if this is its repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """An inferencer's answer: a proposal of the asked stage, maybe others of later stages, and what the call cost."""

    proposals: tuple[Proposal, ...]
    tokens: int = 0
    usd: float = 0.0


@runtime_checkable
class Inferencer(Protocol):
    """Makes proposals. `name` identifies it among processes; `infer` may block and raise."""

    @property
    def name(self) -> str: ...
    def infer(self, ask: Ask) -> Inferred: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The outcome of a clean-up; a source that is already gone counts as cleaned."""

    succeeded: bool
    detail: str = ""
    already_gone: bool = False


@runtime_checkable
class Cleaner(Protocol):
    """Tidies what opened a thread, so that it is not raised again. `clean_up` is idempotent by `key`."""

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of causes that it can clean up."""
        ...

    def clean_up(self, thread: Thread, key: str) -> Cleaned: ...


@runtime_checkable
class Notifier(Protocol):
    """Tells persons about a card that has opened. It may block and raise; the card stays in any case."""

    def notify(self, card: Card) -> None: ...
