"""Each fault of the scripted rb-api is one: a client sees exactly what its name promises."""

from __future__ import annotations

import gzip
import json
import math
import threading
import time
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from typing import Any

import pytest

from reasonblocks_testing.rb_api import (
    KEY,
    LIES,
    Drip,
    Hang,
    HangUp,
    Lie,
    Lying,
    ScriptedRbApi,
    Slow,
    Status,
)
from tests.testing.rb_api.asking import LOOP, TIMEOUT, connection, evaluated, post, told

EVALUATE = "/v1/monitors/evaluate"
SENT = json.dumps({"steps": [LOOP]}).encode()
SHORT = 0.2
"""Seconds that a client waits for what does not come."""


def test_a_slow_answer_comes_after_its_time(api: ScriptedRbApi) -> None:
    api.misbehave(Slow(seconds=SHORT))
    started = time.perf_counter()
    evaluated(api)
    assert time.perf_counter() - started >= SHORT


def test_the_end_of_a_fault_ends_its_wait(api: ScriptedRbApi) -> None:
    api.misbehave(Slow(seconds=60))
    with connection(api) as client:
        client.request("POST", EVALUATE, SENT, {"Authorization": f"Bearer {KEY}"})
        _until(lambda: len(api.requests) == 1)
        api.behave()
        assert client.getresponse().status == 200


def test_a_dripping_answer_comes_a_byte_at_a_time(api: ScriptedRbApi) -> None:
    api.misbehave(Drip(seconds=0.001))
    received = b""
    with connection(api) as client:
        started = time.perf_counter()
        client.request("GET", "/health")
        assert client.sock is not None
        while b"\r\n\r\n" not in received:
            part = client.sock.recv(65_536)
            assert part, received
            received += part
    # The waits before each byte add up; how many bytes one `recv` finds depends on when this thread runs.
    assert time.perf_counter() - started >= 0.001 * len(received)
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_dripping_answer_is_whole_in_the_end(api: ScriptedRbApi) -> None:
    api.misbehave(Drip(seconds=0.0))
    assert "scores" in evaluated(api)


def test_a_hanging_request_is_not_answered(api: ScriptedRbApi) -> None:
    api.misbehave(Hang())
    with connection(api, timeout=SHORT) as client, pytest.raises(TimeoutError):
        told(client, "POST", EVALUATE, SENT)
    (request,) = api.requests
    assert (request.body, request.status, request.down) == ({"steps": [LOOP]}, 0, 0)


def test_closing_does_not_wait_for_hanging_requests() -> None:
    with ScriptedRbApi() as api:
        api.misbehave(Hang())
        with connection(api) as client:
            client.request("GET", "/health")
            _until(lambda: len(api.requests) == 1)
            started = time.perf_counter()
            api.close_port()
    assert time.perf_counter() - started < 0.9


def test_a_hang_up_closes_the_connection_without_an_answer(api: ScriptedRbApi) -> None:
    api.misbehave(HangUp())
    with connection(api) as client, pytest.raises(RemoteDisconnected):
        told(client, "POST", EVALUATE, SENT)


def test_a_closed_port_refuses_and_opens_again_at_the_same_address(api: ScriptedRbApi) -> None:
    before = api.url
    api.close_port()
    with connection(api) as client, pytest.raises(ConnectionRefusedError):
        told(client, "POST", EVALUATE, SENT)
    api.open_port()
    assert (api.url, post(api, EVALUATE, {"steps": [LOOP]})[0]) == (before, 200)


def test_a_status_comes_with_its_headers_and_nothing_is_handled(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=429, headers={"Retry-After": "7"}))
    with connection(api) as client:
        client.request("POST", "/monitor/events", b'{"events": []}', {"Authorization": f"Bearer {KEY}"})
        response = client.getresponse()
        assert (response.status, response.headers["Retry-After"]) == (429, "7")
        assert json.loads(response.read()) == {"detail": "a scripted fault"}


def test_a_fault_may_be_limited_to_a_route_and_a_number_of_requests(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=503), at="/monitors", times=2)
    assert post(api, "/score", {"text": "x"})[0] == 200
    assert [post(api, EVALUATE, {"steps": [LOOP]})[0] for _ in range(3)] == [503, 503, 200]


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie != "cut off"])
def test_no_lie_is_the_true_answer(api: ScriptedRbApi, lie: Lie) -> None:
    truth = raw(api)
    api.misbehave(Lying(lie=lie))
    status, encoding, body = raw(api)
    assert status == 200
    assert (encoding, body) != truth[1:]


def test_an_answer_that_is_cut_off_is_the_first_half_of_the_truth(api: ScriptedRbApi) -> None:
    _, _, truth = raw(api)
    api.misbehave(Lying(lie="cut off"))
    with pytest.raises(IncompleteRead) as cut:
        raw(api)
    assert cut.value.partial == truth[: len(truth) // 2]


def test_an_answer_that_is_not_gzip_is_the_truth(api: ScriptedRbApi) -> None:
    _, _, truth = raw(api)
    api.misbehave(Lying(lie="not gzip"))
    assert raw(api) == (200, "gzip", truth)


@pytest.mark.parametrize(
    ("lie", "seen"),
    [
        ("inject as text", lambda answer: answer["inject"] == "false" and answer["intervention_text"]),
        ("nan", lambda answer: math.isnan(answer["composite"]) and answer["partial"] is False),
        ("scores above 1", lambda answer: {*answer["scores"].values(), answer["composite"]} == {7.0}),
        ("unknown fired", lambda answer: {*answer["fired"]} - {*answer["scores"]}),
        ("wrong types", lambda answer: answer["scores"] == 7 and answer["composite"] == ["wrong"]),
        ("long text", lambda answer: answer["inject"] and len(answer["intervention_text"]) == 100_000),
    ],
)
def test_a_lie_in_one_field_is_json(api: ScriptedRbApi, lie: Lie, seen: Any) -> None:
    api.misbehave(Lying(lie=lie))
    assert seen(post(api, EVALUATE, {"steps": [LOOP]})[1])


@pytest.mark.parametrize("lie", ["huge", "bomb"])
def test_a_huge_answer_has_megabytes(api: ScriptedRbApi, lie: Lie) -> None:
    api.misbehave(Lying(lie=lie))
    with connection(api) as client:
        _, body = told(client, "POST", EVALUATE, SENT)
    assert len(gzip.decompress(body) if lie == "bomb" else body) > 30_000_000


def test_a_restart_keeps_the_port_and_closes_connections(api: ScriptedRbApi) -> None:
    before = api.url
    with connection(api) as client:
        told(client, "GET", "/health")
        api.restart()
        with pytest.raises((HTTPException, OSError)):
            told(client, "GET", "/health")
    assert (api.url, post(api, EVALUATE, {"steps": []})[0]) == (before, 200)


def test_requests_of_many_threads_are_all_answered(api: ScriptedRbApi) -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(post(api, EVALUATE, {"steps": [LOOP]})[0])) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert (found, len(api.requests)) == ([200] * 16, 16)


def raw(api: ScriptedRbApi) -> tuple[int, str, bytes]:
    """The status, the content's encoding, and the content of the answer to an evaluation."""
    with connection(api) as client:
        client.request("POST", EVALUATE, SENT, {"Authorization": f"Bearer {KEY}"})
        response = client.getresponse()
        return response.status, response.headers.get("Content-Encoding", ""), response.read()


def _until(true: Any) -> None:
    ends = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < ends
        threading.Event().wait(0.005)
