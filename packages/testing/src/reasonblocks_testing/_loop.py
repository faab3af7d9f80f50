"""The reference harness: an agent loop written by hand, without a framework, steered by a session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from reasonblocks.client import ReasonBlocks
from reasonblocks.render import steered_request
from reasonblocks.session import SteeringSession
from reasonblocks.types import AdapterCaps, StepDecision, StepInput, StepLogEntry, StepOutcome, ToolCall

from .harness import Ran, Seen
from .script import Script, Turn

if TYPE_CHECKING:
    from typing_extensions import Self

TOOL: ContextVar[tuple[str, str] | None] = ContextVar("reasonblocks_loop_tool", default=None)
"""The ids of the current run and tool call, which are the parents of a run that the tool starts."""


@dataclass
class LoopModel:
    """The agent's own model, which all runs of an agent share."""

    name: str


@dataclass
class LoopRun:
    """One run of a hand-written agent.

    `history` holds (role, text) pairs, `seen` the requests to the model, `log` the entries of the parts before the
    newest pause. With `forgets=True` the history is shortened before each call.
    """

    rb: ReasonBlocks
    script: Script
    session: SteeringSession
    model: LoopModel
    history: list[tuple[str, str]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    log: list[StepLogEntry] = field(default_factory=list)
    parts: int = 1
    forgets: bool = False

    @classmethod
    def start(
        cls,
        rb: ReasonBlocks,
        script: Script,
        caps: AdapterCaps,
        model: LoopModel | None = None,
        *,
        forgets: bool = False,
    ) -> Self:
        run = cls(rb, script, cls.begin(rb, script, caps), model or LoopModel(script.model), forgets=forgets)
        run.history.append(("user", script.task))
        return run

    @classmethod
    def begin(cls, rb: ReasonBlocks, script: Script, caps: AdapterCaps) -> SteeringSession:
        parent, call = TOOL.get() or (None, None)
        return rb.session(
            run_id=script.run_id,
            agent_name=script.agent_name,
            task=script.task,
            caps=caps,
            parent_run_id=parent,
            parent_call_id=call,
        )

    def key(self, call: int) -> str:
        return f"call-{call}"

    def given(self, call: int) -> StepInput:
        if self.forgets:
            newest = max((at for at, (role, _) in enumerate(self.history) if role == "assistant"), default=1)
            self.history[1:newest] = []
        completed = self.script.turns[call - 1].step if call else None
        return StepInput(key=self.key(call), completed=completed, default_model=self.model.name)

    def guard(self, kind: str) -> AbstractContextManager[None]:
        return self.session.guard(kind)

    def decide(self, given: StepInput) -> StepDecision | None:
        with self.guard("deciding a call"):
            return self.session.begin_step(given)
        return None

    async def adecide(self, given: StepInput) -> StepDecision | None:
        with self.guard("deciding a call"):
            return await self.session.abegin_step(given)
        return None

    def call(self, decision: StepDecision | None, turn: Turn) -> None:
        """Call the model as often as the turn fails and once more, and report the call to the session."""
        model = self.asked(decision)
        attempts = turn.failures + 1
        for _ in range(attempts):
            self.seen.append(self.request(decision, model))
        if turn.error is not None:
            self.ended(decision, StepOutcome(model=model, error=type(turn.error).__name__))
            raise turn.error
        self.ended(decision, replace(turn.outcome(model), attempts=attempts))
        self.history.append(("assistant", turn.text))

    def run_tools(self, turn: Turn, delegate: Callable[[], object] | None = None) -> None:
        """Run the tool calls in order and append their results. The tool `delegate` calls the argument of that name."""
        outputs = {result.call_id: result.output for result in turn.results}
        for call in turn.tool_calls:
            with self.within(call):
                if delegate is not None and call.name == "delegate":
                    delegate()
                self.history.append(("tool", outputs.get(call.id, "")))

    @contextmanager
    def within(self, call: ToolCall) -> Iterator[None]:
        before = TOOL.set((self.session.run.run_id, call.id))
        try:
            yield
        finally:
            TOOL.reset(before)

    def pause(self) -> None:
        """Pause, and resume with a new session from a snapshot that was read back from JSON."""
        snapshot = json.loads(json.dumps(self.session.trace.snapshot()))
        self.session.pause()
        self.log += self.session.step_log
        self.session = self.rb.session(snapshot=snapshot, task=self.script.task, caps=self.session.caps)
        self.parts += 1

    def ran(self, error: BaseException | None = None) -> Ran:
        session = self.session
        return Ran(
            run_id=session.run.run_id,
            seen=tuple(self.seen),
            log=[*self.log, *session.step_log],
            final=session.final,
            outcome=session.outcome,
            history=tuple(text for _, text in self.history),
            error=error,
            parent_run_id=session.run.parent_run_id,
            parent_call_id=session.run.parent_call_id,
            parts=self.parts,
            agent_model=self.model.name,
            snapshot=dict(session.trace.snapshot()),
        )

    def request(self, decision: StepDecision | None, model: str) -> Seen:
        said: list[Any] = [{"role": role, "content": text} for role, text in self.history]
        system: Any = self.script.system_prompt
        if decision is not None:
            system, said = steered_request(decision, system, said)
        roles, texts = (tuple(message[name] for message in said) for name in ("role", "content"))
        return Seen(model=model, system=system or "", texts=texts, roles=roles, raw=json.dumps([model, system, said]))

    def asked(self, decision: StepDecision | None) -> str:
        """Return the name of the model to call. A model object closes the route, since this loop knows names only."""
        if decision is None or decision.route is None:
            return self.model.name
        mapped = self.rb.model_routing[decision.route]
        if isinstance(mapped, str):
            return mapped
        self.session.route_failed(decision.route, TypeError(f"{mapped!r} is not a model"))
        return self.model.name

    def ended(self, decision: StepDecision | None, outcome: StepOutcome) -> None:
        if decision is not None:
            with self.guard("recording an answer"):
                self.session.end_step(decision, outcome)


class LoopHarness:
    """Harness of the hand-written loop: every adapter is compared with it, and it is the shortest complete harness."""

    modes: tuple[str, ...] = ("sync", "async")
    kind: ClassVar[type[LoopRun]] = LoopRun

    def __init__(self, caps: AdapterCaps | None = None) -> None:
        """Take the caps of the framework to compare with, so that the core decides for the same abilities."""
        self.caps = caps or AdapterCaps()

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        model = LoopModel(script.model)
        return [self._run_once(rb, script, mode, resume_at, model=model) for _ in range(times)]

    def run_unsteered(self, script: Script, mode: str) -> Sequence[Seen]:
        run = self._start(ReasonBlocks(), script)
        for turn in script.turns:
            run.call(None, turn)
            run.run_tools(turn)
            if not turn.tool_calls:
                break
        return run.seen

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        return self._run_once(rb, script, mode, forgets=True)

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        if mode == "async":

            async def together() -> list[Ran]:
                return await asyncio.gather(*(self.arun(rb, script) for script in scripts))

            return asyncio.run(together())
        with ThreadPoolExecutor(len(scripts)) as pool:
            return list(pool.map(lambda script: self._run_once(rb, script, mode), scripts))

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        return await self._adrive(self._start(rb, script))

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        insides: list[Ran] = []

        def delegate() -> None:
            insides.append(self._drive(self._start(rb, inner)))

        outside = self._drive(self._start(rb, outer), delegate=delegate)
        return outside, insides[0]

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        run = self._start(rb, script)

        async def main() -> None:
            for call, turn in enumerate(script.turns):
                decision = await run.adecide(run.given(call))
                if call == at:
                    await asyncio.sleep(3600)
                run.call(decision, turn)
                run.run_tools(turn)

        async def cancelled() -> None:
            task = asyncio.create_task(main())
            while len(run.session.step_log) <= at:
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(cancelled())
        return run.ran(asyncio.CancelledError())

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        turn = Turn(text="I look at the next file and note what it says.")
        run = self._start(rb, Script(turns=(turn,)))

        def step(call: int) -> None:
            decision = run.decide(StepInput(key=f"call-{call}", completed=turn.step if call else None))
            run.ended(decision, turn.outcome("agent-model"))

        return step

    def _start(self, rb: ReasonBlocks, script: Script, **options: Any) -> LoopRun:
        return self.kind.start(rb, script, self.caps, **options)

    def _run_once(
        self, rb: ReasonBlocks, script: Script, mode: str, resume_at: Sequence[int] = (), **options: Any
    ) -> Ran:
        if mode == "async":
            return asyncio.run(self._adrive(self._start(rb, script, **options), resume_at))
        return self._drive(self._start(rb, script, **options), resume_at)

    def _drive(self, run: LoopRun, resume_at: Sequence[int] = (), delegate: Callable[[], object] | None = None) -> Ran:
        try:
            for call, turn in enumerate(run.script.turns):
                if call in resume_at:
                    run.pause()
                run.call(run.decide(run.given(call)), turn)
                run.run_tools(turn, delegate)
                if not turn.tool_calls and run.session.second_look(run.given(call + 1)) is None:
                    break
        except Exception as exc:  # noqa: BLE001 - a harness returns any exception of the agent
            run.session.finish(f"failure: {type(exc).__name__}")
            return run.ran(exc)
        run.session.finish(completed=turn.step)
        return run.ran()

    async def _adrive(self, run: LoopRun, resume_at: Sequence[int] = ()) -> Ran:
        try:
            for call, turn in enumerate(run.script.turns):
                if call in resume_at:
                    run.pause()
                run.call(await run.adecide(run.given(call)), turn)
                run.run_tools(turn)
                if not turn.tool_calls and await run.session.asecond_look(run.given(call + 1)) is None:
                    break
        except Exception as exc:  # noqa: BLE001 - a harness returns any exception of the agent
            await run.session.afinish(f"failure: {type(exc).__name__}")
            return run.ran(exc)
        await run.session.afinish(completed=turn.step)
        return run.ran()
