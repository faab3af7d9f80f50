"""What steering costs as a run gets longer."""

from __future__ import annotations

import threading
from typing import ClassVar

from ..client import ReasonBlocks
from ..types import Evaluation, Step
from . import _world as world
from ._checks import decided, kept, read, seconds, threads_started
from ._harness import Harness
from ._loop import LoopHarness
from ._scripted import ScriptedEvaluator
from ._watched import Watched

GROWING = 2_000
THREADED = 100
"""The number of calls over which threads are counted."""
FEW_THREADS = 10
"""Allowed threads: workers for a caller's callables and an event loop's own pool, none started for each call."""
KEPT_RUNS = 256
"""Finished runs that a steering object keeps for its user (`Runs`)."""
SHORT_RUNS = KEPT_RUNS + 44
FEWEST_LET_GO = 4


def _changing(calls: int, threads: list[int] | None = None) -> ReasonBlocks:
    """Return a client whose monitor also speaks late in the run: the cap leaves its last text for the last tenth.

    `threads` gets the number of threads at each completed step.
    """
    late = [world.speaking(at) if at % (calls // 5) == calls // 10 else Evaluation() for at in range(calls)]

    def scorer(step: Step) -> float:
        if threads is not None:
            threads.append(threading.active_count())
        return 0.4

    return world.client(evaluator=ScriptedEvaluator(late), scorer=scorer)


class CostScenarios:
    """Part of `ConformanceSuite`."""

    harness: ClassVar[Harness]
    long_run: ClassVar[int]
    short_runs: ClassVar[int] = SHORT_RUNS
    kept_runs: ClassVar[int] = KEPT_RUNS

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
        threads: list[int] = []
        (ran,) = self.harness.run(_changing(self.long_run, threads), script, mode)
        (core,) = LoopHarness(self.harness.caps).run(_changing(self.long_run), script, "sync")
        assert decided(ran.log) == decided(core.log)
        assert [read(seen) for seen in ran.seen] == [read(seen) for seen in core.seen]
        assert ran.outcome == "success"
        assert max(threads[10:]) <= max(threads[:10]) + FEW_THREADS  # a pool may fill, but none grows with the run

    def test_sessions_of_ended_runs_are_let_go(self) -> None:
        """After `short_runs` runs, only the sessions of the newest finished runs are alive, as documented."""
        client = world.made(Watched, census=self.short_runs)
        self.harness.run(client, world.looping(1), self.harness.modes[0], times=self.short_runs)
        assert client.alive is not None, f"the harness made fewer than {self.short_runs} sessions"
        assert client.alive <= self.kept_runs + 2  # plus the one that begins and the one that ends

    def test_a_call_starts_no_thread(self) -> None:
        """The adapter's own work for 100 calls starts a handful of threads at most, ended ones counted."""
        step = self.harness.handwork(world.client(calls=THREADED))
        with threads_started() as started:
            for call in range(THREADED):
                step(call)
        assert len(started) <= FEW_THREADS
