"""What an adapter gives the conformance suite: a way to run a script on a real agent of its framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .._client import ReasonBlocks
from ..types import AdapterCaps, StepLogEntry
from ._script import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as the model got it. `texts` are the messages after the system prompt, in order.

    `roles` holds the role of each text: "user", "assistant", "tool" (a tool's result) or "system".
    """

    model: str
    system: str
    texts: tuple[str, ...]
    roles: tuple[str, ...] = ()

    @property
    def everything(self) -> str:
        return "\n".join((self.system, *self.texts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run, seen from outside. `history` is the conversation that remains after it, without the system prompt.

    `error` is the exception that the agent raised. `parent_run_id` and `parent_call_id` come from the run's start
    event. `parts` counts the parts in which the run was actually executed: 1 without a pause. `agent_model` is the
    agent object's model after the run; None if the framework's agents have no such attribute.
    """

    run_id: str
    seen: tuple[Seen, ...]
    log: Sequence[StepLogEntry]
    final: StepLogEntry | None
    outcome: str | None
    history: tuple[str, ...] = ()
    error: BaseException | None = None
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    parts: int = 1
    agent_model: str | None = None
    snapshot: dict[str, object] = field(default_factory=dict)


class Harness(Protocol):
    """One framework. Each method makes its own agent; `modes` are the ways in which it can be called."""

    modes: tuple[str, ...]
    caps: AdapterCaps

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        """Run a script `times` times, one after the other, on one agent and one steering object.

        Before each call in `resume_at` the run pauses and resumes with new objects and its state through JSON. A
        resumed run is one `Ran` with the log of all its parts, and `parts` is counted, not assumed.
        """
        ...

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        """Run a script on an agent whose history is shortened before each call to the task and the newest step.

        The model finds its turn by counting its calls, because its history has one answer at most.
        """
        ...

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        """Run scripts at the same time on one agent and one steering object."""
        ...

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        """Run a script within the running event loop."""
        ...

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        """Run `outer`, whose only tool `delegate` runs `inner`, steered by the same object."""
        ...

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        """Run a script and cancel it while call `at` is under way."""
        ...

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        """The adapter's own functions for one step, on a history that grows by a step with each call."""
        ...
