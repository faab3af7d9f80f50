"""The errors of threads, derived from `ReasonBlocksError`; each has the data of its message as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reasonblocks.exceptions import ReasonBlocksError

if TYPE_CHECKING:
    from .phases import AnswerName, Phase


class ThreadsError(ReasonBlocksError):
    """Base of all errors of threads."""


class UnknownThread(ThreadsError, LookupError):
    """An id that no thread has: `id`."""

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(f"no thread has the id {id!r}; `Threads.list()` returns those that exist")


class UnknownCard(ThreadsError, LookupError):
    """An id that no card has: `id`."""

    def __init__(self, id: str) -> None:
        self.id = id
        kind = "" if "." in str(id) else " (a card's id ends with a number, as in 'th_1a.7')"
        super().__init__(f"no card has the id {id!r}{kind}; `Threads.cards()` returns the open ones")


class Refused(ThreadsError):
    """A command that the rules refuse: `thread_id`, `what` was asked, `why`. Nothing changed."""

    def __init__(self, thread_id: str, what: str, why: str) -> None:
        self.thread_id, self.what, self.why = thread_id, what, why
        super().__init__(f"{thread_id}: {what!r} is refused: {why}")


class InvalidTrigger(Refused):
    """A trigger that the thread's phase does not have: `phase` and the `possible` triggers."""

    def __init__(self, thread_id: str, trigger: str, phase: Phase, possible: tuple[str, ...]) -> None:
        self.phase, self.possible = phase, possible
        offered = ", ".join(possible) or "none: the thread has ended"
        super().__init__(thread_id, trigger, f"the phase is {phase.value!r}; possible triggers: {offered}")


class Conflict(ThreadsError):
    """A command that expected another state of its thread, or reuses an id for another content: `thread_id`, `why`.

    Nothing changed. Look at the thread again before you repeat it.
    """

    def __init__(self, thread_id: str, why: str) -> None:
        self.thread_id, self.why = thread_id, why
        super().__init__(f"{thread_id}: {why}; look at the thread again")


class CardClosed(Conflict):
    """An answer to a card that is not open: `card`, `by` whom and with which `answer` it was closed, the `next_card`.

    `by` and `answer` are None if the thread moved on without an answer; `next_card` is None if no card is open now.
    """

    def __init__(
        self,
        thread_id: str,
        card: str,
        *,
        by: str | None = None,
        answer: AnswerName | None = None,
        phase: Phase | None = None,
        next_card: str | None = None,
    ) -> None:
        self.card, self.by, self.answer, self.phase, self.next_card = card, by, answer, phase, next_card
        how = f"{by} answered {answer!r}" if by else "the thread moved on"
        now = f"the open card is {next_card!r}" if next_card else f"no card is open (phase {phase and phase.value!r})"
        super().__init__(thread_id, f"the card {card!r} is closed: {how}, and {now}")


class ReadOnly(Refused):
    """A change to a thread whose log this version cannot read. Upgrade the library."""


class StoreUnavailable(ThreadsError):
    """A store that cannot be read or written now: `why`. Try again later."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the threads' store is not available: {why}")
