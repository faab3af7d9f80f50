"""The embedder behind an HTTP server: what is asked, what is made of the answer, and every way it goes wrong."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from reasonblocks.backends.embed import OpenAIEmbedder
from reasonblocks.backends.embed._openai import AT_ONCE
from reasonblocks.exceptions import ConfigError, ExtraMissing, Unavailable
from reasonblocks.patterns import Curve, SimilarityCurves
from reasonblocks_testing.loopback import Listener

CURVES = SimilarityCurves(e1=Curve(((0.0, 0.0), (1.0, 1.0))), e2=Curve(((0.0, 0.0), (1.0, 1.0))))
KEY = "sk-not-a-key"


def vectors(texts: list[str]) -> list[dict[str, Any]]:
    """Last first, as the order is the index's."""
    return [{"index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(texts)][::-1]


class Server(Listener):
    """Answers with what `answer` makes of the texts: a status and a body."""

    def __init__(self) -> None:
        self.answer: Callable[[list[str]], tuple[int, Any]] = lambda texts: (200, {"data": vectors(texts)})
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        self.server.paths.append(self.path)
        self.server.keys.append(self.headers["Authorization"])
        status, answer = self.server.answer(body["input"])
        sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        with suppress(OSError):  # nobody waits any more
            self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    listening = Server()
    yield listening
    listening.stop()


def made(server: Server, **given: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder("embed-small", given.pop("url", server.url), KEY, curves=CURVES, **given)


def test_vectors_are_put_in_the_order_of_their_index(server: Server) -> None:
    assert made(server).embed_many(["a", "abc"]).tolist() == [[1, 1], [3, 1]]


def test_the_request_is_openais(server: Server) -> None:
    made(server).embed("a")
    assert (server.asked, server.paths, server.keys) == (
        [{"model": "embed-small", "input": ["a"]}],
        ["/v1/embeddings"],
        [f"Bearer {KEY}"],
    )


def test_a_path_of_the_base_is_kept(server: Server) -> None:
    made(server, url=f"{server.url}/team/v2/").embed("a")
    assert server.paths == ["/team/v2/embeddings"]


def test_the_dimension_is_asked_once(server: Server) -> None:
    embedder = made(server)
    assert [embedder.dim, embedder.dim, len(server.asked)] == [2, 2, 1]


def test_many_texts_go_in_several_requests_and_no_text_in_none(server: Server) -> None:
    assert (made(server).embed_many([]).shape[0], server.asked) == (0, [])
    embedded = made(server).embed_many(["a"] * (2 * AT_ONCE + 1))
    assert (embedded.shape, [len(one["input"]) for one in server.asked]) == (
        (2 * AT_ONCE + 1, 2),
        [AT_ONCE, AT_ONCE, 1],
    )


@pytest.mark.parametrize(("text", "sent"), [("", " "), ("\n", " "), ("half \ud800", "half ?"), ("a" * 20_000, None)])
def test_any_text_can_be_sent(server: Server, text: str, sent: str | None) -> None:
    made(server).embed(text)
    [asked] = server.asked[0]["input"]
    assert asked == sent or (sent is None and len(asked) < 16_100)


BAD: dict[str, tuple[int, Any]] = {
    "an error": (500, {"error": "busy"}),
    "no rights": (401, {"error": {"message": f"wrong key {KEY}"}}),
    "a redirect": (307, b""),
    "no json": (200, b"<html>"),
    "no data": (200, {}),
    "no list": (200, {"data": {"0": []}}),
    "too few": (200, {"data": [{"index": 0, "embedding": [1.0, 1.0]}]}),
    "one index twice": (200, {"data": [{"index": 0, "embedding": [1.0, 1.0]}] * 2}),
    "other indices": (200, {"data": [{"index": at, "embedding": [1.0, 1.0]} for at in (1, 2)]}),
    "another dimension": (200, {"data": [{"index": at, "embedding": [1.0]} for at in (0, 1)]}),
    "no number": (200, {"data": [{"index": at, "embedding": ["a", "b"]} for at in (0, 1)]}),
    "not finite": (200, b'{"data": [{"index": 0, "embedding": [NaN, 1]}, {"index": 1, "embedding": [1, 1]}]}'),
    "uneven": (200, {"data": [{"index": 0, "embedding": [1.0, 1.0]}, {"index": 1, "embedding": [1.0]}]}),
}


@pytest.mark.parametrize("case", BAD)
def test_an_answer_that_cannot_be_used_is_unavailable(server: Server, case: str) -> None:
    server.answer = lambda texts: BAD[case]
    with pytest.raises(Unavailable) as raised:
        made(server, dim=2).embed_many(["a", "b"])
    assert KEY not in str(raised.value)


def test_nobody_listening_is_unavailable(server: Server) -> None:
    server.stop()
    with pytest.raises(Unavailable, match="ConnectError"):
        made(server).embed("a")


def test_a_server_that_does_not_answer_in_time_is_unavailable(server: Server) -> None:
    given_up = threading.Event()
    server.answer = lambda texts: (200 if given_up.wait(10) else 500, None)
    with pytest.raises(Unavailable, match="Timeout"):
        made(server, timeout_s=0.05).embed("a")
    given_up.set()


def test_the_dimension_stays_what_it_was_first(server: Server) -> None:
    embedder = made(server)
    embedder.embed("a")
    server.answer = lambda texts: (200, {"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]})
    with pytest.raises(Unavailable, match="dimension 2"):
        embedder.embed("a")


@pytest.mark.parametrize("url", ["", "example.org/v1", "ftp://example.org", "http://"])
def test_a_base_that_is_no_url_is_refused(server: Server, url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        made(server, url=url)


@pytest.mark.parametrize("key", ["sk-€", "sk\nX: y"])
def test_a_key_that_no_header_takes_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        OpenAIEmbedder("m", "http://127.0.0.1", key, curves=CURVES)
    assert key not in str(raised.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_opens_its_own_connections(server: Server) -> None:
    embedder = made(server)
    embedder.embed("a")
    before = embedder._client
    child = os.fork()
    if not child:
        try:
            embedder.embed("a")
            os._exit(embedder._client is before)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert embedder._client is before


def test_without_httpx_the_embedder_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ExtraMissing, match=r"OpenAIEmbedder needs httpx: pip install 'httpx>=0.27'$"):
        OpenAIEmbedder("some-model", "http://127.0.0.1:9")
