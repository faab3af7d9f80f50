"""What steering costs as a run gets longer."""

from __future__ import annotations

from typing import ClassVar

from ..client import ReasonBlocks
from ..types import Evaluation
from . import _world as world
from ._checks import decided, kept, read, seconds
from ._harness import Harness
from ._loop import LoopHarness
from ._scripted import ScriptedEvaluator

GROWING = 2_000


def _changing(calls: int) -> ReasonBlocks:
    """A monitor that speaks late in the run, too: the cap leaves its last text for the last tenth."""
    late = [world.speaking(at) if at % (calls // 5) == calls // 10 else Evaluation() for at in range(calls)]
    return world.client(evaluator=ScriptedEvaluator(late))


class CostScenarios:
    """Part of `ConformanceSuite`."""

    harness: ClassVar[Harness]
    long_run: ClassVar[int]

    def test_the_adapters_own_work_does_not_grow(self) -> None:
        step = self.harness.handwork(world.client(calls=GROWING))
        early = seconds(step, range(50))
        seconds(step, range(50, GROWING - 50))
        held = kept(step, range(GROWING - 50, GROWING))
        late = seconds(step, range(GROWING, GROWING + 50))
        assert late < 10 * early  # quadratic growth would be some 40 times
        assert held < 1_000_000

    def test_a_long_run_is_steered_to_its_end(self) -> None:
        mode = self.harness.modes[0]
        script = world.looping(self.long_run)
        (ran,) = self.harness.run(_changing(self.long_run), script, mode)
        (core,) = LoopHarness(self.harness.caps).run(_changing(self.long_run), script, "sync")
        assert decided(ran.log) == decided(core.log)
        assert [read(seen) for seen in ran.seen] == [read(seen) for seen in core.seen]
        assert ran.outcome == "success"
