"""Times the steps of recorded runs with whichever build of the library it can import: a script, started by `cost`.

It reads a run's number from each line of stdin, and writes the microseconds of the run's steps to stdout as JSON: of
the features that the monitors share, of the evaluation by all monitors with them, and of the whole step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reasonblocks import ReasonBlocks
from reasonblocks.monitors.features import features_of
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun, read_runs

# Any: the names of another build's types may be others.


class Timed(ReasonBlocks):
    """A client that collects how long its evaluator and the calls of its session take."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.monitors_us: list[float] = []
        self.whole_us: list[float] = []

    @property
    def _backends(self) -> Any:
        backends: Any = super()._backends
        return replace(backends, evaluator=_Evaluator(backends.evaluator, self.monitors_us))

    def session(self, *given: Any, **keywords: Any) -> Any:
        return _Session(super().session(*given, **keywords), self.whole_us)


class _Evaluator:
    inline = True

    def __init__(self, evaluator: Any, taken: list[float]) -> None:
        self._evaluator, self._taken = evaluator, taken

    def evaluate(self, request: Any) -> Any:
        started = time.perf_counter()
        answer = self._evaluator.evaluate(request)
        self._taken.append((time.perf_counter() - started) * 1e6)
        return answer


class _Session:
    """A step's time is that of `begin_step`, which judges the step before it, and of `end_step`."""

    def __init__(self, session: Any, taken: list[float]) -> None:
        self._session, self._taken, self._begun = session, taken, 0.0

    def __enter__(self) -> _Session:
        self._session.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._session.__exit__(*error)

    def begin_step(self, given: Any) -> Any:
        decision, self._begun = _timed(lambda: self._session.begin_step(given))
        return decision

    def end_step(self, *given: Any) -> None:
        _, taken = _timed(lambda: self._session.end_step(*given))
        self._taken.append(self._begun + taken)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    made = work()
    return made, (time.perf_counter() - started) * 1e6


def times(run: RecordedRun) -> dict[str, list[float]]:
    """Return the microseconds of each step. The first call has no completed step, and the last step no call."""
    with Timed(strict=True) as rb:
        replay(rb, run)
        monitors, whole = rb.monitors_us, rb.whole_us[1:]
    shared = [_timed(lambda: features_of(step, index, run.task))[1] for index, step in enumerate(run.steps)]  # noqa: B023
    return {"features_us": shared, "monitors_us": monitors, "whole_us": whole}


def main() -> None:
    runs = [run for run in read_runs(sys.argv[1]) if isinstance(run, RecordedRun)]
    print(len(runs), flush=True)
    for line in sys.stdin:
        print(json.dumps(times(runs[int(line)])), flush=True)


if __name__ == "__main__":
    main()
