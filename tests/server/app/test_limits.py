"""Invalid bodies of any size and form are answered with 4xx, and requests beyond a worker's limit with 503."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from reasonblocks_server.limits import HELD_BYTES, IN_FLIGHT, MAX_DEADLINE_MS, Bodies, InFlight, ends_of
from tests.server.app.asking import LOOP
from tests.server.running import Running, running

JSON = {"Content-Type": "application/json"}
MB = 1_000_000


def connected(server: Running) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=20)


def told(server: Running, head: str, body: bytes = b"") -> tuple[int, bytes]:
    """Send a request as it is written, and return the status and the rest of the answer until the connection ends."""
    with connected(server) as connection:
        lines = [head, "Host: x", f"Authorization: Bearer {server.key}", "Connection: close"]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        found = b""
        while part := connection.recv(65_536):
            found += part
    return int(found.split(b" ", 2)[1]), found


def test_a_body_over_the_limit_is_refused_before_it_is_sent(server: Running) -> None:
    status, answer = told(server, "POST /v1/score HTTP/1.1\r\nContent-Length: 5000001")
    assert status == 413
    assert b"larger than 5000000 bytes" in answer


def test_a_chunked_body_is_counted_as_it_arrives(client: httpx.Client) -> None:
    answer = client.post("/v1/score", content=(b" " * MB for _ in range(6)), headers=JSON)
    assert answer.status_code == 413
    small = client.post("/v1/score", content=iter([b'{"text": ', b'"hello"}']), headers=JSON)
    assert small.status_code == 200


@pytest.mark.parametrize("length", ["many", "-1", "1, 2", "٣"])
def test_a_length_that_is_no_number_is_refused(server: Running, length: str) -> None:
    status, _ = told(server, f"POST /v1/score HTTP/1.1\r\nContent-Length: {length}")
    assert status == 400


def test_bodies_that_never_arrive_keep_no_other_request_out(server: Running, client: httpx.Client) -> None:
    head = b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n["
    with ExitStack() as held:
        for _ in range(IN_FLIGHT + 1):
            held.enter_context(connected(server)).sendall(head)
        assert client.get("/monitor/runs").status_code == 200


def test_a_body_that_ends_early_reaches_no_route(server: Running, client: httpx.Client) -> None:
    head = ["POST /v1/score HTTP/1.1", "Host: x", f"Authorization: Bearer {server.key}", "Content-Length: 100", "", ""]
    with connected(server) as connection:
        connection.sendall("\r\n".join(head).encode() + b'{"text"')
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65_536) == b""
    assert client.get("/health").status_code == 200


def test_gzip_is_unpacked_up_to_its_limit(client: httpx.Client) -> None:
    gzipped = {**JSON, "Content-Encoding": "gzip"}

    def sent(body: bytes) -> int:
        return client.post("/v1/score", content=body, headers=gzipped).status_code

    text = json.dumps({"text": "hello"}).encode()
    assert sent(gzip.compress(text)) == 200
    assert sent(gzip.compress(b" " * (8 * MB - len(text)) + text)) == 200
    assert sent(gzip.compress(b" " * 8 * MB + text)) == 413
    assert sent(gzip.compress(b"\x00" * 60 * MB, 6)) == 413
    assert sent(gzip.compress(text)[:-9]) == 400
    assert sent(gzip.compress(text) * 2) == 400
    assert sent(zlib.compress(text)) == 400
    assert sent(text) == 400


def test_another_encoding_is_named(client: httpx.Client) -> None:
    answer = client.post("/v1/score", content=b"{}", headers={**JSON, "Content-Encoding": "br"})
    assert answer.status_code == 415
    assert "'br'" in answer.json()["detail"]


DEEP = [
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"text": ' + b"[" * 3_000 + b"]" * 3_000 + b"}",
    b'{"text": ' + b"[" * 600 + b"]" * 600 + b"}",  # fewer than any Python refuses by itself
]
NUMBERS = [b"NaN", b"-Infinity", b"1e999", b"-1E+400", b"9" * 400 + b".0"]


@pytest.mark.parametrize("path", ["/v1/score", "/v1/monitors/evaluate", "/v1/monitor/events", "/v1/patterns"])
def test_deep_and_unreal_json_is_a_client_s_error(client: httpx.Client, path: str) -> None:
    step = json.dumps({**LOOP, "tool_calls": [{"name": "a", "arguments": "HERE"}]})
    event = json.dumps({"event": "step", "run_id": "r", "step_index": 0, "timestamp": 1, "metadata": {"a": "HERE"}})
    wrapped = {
        "/v1/monitors/evaluate": f'{{"steps": [{step}]}}',
        "/v1/monitor/events": f'{{"events": [{event}]}}',
        "/v1/patterns": '{"id": "deep", "tier": "e3", "fields": {"instruction": "x", "more": "HERE"}}',
        "/v1/score": '{"text": "HERE"}',
    }[path]
    for inner in [*DEEP, *NUMBERS]:
        for body in (inner, wrapped.encode().replace(b'"HERE"', inner)):
            answer = client.post(path, content=body, headers=JSON)
            refused = path == "/v1/monitor/events" and answer.status_code == 200 and answer.json()["refused"]
            assert answer.status_code in (400, 413, 422) or refused, (body[:80], answer.text)


@pytest.mark.parametrize("text", ['"\\ud83d"', '"\\u0000"', '"' + "x" * 1_000_000 + '"', "9" * 5_000])
def test_texts_that_no_database_stores_cause_no_server_error(client: httpx.Client, text: str) -> None:
    step = f'{{"thought": {text if text[0] == chr(34) else 1}, "tool_calls": [{{"name": "a", "arguments": {text}}}]}}'
    answer = client.post("/v1/monitors/evaluate", content=f'{{"steps": [{step}]}}'.encode(), headers=JSON)
    assert answer.status_code in (200, 400, 422), answer.text
    answer = client.post("/v1/score", content=f'{{"text": {text}}}'.encode(), headers=JSON)
    assert answer.status_code in (200, 400, 422), answer.text


def test_a_body_without_a_type_is_json(client: httpx.Client) -> None:
    assert client.post("/v1/score", content=b'{"text": "x"}').status_code == 200


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.floats() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
    )
)
def test_numbers_are_refused_exactly_if_they_are_not_finite(value: Any) -> None:
    body = json.dumps({"text": value}).encode()
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        expected = 422
    else:
        expected = 200
    assert asyncio.run(through(Bodies(answering, MB), body))[0] == expected


def test_errors_have_one_form_and_every_answer_is_safe_for_browsers(client: httpx.Client) -> None:
    answers = [
        client.get("/nowhere"),
        client.get("/v1/score"),
        client.post("/v1/score", json={}),
        client.get("/v1/patterns", headers={"Authorization": "Bearer x"}),
        client.post("/v1/score", content=b"{", headers=JSON),
        client.post("/findings/a/b", json={}),
    ]
    assert [answer.status_code for answer in answers] == [404, 405, 422, 401, 400, 422]
    for answer in [*answers, client.get("/health")]:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
    for answer in answers:
        assert [*answer.json()] == ["detail"]
        assert isinstance(answer.json()["detail"], str)
    assert answers[2].json() == {"detail": "text: Field required"}
    assert answers[5].json()["detail"].startswith("content")


def test_a_key_over_its_rate_gets_a_retry_after(tmp_path: Path) -> None:
    limited: dict[str, Any] = {
        "static_keys": ("first-key-of-tests", "second-key-of-tests"),
        "rate_per_second": 0.1,
        "burst": 2,
    }
    with (
        running(tmp_path, make_key=False, **limited) as server,
        server.client("first-key-of-tests") as one,
        server.client("second-key-of-tests") as two,
    ):
        answers = [one.post("/v1/score", json={"text": "x"}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 10
        assert one.get("/health").status_code == 200
        assert two.post("/v1/score", json={"text": "x"}).status_code == 200


# --- the parts alone, with an application of the test's


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await JSONResponse({"length": len(body)})(scope, receive, send)


def scope_of(path: str = "/v1/score", headers: tuple[tuple[bytes, bytes], ...] = ()) -> Scope:
    return {"type": "http", "method": "POST", "path": path, "headers": list(headers), "query_string": b""}


async def through(app: Any, body: bytes = b"", scope: Scope | None = None) -> tuple[int, bytes]:
    """Return the status and the body of an answer."""
    sent: list[Message] = []
    left = [body]

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop()} if left else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    length = ((b"content-length", str(len(body)).encode()),) if body else ()
    await app(scope or scope_of(headers=length), receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def test_requests_beyond_the_number_in_flight_get_a_retry_after() -> None:
    async def scenario() -> None:
        entered, leave = asyncio.Semaphore(0), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            entered.release()
            await leave.wait()
            await answering(scope, receive, send)

        app = InFlight(slow, most=2)
        requests = [
            asyncio.create_task(through(app, scope=scope_of(path))) for path in ("/a", "/b", "/v1/monitor/stream")
        ]
        for _ in requests:
            await entered.acquire()
        status, body = await through(app)
        assert (status, json.loads(body)) == (503, {"detail": "the server is busy"})
        leave.set()
        assert [status for status, _ in await asyncio.gather(*requests)] == [200, 200, 200]
        assert (await through(app))[0] == 200

    asyncio.run(scenario())


def test_a_worker_holds_only_so_many_bytes_of_bodies() -> None:
    async def scenario() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            entered.set()
            await leave.wait()
            await answering(scope, receive, send)

        app = Bodies(slow, HELD_BYTES)
        app.hold(HELD_BYTES - 10)
        first = asyncio.create_task(through(app, b'"123456"'))
        await entered.wait()
        assert (await through(app, b'"123456"'))[0] == 503
        leave.set()
        assert (await first)[0] == 200
        assert (await through(app, b'"123456"'))[0] == 200

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "seconds"), [("800", 0.8), ("0", 0.0), (str(MAX_DEADLINE_MS), MAX_DEADLINE_MS / 1000)]
)
def test_the_deadline_counts_from_the_arrival(text: str, seconds: float) -> None:
    scope = {**scope_of(headers=((b"reasonblocks-deadline-ms", text.encode()),)), "reasonblocks.arrived": 100.0}
    assert ends_of(Request(scope)) == 100.0 + seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "1.5", "9" * 30, "٣"])
def test_a_deadline_of_another_form_is_none(text: str) -> None:
    assert ends_of(Request(scope_of(headers=((b"reasonblocks-deadline-ms", text.encode("utf-8")),)))) is None
