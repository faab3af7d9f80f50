"""What steering costs as a run gets longer."""

from __future__ import annotations

from typing import ClassVar

from . import _world as world
from ._checks import kept, seconds
from ._harness import Harness

GROWING = 2_000


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
        (ran,) = self.harness.run(world.client(calls=self.long_run), world.looping(self.long_run), mode)
        assert len(ran.log) == self.long_run
        assert ran.outcome == "success"
