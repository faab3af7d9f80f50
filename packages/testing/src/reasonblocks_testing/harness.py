"""The interface between the conformance suite and a framework: runs scripts on real agents, returns observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reasonblocks.client import ReasonBlocks
from reasonblocks.types import AdapterCaps, StepLogEntry

from .script import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request, as the scripted model received it. A retried call has one `Seen` for each attempt.

    - `model`: the name of the model that was called, for example "agent-model".
    - `system`: the system prompt, with guidance placed there, and without text that the framework adds on its own;
      "" if there is none.
    - `texts`: the texts of all messages after the system prompt, in order. Each tool result is a message, and so is
      guidance with the placement "message".
    - `roles`: the role of each text: "user", "assistant", "tool" (a tool's result) or "system".
    - `raw`: the whole request as text, with a constant in place of ids and times that the framework makes at random.
      An observed run's requests are compared by it with those of a run without steering.

    >>> Seen(model="agent-model", system="You fix bugs.", texts=("Fix the failing tests.",), roles=("user",))
    """

    model: str
    system: str
    texts: tuple[str, ...]
    roles: tuple[str, ...] = ()
    raw: str = ""

    @property
    def everything(self) -> str:
        """The system prompt and all texts, one per line."""
        return "\n".join((self.system, *self.texts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished run: the adapter's records of it, and the observations of the scripted model.

    Read from the adapter's steering object, as a user would (`steering.runs[run_id]`):

    - `run_id`: the script's `run_id`.
    - `log`: the step log, one entry for each model call; a retried call has one entry.
    - `final`: the entry of the final step, which no call follows; None if there is none, as after a cancellation.
    - `outcome`: "success", "failure: ...", "stopped: ..." or None while the run has not ended.
    - `parent_run_id`, `parent_call_id`: the run and the tool call that started this run; None for a top-level run.
    - `snapshot`: the run's last snapshot, as plain JSON.

    Observed by the harness:

    - `seen`: every request that the model received, in order.
    - `history`: the texts of all messages that the framework keeps after the run, instructions that it recorded
      included, without the agent's own system prompt.
    - `error`: the exception that the agent raised, as the model raised it; None if it raised none.
    - `parts`: the number of parts in which the run was executed: 1 without a pause. Count them; do not compute them
      from `resume_at`.
    - `agent_model`: the agent object's model after the run; None if the framework's agents have no such attribute.
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
    """Runs scripts on real agents of one framework, steered by the adapter under test.

    Each method makes its own agent and its own steering object from `rb`. The agent's model and tools play the script;
    nothing else is scripted. `LoopHarness` is an example.

    `parity_limits`, an optional attribute, maps each field that the framework cannot report unchanged to the reason:
    `{"completed.observation": "it strips white space"}`. Only the parity command reads it.
    """

    modes: tuple[str, ...]
    """The public ways to run an agent, by names of your choice: `("sync", "async", "stream")`. Read streams to the end.

    Most scenarios run once in each mode.
    """
    caps: AdapterCaps
    """The abilities that the adapter gives to its sessions."""

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        """Run a script `times` times, one after the other, on one agent and one steering object; return each run.

        An exception of the agent is caught and returned as `Ran.error`.

        Before each call in `resume_at` (numbers of model calls, from 0) the run pauses. It resumes with a new agent and
        a new steering object, and with the history and the snapshot read back from JSON. A resumed run is one `Ran`
        with the log of all its parts; `parts` is counted, not assumed.
        """
        ...

    def run_unsteered(self, script: Script, mode: str) -> Sequence[Seen]:
        """Run a script on the same kind of agent without any steering; return the requests that the model received."""
        ...

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        """Run a script on an agent whose history is shortened before each call to the task and the newest step.

        The scripted model finds its turn by counting its calls, because the history holds at most one answer. If the
        framework cannot shorten a history, raise `NotImplementedError` and declare an expected failure.
        """
        ...

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        """Run all scripts at the same time on one agent and one steering object; return their runs in the same order.

        If an agent can have only one run at a time, use an agent for each script and one steering object.
        """
        ...

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        """Run a script in the event loop that is already running."""
        ...

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        """Run `outer`, whose tool `delegate` runs `inner` on an agent with the same steering object; return both."""
        ...

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        """Run a script, and cancel its task while the model works on call `at` (from 0) and has not answered."""
        ...

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        """Return a function that executes the adapter's hooks for one step, without an agent and without a model.

        The suite calls it with 0, 1, 2, ... and measures time, memory and threads. Each call adds a step to the
        history. Create what the hooks need, an event loop for example, once and not in each call.
        """
        ...
