"""The sink streams the runs to a server: in batches, never in the agent's way, and it knows when to stop."""

from __future__ import annotations

import json
import logging
import math
import time
from typing import Any

import pytest

from reasonblocks import HttpSink, ReasonBlocks
from reasonblocks.backends.http import Reply
from reasonblocks.backends.http._sink import BODY_BYTES
from reasonblocks.events import Event, RunStart, StepEvent
from reasonblocks.exceptions import ConfigError, Refused, Unavailable
from reasonblocks.ports import BatchSink, TelemetrySink
from reasonblocks.types import RunInfo, ToolCall, ToolResult
from reasonblocks_testing.rb_api import KEY, Hang, HangUp, Lying, ScriptedRbApi, Status
from reasonblocks_testing.rb_api._faults import Fault
from tests.core.http.world import EVALUATE, EVENTS, at, client, run

SECONDS = 10.0


def step_of(number: int, text: str = "") -> StepEvent:
    return StepEvent(run_id="r", step_index=number, timestamp=1.0, thought=text)


def sink_of(api: ScriptedRbApi) -> HttpSink:
    return HttpSink(api.url, api.key)


def kinds(api: ScriptedRbApi) -> list[str]:
    return [event["event"] for event in api.events]


def test_it_is_a_sink_that_takes_batches(api: ScriptedRbApi) -> None:
    sink = sink_of(api)
    assert (isinstance(sink, TelemetrySink), isinstance(sink, BatchSink)) == (True, True)


def test_a_client_with_a_server_streams_its_runs(api: ScriptedRbApi) -> None:
    with client(api, live_streaming_enabled=None) as rb, rb.session(run_id="r") as session:
        run(session, 3)
    assert kinds(api) == ["run_start", "step", "step", "step", "step", "run_finish"]
    assert (api.events[0]["run_id"], api.events[-1]["outcome"]) == ("r", "success")


def test_streaming_can_be_switched_off(api: ScriptedRbApi) -> None:
    with client(api, live_streaming_enabled=False) as rb:
        run(rb.session(), 3)
    assert (at(api, EVENTS), len(at(api, EVALUATE))) == ([], 3)


def test_a_sink_alone_shows_runs_whose_decisions_stay_here(api: ScriptedRbApi) -> None:
    with ReasonBlocks(sinks=[sink_of(api)]) as rb:
        run(rb.session(), 3)
    assert {received.path for received in api.requests} == {EVENTS}
    assert len(api.events) == 6


def test_a_callers_sink_for_the_same_server_is_the_only_one(api: ScriptedRbApi) -> None:
    with client(api, live_streaming_enabled=True, sinks=[HttpSink(f"{api.url}/v1/", api.key)]) as rb:
        run(rb.session(), 2)
    sent = sum(len(json.loads(as_json(received))["events"]) for received in at(api, EVENTS))
    assert sent == len(api.events)


def as_json(received: Any) -> bytes:
    return json.dumps(received.body).encode()


def test_a_large_batch_is_compressed(api: ScriptedRbApi) -> None:
    sink = sink_of(api)
    assert sink.emit_many([step_of(number, "word " * 100) for number in range(64)], SECONDS) == 64
    sink.emit_many([step_of(64)], SECONDS)
    large, small = at(api, EVENTS)
    assert (large.headers["content-encoding"], "content-encoding" in small.headers) == ("gzip", False)
    assert large.up < 3_000
    assert [event["step_index"] for event in api.events] == list(range(65))


def test_a_batch_has_at_most_a_megabyte(api: ScriptedRbApi) -> None:
    sink = sink_of(api)
    events = [step_of(number, "x" * 15_000) for number in range(100)]
    taken = sink.emit_many(events, SECONDS)
    (received,) = at(api, EVENTS)
    assert len(as_json(received)) <= BODY_BYTES + 10_000  # spaces that the sink does not write
    assert 60 <= taken < 67


LONG = "word " * 1_000_000
LARGE_EVENTS = [
    StepEvent(run_id="r", step_index=1, timestamp=1.0, observation=LONG),
    StepEvent(run_id="r", step_index=1, timestamp=1.0, metadata={"withheld_texts": [LONG]}),
    StepEvent(
        run_id="r", step_index=1, timestamp=1.0, tool_calls=(ToolCall(id="c", name="read", arguments={}),),
        tool_results=(ToolResult(call_id="c", output=LONG, name="read"),),
    ),
    StepEvent(
        run_id="r", step_index=1, timestamp=1.0, metadata={"deep": {"lists": [[LONG] * 3] * 3}},
        tool_results=tuple([ToolResult(call_id=f"c{n}", output="word " * 3_000, name="read") for n in range(1_000)]),
    ),
    RunStart(run=RunInfo(run_id="r", metadata={LONG: {str(n): "x" * 20_000 for n in range(200)}}), timestamp=1.0),
]  # fmt: skip


@pytest.mark.parametrize("event", LARGE_EVENTS, ids=range(len(LARGE_EVENTS)))
def test_an_event_of_megabytes_is_shortened_wherever_they_are(api: ScriptedRbApi, event: Event) -> None:
    assert sink_of(api).emit_many([event], SECONDS) == 1
    (received,) = at(api, EVENTS)
    assert received.status == 200
    assert len(as_json(received)) < BODY_BYTES
    assert len(api.events) == 1


def test_a_huge_event_is_shortened(api: ScriptedRbApi) -> None:
    assert sink_of(api).emit_many([step_of(0, "x" * 5_000_000), step_of(1)], SECONDS) == 2
    assert [len(event["thought"]) for event in api.events] == [16_001, 0]


def test_a_batch_that_is_too_large_is_halved(api: ScriptedRbApi) -> None:
    sink = sink_of(api)
    api.misbehave(Status(code=413), times=3)
    assert sink.emit_many([step_of(number) for number in range(64)], SECONDS) == 8
    assert sink.emit_many([step_of(number) for number in range(8, 64)], SECONDS) == 8
    assert [len(received.body["events"]) for received in at(api, EVENTS)] == [64, 32, 16, 8, 8]


def test_one_event_that_is_too_large_is_dropped(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=413))
    with pytest.raises(Refused):
        sink_of(api).emit_many([step_of(0)], SECONDS)


AGAIN: list[Fault] = [
    Status(code=429),
    Status(code=500),
    Status(code=503),
    HangUp(),
    Hang(),
    Lying(lie="html"),
    Lying(lie="huge"),
]


@pytest.mark.parametrize("fault", AGAIN, ids=repr)
def test_events_wait_for_a_server_that_may_come_back(api: ScriptedRbApi, fault: Fault) -> None:
    api.misbehave(fault)
    with pytest.raises(Unavailable):
        sink_of(api).emit_many([step_of(0)], 0.3)
    assert api.events in ([], [step_of(0).as_dict()])


def test_the_servers_pause_is_kept(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=429, headers={"Retry-After": "7"}))
    with pytest.raises(Unavailable) as caught:
        sink_of(api).emit_many([step_of(0)], SECONDS)
    assert caught.value.retry_after == 7


def test_a_date_as_pause_is_none(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}))
    with pytest.raises(Unavailable) as caught:
        sink_of(api).emit_many([step_of(0)], SECONDS)
    assert caught.value.retry_after is None


@pytest.mark.parametrize("status", [401, 403, 404, 422])
def test_refused_events_are_dropped_counted_and_logged_once(
    api: ScriptedRbApi, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    api.misbehave(Status(code=status))
    rb = ReasonBlocks(sinks=[sink_of(api)])
    run(rb.session(), 3)
    rb.close()
    lines = [record.getMessage() for record in caplog.records if record.name == "reasonblocks"]
    assert len(lines) == 1
    assert f"{status}" in lines[0]
    assert (rb._telemetry.dropped, KEY in caplog.text) == (6, False)


def test_a_revoked_key_is_one_line_for_evaluations_and_events(
    api: ScriptedRbApi, caplog: pytest.LogCaptureFixture
) -> None:
    api.misbehave(Status(code=401))
    with client(api, live_streaming_enabled=None, strict=False) as rb, rb.session() as session:
        run(session, 3)
    lines = [record.getMessage() for record in caplog.records if record.name == "reasonblocks"]
    assert len(lines) == 1
    assert "was refused (401): switched off, tested again in 60 s" in lines[0]


def test_an_event_that_is_too_large_is_dropped_alone(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=413), times=1)
    sink = sink_of(api)
    sink._most = 1
    rb = ReasonBlocks(sinks=[sink])
    for number in range(3):
        rb._telemetry.emit(step_of(number))
    rb.close()
    assert ([event["step_index"] for event in api.events], rb._telemetry.dropped) == ([1, 2], 1)


def test_a_refused_key_is_not_sent_again_for_a_while(api: ScriptedRbApi) -> None:
    sink = HttpSink(api.url, "rbk_other_secret")
    for _ in range(3):
        with pytest.raises(Refused, match="key"):
            sink.emit_many([step_of(0)], SECONDS)
    assert len(at(api, EVENTS)) == 1


def test_events_that_the_server_refuses_are_logged_once(api: ScriptedRbApi, caplog: pytest.LogCaptureFixture) -> None:
    sink = sink_of(api)
    for _ in range(2):
        sink._check(Reply(status=200, body=b'{"refused": [{"index": 0, "detail": "no such field"}]}'), 1)
    assert [record.getMessage() for record in caplog.records] == [
        f"the server {api.url} refused events, for example [{{'index': 0, 'detail': 'no such field'}}] (logged once "
        "per sink)"
    ]


ODD: list[Any] = [float("nan"), {1, 2}, object, "\ud800", 10**400, {"a": {5: math.inf}}]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_an_event_that_is_no_json_costs_no_other(api: ScriptedRbApi, odd: Any) -> None:
    call = ToolCall(id="c", name="bash", arguments={"odd": odd})
    events = [step_of(0), StepEvent(run_id="r", step_index=1, timestamp=1.0, tool_calls=(call,)), step_of(2)]
    assert sink_of(api).emit_many(events, SECONDS) == 3
    assert len(api.events) == 3


def test_a_server_that_comes_back_gets_everything(api: ScriptedRbApi) -> None:
    rb = ReasonBlocks(sinks=[sink_of(api)])
    api.close_port()
    with rb.session(run_id="r") as session:
        run(session, 5)
    api.open_port()
    rb.close(timeout=10)
    assert kinds(api) == ["run_start", *["step"] * 6, "run_finish"]
    assert rb._telemetry.dropped == 0


def test_ten_thousand_events_for_a_dead_server_are_kept_to_a_thousand(
    api: ScriptedRbApi, caplog: pytest.LogCaptureFixture
) -> None:
    rb = ReasonBlocks(sinks=[sink_of(api)])
    api.close_port()
    for number in range(10_000):
        rb._telemetry.emit(step_of(number))
    (queue,) = rb._telemetry._queues
    with queue._wake:  # the sink's thread may be just taking a batch
        assert len(queue._queue) + queue._busy <= 1_000
    assert rb._telemetry.dropped >= 8_990
    begun = time.monotonic()
    rb.close(timeout=1.0)
    assert time.monotonic() - begun < 1.5
    assert rb._telemetry.dropped == 10_000
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "the oldest events are dropped" in said
    assert "did not take 1,000 events (and 9,000 were dropped before) in the time it had" in said


@pytest.mark.parametrize("fault", [None, Hang()], ids=["dead", "hanging"])
def test_a_run_ends_in_time_without_its_server(api: ScriptedRbApi, fault: Fault | None) -> None:
    rb = ReasonBlocks(sinks=[sink_of(api)])
    if fault is None:
        api.close_port()
    else:
        api.misbehave(fault)
    begun = time.monotonic()
    with rb.session() as session:
        run(session, 3)
    assert time.monotonic() - begun < 1.5


@pytest.mark.parametrize("url", [5, "host", "ftp://host", "http://me:pw@host"])
def test_a_wrong_url_is_refused_by_its_name(url: Any) -> None:
    with pytest.raises(ConfigError, match=r"^url="):
        HttpSink(url)


@pytest.mark.parametrize("key", [5, "", "a\nb"])
def test_a_wrong_key_is_refused_unseen(api: ScriptedRbApi, key: Any) -> None:
    with pytest.raises(ConfigError, match=r"^api_key="):
        HttpSink(api.url, key)
