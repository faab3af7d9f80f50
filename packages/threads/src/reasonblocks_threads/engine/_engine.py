"""The engine of one process: it has the store, the catalogue and the policy, submits commands, and does works."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from reasonblocks.concurrency.forks import on_fork
from reasonblocks.concurrency.interrupts import Condition

from ..catalogue import Action, Catalogue
from ..errors import CardClosed, Conflict, ThreadsError, UnknownThread
from ..phases import Addition, AnswerName, Trigger, WorkKind
from ..ports import Cleaner, Inferencer, Notifier, Reading, Store
from ..rules import Rules
from ..values import SYSTEM, Command, ExpectVersion, ExpectWork, Thread, Work
from ._drain import drain
from .described import describe_error
from .offers import Offers, has_of
from .submit import Effects, LeaseLost, Submission, Submitted, child_ids

log = logging.getLogger("reasonblocks.threads")

Handler: TypeAlias = "Callable[[Engine, Work], None]"
"""Does a work and submits what came of it."""

TRIES = 5
"""Attempts to submit a command that others' changes overtake."""
LATE: frozenset[WorkKind] = frozenset({"infer", "execute", "clean_up"})
"""The works whose result is noted in the log if it comes too late."""


class Engine:
    """Submits commands and does works. All methods may be called by any thread.

    `handlers` do the works: each submits its result with `report`. `actions` are those of this process, with those that
    are built in; `offers` is what the process tells the others. Raises `ConfigError` for two actions of one name.
    """

    def __init__(
        self,
        store: Store,
        *,
        actions: Sequence[Action],
        inferencer: Inferencer,
        handlers: Mapping[WorkKind, Handler],
        clock: Callable[[], float],
        token: Callable[[], str],
        cleaners: Mapping[str, Cleaner] | None = None,
        notifier: Notifier | None = None,
        org_id: str = "default",
        offers: Mapping[str, str] | None = None,
    ) -> None:
        self.store = store
        self.inferencer = inferencer
        self.handlers = handlers
        self.cleaners: Mapping[str, Cleaner] = cleaners or {}
        """By the kind of cause."""
        self.notifier = notifier
        self.org_id = org_id
        self.now = clock
        """Returns the seconds since the epoch."""
        self.token = token
        """Returns an id that nobody can guess."""
        self._offers = Offers(org_id, actions, offers or {})
        self.has = has_of(self._offers.own)
        """The needs of works that this process can meet."""
        self._suspects: dict[str, Thread] = {}
        self._logged: set[str] = set()
        self._told = not self._offers.own
        self._put_off: dict[str, float] = {}
        self._reset()
        on_fork(self._reset)

    def _reset(self) -> None:
        """Make new locks: a forked process must not wait for those of its parent's threads."""
        self._changed = Condition()
        self._changes = 0

    def tell_others(self) -> None:
        """Write the offers of this process to the store, once, so that all of its organisation know them."""
        if self._told:
            return
        with self.store.read() as reading:
            untold = self._offers.untold(reading)
        if untold:
            with self.store.write() as writing:
                writing.set_meta(untold)
        self._told = True

    def catalogue(self, reading: Reading) -> Catalogue:
        """Return the actions of this process and those that others described."""
        return self._offers.of(reading).catalogue

    def rules(self, reading: Reading, thread: Thread | None, *, ancestors: Sequence[str] = ()) -> Rules:
        """Return the rules for a thread; `ancestors` are those of a thread that is to be opened."""
        offered = self._offers.of(reading)
        above = (reading.head(each) for each in (thread.ancestors if thread else ancestors))
        return Rules(
            catalogue=offered.catalogue,
            installation=offered.policy,
            ancestors=tuple(each.policy for each in above if each is not None),
            cleaned=offered.cleaned,
            notified=offered.notified,
            inferencer=offered.inferencer,
        )

    def thread(self, thread_id: str) -> Thread | None:
        """Return the head of a thread."""
        with self.store.read() as reading:
            return reading.head(thread_id)

    def submit(
        self, command: Command, *, effects: Effects | None = None, answer: AnswerName | None = None
    ) -> Submitted:
        """Append what a command decides, with its rows and the `effects` (such as letters), in one transaction.

        A command id that is known returns its result again. `answer` names an answer whose trigger others have too.
        Raises `Refused`, `Conflict`, `CardClosed`, `ReadOnly`, `UnknownThread`, `StoreUnavailable`; nothing changed
        then.
        """
        return self.submit_all([(command, effects)], answer=answer)[-1]

    def submit_all(
        self, commands: Sequence[tuple[Command, Effects | None]], *, answer: AnswerName | None = None
    ) -> tuple[Submitted, ...]:
        """Submit commands in one transaction, in this order: all of them, or none."""
        self.tell_others()
        ids = {command.thread_id for command, _ in commands}
        for command, _ in commands:
            ids.update(child_ids(self.org_id, command.data))
        with self.store.write(sorted(ids)) as writing:
            submission = Submission(self, writing)
            submitted = tuple(submission.submit(command, effects, answer) for command, effects in commands)
        self.wake()
        return submitted

    def submit_latest(
        self, thread_id: str, make: Callable[[Thread], Command | None], *, effects: Effects | None = None
    ) -> Submitted | None:
        """Submit what `make` returns for the present head, up to 5 times if others are faster; None: nothing to do.

        Raises the last `Conflict`, and what `submit` does.
        """
        tries = TRIES
        while True:
            thread = self.thread(thread_id)
            if thread is None:
                raise UnknownThread(thread_id)
            command = make(thread)
            if command is None:
                return None
            try:
                return self.submit(command, effects=effects)
            except (CardClosed, LeaseLost):
                raise
            except Conflict:
                tries -= 1
                if not tries:
                    raise

    def report(
        self,
        work: Work,
        trigger: Trigger | Addition,
        data: Mapping[str, object],
        *,
        effects: Effects | None = None,
        detail: str = "",
    ) -> Submitted | None:
        """Submit the result of a leased work, or a step of it, to its thread.

        The command's id is `work:{work}:{trigger}:{attempt}`, its actor the system, and it expects the lease. Returns
        None if the lease is lost, which leaves a late_report with `detail` for inferences, executions and clean-ups.
        Raises what `submit` does.
        """

        def make(thread: Thread) -> Command:
            return self._of_work(work, thread, trigger, data)

        try:
            return self.submit_latest(work.thread_id, make, effects=effects)
        except LeaseLost:
            if work.kind in LATE:
                self._note_late(work, trigger, detail, data.get("call"))
            return None

    def _of_work(self, work: Work, thread: Thread, trigger: Trigger | Addition, data: Mapping[str, object]) -> Command:
        return Command(
            id=f"work:{work.id}:{trigger.value}:{work.attempts}",
            thread_id=thread.id,
            trigger=trigger,
            expect=ExpectWork(work=work.id, lease=work.lease or ""),
            actor=SYSTEM,
            at=self.now(),
            data=data,
        )

    def _note_late(self, work: Work, trigger: Trigger | Addition, detail: str, call: object) -> None:
        """Note in the log that a result came too late, and what its call cost; it is lost if that fails."""
        data = {"what": f"{work.kind}: {trigger.value}", "detail": detail, **({"call": call} if call else {})}

        def make(thread: Thread) -> Command:
            return Command(
                id=f"work:{work.id}:late:{work.lease}:{trigger.value}",
                thread_id=thread.id,
                trigger=Addition.LATE_REPORT,
                expect=ExpectVersion(version=thread.version),
                actor=SYSTEM,
                at=self.now(),
                data=data,
            )

        try:
            self.submit_latest(work.thread_id, make)
        except ThreadsError as exc:
            self.log_once("a late report", exc)

    def drain(self, *, limit: int | None = None, stop: Callable[[], bool] | None = None) -> int:
        """Do due works, also those that arise, until none is due, `limit` are done, or `stop` returns True.

        Returns the number of works that were done or tried. Raises `StoreUnavailable` if the store stays so for some
        seconds; an error of a work never ends the others.
        """
        self.tell_others()
        return drain(self, limit=limit, stop=stop or _never)

    def wake(self) -> None:
        """Tell waiting threads of this process that something was submitted."""
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    @property
    def changes(self) -> int:
        """The number of submissions of this process so far."""
        return self._changes

    def wait_for_change(self, seen: int, seconds: float) -> None:
        """Wait until something is submitted in this process after `seen` changes, or the seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: self._changes != seen, timeout=seconds)

    def suspect(self, thread: Thread) -> str | None:
        """Return why the thread may not change: the doctor found that this head is not the fold of its log."""
        found = self._suspects.get(thread.id)
        return "its head differs from its log; `doctor(repair=True)` mends it" if found == thread else None

    def set_suspect(self, head: Thread) -> None:
        """Make a thread read-only in this process for as long as it has this head."""
        self._suspects[head.id] = head

    def put_off(self, name: str, seconds: float) -> None:
        """Remember something that cannot be done now, until the seconds are over."""
        now = self.now()
        self._put_off = {each: until for each, until in self._put_off.items() if until > now} | {name: now + seconds}

    def is_put_off(self, name: str) -> bool:
        """Return True for something that was put off."""
        return self._put_off.get(name, 0.0) > self.now()

    def log_once(self, source: str, error: BaseException) -> None:
        """Log an error, the first of its kind and source in this process."""
        kind = f"{source}: {type(error).__name__}"
        if kind not in self._logged:
            self._logged.add(kind)
            log.warning("%s failed and is tried again: %s", source, describe_error(error))


def _never() -> bool:
    return False
