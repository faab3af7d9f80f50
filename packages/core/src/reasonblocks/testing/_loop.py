"""The reference: the step lifecycle around a loop written by hand, with no framework at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from ..client import ReasonBlocks
from ..types import AdapterCaps, StepInput
from ._harness import Ran
from ._loop_run import LoopModel, LoopRun
from ._script import Script, Turn


class LoopHarness:
    """The conformance suite's second client, and what every adapter is compared with."""

    modes: tuple[str, ...] = ("sync", "async")
    kind: ClassVar[type[LoopRun]] = LoopRun

    def __init__(self, caps: AdapterCaps | None = None) -> None:
        """`caps` are those of the framework that it is compared with."""
        self.caps = caps or AdapterCaps()

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        model = LoopModel(script.model)
        return [self._one(rb, script, mode, resume_at, model=model) for _ in range(times)]

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        return self._one(rb, script, mode, forgets=True)

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        if mode == "async":

            async def together() -> list[Ran]:
                return await asyncio.gather(*(self.arun(rb, script) for script in scripts))

            return asyncio.run(together())
        with ThreadPoolExecutor(len(scripts)) as pool:
            return list(pool.map(lambda script: self._one(rb, script, mode), scripts))

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

    def _one(self, rb: ReasonBlocks, script: Script, mode: str, resume_at: Sequence[int] = (), **options: Any) -> Ran:
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
        except Exception as exc:  # noqa: BLE001 - a harness tells what the agent raised
            run.session.finish(f"failure: {type(exc).__name__}")
            return run.ran(exc)
        run.session.finish(completed=run.script.turns[-1].step)
        return run.ran()

    async def _adrive(self, run: LoopRun, resume_at: Sequence[int] = ()) -> Ran:
        try:
            for call, turn in enumerate(run.script.turns):
                if call in resume_at:
                    run.pause()
                run.call(await run.adecide(run.given(call)), turn)
                run.run_tools(turn)
        except Exception as exc:  # noqa: BLE001 - a harness tells what the agent raised
            await run.session.afinish(f"failure: {type(exc).__name__}")
            return run.ran(exc)
        await run.session.afinish(completed=run.script.turns[-1].step)
        return run.ran()
