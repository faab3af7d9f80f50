"""The async version of `Threads`: each call runs in a daemon thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from reasonblocks.concurrency.workers import in_daemon

from ._wiring import DEFAULT, Database
from .catalogue import Action
from .engine import Finding, Worker
from .engine.answering import ChildAnswers
from .phases import AnswerName, Phase, RunStatus, Stage
from .ports import Cleaner, ClosedCard, Inferencer, Listed, Notifier
from .threads import AGENT, LOOKS_S, Threads, action_has_ended
from .values import Actor, Card, Cause, Evidence, Policy, Proposal, Thread, ThreadEvent

if TYPE_CHECKING:
    from reasonblocks.ports import Mailbox, TelemetrySink


class _Quiet(Threads):
    """`Threads` that does not open its database before the first call, which runs in a daemon thread."""

    def _begin(self) -> None:
        return


class AsyncThreads:
    """`Threads` with async methods that never block the event loop. A cancelled call is abandoned, but may take effect.

    `worker`, `sink` and `mailbox` are not async. `sync` is the `Threads` that does the work.
    """

    def __init__(
        self,
        database: Database = DEFAULT,
        *,
        actions: Iterable[Action] = (),
        policy: Policy | None = None,
        inferencer: Inferencer | None = None,
        cleaners: Iterable[Cleaner] = (),
        notifier: Notifier | None = None,
        org_id: str = "default",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sync: Threads = _Quiet(
            database,
            actions=actions,
            policy=policy,
            inferencer=inferencer,
            cleaners=cleaners,
            notifier=notifier,
            org_id=org_id,
            clock=clock,
        )

    async def open(
        self,
        cause: Cause,
        *,
        proposals: Sequence[Proposal] = (),
        policy: Policy | None = None,
        children: Sequence[Cause] = (),
        rule: Literal["all_of", "alternatives"] = "all_of",
        parent: str | None = None,
        follows: str | None = None,
        supersedes: str | None = None,
        by: Actor = AGENT,
        run: RunStatus = "unknown",
    ) -> Thread:
        return await in_daemon(
            partial(
                self.sync.open,
                cause,
                proposals=proposals,
                policy=policy,
                children=children,
                rule=rule,
                parent=parent,
                follows=follows,
                supersedes=supersedes,
                by=by,
                run=run,
            )
        )

    async def answer(
        self,
        card: Card | str,
        what: AnswerName,
        *,
        by: Actor,
        text: str | None = None,
        parameters: Mapping[str, object] | None = None,
        action: str | None = None,
        to: str | None = None,
        stage: Stage | str | None = None,
        reason: str | None = None,
        until: float | None = None,
    ) -> Thread:
        return await in_daemon(
            partial(
                self.sync.answer,
                card,
                what,
                by=by,
                text=text,
                parameters=parameters,
                action=action,
                to=to,
                stage=stage,
                reason=reason,
                until=until,
            )
        )

    async def answer_children(self, parent_id: str, what: AnswerName, *, by: Actor) -> ChildAnswers:
        return await in_daemon(lambda: self.sync.answer_children(parent_id, what, by=by))

    async def dismiss(self, id: str, *, by: Actor, reason: str = "") -> Thread:
        return await in_daemon(lambda: self.sync.dismiss(id, by=by, reason=reason))

    async def take_over(self, id: str, *, by: Actor, to: str, reason: str = "") -> Thread:
        return await in_daemon(lambda: self.sync.take_over(id, by=by, to=to, reason=reason))

    async def cancel(self, id: str, *, by: Actor) -> Thread:
        return await in_daemon(lambda: self.sync.cancel(id, by=by))

    async def note(self, id: str, text: str, *, by: Actor) -> Thread:
        return await in_daemon(lambda: self.sync.note(id, text, by=by))

    async def set_policy(self, id: str, policy: Policy, *, by: Actor) -> Thread:
        return await in_daemon(lambda: self.sync.set_policy(id, policy, by=by))

    async def add_evidence(
        self, id: str, *evidence: Evidence, by: Actor = AGENT, run: RunStatus | None = None
    ) -> Thread:
        return await in_daemon(lambda: self.sync.add_evidence(id, *evidence, by=by, run=run))

    async def resolve(self, id: str, reason: str) -> Thread:
        return await in_daemon(lambda: self.sync.resolve(id, reason))

    async def erase(self, id: str, *, by: Actor) -> int:
        return await in_daemon(lambda: self.sync.erase(id, by=by))

    async def get(self, id: str) -> Thread:
        return await in_daemon(lambda: self.sync.get(id))

    async def log(self, id: str, *, after: int = 0, limit: int = 10_000) -> tuple[ThreadEvent, ...]:
        return await in_daemon(lambda: self.sync.log(id, after=after, limit=limit))

    async def list(
        self,
        *,
        live: bool = True,
        run_id: str | None = None,
        phase: Phase | str | None = None,
        parent: str | None = None,
        limit: int = 100,
    ) -> tuple[Listed, ...]:
        return await in_daemon(
            lambda: self.sync.list(live=live, run_id=run_id, phase=phase, parent=parent, limit=limit)
        )

    async def cards(self, *, run_id: str | None = None, deferred: bool = False, limit: int = 100) -> tuple[Card, ...]:
        return await in_daemon(lambda: self.sync.cards(run_id=run_id, deferred=deferred, limit=limit))

    async def card(self, id: str) -> ClosedCard:
        return await in_daemon(lambda: self.sync.card(id))

    async def feed(self, after: int = 0, limit: int = 1_000) -> tuple[ThreadEvent, ...]:
        return await in_daemon(lambda: self.sync.feed(after, limit))

    async def wait(self, id: str, timeout: float, *, until: Callable[[Thread], bool] = action_has_ended) -> Thread:
        """Return the thread once `until(thread)` holds (default: the action has ended), or after `timeout` seconds."""
        ends = time.monotonic() + timeout
        look_s, longest_s = LOOKS_S
        thread = await self.get(id)
        while not until(thread) and (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(look_s, left))
            look_s = min(longest_s, look_s * 2)
            thread = await in_daemon(partial(self.sync._newer, thread))
        return thread

    async def drain(self, *, limit: int | None = None) -> int:
        return await in_daemon(lambda: self.sync.drain(limit=limit))

    async def doctor(self, *, repair: bool = False) -> tuple[Finding, ...]:
        return await in_daemon(lambda: self.sync.doctor(repair=repair))

    def worker(self, *, threads: int = 1) -> Worker:
        return self.sync.worker(threads=threads)

    def sink(self, *, redact: Callable[[str], str] | None = None) -> TelemetrySink:
        return self.sync.sink(redact=redact)

    def mailbox(self) -> Mailbox:
        return self.sync.mailbox()

    async def close(self) -> None:
        await in_daemon(self.sync.close)

    async def __aenter__(self) -> AsyncThreads:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
