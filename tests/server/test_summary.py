"""A finished run's summary agrees with the report of its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reasonblocks.events import RunFinish, RunStart, StepEvent, event_of
from reasonblocks_server.storage import Storage
from reasonblocks_server.values import Body
from reasonblocks_workbench.report import RunPage, Tally, page_of_log, run_line
from reasonblocks_workbench.report.line import spark_of, ticks_of
from reasonblocks_workbench.traces import RunLog
from tests.server.running import stored
from tests.server.storage.model import Event, finish, start, step
from tests.whole import QUICK_EXAMPLES, WHOLE

texts = st.lists(
    st.sampled_from(["MonitorSteeringInjection", "E1Injection", "E2Injection", "E3Injection", "OperatorInjection", ""]),
    max_size=3,
)
names = st.sampled_from(["loop", "drift", "stall"])
DOUBTS = [{"monitor": "m", "text": "no test ran"}]


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@st.composite
def steps(draw: st.DrawFn, index: int, *, final: bool) -> Event:
    metadata = {
        "difficulty": draw(maybe(st.integers(-100, 1_100).map(lambda n: n / 1_000) | st.just(float("nan")))),
        "skipped_reason": draw(maybe(st.sampled_from(["auxiliary", "fault", "unavailable"]))),
        "gate_decision": draw(maybe(st.sampled_from(["inject", "unavailable"]))),
        "withheld_sources": draw(maybe(texts)),
        "injections_dropped": draw(maybe(texts)),
        "stop": draw(maybe(st.just("stalled"))),
        "withheld_stop": draw(maybe(st.just("stalled"))),
        "error": draw(maybe(st.just("Timeout"))),
        "doubts": draw(maybe(st.sampled_from([[], ["x"], DOUBTS]))),
    }
    state = draw(st.sampled_from(["INIT", "FAST", "NORMAL", "SLOW", "SKIP", "SLOW", "odd", ""]))
    return step(
        "r",
        index,
        final=final,
        state=state,
        metadata={name: value for name, value in metadata.items() if value is not None},
        monitors_fired=draw(st.lists(names, max_size=2)),
        failure_type=draw(maybe(names)),
        composite=draw(maybe(st.sampled_from([0.0, 0.2, 0.9]))),
        injection_sources=draw(texts),
        tokens=draw(maybe(st.integers(0, 9))),
    )


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    length = draw(st.integers(0, 9) | st.sampled_from([70, 150]))
    if length < 10:
        found = [draw(steps(2 * index if index > 5 else index, final=False)) for index in range(length)]
    else:  # a long run repeats a few steps
        few = [draw(steps(0, final=False)) for _ in range(5)]
        found = [{**few[index % 5], "step_index": index} for index in range(length)]
    found += [draw(steps(900, final=True))] if draw(st.booleans()) else []
    outcome = draw(st.sampled_from(["success", "failure: E", "failure: abandoned", "stopped: stalled", "gave up"]))
    return [start("r", 1.0), *found, finish("r", outcome, doubts=draw(st.sampled_from([[], DOUBTS])))]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with stored(tmp_path_factory.mktemp("summary")) as opened:
        yield opened


def reported(events: list[Event]) -> RunPage:
    read = [event_of(event) for event in events]
    return page_of_log(
        RunLog(
            run_id="r",
            start=next(event for event in read if isinstance(event, RunStart)),
            steps=tuple(event for event in read if isinstance(event, StepEvent)),
            finish=next(event for event in read if isinstance(event, RunFinish)),
            file="",
            line=1,
        )
    )


def summarised(storage: Storage, events: list[Event]) -> Body:
    storage.runs.delete("o", "r")
    storage.runs.ingest("o", events, now=1.0)
    row = storage.runs.get("o", "r")
    assert row is not None
    assert row.summary is not None
    return {**row.summary, "row": row}


@settings(
    max_examples=300 if WHOLE else QUICK_EXAMPLES // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(events=runs())
@example([start("r", 1.0), step("r", 0, metadata={"skipped_reason": "auxiliary"}), step("r", 1), finish("r")])
@example([start("r", 1.0), step("r", 0), step("r", 1, final=True, metadata={"doubts": DOUBTS}), finish("r")])
def test_a_summary_agrees_with_the_report(storage: Storage, events: list[Event]) -> None:
    summary, page = summarised(storage, events), reported(events)
    tally, line = Tally(), run_line(page, "")
    tally.add(page)
    assert (tuple(summary["states"]), summary["hardest"]) == (page.states, line.hardest)
    assert tuple(summary["failures"]) == page.failure_types
    assert {*summary["monitors"]} == {*tally.monitors}
    assert (summary["steps"], summary["calls"]) == (page.steps, len(page.calls))
    assert (summary["judged"], summary["recovered"]) == ({**tally.judged}, {**+tally.recovered})
    assert sum(summary["told"].values()) == sum(not told.withheld for _, told in page.told)
    assert sum(summary["told"].values()) + sum(summary["withheld"].values()) == line.told
    assert (tuple(summary["kinds"]), summary["stopped"]) == (line.kinds, bool(tally.stopped))
    assert summary["doubts"] == line.doubtful
    counts = (summary["faults"], summary["unavailable"], summary["errors"], summary["dropped"])
    assert counts == (tally.faults, tally.unavailable, tally.errors, tally.dropped)
    assert (summary["peak"], spark_of(summary["points"])) == (line.peak, line.spark)
    assert ticks_of(summary["ticks"], summary["last"]) == line.ticks
    assert (summary["row"].tokens, summary["row"].started) == (page.tokens, page.started)
