"""A client of a server decides as one without: entry by entry, every field, in every way to steer a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.ports import TelemetrySink
from reasonblocks_testing import LoopHarness, ParityRun, RecordingSink, parity_lines
from reasonblocks_testing._parity import run_differences
from reasonblocks_testing._parity_runs import LESSONS, LONG, long_runs, store_of
from reasonblocks_testing.rb_api import ScriptedRbApi
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.parity.conftest import Tally
from tests.parity.over_http import WAYS, Way, compared, embedded, entries, over_http, recorded, shared_out
from tests.parity.runs import CORPUS

FIRST = 3
"""Recorded runs of each source that are compared."""
MOST_STEPS = 60
CALLS = 30

each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)


@cache
def long_recorded() -> RecordedRun:
    """The long run of the package, as a recorded one."""
    return recorded(next(long_runs()).script)


@each_way
def test_a_long_run_is_decided_alike(way: Way, tally: Tally) -> None:
    found = compared(way, [long_recorded()])
    tally.add(f"over HTTP, {way.name}", found.entries, len(found.differences))
    assert found.entries >= len(long_recorded().steps)
    assert not found.differences, "\n".join(found.differences)


@each_way
def test_recorded_runs_of_every_source_are_decided_alike(way: Way, tally: Tally) -> None:
    found = compared(way, sample()[way.name])
    tally.add(f"over HTTP, {way.name}", found.entries, len(found.differences))
    assert found.runs > 0
    assert not found.differences, "\n".join(found.differences)


def sample() -> dict[str, list[RecordedRun]]:
    """Recorded runs by way. Skips the test where there is no corpus."""
    if not CORPUS.is_dir():
        pytest.skip("the shared corpus is not beside the repository")
    return dict(_sample())


@cache
def _sample() -> Any:
    return shared_out(_first())


def _first() -> Iterator[RecordedRun]:
    for path in sorted(CORPUS.glob("*.jsonl.gz")):
        yield from islice((run for run in read_runs(str(path)) if _is_usable(run)), FIRST)


def _is_usable(run: Any) -> bool:
    return isinstance(run, RecordedRun) and 1 < len(run.steps) <= MOST_STEPS


@pytest.mark.parametrize("mode", LoopHarness.modes)
@pytest.mark.parametrize("name", LONG)
def test_the_loop_reads_the_same_guidance(name: str, mode: str, tally: Tally) -> None:
    run = next(run for run in long_runs() if run.name == f"long {name}")
    run = replace(run, resume_at=(7,), script=replace(run.script, turns=run.script.turns[:CALLS]))
    with ScriptedRbApi(patterns=store_of(LESSONS).list("default")) as api:
        over = replace(run, client=client_of(run, base_url=api.url, api_key=api.key))
        here, there = (parity_lines(LoopHarness(), given, mode) for given in (run, over))
    found = run_differences(f"{name}, {mode}", there[0], here[0])
    tally.add(f"over HTTP, the hand-written loop, {mode}", len(here[0]), len(found))
    assert not found, "\n".join(found)
    assert there[1] == here[1]
    assert len(api.requests) >= CALLS - 1


def client_of(run: ParityRun, **server: str) -> Callable[[TelemetrySink], ReasonBlocks]:
    """The client of a run, whose evaluator and store are those of a server."""
    make: Any = run.client
    return partial(make, pattern_store=None, live_streaming_enabled=False, **server)


def test_the_server_receives_the_events_of_a_run() -> None:
    sink, run = RecordingSink(), next(long_runs())
    with ScriptedRbApi() as api:
        with ReasonBlocks(base_url=api.url, api_key=api.key, sinks=[sink]) as rb:
            LoopHarness().run(rb, run.script, "sync")
            rb.close(10)
        assert api.events == [json.loads(json.dumps(event.as_dict())) for event in sink.events]
        assert len(api.events) == len(run.script.turns) + 3  # a start, the final step, a finish


def test_a_server_that_decides_otherwise_is_noticed() -> None:
    run, way = long_recorded(), WAYS[0]
    with embedded(way) as here, over_http(way, patterns=()) as there:
        assert run_differences("", entries(there, run, way), entries(here, run, way))
