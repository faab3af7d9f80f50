"""benchmarks/monitors.py measures what it says: on runs of our own, and just as the shared benchmark does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from _monitors.baselines import BASELINES
from _monitors.configurations import Configuration, fitted_elsewhere, fitted_in_folds
from _monitors.flat import flat
from _monitors.measure import scored_source
from _monitors.sources import Source
from _monitors.states import states_of
from _monitors.trail import Trail, judged, library
from _monitors.trail import _Stopwatch as Stopwatch

from reasonblocks import ReasonBlocks
from reasonblocks.backends.local import LocalEvaluator
from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.builtin import Calibration
from reasonblocks.requests import Evaluate
from reasonblocks.types import Evaluation, FSMState, Memories, Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.calibration import Observed, shipped
from reasonblocks_workbench.calibration._columns import columns
from reasonblocks_workbench.calibration.compare import first_firings
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun
from tests.whole import in_whole

pytestmark = in_whole
ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
BENCH = SHARED / "bench" / "bench.py"
FAST, NORMAL, SLOW = FSMState.FAST, FSMState.NORMAL, FSMState.SLOW


def step(command: str) -> Step:
    call = ToolCall(id="call", name="bash", arguments={"input": command})
    result = ToolResult(call_id="call", name="bash", output="no such file", is_error=True)
    return Step(thought="Once more.", tool_calls=(call,), tool_results=(result,))


def run(
    commands: Sequence[str], *, failing: bool = False, task: str = "", number: int = 0, oracle_stop: bool = False
) -> RecordedRun:
    return RecordedRun(
        run_id=f"run-{number}",
        steps=tuple(map(step, commands)),
        usages=(Usage(),) * len(commands),
        file="runs.jsonl",
        line=number + 1,
        outcome="failure: Timeout" if failing else "success",
        task_key=task or str(number),
        oracle_stop=oracle_stop,
    )


def source(steps: Iterable[int], failing: Iterable[bool], *, name: str = "agent", oracle_stop: bool = False) -> Source:
    """Runs of so many steps."""
    each = enumerate(zip(steps, failing))
    runs = [run(["ls"] * n, failing=bad, number=i, task=f"{i // 2}", oracle_stop=oracle_stop) for i, (n, bad) in each]
    return Source(name=name, runs=tuple(runs))


def test_the_library_is_measured_by_its_own_decisions() -> None:
    stuck = run(["cat a"] * 6)
    (trail,) = judged(library(), [stuck])
    with ReasonBlocks() as rb:
        decisions = replay(rb, stuck).decisions
    assert trail.scores == tuple(decision.composite for decision in decisions)
    assert trail.fires == tuple(decision.gate_decision == "inject" for decision in decisions)
    assert any(trail.fires)


def test_every_step_of_the_library_is_timed() -> None:
    (trail,) = judged(library(), [run(["cat a"] * 4)])
    assert len(trail.monitors_us) == len(trail.features_us) == 4


def test_times_are_those_of_the_monitors_and_of_the_features_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Slow:
        def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
            passes(2.0)
            return LocalEvaluator(shipped()).evaluate(request)

    def passes(seconds: float, *given: object) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("_monitors.trail.time", SimpleNamespace(perf_counter=lambda: now))
    monkeypatch.setattr("_monitors.trail.features_of", partial(passes, 0.5))
    stopwatch = Stopwatch(Slow())
    stopwatch.evaluate(
        Evaluate(step=step("ls"), index=0, memories={}, injected=(), task="", profile="default", weights={})
    )
    assert (stopwatch.monitors_us, stopwatch.features_us) == ([2e6], [0.5e6])


def test_other_processes_say_the_same() -> None:
    runs = [run(["cat a"] * 5, number=number) for number in range(3)]
    assert judged(library(), runs, 2) == judged(library(), runs)


def test_repeated_calls_are_counted_and_fire_at_the_third() -> None:
    (trail,) = BASELINES["repeat"]([run(["ls", "pwd", "ls", "ls", "pwd"])])
    assert trail == Trail(scores=(1, 1, 2, 3, 3), fires=(False, False, False, True, False))


def test_a_step_becomes_flat_again() -> None:
    assert flat(step("ls")) == {
        "thought": "Once more.", "action": "bash", "action_input": "ls", "observation": "no such file",
        "is_error": True, "tokens": None,
    }  # fmt: skip


LENGTHS = [*range(4, 24), *range(10, 30)]
OF_LENGTHS = source(LENGTHS, [False] * 20 + [True] * 20)


def test_length_tells_nothing_where_length_is_held() -> None:
    found = columns(scored_source(OF_LENGTHS, judged(BASELINES["length"], OF_LENGTHS.runs), 0))
    assert found["land"].tolist() == [0.5]
    assert found["full"][0] > 0.6


def test_a_source_that_stops_at_success_has_only_what_length_cannot_reach() -> None:
    stopped = source(LENGTHS, [False] * 20 + [True] * 20, oracle_stop=True)
    assert not stopped.core
    assert set(columns(scored_source(stopped, judged(BASELINES["length"], stopped.runs), 0))) == {"land", "r10L"}


def test_a_source_of_one_outcome_is_not_measured() -> None:
    assert not source(LENGTHS, [True] * 40).measurable


def test_runs_of_three_steps_do_not_count() -> None:
    assert source([3, 4, 5], [True, False, True]).counted == (1, 2)


def fired_at(*steps: int | None, of: Sequence[int]) -> list[Trail]:
    return [Trail(scores=(0.0,) * n, fires=tuple(k == at for k in range(n))) for at, n in zip(steps, of)]


def test_a_first_firing_is_compared_with_runs_that_go_on_and_have_not_fired() -> None:
    lengths = [6, 6, 6, 6, 4]
    fired = fired_at(2, 2, 4, None, None, of=lengths)
    found = first_firings(scored_source(source(lengths, [True, False, True, False, True]), fired, 0))
    assert found is not None
    counts = (found.exposed_failing, found.exposed_passing, found.other_failing, found.other_passing)
    # After step 2: runs 0 and 1 against 2, 3 and the short 4. At step 4 of 6 runs: 2 against 3.
    assert np.vstack(counts).T.tolist() == [[1, 1, 2, 1], [1, 0, 0, 1]]


def test_a_firing_at_the_last_step_comes_too_late_to_count() -> None:
    assert first_firings(scored_source(source([6, 6], [True, False]), fired_at(5, None, of=[6, 6]), 0)) is None


def in_states(*each: Sequence[FSMState]) -> list[Trail]:
    return [Trail(scores=(0.0,) * len(states), states=tuple(states)) for states in each]


def test_states_are_counted_over_steps_and_reached_by_runs_of_eight() -> None:
    trails = in_states([NORMAL] * 6 + [SLOW] * 2, [NORMAL] * 8, [SLOW] * 4)
    found = states_of(source([8, 8, 4], [True, True, False]), trails, 0)
    assert found.shares[SLOW] == pytest.approx(6 / 20)
    assert (found.long_runs, found.reach_failing[SLOW].tolist()) == (2, [0.5])
    assert np.isnan(found.reach_passing[SLOW]).all()


def test_much_fast_is_more_than_the_median_run_of_its_length() -> None:
    trails = in_states([FAST] * 8, [FAST] * 2 + [NORMAL] * 6, [NORMAL] * 8)
    found = states_of(source([8, 8, 8], [False, True, True]), trails, 0).fast
    assert found is not None
    assert (found.exposed_passing.sum(), found.exposed_failing.sum(), found.other_failing.sum()) == (1, 0, 2)


class Fitted:
    """A fit that remembers what it was given, and changes nothing."""

    def __init__(self) -> None:
        self.given: list[set[str]] = []
        self.around: list[Calibration | None] = []

    def __call__(self, runs: Sequence[Observed], prior: Calibration | None) -> Calibration:
        self.given.append({run.task_key for run in runs})
        self.around.append(prior)
        return replace(shipped(), composite=len(self.given) / 100)


ONE = Source(name="a", runs=(run(["ls"], task="a"),))


def test_a_source_is_judged_by_what_was_fitted_to_the_others() -> None:
    fit = Fitted()
    trails = fitted_elsewhere(fit).trails([ONE, OF_LENGTHS], 1)
    assert (fit.given, fit.around) == ([set(OF_LENGTHS.tasks), {"a"}], [None, None])
    assert [len(trail.scores) for told in trails for trail in told] == [1, *LENGTHS]


def test_no_task_is_judged_by_what_was_fitted_to_it() -> None:
    fit = Fitted()
    (trails,) = fitted_in_folds(4, fit).trails([OF_LENGTHS], 1)
    left_out = [set(OF_LENGTHS.tasks) - given for given in fit.given[1:]]
    assert sorted(task for tasks in left_out for task in tasks) == sorted(set(OF_LENGTHS.tasks))
    assert [len(trail.scores) for trail in trails] == LENGTHS


def test_folds_are_fitted_around_what_the_other_sources_say() -> None:
    fit = Fitted()
    fitted_in_folds(2, fit).trails([OF_LENGTHS, replace(OF_LENGTHS, name="other")], 1)
    assert [prior and prior.composite for prior in fit.around] == [None, 0.01, 0.01, None, 0.04, 0.04]


def test_where_the_other_sources_do_not_suffice_folds_are_fitted_around_the_shipped_calibration() -> None:
    around: list[Calibration | None] = []

    def fit(runs: Sequence[Observed], prior: Calibration | None) -> Calibration:
        if not runs:
            raise ConfigError("runs", 0, "too few")
        around.append(prior)
        return shipped()

    fitted_in_folds(2, fit).trails([OF_LENGTHS], 1)
    assert around == [shipped()] * 2


@pytest.mark.parametrize("how", [fitted_elsewhere(), fitted_in_folds(2)], ids=["elsewhere", "folds"])
def test_the_librarys_own_fit_judges_every_run(how: Configuration) -> None:
    pytest.importorskip("sklearn")
    sources = [replace(OF_LENGTHS, name=name) for name in ("a", "b")]
    assert [len(trail.scores) for told in how.trails(sources, 1) for trail in told] == LENGTHS * 2


def printed(*command: str) -> str:
    """Warnings stay warnings: numpy gives them in the other benchmark."""
    env = {**os.environ, "PYTHONWARNINGS": "default"}
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, check=True).stdout


NAMES = ("tau_retail", "hotpot_react", "intercode_react", "intercode_tryagain")


@pytest.mark.skipif(not BENCH.is_file(), reason="the shared benchmark is not beside the repository")
@pytest.mark.parametrize("detector", ["repeat", "length"])
def test_the_shared_benchmark_gives_the_same_figures(detector: str, tmp_path: Path) -> None:
    file, theirs = str(BENCH.parent / "detectors" / f"{detector}.py"), tmp_path / "theirs.json"
    options = ("--boot", "5", "--sources", ",".join(NAMES))
    printed(str(BENCH), file, *options, "--no-causal-check", "--json", str(theirs))
    paths = [str(SHARED / "corpus" / "dev" / f"{name}.jsonl.gz") for name in NAMES]
    ours = printed(str(ROOT / "benchmarks" / "monitors.py"), *paths, *options, "--json", "--detector", file)
    expected = dict(_theirs(json.loads(theirs.read_text(encoding="utf-8"))))
    assert dict(_ours(ours)) == pytest.approx(expected, abs=1e-9)


AUROCS = ("full", "half", "land", "match", "task", "r10", "r10h", "r10L")
SIDES = (("own", "own"), ("own_half", "own_half"))


def _theirs(found: Any) -> Iterable[tuple[str, float]]:  # Any: another program's JSON
    pooled = found["pooled"]
    every = {**found["sources"], "macro": {name: pooled.get(f"macro_{name}") for name in AUROCS} | _own_of(pooled)}
    for name, figures in every.items():
        yield from ((f"{name} {column}", figures[column][0]) for column in AUROCS if figures.get(column))
        yield from _sides(name, figures)
    for name, figures in (found["lift"] or {}).items():
        if figures:
            place = "macro" if name == "core" else name
            yield from ((f"{place} lift {key}", figures[key]) for key in ("or", "lo", "hi", "runs", "p_fail"))
    yield from (("pool full", pooled["raw_full"]), ("pool half", pooled["raw_half"]))
    yield from (("one threshold", pooled["one_threshold"]["recall"]), ("at", pooled["one_threshold"]["threshold"]))


def _own_of(pooled: Any) -> dict[str, Any]:
    return {key: pooled[key] for key, _ in SIDES if key in pooled}


def _sides(name: str, figures: Any) -> Iterable[tuple[str, float]]:
    for key, ours in SIDES:
        if figures.get(key):
            yield f"{name} {ours}_failing", figures[key][0]
            yield f"{name} {ours}_passing", figures[key][1]


def _ours(lines: str) -> Iterable[tuple[str, float]]:
    for row in map(json.loads, lines.splitlines()):
        if row["table"] == "columns":
            names = set(row) - {"table", "source", "runs", "failing"}
            yield from ((f"{row['source']} {name}", row[name][0]) for name in names if row[name])
        elif row["table"] == "lift":
            told = (row["lift"][0], row["low"], row["high"], row["fired"], row["failed"])
            yield from zip((f"{row['source']} lift {key}" for key in ("or", "lo", "hi", "runs", "p_fail")), told)
        elif row["table"] == "pool":
            yield from (("pool full", row["full"]), ("pool half", row["half"]))
            yield from (("one threshold", row["recall"]), ("at", row["threshold"]))
