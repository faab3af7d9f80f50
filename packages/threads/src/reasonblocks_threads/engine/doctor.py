"""Finds rows that do not fit their threads' logs, and repairs them. Without a crash there are none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..codec import head_json
from ..entry import entry
from ..errors import Refused
from ..log import fold_all
from ..phases import Addition, Phase, WorkKind
from ..ports import Listed, Reading, Writing
from ..rules import Rules
from ..values import SYSTEM, Card, Command, ExpectVersion, NewWork, Rows, Thread, ThreadEvent, Work
from .lost import has_begun
from .submit import Submission

if TYPE_CHECKING:
    from ._engine import Engine

log = logging.getLogger("reasonblocks.threads")

FindingKind: TypeAlias = Literal[
    "work_missing", "card_missing", "timer_missing", "lease_over", "parent_waits", "child_lives", "leftover",
    "head_differs", "columns_differ",
]  # fmt: skip
PAGE = 1_000
FOLDS = 200
"""The most logs that a visit folds; the next visit goes on with the others."""
AFTER_THE_END: frozenset[WorkKind] = frozenset({"cascade_up", "cascade_down"})
"""The works that a thread may have after its end."""
NEEDED: Mapping[Phase, WorkKind] = {
    Phase.PROPOSED: "begin",
    Phase.AWAITING_INFERENCE: "infer",
    Phase.INFERRING_INTENT: "infer",
    Phase.INFERRING_CONTEXT: "infer",
    Phase.INFERRING_ACTION: "infer",
    Phase.EXECUTING: "execute",
    Phase.CLEANING_UP: "clean_up",
}
"""The work without which a phase is never left but by its timer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row that does not fit its thread, and whether it was repaired.

    `kind`: a work, card or timer is missing; a lease is over; a parent waits for a child that has ended; a child lives
    although its parent has ended; rows are left over; a head differs from the fold of its log, or the columns of its
    row from the head.
    """

    kind: FindingKind
    thread_id: str
    detail: str
    repaired: bool = False


Repair: TypeAlias = Callable[[Writing], object]
Found: TypeAlias = tuple[Finding, Repair]


class Doctor:
    """Visits the live threads of an engine, for one caller. It remembers the logs that it has folded."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._folded: dict[str, int] = {}
        """The versions at which nothing was wrong."""

    def visit(self, *, repair: bool, whole: bool = True) -> tuple[Finding, ...]:
        """Return what is wrong, repaired or not. A visit that is not `whole` folds only logs that have changed."""
        with self._engine.store.read() as reading:
            ids = self._to_examine(reading, whole)
        return tuple(finding for thread_id in ids for finding in self._examined(thread_id, repair))

    def _to_examine(self, reading: Reading, whole: bool) -> list[str]:
        """Return the ids of threads that may have something wrong, found without their heads."""
        listed = {each.id: each for each in _live(reading)}
        live = {id: each for id, each in listed.items() if each.org_id == self._engine.org_id}
        works = _by_thread(reading.works())
        self._folded = {id: version for id, version in self._folded.items() if id in live}
        now = self._engine.now()
        found = {id: None for id, each in live.items() if _looks_wrong(each, works.get(id, ()), now)}
        found |= dict.fromkeys(each.parent for each in live.values() if each.parent and each.parent not in live)
        found |= {id: None for id, rows in works.items() if id not in listed and _is_left_over(rows)}
        changed = [id for id, each in live.items() if whole or self._folded.get(id) != each.version]
        found |= dict.fromkeys(changed if whole else changed[:FOLDS])
        if whole:
            cards = reading.cards(org_id=self._engine.org_id, limit=len(live) + PAGE)
            found |= {card.thread_id: None for card in cards if card.thread_id not in live}
        return list(found)

    def _examined(self, thread_id: str, repair: bool) -> Iterator[Finding]:
        """Yield what is wrong with a thread now. One that is well is not locked."""
        with self._engine.store.read() as reading:
            head = reading.head(thread_id)
            found = _Examination(self._engine, reading, thread_id).found()
        if head is not None and not found:
            self._folded[thread_id] = head.version
        if found and repair:
            found = self._repaired(thread_id)
        for finding, _ in found:
            if head is not None and finding.kind == "head_differs" and not repair:
                self._engine.set_suspect(head)
            yield replace(finding, repaired=repair)

    def _repaired(self, thread_id: str) -> list[Found]:
        with self._engine.store.write([thread_id]) as writing:
            found = _Examination(self._engine, writing, thread_id).found()
            _repair(self._engine, writing, thread_id, found)
        self._engine.wake()
        for finding, _ in found:
            log.warning("the thread %s is repaired: %s (%s)", thread_id, finding.kind, finding.detail)
        return found


class _Examination:
    """The findings about one thread, as one transaction sees it."""

    def __init__(self, engine: Engine, reading: Reading, thread_id: str) -> None:
        self._engine = engine
        self._reading = reading
        self._id = thread_id
        self._now = engine.now()

    def found(self) -> list[Found]:
        """Return each finding with its repair."""
        head = self._reading.head(self._id)
        if head is None or head.org_id != self._engine.org_id:
            return []
        fold = fold_all(_whole_log(self._reading, self._id)) or head
        found = list(self._of_head(head, fold))
        if fold.unreadable:
            return found
        rows = entry(None, fold, self._engine.rules(self._reading, fold), at=self._since(fold))
        works = {work.kind: work for work in self._reading.works(self._id)}
        if fold.phase.is_terminal:
            found += [*self._of_ended(fold, works), *self._of_living_children(fold, rows, works)]
        else:
            found += [*self._of_card(fold, rows), *self._of_works(fold, rows, works), *self._of_leases(works)]
            found += self._of_ended_children(fold)
        if not found and not self._reading.is_stored_as(head, with_card=True):
            found.append(self._of_columns(fold))
        return found

    def _finding(self, kind: FindingKind, detail: str) -> Finding:
        return Finding(kind=kind, thread_id=self._id, detail=detail)

    def _since(self, thread: Thread) -> float:
        """Return the time from which a lost row counts: an execution or inference gets its whole time again."""
        return thread.entered_at if thread.phase.waits else self._now

    def _of_head(self, head: Thread, fold: Thread) -> Iterator[Found]:
        if head_json(head) != head_json(fold):
            detail = f"the head is at version {head.version}, the fold of the log at {fold.version}"
            yield self._finding("head_differs", detail), lambda writing: writing.set_head(fold)
        elif not self._reading.is_stored_as(head):
            yield self._of_columns(fold)

    def _of_columns(self, fold: Thread) -> Found:
        detail = "its row is listed with another phase, stage, version or card"
        return self._finding("columns_differ", detail), lambda writing: writing.set_head(fold)

    def _of_card(self, thread: Thread, rows: Rows) -> Iterator[Found]:
        card, missing = self._reading.open_card(thread.id), rows.card
        if missing is not None and card is None:
            yield self._finding("card_missing", missing.id), lambda writing: writing.put_card(missing)
        elif card is not None and (missing is None or card.id != missing.id):
            yield self._finding("leftover", f"the card {card.id}"), _withdraw(thread, missing)

    def _of_works(self, thread: Thread, rows: Rows, works: Mapping[WorkKind, Work]) -> Iterator[Found]:
        for row in _expected(thread, rows, self._engine.rules(self._reading, thread), self._now):
            if row.kind in works:
                continue
            kind: FindingKind = "timer_missing" if row.kind == "timeout" else "work_missing"
            late = thread.deferred_until or 0.0
            due = replace(row, due_at=max(row.due_at, late)) if row.kind == "timeout" else row
            yield self._finding(kind, f"{row.kind} in {thread.phase.value!r}"), _add(thread, due)

    def _of_leases(self, works: Mapping[WorkKind, Work]) -> Iterator[Found]:
        for work in works.values():
            if _is_over(work, self._now):
                yield self._finding("lease_over", work.id), _free(work, self._now)

    def _of_ended(self, thread: Thread, works: Mapping[WorkKind, Work]) -> Iterator[Found]:
        kinds = tuple(kind for kind in works if kind not in AFTER_THE_END)
        if kinds:
            detail = f"works of an ended thread: {', '.join(kinds)}"
            yield self._finding("leftover", detail), lambda writing: writing.remove_works(thread.id, kinds)
        card = self._reading.open_card(thread.id)
        if card is not None:
            yield self._finding("leftover", f"the card {card.id} of an ended thread"), _withdraw(thread, None)

    def _of_living_children(self, thread: Thread, rows: Rows, works: Mapping[WorkKind, Work]) -> Iterator[Found]:
        living = [child.id for child in thread.children if self._is_live(child.id)]
        if living and "cascade_down" not in works:
            row = _row(rows, "cascade_down", self._now)
            yield self._finding("child_lives", ", ".join(living)), _add(thread, row)

    def _of_ended_children(self, thread: Thread) -> Iterator[Found]:
        if thread.phase is not Phase.MONITORING:
            return
        for child_id in (child.id for child in thread.children if child.ended is None):
            child = self._reading.head(child_id)
            if child is None or not child.phase.is_terminal:
                continue
            if not any(work.kind == "cascade_up" for work in self._reading.works(child.id)):
                rows = entry(None, child, self._engine.rules(self._reading, child), at=self._now)
                row = _row(rows, "cascade_up", self._now)
                yield self._finding("parent_waits", f"{child.id} has ended"), _add(child, row)

    def _is_live(self, thread_id: str) -> bool:
        found = self._reading.head(thread_id)
        return found is not None and not found.phase.is_terminal


def _live(reading: Reading) -> Iterator[Listed]:
    before: tuple[float, str] | None = None
    while page := reading.listed(before=before, limit=PAGE):
        yield from page
        before = (page[-1].changed_at, page[-1].id)


def _by_thread(works: Sequence[Work]) -> dict[str, tuple[Work, ...]]:
    ordered = sorted(works, key=lambda work: work.thread_id)
    return {id: tuple(rows) for id, rows in groupby(ordered, key=lambda work: work.thread_id)}


def _looks_wrong(listed: Listed, works: Sequence[Work], now: float) -> bool:
    """Return True for a live thread whose rows cannot be right, or may not be."""
    kinds = {work.kind for work in works}
    needed = NEEDED.get(listed.phase)
    return (
        listed.phase.waits != (listed.card is not None)
        or (needed is not None and needed not in kinds)
        or ("timeout" not in kinds)  # a monitoring thread has none, and is examined for its children
        or any(_is_over(work, now) for work in works)
    )


def _is_over(work: Work, now: float) -> bool:
    return work.lease is not None and work.leased_until is not None and work.leased_until <= now


def _is_left_over(works: Sequence[Work]) -> bool:
    return any(work.kind not in AFTER_THE_END for work in works)


def _expected(thread: Thread, rows: Rows, rules: Rules, now: float) -> Iterator[NewWork]:
    """Yield the works that a phase cannot be without."""
    yield from (row for row in rows.works if row.kind == "timeout")
    needed = NEEDED.get(thread.phase)
    if needed is None or (needed == "execute" and has_begun(thread)):
        return  # an execution that began ends with its handler, its letter, or its timer
    fallback = NewWork(kind=needed, due_at=now, needs=f"inferencer:{rules.inferencer}" if needed == "infer" else "")
    yield next((row for row in rows.works if row.kind == needed), fallback)


def _row(rows: Rows, kind: WorkKind, now: float) -> NewWork:
    return next((row for row in rows.works if row.kind == kind), NewWork(kind=kind, due_at=now))


def _whole_log(reading: Reading, thread_id: str) -> Iterator[ThreadEvent]:
    after = 0
    while page := reading.log(thread_id, after=after, limit=PAGE):
        yield from page
        after = page[-1].seq


def _add(thread: Thread, row: NewWork) -> Repair:
    return lambda writing: writing.add_works(thread.id, thread.entered, [row])


def _free(work: Work, now: float) -> Repair:
    def free(writing: Writing) -> None:
        writing.put_back(work.id, work.lease or "", due_at=now, error=work.error or "its lease was over")

    return free


def _withdraw(thread: Thread, right: Card | None) -> Repair:
    """Return the withdrawal of a card that the log does not have; the right one takes its place."""
    if right is not None:
        return lambda writing: writing.put_card(right)
    return lambda writing: writing.withdraw_card(thread.id)


def _repair(engine: Engine, writing: Writing, thread_id: str, found: Sequence[Found]) -> None:
    """Repair all findings of a thread, and note them in its log."""
    for _, repair in found:
        repair(writing)
    thread = writing.head(thread_id)
    if thread is None or not found:
        return
    what = "; ".join(f"{finding.kind}: {finding.detail}" for finding, _ in found)
    command = Command(
        id=f"doctor:{engine.token()}",
        thread_id=thread_id,
        trigger=Addition.RECONCILED,
        expect=ExpectVersion(version=thread.version),
        actor=SYSTEM,
        at=engine.now(),
        data={"what": what},
    )
    with suppress(Refused):  # a thread that has ended, or that cannot be read, is repaired without a note
        Submission(engine, writing).submit(command)
