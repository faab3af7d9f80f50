"""One steered model call of the SDK: what was decided for it, and what becomes of its answer or its error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reasonblocks._formats.openai import Item, answer_of, local_call_ids, newest_answer, usage_of
from reasonblocks.adapters import failure_of, ms_since
from reasonblocks.types import StepDecision

from ._convert import outcome_of
from ._request import reasoning_ids

if TYPE_CHECKING:
    from agents import Model

    from ._steered import SteeredRun


@dataclass(slots=True, eq=False)
class Call:
    """`own_model` is the name of the agent's model, `model` of the one that is asked."""

    run: SteeredRun
    decision: StepDecision
    own_model: str
    model: str = ""
    filtered: bool = True
    """Whether the request that goes out holds the guidance already."""
    request: str = ""
    """Which request it is, where nobody has filtered it."""
    started: float = field(default_factory=time.perf_counter)
    first_event: float | None = None
    answered: bool = False
    told: bool = False
    """Whether what became of this attempt is recorded."""
    error: str | None = None
    """The type of what the newest attempt raised."""
    target: Model | None = None
    """Whom the newest attempt asks."""
    waits_for: tuple[str, ...] = ()
    """The tool calls that the answer leaves to the SDK."""
    task: asyncio.Task[Any] | None = field(default_factory=lambda: _task())

    def __post_init__(self) -> None:
        self.model = self.own_model

    def asks(self, target: Model, model: str, own_model: str) -> None:
        """An attempt begins: the first one, or a retry of the SDK's."""
        self.target, self.model, self.own_model = target, model, own_model
        self.started, self.first_event, self.told = time.perf_counter(), None, False

    @property
    def is_of_this_task(self) -> bool:
        """Whether its run is at work here; what runs in another task is called by it, as tools are."""
        return self.task is _task()

    def saw_event(self) -> None:
        self.first_event = self.first_event or time.perf_counter()

    def answer(self, output: Iterable[Item], usage: object, *, just_now: bool = True) -> None:
        """The call's answer; told once, by whoever sees it first. How long it took is known `just_now` alone."""
        if self.answered:
            return
        self.answered = self.told = True
        with self.run.session.guard("recording an answer"):
            latency = ms_since(self.started) if just_now else None
            items = list(output)
            said = answer_of(items)
            self.waits_for = local_call_ids(items)
            self.run.heard(said, reasoning_ids(items), self)
            ttft = None if self.first_event is None else round((self.first_event - self.started) * 1000, 3)
            outcome = outcome_of(said, usage_of(usage), model=self.model, latency_ms=latency, ttft_ms=ttft)
            self.run.session.end_step(self.decision, outcome)

    def catch_up(self, items: Sequence[Item]) -> None:
        """Nobody tells of the answers of a model object that the agent of a tool holds: the next items say them."""
        if not self.told and (output := newest_answer(items)):
            self.answer(output, None, just_now=False)

    def failed(self, error: BaseException) -> None:
        """The error is the user's and goes on; the entry keeps it."""
        if not self.told:
            self.told, self.error = True, type(error).__name__
            outcome = failure_of(error, model=self.model, latency_ms=ms_since(self.started))
            self.run.session.end_step(self.decision, outcome)


CALL: ContextVar[Call | None] = ContextVar("reasonblocks_openai_call", default=None)
"""The newest call that was decided in this task, or in the one that started it: where a tool runs, its agent's.

The SDK filters a request and sends it in one task, whatever else it runs in tasks of their own.
"""


def waiting_call() -> Call | None:
    """The call whose request is about to go out here, its guidance in it."""
    call = CALL.get()
    return call if call is not None and call.filtered and not call.answered else None


def calling_run() -> SteeredRun | None:
    """The run whose tool the caller is: tools run in tasks, or threads, of their own."""
    call = CALL.get()
    if call is None or call.is_of_this_task or call.run.over:
        return None
    return call.run if call.answered or call.error is None else None  # no tool runs after a call that failed


def _task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # a thread without an event loop
        return None
