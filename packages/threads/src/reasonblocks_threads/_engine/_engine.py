"""The engine of one process: it has the store, the catalogue and the policy, submits commands, and does works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from reasonblocks._process import on_fork

from .._catalogue import Action, Catalogue
from .._errors import Conflict, Refused
from .._phases import Addition, Trigger, WorkKind
from .._policy import strictest
from .._ports import Cleaner, Inferencer, Notifier, Reading, Store
from .._rules import Rules
from .._values import (
    SYSTEM,
    Actor,
    Command,
    ExpectVersion,
    ExpectWork,
    Policy,
    Thread,
    Work,
)
from ._drain import Drain
from ._offers import Offers
from ._submit import Effects, Submission, Submitted

if TYPE_CHECKING:
    Handler: TypeAlias = Callable[["Engine", Work], None]
else:
    Handler = Callable

TRIES = 5
"""How often a command of the system is decided anew after a conflict."""
LATE: frozenset[WorkKind] = frozenset({"infer", "execute", "clean_up"})
"""The works whose result is noted in the log if it comes too late."""


class Engine:
    """Submits commands and does works. All methods may be called by any thread.

    `handlers` do the works: each submits its result with `report`. `actions` are those of this process, with those that
    are built in. Raises `ConfigError` for actions of one name.
    """

    def __init__(
        self,
        store: Store,
        *,
        actions: Sequence[Action],
        policy: Policy,
        inferencer: Inferencer,
        handlers: Mapping[WorkKind, Handler],
        cleaners: Mapping[str, Cleaner] | None = None,
        notifier: Notifier | None = None,
        org_id: str = "default",
        clock: Callable[[], float],
        token: Callable[[], str],
        offers: Mapping[str, str] | None = None,
    ) -> None:
        self.store = store
        self.policy = policy
        self.inferencer = inferencer
        self.handlers = handlers
        self.cleaners: Mapping[str, Cleaner] = cleaners or {}
        """By the kind of cause."""
        self.notifier = notifier
        self.org_id = org_id
        self.now = clock
        """Seconds since the epoch."""
        self.token = token
        """Makes ids that nobody can guess."""

    def catalogue(self, reading: Reading) -> Catalogue:
        """Return the actions of this process and those that others described."""
        raise NotImplementedError

    def rules(self, reading: Reading, thread: Thread | None, *, ancestors: Sequence[str] = ()) -> Rules:
        """Return the rules for a thread; `ancestors` are those of a thread that is to be opened."""
        raise NotImplementedError

    def thread(self, thread_id: str) -> Thread | None:
        """Return the head of a thread."""
        raise NotImplementedError

    def submit(self, command: Command, *, effects: Effects | None = None) -> Submitted:
        """Append what a command decides, with its rows and the `effects` (letters, calls), in one transaction.

        A command id that is known returns its result again. Raises `Refused`, `Conflict`, `CardClosed`, `ReadOnly`,
        `UnknownThread`, `StoreUnavailable`; nothing changed then.
        """
        raise NotImplementedError

    def decided_anew(
        self, thread_id: str, make: Callable[[Thread], Command | None], *, effects: Effects | None = None
    ) -> Submitted | None:
        """Submit what `make` returns for the present head, up to 5 times if others are faster; None: nothing to do."""
        raise NotImplementedError

    def report(
        self,
        work: Work,
        trigger: Trigger | Addition,
        data: Mapping[str, object],
        *,
        to: str | None = None,
        effects: Effects | None = None,
        detail: str = "",
    ) -> Submitted | None:
        """Submit a step or the result of a leased work, to its own thread or to the thread `to` (cascades).

        The command's id is `work:{work}:{trigger}:{attempt}`, its actor the system, and it expects the lease. Returns
        None if the lease is lost, which leaves a late_report with `detail` for inferences, executions and clean-ups.
        Raises what `submit` does, without `Conflict`.
        """
        raise NotImplementedError

    def drain(self, *, limit: int | None = None, stop: Callable[[], bool] | None = None) -> int:
        """Do due works, also those that arise, until none is due, `limit` are done, or `stop` returns True."""
        raise NotImplementedError
