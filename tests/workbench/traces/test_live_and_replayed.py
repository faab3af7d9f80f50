"""A log that a sink wrote, replayed with the same settings, gives the decisions of the live run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import Budget, JsonlSink, ReasonBlocks, SQLiteMonitorSink
from reasonblocks.events import StepEvent, completed_of
from reasonblocks.ports import TelemetrySink
from reasonblocks.types import StepInput, StepOutcome, Usage
from reasonblocks_testing import LoopHarness, RecordingSink, Script, Turn, tool_call, tool_result
from reasonblocks_testing._parity_runs import long_runs
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.report import page_of_replayed
from reasonblocks_workbench.traces import RecordedRun, read_runs

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "dev"
OF_THE_CALL = {
    "attempts": "a replayed call is made once",
    "error": "a replayed call never fails",
    "latency_ms": "a time",
    "model_id": "a replayed call is not routed",
    "overhead_ms": "a time",
}
"""Metadata that is not compared, with the reason. Everything else is."""

Settings = Mapping[str, Any]
Client = Callable[[TelemetrySink], ReasonBlocks]


def client(settings: Settings, sink: TelemetrySink) -> ReasonBlocks:
    return ReasonBlocks(sinks=[sink], strict=True, step_deadline_ms=60_000, **settings)


SINKS: Mapping[str, Callable[[Path], TelemetrySink]] = {
    "log.jsonl": lambda path: JsonlSink(path),
    "log.sqlite": lambda path: SQLiteMonitorSink(path),
}


@pytest.fixture(params=SINKS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, TelemetrySink]:
    path = tmp_path / request.param
    return path, SINKS[request.param](path)


Log = tuple[Path, TelemetrySink]


class Both:
    """A sink that passes each event to two."""

    def __init__(self, *sinks: TelemetrySink) -> None:
        self.sinks = sinks

    def emit(self, event: Any) -> None:
        for sink in self.sinks:
            sink.emit(event)

    def close(self) -> None:
        for sink in self.sinks:
            sink.close()


def events_of(sink: RecordingSink, run_id: str) -> list[dict[str, Any]]:
    """Return the compared parts of a run's calls: each event once, with the completed step that it contains."""
    found: dict[int, dict[str, Any]] = {}
    for event in sink.events:
        if isinstance(event, StepEvent) and event.run_id == run_id and event.step_index not in found:
            body = event.as_dict()
            body["metadata"] = {key: value for key, value in event.metadata.items() if key not in OF_THE_CALL}
            step = completed_of(event)
            results = [(result.output, result.is_error) for result in step.tool_results]
            calls = [(call.name, call.arguments) for call in step.tool_calls]
            left_out = ("timestamp", "step_model", "tool_calls", "tool_results")
            found[event.step_index] = {name: value for name, value in body.items() if name not in left_out}
            found[event.step_index] |= {"thought": step.thought, "calls": calls, "results": results}
    return [found[index] for index in sorted(found)]


def replayed(path: Path, make: Client) -> tuple[list[RecordedRun], RecordingSink]:
    """The runs of a log, and the events of their replay."""
    runs = list(read_runs(str(path)))
    assert [run for run in runs if not isinstance(run, RecordedRun)] == []
    sink = RecordingSink()
    with make(sink) as rb:
        for run in runs:
            assert isinstance(run, RecordedRun)
            replay(rb, run)
    return [run for run in runs if isinstance(run, RecordedRun)], sink


def compared(log: Log, make: Client, live: Callable[[ReasonBlocks], object]) -> list[list[dict[str, Any]]]:
    """Run live, replay the log, and return the live events of each run after they were compared."""
    path, sink = log
    seen = RecordingSink()
    with make(Both(sink, seen)) as rb:
        live(rb)
    sink.close()
    runs, again = replayed(path, make)
    found = [events_of(seen, run.run_id) for run in runs]
    assert found
    for run, events in zip(runs, found, strict=True):
        assert events_of(again, run.run_id) == events
    return found


LONG_RUNS = {run.name: run for run in long_runs()}


@pytest.mark.parametrize("name", LONG_RUNS)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_the_long_runs_are_decided_again_as_they_were(log: Log, name: str, mode: str) -> None:
    run = LONG_RUNS[name]
    script = run.script
    (events,) = compared(log, run.client, lambda rb: LoopHarness().run(rb, script, mode))
    assert len(events) == len(script.turns) + 1
    assert any(event["intervention_texts"] for event in events)


def test_a_run_that_waited_in_a_checkpoint_is_decided_again_as_it_was(log: Log) -> None:
    run = LONG_RUNS["long tail"]
    script = run.script
    (events,) = compared(log, run.client, lambda rb: LoopHarness().run(rb, script, "sync", resume_at=(3, 30)))
    assert len(events) == len(script.turns) + 1


CORPUS_RUNS = ("agentdojo", "intercode_react", "miniswe_deepseek", "tau_airline", "whowhen")


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside the repository")
@pytest.mark.parametrize("name", CORPUS_RUNS)
def test_runs_of_the_corpus_are_decided_again_as_they_were(tmp_path: Path, name: str) -> None:
    found = (run for run in read_runs(str(CORPUS / f"{name}.jsonl.gz")) if isinstance(run, RecordedRun))
    runs = [run for run in islice(found, 40) if 4 <= len(run.steps) <= 60][:15]
    path = tmp_path / "log.jsonl"
    make = partial(client, {})
    counted = compared((path, JsonlSink(path)), make, lambda rb: all_played(rb, runs))
    assert len(counted) == len(runs) >= 5


def all_played(rb: ReasonBlocks, runs: Sequence[RecordedRun]) -> None:
    for run in runs:
        played(rb, run)


def played(rb: ReasonBlocks, run: RecordedRun) -> None:
    """A recorded run as a live one: each step is passed as it is."""
    with rb.session(run_id=run.run_id, agent_name=run.source, task=run.task or None) as session:
        step = None
        for recorded, usage in zip(run.steps, run.usages, strict=True):
            decision = session.begin_step(StepInput(completed=step))
            step = recorded
            told = StepOutcome(model="m", usage=usage, text=step.thought, tool_calls=step.tool_calls)
            session.end_step(decision, told)
        session.finish(run.outcome or "success", completed=step)


def turn(number: int, text: str, *results: str, error: bool | None = None, reasoning: str = "") -> Turn:
    """A turn whose tools, one for each result, are called at once."""
    ids = [f"c{number}-{at}" for at in range(len(results))]
    return Turn(
        text=text,
        reasoning=reasoning,
        tool_calls=tuple(tool_call(id, "bash", {"command": "make test"}) for id in ids),
        results=tuple(tool_result(id, output, error) for id, output in zip(ids, results, strict=True)),
        usage=Usage(input=1_000 + number, output=20, cache_read=500, cache_write=number),
    )


def failing(count: int = 8) -> Script:
    turns = [
        turn(at, "The tests fail again; I run them.", "3 failed: assert 4 == 5", error=True) for at in range(count)
    ]
    return Script(turns=(*turns, Turn(text="All tests pass now.")), run_id="failing", agent_name="fixer")


STEERED: Mapping[str, Settings] = {
    "default": {},
    "observed": {"mode": "observe"},
    "system": {"placement": "system", "standing_rules": "run"},
    "without lessons": {"e_traces_enabled": False},
    "stop observed": {"stop_when": "over_budget", "token_budget": 4_000, "mode": "observe"},
}


@pytest.mark.parametrize("name", STEERED)
def test_every_mode_of_a_run_is_decided_again_as_it_was(log: Log, name: str) -> None:
    (events,) = compared(log, partial(client, STEERED[name]), lambda rb: LoopHarness().run(rb, failing(), "sync"))
    texts = [text for event in events for text in event["intervention_texts"]]
    assert bool(texts) == ("observe" not in STEERED[name].values())
    assert any(event["monitors_fired"] for event in events)
    assert len(events) == 10


def test_a_stopped_run_ends_where_it_ended_and_its_outcome_has_the_reason(log: Log) -> None:
    make = partial(client, {"stop_when": "over_budget", "token_budget": 4_000})
    path, sink = log
    seen = RecordingSink()
    with make(Both(sink, seen)) as rb:
        LoopHarness().run(rb, failing(), "sync")
    sink.close()
    (run,), again = replayed(path, make)
    events = events_of(seen, "failing")
    assert events[-1]["metadata"].pop("stop") == "over_budget"  # a replay does not ask after the last recorded step
    assert events_of(again, "failing") == events
    assert (run.outcome, len(run.steps)) == ("stopped: over_budget", 4)


def test_parallel_calls_reasoning_and_errors_are_decided_again_as_they_were(log: Log) -> None:
    turns = (
        turn(0, "I look.", "a.py", "b.py", reasoning="Two files, perhaps."),
        turn(1, "", "Traceback: KeyError: 'x'", error=True, reasoning="Only thought, not said."),
        turn(2, "", "", error=False),
        turn(3, "I run both.", "1 failed", "2 failed", "ok"),
        turn(4, "And again.", "zażółć 🧪\u202e", error=True),
        Turn(text="Done."),
    )
    script = Script(turns=turns, run_id="mixed", task="Fix it.")
    (events,) = compared(log, partial(client, {}), lambda rb: LoopHarness().run(rb, script, "sync"))
    assert [len(event["calls"]) for event in events] == [0, 2, 1, 1, 3, 1, 0]
    assert events[1]["reasoning"] == "Two files, perhaps."
    assert (events[2]["thought"], events[2]["reasoning"]) == ("", "Only thought, not said.")


def test_a_run_within_a_run_is_a_run_of_its_own(log: Log) -> None:
    delegate = Turn(
        tool_calls=(tool_call("d", "delegate"),), results=(tool_result("d", "the helper has finished"),)
    )  # fmt: skip
    outer = Script(turns=(delegate, Turn(text="Done.")), run_id="outer", agent_name="boss")
    inner = Script(
        turns=(turn(0, "I look.", "x"), Turn(text="Seen.")), run_id="inner", agent_name="helper", task="Look."
    )
    compared(log, partial(client, {}), lambda rb: LoopHarness().run_nested(rb, outer, inner, "sync"))
    runs = {run.run_id: run for run in read_runs(str(log[0])) if isinstance(run, RecordedRun)}
    assert {name: (run.source, run.parent_run_id, run.outcome) for name, run in runs.items()} == {
        "outer": ("boss", None, "success"), "inner": ("helper", "outer", "success"),
    }  # fmt: skip


def test_runs_at_the_same_time_are_told_apart(log: Log) -> None:
    scripts = [replace(failing(4), run_id=f"run-{number}") for number in range(5)]
    found = compared(log, partial(client, {}), lambda rb: LoopHarness().run_at_once(rb, scripts, "sync"))
    assert [len(events) for events in found] == [6] * 5


def test_an_auxiliary_call_is_no_step(log: Log) -> None:
    def live(rb: ReasonBlocks) -> None:
        with rb.session(run_id="run", task="t") as session:
            session.end_step(session.begin_step(StepInput(auxiliary=True)), StepOutcome(usage=Usage(output=900)))
            step = None
            for number in range(5):
                session.end_step(
                    session.begin_step(StepInput(completed=step)), StepOutcome(usage=Usage(output=number + 1))
                )
                session.end_step(session.begin_step(StepInput(auxiliary=True)), StepOutcome(usage=Usage(output=900)))
                step = failing().turns[number].step
            session.finish(completed=step)

    path, sink = log
    with client({}, sink) as rb:
        live(rb)
    sink.close()
    (run,) = read_runs(str(path))
    assert isinstance(run, RecordedRun)
    assert [usage.output for usage in run.usages] == [1, 2, 3, 4, 5]
    assert [step.observation for step in run.steps] == ["3 failed: assert 4 == 5"] * 5


def test_a_call_without_an_answer_is_no_step_and_what_was_decided_before_it_stays(log: Log) -> None:
    script = failing(3)
    broken = replace(script, turns=(*script.turns[:3], Turn(error=TimeoutError("the model hangs"))))
    path, sink = log
    seen = RecordingSink()
    with client({}, Both(sink, seen)) as rb:
        LoopHarness().run(rb, broken, "sync")
    sink.close()
    (run,), again = replayed(path, partial(client, {}))
    assert (run.outcome, len(run.steps)) == ("failure: TimeoutError", 3)
    assert events_of(again, "failing")[:3] == events_of(seen, "failing")[:3]


class Slow:
    """A sink that dates each call 10 seconds after the one before it."""

    def __init__(self, behind: TelemetrySink) -> None:
        self.behind = behind

    def emit(self, event: Any) -> None:
        at = event.step_index if isinstance(event, StepEvent) else 0
        self.behind.emit(replace(event, timestamp=1_700_000_000.0 + 10 * at))

    def close(self) -> None:
        self.behind.close()


@pytest.mark.parametrize(("dated", "made"), [(True, 4), (False, 9)])
def test_the_times_of_a_log_are_the_seconds_of_its_budget(log: Log, dated: bool, made: int) -> None:
    path, sink = log
    with client({}, Slow(sink)) as rb:
        LoopHarness().run(rb, failing(), "sync")
    sink.close()
    (run,) = (run for run in read_runs(str(path)) if isinstance(run, RecordedRun))
    assert len(run.seconds) == len(run.steps) == 9
    with ReasonBlocks(budget=Budget(seconds=35), strict=True) as rb:
        again = replay(rb, run if dated else replace(run, seconds=()))
    assert len(again.decisions) == made
    assert again.stopped_at == (made - 1 if dated else None)


def test_a_recorded_run_is_priced_by_its_model_and_its_tokens(log: Log) -> None:
    path, sink = log
    with client({}, sink) as rb:
        LoopHarness().run(rb, failing(), "sync")
    sink.close()
    (run,) = (run for run in read_runs(str(path)) if isinstance(run, RecordedRun))
    run = replace(run, model="gpt-4o", usages=(Usage(input=100_000, output=1_000),) * len(run.steps))
    with ReasonBlocks(budget=Budget(cost_usd=1.0), strict=True) as rb:
        again = replay(rb, run)
    each = again.costs[0] or 0
    assert set(again.costs) == {each}
    assert len(again.costs) * each >= 1.0 > (len(again.costs) - 1) * each
    assert again.stopped_at == len(again.costs) - 1
    assert page_of_replayed(again).cost_usd == pytest.approx(len(again.costs) * each)
