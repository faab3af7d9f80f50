"""The reference: the step lifecycle around a loop written by hand, with no framework at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from ..client import ReasonBlocks
from ..render import place
from ..session import SteeringSession
from ..types import AdapterCaps, StepDecision, StepInput, StepLogEntry, StepOutcome
from ._harness import Ran, Seen
from ._script import Script, Turn


@dataclass(slots=True)
class _Agent:
    """An agent by hand: its history, what its model saw, and the parts of its log."""

    rb: ReasonBlocks
    script: Script
    session: SteeringSession
    history: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    log: list[StepLogEntry] = field(default_factory=list)

    @classmethod
    def start(cls, rb: ReasonBlocks, script: Script, **options: Any) -> _Agent:
        agent = cls(rb, script, rb.session(run_id=script.run_id, task=script.task, **options))
        agent.history.append(script.task)
        return agent

    def given(self, call: int) -> StepInput:
        completed = self.script.turns[call - 1].step if call else None
        return StepInput(key=f"call-{call}", completed=completed, default_model=self.script.model)

    def call(self, decision: StepDecision, turn: Turn) -> None:
        """The model call, and what the loop tells the session of it."""
        model = self._model(decision)
        attempts = turn.failures + 1
        for _ in range(attempts):
            self.seen.append(self._request(decision, model))
        if turn.error is not None:
            self.session.end_step(decision, StepOutcome(model=model, error=type(turn.error).__name__))
            raise turn.error
        self.session.end_step(decision, replace(turn.outcome(model), attempts=attempts))
        self.history.extend([turn.text, *(result.output for result in turn.results)])

    def resume(self) -> None:
        snapshot = json.loads(json.dumps(self.session.trace.snapshot()))
        self.log += self.session.step_log
        self.session = self.rb.session(snapshot=snapshot, task=self.script.task, caps=self.session.caps)

    def ran(self, error: BaseException | None = None) -> Ran:
        session = self.session
        return Ran(
            run_id=session.run.run_id,
            seen=tuple(self.seen),
            log=[*self.log, *session.step_log],
            final=session.final,
            outcome=session.outcome,
            history=tuple(self.history),
            error=error,
            parent_run_id=session.run.parent_run_id,
            snapshot=dict(session.trace.snapshot()),
        )

    def _request(self, decision: StepDecision, model: str) -> Seen:
        texts = list(self.history)
        system: Any = self.script.system_prompt
        if decision.placement == "system":
            system = place(system, decision.guidance, decision.standing_rules, cache_control=False)
        elif decision.guidance:
            texts.append(decision.guidance)
        return Seen(model=model, system=system or "", texts=tuple(texts))

    def _model(self, decision: StepDecision) -> str:
        """The mapped model; one that is not a name cannot be built by hand."""
        if decision.route is None:
            return self.script.model
        mapped = self.rb.model_routing[decision.route]
        if isinstance(mapped, str):
            return mapped
        self.session.route_failed(decision.route, TypeError(f"{mapped!r} is not a model"))
        return self.script.model


class LoopHarness:
    """The conformance suite's second client, and what every adapter is compared with."""

    modes: tuple[str, ...] = ("sync", "async")

    def __init__(self, caps: AdapterCaps | None = None) -> None:
        """`caps` are those of the framework that it is compared with."""
        self.caps = caps or AdapterCaps()

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        return [self._one(rb, script, mode, resume_at) for _ in range(times)]

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        if mode == "async":

            async def together() -> list[Ran]:
                return await asyncio.gather(*(self.arun(rb, script) for script in scripts))

            return asyncio.run(together())
        with ThreadPoolExecutor(len(scripts)) as pool:
            return list(pool.map(lambda script: self._one(rb, script, mode, ()), scripts))

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        return await self._arun(rb, script, ())

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        outside = _Agent.start(rb, outer, caps=self.caps)
        inside = _Agent.start(rb, inner, caps=self.caps, parent_run_id=outer.run_id)
        for call, turn in enumerate(outer.turns):
            outside.call(outside.session.begin_step(outside.given(call)), turn)
            if turn.tool_calls and not inside.seen:
                self._drive(inside, ())
        outside.session.finish(completed=outer.turns[-1].step)
        return outside.ran(), inside.ran()

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        agent = _Agent.start(rb, script, caps=self.caps)

        async def main() -> None:
            for call, turn in enumerate(script.turns):
                decision = await agent.session.abegin_step(agent.given(call))
                if call == at:
                    await asyncio.sleep(3600)
                agent.call(decision, turn)

        async def cancelled() -> None:
            task = asyncio.create_task(main())
            while len(agent.session.step_log) <= at:
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(cancelled())
        return agent.ran(asyncio.CancelledError())

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        session = rb.session(caps=self.caps)
        turn = Turn(text="I look at the next file and note what it says.")

        def step(call: int) -> None:
            completed = turn.step if call else None
            decision = session.begin_step(StepInput(key=f"call-{call}", completed=completed))
            session.end_step(decision, turn.outcome("agent-model"))

        return step

    def _one(self, rb: ReasonBlocks, script: Script, mode: str, resume_at: Sequence[int]) -> Ran:
        if mode == "async":
            return asyncio.run(self._arun(rb, script, resume_at))
        return self._drive(_Agent.start(rb, script, caps=self.caps), resume_at)

    def _drive(self, agent: _Agent, resume_at: Sequence[int]) -> Ran:
        try:
            for call, turn in enumerate(agent.script.turns):
                if call in resume_at:
                    agent.resume()
                agent.call(agent.session.begin_step(agent.given(call)), turn)
        except Exception as exc:  # noqa: BLE001 - a harness tells what the agent raised
            agent.session.finish(f"failure: {type(exc).__name__}")
            return agent.ran(exc)
        agent.session.finish(completed=agent.script.turns[-1].step)
        return agent.ran()

    async def _arun(self, rb: ReasonBlocks, script: Script, resume_at: Sequence[int]) -> Ran:
        agent = _Agent.start(rb, script, caps=self.caps)
        try:
            for call, turn in enumerate(script.turns):
                if call in resume_at:
                    agent.resume()
                agent.call(await agent.session.abegin_step(agent.given(call)), turn)
        except Exception as exc:  # noqa: BLE001 - a harness tells what the agent raised
            await agent.session.afinish(f"failure: {type(exc).__name__}")
            return agent.ran(exc)
        await agent.session.afinish(completed=script.turns[-1].step)
        return agent.ran()
