"""A server that fails again and again is left alone for a while, and tried once after that."""

from __future__ import annotations

import logging
import time
from threading import Thread

import pytest

from reasonblocks.backends.http import Ask, Exchange, address_of
from reasonblocks.exceptions import Unavailable
from reasonblocks.util.secret import Secret
from reasonblocks_testing.rb_api import KEY, Hang, HangUp, Lying, ScriptedRbApi, Status
from reasonblocks_testing.rb_api._faults import Fault
from tests.core.http.world import EVALUATE, RETRIEVE, SHORT_MS, at, client, gates, run

FAILURES: list[Fault] = [Status(code=500), Status(code=404), Status(code=307), HangUp(), Hang(), Lying(lie="html")]


@pytest.mark.parametrize("fault", FAILURES, ids=repr)
def test_a_failing_server_is_asked_three_times(api: ScriptedRbApi, fault: Fault) -> None:
    session = client(api, step_deadline_ms=SHORT_MS).session()
    api.misbehave(fault)
    assert gates(run(session, 8))[1:] == ["unavailable"] * 7
    assert len(at(api, EVALUATE)) == 3


def test_a_server_that_is_not_there_is_one_line(api: ScriptedRbApi, caplog: pytest.LogCaptureFixture) -> None:
    session = client(api).session()
    api.close_port()
    assert gates(run(session, 6))[1:] == ["unavailable"] * 5
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"the server {api.url} with the key rbk_scripted_*** failed 3 times in a row (ConnectError")


def test_evaluator_and_store_share_a_breaker(api: ScriptedRbApi) -> None:
    session = client(api, e_traces_enabled=True).session()
    api.misbehave(Status(code=503), at=EVALUATE)
    run(session, 1)
    before = len(at(api, RETRIEVE))
    api.misbehave(Status(code=503))
    run(session, 6, start=1)
    assert len(at(api, EVALUATE)) + len(at(api, RETRIEVE)) - before == 3


@pytest.mark.parametrize("status", [400, 413, 422, 429])
def test_a_refused_step_costs_that_step_only(api: ScriptedRbApi, status: int, caplog: pytest.LogCaptureFixture) -> None:
    session = client(api).session()
    api.misbehave(Status(code=status), at=EVALUATE, times=5)
    decided = gates(run(session, 7))
    assert decided[1:6] == ["unavailable"] * 5
    assert decided[6] != "unavailable"
    assert caplog.records == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_one_line_that_does_not_show_it(
    api: ScriptedRbApi, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    session = client(api).session()
    api.misbehave(Status(code=status, detail="the key is not valid"))
    assert gates(run(session, 5))[1:] == ["unavailable"] * 4
    (line,) = [record.getMessage() for record in caplog.records if record.name == "reasonblocks"]
    shown = f"access to the server {api.url} with the key rbk_scripted_*** was refused ({status})"
    assert line == f"{shown}: switched off, tested again in 60 s; runs continue without it"
    assert KEY not in caplog.text
    assert len(at(api, EVALUATE)) == 1


def test_another_key_of_the_same_server_is_not_off(api: ScriptedRbApi) -> None:
    refused = client(api, api_key="rbk_other_secret").session()
    run(refused, 2)
    assert gates(run(refused, 1, start=2)) == ["unavailable"]
    assert gates(run(client(api).session(), 2))[1] != "unavailable"


def test_a_key_that_the_server_repeats_is_not_shown(api: ScriptedRbApi, caplog: pytest.LogCaptureFixture) -> None:
    api.misbehave(Status(code=500, detail=f"no idea what \x1b[31m{KEY} is\r\n"))
    run(client(api).session(), 5)
    assert "HTTP 500: no idea what ?[31m*** is" in caplog.text
    assert KEY not in caplog.text


def test_a_key_that_no_header_can_carry_is_not_shown(api: ScriptedRbApi, caplog: pytest.LogCaptureFixture) -> None:
    run(client(api, api_key=f"{KEY} ").session(), 5)
    assert KEY not in caplog.text


def test_while_it_is_off_nothing_is_redacted(api: ScriptedRbApi) -> None:
    redacted: list[str] = []

    def redact(text: str) -> str:
        redacted.append(text)
        return text

    session = client(api, redact=redact).session()
    api.misbehave(Status(code=500))
    run(session, 4)
    before = len(redacted)
    run(session, 4, start=4)
    assert len(redacted) == before


def test_requests_that_closing_the_client_ended_are_no_failure_of_the_server(api: ScriptedRbApi) -> None:
    exchange = Exchange(address_of("base_url", api.url, Secret(api.key)))
    api.misbehave(Hang())
    asks = [Thread(target=_ask, args=(exchange,)) for _ in range(4)]
    for ask in asks:
        ask.start()
    while len(api.requests) < len(asks):
        time.sleep(0.01)
    exchange.close()
    for ask in asks:
        ask.join()
    exchange.check("a step")


def _ask(exchange: Exchange) -> None:
    with pytest.raises(Unavailable, match="the client was closed"):
        exchange.ask("a step", Ask(path="/monitors/evaluate", body=b"{}"), None, bytes)
