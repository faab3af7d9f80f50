"""The gateway alone, between a client and a provider that are played by hand: what passes, and how."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.types import FSMState, StepDecision, StepOutcome
from reasonblocks_claude_agent.gateway import Gateway

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
ODD = b"Content-Type: application/json\r\nX-Odd-Case: Yes\r\nSet-Cookie: a=b\r\n"
OK = b"HTTP/1.1 200 OK\r\n" + ODD + b"Content-Length: 2\r\n\r\n{}"
DECISION = StepDecision(step=0, fsm_state=FSMState.INIT, guidance="[REASONBLOCKS]\nCheck.", placement="system")
FIRST = {
    "model": "m",
    "max_tokens": 9,
    "tools": [{"name": "look"}],
    "messages": [{"role": "user", "content": "Fix it \ud83d."}],
}
SECONDS = 5.0


@dataclass
class Provider:
    """Keeps what it was sent, as bytes, and answers with bytes."""

    answer: Callable[[asyncio.StreamWriter], Awaitable[None]]
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client hangs up."""
    serving: list[asyncio.Task[None]] = field(default_factory=list)

    def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head, body = await message(reader)
                self.heads.append(head)
                self.bodies.append(body)
                await self.answer(writer)
        self.gone.set()
        await closed(writer)


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def plain(writer: asyncio.StreamWriter) -> None:
    writer.write(OK)
    await writer.drain()


async def message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    names = (line.partition(b":") for line in head.split(b"\r\n"))
    lengths = [int(value) for name, _, value in names if name.lower() == b"content-length"]
    return head, await reader.readexactly(lengths[0]) if lengths else b""


@asynccontextmanager
async def between(
    answer: Callable[[asyncio.StreamWriter], Awaitable[None]] = plain, **options: Any
) -> AsyncIterator[tuple[Gateway, Provider, str]]:
    """A gateway before a provider, and its URL."""
    provider = Provider(answer)
    listening = await asyncio.start_server(provider, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    gateway = Gateway(ReasonBlocks(**options).guard, {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}/base"})
    env = await gateway.open()
    try:
        yield gateway, provider, env["ANTHROPIC_BASE_URL"]
    finally:
        await gateway.close()
        listening.close()
        await asyncio.gather(*provider.serving)


async def connected(url: str) -> Streams:
    return await asyncio.open_connection("127.0.0.1", urlsplit(url).port)


async def asked(url: str, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[bytes, bytes]:
    """The head and the body of what a client hears that posts these bytes."""
    reader, writer = await connected(url)
    named = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = f"POST {urlsplit(url).path}{path} HTTP/1.1\r\nHost: x\r\n{named}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    try:
        return await asyncio.wait_for(message(reader), SECONDS)
    finally:
        await closed(writer)


def posting(url: str) -> bytes:
    return f"POST {urlsplit(url).path}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode()


def await_first(gateway: Gateway, prompt: str = "Fix it") -> None:
    gateway.pending.deliver("UserPromptSubmit", {"prompt": prompt}, DECISION)


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/messages", "/v1/models%2Fa?x=%20y"])
def test_what_nothing_was_decided_for_passes_byte_for_byte(path: str) -> None:
    body = b'{ "odd" :  1.0e2, "messages": [] }'

    async def work() -> tuple[list[bytes], bytes]:
        async with between() as (_, provider, url):
            await asked(url, path, body)
            return provider.bodies, provider.heads[0].split(b"\r\n")[0]

    assert asyncio.run(work()) == ([body], f"POST /base{path} HTTP/1.1".encode())


def test_side_requests_pass_byte_for_byte_while_guidance_waits() -> None:
    changes: list[dict[str, object]] = [{"tools": []}, {"max_tokens": 1}]
    bodies = [json.dumps({**FIRST, **change}).encode() for change in changes]

    async def work() -> list[bytes]:
        async with between(strict=True) as (gateway, provider, url):
            await_first(gateway)
            for body in bodies:
                await asked(url, "/v1/messages?beta=true", body)
            await asked(url, "/v1/messages/count_tokens", json.dumps(FIRST).encode())
            return provider.bodies

    assert asyncio.run(work()) == [*bodies, json.dumps(FIRST).encode()]


def test_the_awaited_request_passes_with_its_guidance_and_else_unchanged() -> None:
    async def work() -> Any:
        async with between(strict=True) as (gateway, provider, url):
            await_first(gateway)
            await asked(url, "/v1/messages?beta=true", json.dumps(FIRST).encode())
            return json.loads(provider.bodies[0])

    assert asyncio.run(work()) == {**FIRST, "system": "[REASONBLOCKS]\nCheck."}


def test_an_answered_request_is_not_awaited_any_more() -> None:
    async def work() -> list[bool]:
        async with between(strict=True) as (gateway, provider, url):
            await_first(gateway)
            for _ in range(2):
                await asked(url, "/v1/messages", json.dumps(FIRST).encode())
            return [b"REASONBLOCKS" in body for body in provider.bodies]

    assert asyncio.run(work()) == [True, False]


def test_headers_pass_as_they_are() -> None:
    given = {"X-Api-Key": "secret", "anthropic-beta": "a,b", "Accept-Encoding": "br", "Connection": "keep-alive"}

    async def work() -> tuple[bytes, bytes]:
        async with between() as (_, provider, url):
            heard, _ = await asked(url, "/v1/messages", b"{}", given)
            return provider.heads[0], heard

    sent, heard = asyncio.run(work())
    lines = sent.split(b"\r\n")[1:-2]
    assert sorted(line for line in lines if not line.startswith((b"Host:", b"Content-Length:"))) == sorted(
        f"{name}: {value}".encode() for name, value in given.items() if name != "Connection"
    )
    assert {b"X-Odd-Case: Yes", b"Set-Cookie: a=b"} <= set(heard.split(b"\r\n"))


def test_a_cookie_of_the_provider_is_not_sent_back_by_us() -> None:
    async def work() -> bytes:
        async with between() as (_, provider, url):
            await asked(url, "/v1/messages", b"{}")
            await asked(url, "/v1/messages", b"{}")
            return provider.heads[1]

    assert b"Cookie" not in asyncio.run(work())


def test_headers_and_paths_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> str:
        async with between() as (_, __, url):
            await asked(url, "/v1/messages", b"{}", {"X-Api-Key": "top-secret"})
            return urlsplit(url).path

    with caplog.at_level(logging.DEBUG):
        path = asyncio.run(work())
    assert not [record for record in caplog.messages if "top-secret" in record or path in record]


def test_whoever_does_not_know_the_secret_is_served_nothing() -> None:
    async def work() -> tuple[bytes, int]:
        async with between() as (_, provider, url):
            heard, _ = await asked(url.rpartition("/")[0], "/v1/messages", b"{}")
            return heard.split(b"\r\n")[0], len(provider.heads)

    assert asyncio.run(work()) == (b"HTTP/1.1 404 Not Found", 0)


def test_a_stream_passes_piece_by_piece() -> None:
    more = asyncio.Event()

    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 8\r\n\r\ndata")
        await more.wait()
        writer.write(b": {}")

    async def work() -> tuple[bytes, bytes]:
        async with between(slow) as (_, __, url):
            reader, writer = await connected(url)
            writer.write(posting(url))
            await reader.readuntil(b"\r\n\r\n")
            first = await asyncio.wait_for(reader.readexactly(4), SECONDS)
            more.set()
            rest = await asyncio.wait_for(reader.readexactly(4), SECONDS)
            await closed(writer)
            return first, rest

    assert asyncio.run(work()) == (b"data", b": {}")


def test_an_answer_that_breaks_off_breaks_off() -> None:
    async def broken(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ndata")
        writer.close()

    async def work() -> None:
        async with between(broken) as (_, __, url):
            await asked(url, "/v1/messages", b"{}")

    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        asyncio.run(work())


def test_a_provider_that_is_gone_is_a_connection_that_drops_and_a_line_in_our_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        async with between() as (gateway, _, url):
            gateway._upstream = "http://127.0.0.1:9"
            await asked(url, "/v1/messages", b"{}")

    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        asyncio.run(work())
    assert "the model provider is unavailable: ClientConnectorError" in caplog.text


def test_a_client_that_hangs_up_hangs_up_on_the_provider() -> None:
    begun = asyncio.Event()

    async def silent(writer: asyncio.StreamWriter) -> None:
        begun.set()

    async def work() -> tuple[int, bool]:
        async with between(silent) as (_, provider, url):
            _, writer = await connected(url)
            writer.write(posting(url))
            await asyncio.wait_for(begun.wait(), SECONDS)
            before = provider.gone.is_set()
            await closed(writer)
            await asyncio.wait_for(provider.gone.wait(), SECONDS)
            return len(provider.bodies), before

    assert asyncio.run(work()) == (1, False)


@pytest.mark.parametrize("body", [b"no JSON", b"[1]", b'{"messages": [1], "tools": [1]}'])
def test_a_fault_of_ours_sends_the_request_on_unchanged(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REASONBLOCKS_STRICT", raising=False)

    async def work() -> list[bytes]:
        async with between() as (gateway, provider, url):
            await_first(gateway)
            await asked(url, "/v1/messages", body)
            return provider.bodies

    assert asyncio.run(work()) == [body]


def test_an_answer_that_cannot_be_read_passes_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REASONBLOCKS_STRICT", raising=False)

    async def lying(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\nno JSON")

    async def work() -> tuple[bytes, bytes]:
        async with between(lying) as (gateway, _, url):
            await_first(gateway)
            return await asked(url, "/v1/messages", json.dumps(FIRST).encode())

    assert asyncio.run(work())[1] == b"no JSON"


def test_a_request_that_never_came_through_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> StepOutcome:
        async with between(strict=True) as (gateway, _, __):
            await_first(gateway)
            return gateway.pending.measured(DECISION, StepOutcome())

    assert asyncio.run(work()) == StepOutcome()
    assert "did not come through it" in caplog.text


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_request_is_sent_again_without_guidance(status: int) -> None:
    async def refuse(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %d Refused\r\nContent-Length: 2\r\n\r\n{}" % status)
        await writer.drain()

    async def work() -> tuple[list[Any], int]:
        async with between(refuse, strict=True) as (gateway, provider, url):
            await_first(gateway)
            for _ in range(2):
                await asked(url, "/v1/messages", json.dumps(FIRST).encode())
            return list(map(json.loads, provider.bodies)), gateway.pending.refusal(DECISION)

    assert asyncio.run(work()) == ([{**FIRST, "system": "[REASONBLOCKS]\nCheck."}, FIRST], status)
