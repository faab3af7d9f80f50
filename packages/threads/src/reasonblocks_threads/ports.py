"""Ports of threads: the store, the inferencer, the cleaner of a cause, and the notifier."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .phases import AnswerName, Phase, RunStatus, Stage
from .values import Card, Evidence, Fact, Letter, NewWork, Problem, Proposal, Rows, Thread, ThreadEvent, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A row of a list of threads, read from columns without the head."""

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
    """The id of its open card, if it has one."""
    opened_at: float
    changed_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The result of a command that was submitted before; `content` identifies the command's content."""

    command_id: str
    thread_id: str
    content: str
    first: int
    last: int
    """The seqs that it wrote; `last` is `first - 1` if it wrote nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedCard:
    """A card with its state. `by` and `answer` are None if it is open, or if the thread moved on without an answer."""

    card: Card
    state: str
    """"open", "answered" or "withdrawn"."""
    by: str | None = None
    answer: AnswerName | None = None


class Reading(Protocol):
    """A consistent view of the store."""

    def head(self, thread_id: str) -> Thread | None: ...
    def is_stored_as(self, head: Thread, *, with_card: bool = False) -> bool:
        """Return True if the columns by which the thread is found and listed are those of this head."""
        ...

    def by_key(self, org_id: str, key: str) -> str | None: ...
    def by_family(self, org_id: str, family: str) -> str | None:
        """Return the id of the live thread of this family."""
        ...

    def log(self, thread_id: str, *, after: int = 0, limit: int = 10_000) -> Sequence[ThreadEvent]: ...
    def feed(self, *, after: int = 0, limit: int = 1_000, org_id: str | None = None) -> Sequence[ThreadEvent]:
        """Return the events of all threads after this position. No later call returns an event before the last one."""
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
        """Return the open cards, the oldest first; with `now`, without those that are deferred beyond it."""
        ...

    def card(self, card_id: str) -> ClosedCard | None: ...
    def open_card(self, thread_id: str) -> Card | None: ...
    def work(self, work_id: str) -> Work | None: ...
    def works(self, thread_id: str | None = None) -> Sequence[Work]:
        """Return the live works for the doctor: pending, leased, and those with no attempts left."""
        ...

    def letters(self, run_id: str, *, state: str = "waiting") -> Sequence[Letter]: ...
    def letter(self, letter_id: str) -> Letter | None: ...
    def known(self, command_id: str) -> Known | None: ...
    def blob(self, hash: str) -> str | None: ...
    def meta(self, prefix: str = "") -> Mapping[str, str]: ...
    def live_count(self, org_id: str) -> int:
        """Return the number of live threads of an org."""
        ...

    def last_of_family(self, org_id: str, family: str) -> Thread | None:
        """Return the newest thread of a family, live or not."""
        ...


class Writing(Reading, Protocol):
    """One transaction: all of its changes are stored, or none."""

    def append(
        self, before: Thread | None, after: Thread, events: Sequence[ThreadEvent], rows: Rows, command: Known
    ) -> Sequence[Work]:
        """Append to the log, replace the head if its version is still that of `before`, and change cards and works.

        Returns the added works. Raises `Conflict` if the version has changed, or if a unique key exists.
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
        """Lease the most urgent due work that this process can do, count an attempt, and return the work.

        `has` are the values of `needs` that it can do ("" always), `leases` the seconds of a lease by kind, and `most`
        the attempts by kind; `data["lease_s"]` and `data["attempts"]` of a work replace them. A work whose lease has
        expired can be claimed again if attempts are left.
        """
        ...

    def expired(self, *, now: float, most: Mapping[str, int], org_id: str | None = None) -> Sequence[Work]:
        """Return the works with no attempts left whose last lease has expired."""
        ...

    def finish_work(self, work_id: str, lease: str) -> bool:
        """Remove a work. Returns False if it is no longer leased with this token."""
        ...

    def put_back(self, work_id: str, lease: str, *, due_at: float, error: str) -> bool:
        """Return a leased work to the queue with its error, due later. Returns False like `finish_work`."""
        ...

    def add_works(self, thread_id: str, entered: int, works: Sequence[NewWork]) -> None:
        """Add works outside a change of phase, as the doctor does."""
        ...

    def remove_works(self, thread_id: str, kinds: Collection[str] | None = None) -> int: ...
    def put_card(self, card: Card) -> None:
        """Add or replace the open card of a thread, as the doctor does."""
        ...

    def move_timer(self, thread_id: str, due_at: float) -> None:
        """Set the time of the thread's timeout, and end its lease, so that a timeout in progress has no effect."""
        ...

    def add_letter(self, letter: Letter) -> None: ...
    def change_letter(self, letter_id: str, *, state: str | None = None, calls: int | None = None) -> None: ...
    def put_blob(self, hash: str, text: str) -> None: ...
    def erase_blobs(self, thread_id: str) -> int:
        """Erase the private evidence of a thread, and return the number of erased texts."""
        ...

    def set_meta(self, values: Mapping[str, str]) -> None: ...
    def set_head(self, head: Thread) -> None:
        """Replace a head with the fold of the log, as the doctor does."""
        ...


class Store(Protocol):
    """Stores the threads. Every method may raise `StoreUnavailable`."""

    def write(self, thread_ids: Sequence[str] = (), *, durable: bool = True) -> AbstractContextManager[Writing]:
        """Begin a transaction during which no other process changes these threads; commit at the end, or roll back.

        Without `durable` it is faster, but a power cut soon after it may undo it; no other failure does.
        """
        ...

    def read(self) -> AbstractContextManager[Reading]: ...
    def waiting(self, run_id: str) -> Sequence[Letter]:
        """Return the waiting letters of a run. It takes about 5 µs if nothing was written since the last call."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """An action as an inferencer sees it. `schema` is without bound parameters; `unavailable` is a reason or None."""

    name: str
    purpose: str
    schema: Mapping[str, object]
    unavailable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request for a proposal of `stage`. Evidence is data that agents and tools wrote.

    `accepted` has the proposals of the settled stages, and `facts` everything that persons said. The answer must arrive
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
    """The proposal that a person redirected, or whose execution failed."""
    failed: bool = False
    """True if the action of `last` did not succeed, and nothing has been proposed since."""
    problem: Problem | None = None
    actions: tuple[Offered, ...] = ()
    seconds: float = 60.0
    tokens: int = 0
    """The tokens left in the thread's budget."""
    errors: tuple[str, ...] = ()
    """The faults of the last answer to this request, if that was not usable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """The answer of an inferencer: a proposal of the requested stage, any of later stages, and the cost of the call."""

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
    """Cleans up the cause of a thread, so that it is not raised again. `clean_up` must be idempotent for a `key`."""

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of causes that it can clean up."""
        ...

    def clean_up(self, thread: Thread, key: str) -> Cleaned: ...


@runtime_checkable
class Notifier(Protocol):
    """Notifies persons of a new card. `notify` may block or raise; the card stays open in any case."""

    def notify(self, card: Card) -> None: ...
