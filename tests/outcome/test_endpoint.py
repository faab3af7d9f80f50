"""An endpoint as a backend of the outcome benchmark: what it sends, what it makes of answers, when it gives up."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias

import pytest
from _outcome.backend import BackendError, Query, Reply
from _outcome.backends.endpoint import EndpointBackend
from _outcome.environment import Call, tool

from reasonblocks.exceptions import ConfigError

KEY = "sk-very-secret-value"
Json: TypeAlias = dict[str, Any]
Answer: TypeAlias = "tuple[int, Json | str] | tuple[int, Json | str, dict[str, str]]"
TOOLS = (tool("go", "Walk.", door="its name"),)


class Endpoint:
    """A server on 127.0.0.1 that answers each request as `answer` says."""

    def __init__(self, answer: Callable[[Json], Answer]) -> None:
        self.answer = answer
        self.asked: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"endpoint": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    endpoint: Endpoint

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.endpoint.asked.append(asked)
        self.endpoint.headers.append(dict(self.headers))
        self.endpoint.paths.append(self.path)
        status, body, *more = self.endpoint.answer(asked)
        raw = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(raw)), **(more[0] if more else {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *given: object) -> None:
        """Print nothing."""


class Waits(list[float]):
    """Waits that are counted, not made."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def backend(endpoint: Endpoint, **given: Any) -> closing[EndpointBackend]:
    given = {"say": lambda text: None, "sleep": Waits(), **given}
    return closing(EndpointBackend(endpoint.url, "a-model", **given))


def query(lane: int = 0, text: str = "Find the exit.") -> Query:
    return Query(messages=[{"role": "user", "content": text}], tools=TOOLS, lane=lane, seed=7)


def said(text: str | None = "Hm.", *calls: tuple[str, Any], **more: Any) -> Json:
    made = [{"id": "c", "type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    return {"choices": [{"message": message}], "usage": {"prompt_tokens": 90, "completion_tokens": 9}, **more}


WENT = said("I go.", ("go", '{"door": "attic"}'))


def one(answer: Json) -> Reply:
    """What the backend makes of an answer."""
    with Endpoint(lambda _: (200, answer)) as endpoint, backend(endpoint) as made:
        return made.complete([query()])[0]


def refusing(*refused: Callable[[Json], bool], text: str) -> Callable[[Json], Answer]:
    """An endpoint that refuses requests of these kinds."""
    return lambda asked: (400, {"error": text}) if any(is_so(asked) for is_so in refused) else (200, WENT)


def failing(first: Answer, times: int) -> Callable[[Json], Answer]:
    answers: Iterator[Answer] = iter([first] * times)
    return lambda _: next(answers, (200, said("At last.")))


def requires(asked: Json) -> bool:
    return bool(asked["tool_choice"] == "required")


def is_seeded(asked: Json) -> bool:
    return "seed" in asked


# --- requests and replies


def test_a_request_has_the_tools_a_forced_call_and_the_seed() -> None:
    with Endpoint(lambda _: (200, said())) as endpoint, backend(endpoint, key=KEY, temperature=0.3) as made:
        made.complete([query()])
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert endpoint.asked == [
        {
            "model": "a-model",
            "messages": [{"role": "user", "content": "Find the exit."}],
            "tools": list(TOOLS),
            "tool_choice": "required",
            "seed": 7,
            "temperature": 0.3,
            "max_tokens": 512,
        }
    ]


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Endpoint(lambda _: (200, said())) as endpoint, backend(endpoint) as made:
        made.complete([query()])
    assert [sent.get("Authorization") for sent in endpoint.headers] == [None]


def test_the_first_of_several_calls_is_taken() -> None:
    reply = one(said("I go.", ("go", '{"door": "attic"}'), ("go", '{"door": "cellar"}')))
    assert reply == Reply(text="I go.", call=Call("go", {"door": "attic"}), prompt=90, completion=9)


def test_an_answer_without_a_call_is_text() -> None:
    assert one(said([{"type": "text", "text": "I am "}, {"type": "text", "text": "lost."}])).text == "I am lost."  # type: ignore[arg-type]
    assert one(said("Done.")).call is None


@pytest.mark.parametrize("raw", ['{"door": "att', "[1]", "attic"])
def test_arguments_that_are_no_object_are_kept_in_the_text(raw: str) -> None:
    reply = one(said("I go.", ("go", raw)))
    assert (reply.text, reply.call) == (f"I go.\n{raw}", Call("go", {}))


def test_arguments_may_be_an_object_or_missing() -> None:
    assert one(said(None, ("go", {"door": "attic"}))).call == Call("go", {"door": "attic"})
    assert one(said(None, ("look", ""))) == Reply(call=Call("look", {}), prompt=90, completion=9)


def test_cached_tokens_are_read_from_the_usage_or_the_timings() -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 64}}
    assert one(said(usage=usage)).cached == 64
    assert one(said(timings={"cache_n": 80})).cached == 80
    assert one(said()).cached is None


def test_replies_are_in_the_order_of_the_queries() -> None:
    second = threading.Event()

    def answer(asked: Json) -> Answer:
        text = asked["messages"][0]["content"]
        if text == "0":
            assert second.wait(20)  # so the queries are sent at the same time
        else:
            second.set()
        return 200, said(f"answer {text}")

    with Endpoint(answer) as endpoint, backend(endpoint, lanes=2) as made:
        replies = made.complete([query(lane, str(lane)) for lane in range(2)])
    assert [reply.text for reply in replies] == ["answer 0", "answer 1"]


# --- refused parameters


@pytest.mark.parametrize(
    ("refused", "name", "now"),
    [
        (requires, "tool_choice", {"tool_choice": "auto"}),
        (is_seeded, "seed", {"seed": None}),
        (lambda asked: "temperature" in asked, "temperature", {"temperature": None}),
        (lambda asked: "max_tokens" in asked, "max_tokens", {"max_tokens": None, "max_completion_tokens": 512}),
    ],
)
def test_a_parameter_that_is_refused_by_name_is_not_sent_again(
    refused: Callable[[Json], bool], name: str, now: Json
) -> None:
    heard: list[str] = []
    with (
        Endpoint(refusing(refused, text=f"Unsupported: {name}")) as endpoint,
        backend(endpoint, say=heard.append) as made,
    ):
        made.complete([query()])
        made.complete([query()])
    first, second, third = endpoint.asked
    assert refused(first)
    assert second == third
    assert {key: second.get(key) for key in now} == now
    assert {key: value for key, value in second.items() if key not in now} == {
        key: value for key, value in first.items() if key not in now
    }
    assert len(heard) == 1
    assert f"refuses {name}:" in heard[0]


def test_an_endpoint_that_ignores_a_forced_call_is_named_once() -> None:
    heard: list[str] = []
    answers = iter([said("Hm.", ("go", "{}")), said("Hm."), said("Hm.")])
    with Endpoint(lambda _: (200, next(answers))) as endpoint, backend(endpoint, say=heard.append) as made:
        made.complete([query()])
        assert heard == []
        made.complete([query()])
        made.complete([query()])
    assert [text.removeprefix(f"{endpoint.url}/v1/chat/completions ") for text in heard] == [
        "accepts tool_choice and forces no call: turns without a call occur"
    ]


def test_lanes_that_are_refused_at_the_same_time_say_it_once() -> None:
    heard: list[str] = []
    answer = refusing(requires, is_seeded, text="neither seed nor tool_choice")
    with Endpoint(answer) as endpoint, backend(endpoint, say=heard.append, lanes=4) as made:
        made.complete([query(lane) for lane in range(4)])
    assert len(heard) == 2


@pytest.mark.parametrize(
    ("refused", "sent"),
    [
        ([is_seeded], [(True, "required"), (False, "required")]),
        ([requires], [(True, "required"), (False, "required"), (True, "auto")]),
        ([requires, is_seeded], [(True, "required"), (False, "required"), (True, "auto"), (False, "auto")]),
    ],
)
def test_a_refusal_without_a_name_gives_up_as_little_as_it_can(
    refused: list[Callable[[Json], bool]], sent: list[tuple[bool, str]]
) -> None:
    with Endpoint(refusing(*refused, text="bad request")) as endpoint, backend(endpoint) as made:
        made.complete([query()])
        assert [("seed" in asked, asked["tool_choice"]) for asked in endpoint.asked] == sent
        made.complete([query()])
        assert ("seed" in endpoint.asked[-1], endpoint.asked[-1]["tool_choice"]) == sent[-1]
        assert len(endpoint.asked) == len(sent) + 1


def test_what_no_concession_mends_is_an_error_and_concedes_nothing() -> None:
    heard: list[str] = []
    long = {"error": "the prompt exceeds the context"}
    answer: Callable[[Json], Answer] = lambda asked: (400, long) if "x" in str(asked["messages"]) else (200, WENT)  # noqa: E731
    with Endpoint(answer) as endpoint, backend(endpoint, say=heard.append) as made:
        with pytest.raises(BackendError, match="the prompt exceeds the context") as raised:
            made.complete([query(3, "xxx")])
        made.complete([query(3, "fine")])
    assert raised.value.lane == 3
    assert (endpoint.asked[-1]["seed"], endpoint.asked[-1]["tool_choice"], heard) == (7, "required", [])


# --- retries


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_a_transient_error_is_retried(status: int) -> None:
    waits = Waits()
    with Endpoint(failing((status, "busy"), 3)) as endpoint, backend(endpoint, sleep=waits) as made:
        assert made.complete([query()])[0].text == "At last."
    assert waits == [0.5, 1.0, 2.0]


def test_retry_after_is_honoured_within_a_minute() -> None:
    waits = Waits()
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=30), usegmt=True)
    answers: Iterator[Answer] = iter(
        [(429, "busy", {"Retry-After": wait}) for wait in ("3", "0", "86400", soon, "soon", "-1")]
    )
    with (
        Endpoint(lambda _: next(answers, (200, said()))) as endpoint,
        backend(endpoint, sleep=waits) as made,
    ):
        made.complete([query()])
    assert waits[:3] == [3.0, 0.0, 60.0]
    assert 0 < waits[3] <= 30
    assert waits[4:] == [8.0, 0.0]


def test_retries_end() -> None:
    waits = Waits()
    with (
        Endpoint(lambda _: (503, "loading the model")) as endpoint,
        backend(endpoint, sleep=waits) as made,
        pytest.raises(BackendError, match=r"HTTP 503: loading the model; see the server's log"),
    ):
        made.complete([query()])
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


def test_a_provider_error_with_status_200_is_retried() -> None:
    failure: Json = {"error": {"message": "provider returned error", "code": 502}}
    with Endpoint(failing((200, failure), 2)) as endpoint, backend(endpoint) as made:
        assert made.complete([query()])[0].text == "At last."


def test_a_timeout_is_retried() -> None:
    stop = threading.Event()
    late = iter([True])

    def answer(_: Json) -> Answer:
        if next(late, False):
            stop.wait(20)
        return 200, said("At last.")

    with Endpoint(answer) as endpoint:
        with backend(endpoint, timeout_s=0.2) as made:
            assert made.complete([query()])[0].text == "At last."
        stop.set()
    assert len(endpoint.asked) == 2


# --- errors


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (401, {"error": f"Incorrect API key provided: {KEY}"}, "--key-env"),
        (403, "no", "may use this model"),
        (404, "no such model", "the base URL"),
        (429, {"error": {"code": "insufficient_quota"}}, "the account's limits"),
        (302, "moved", "chat completions endpoint"),
        (200, "<html>error: a web page</html>", "no chat completion: HTTP 200: <html>error: a web page</html>"),
        (200, {"answer": 42}, "no chat completion"),
    ],
)
def test_an_error_that_lasts_is_raised_at_once_without_the_key(status: int, body: Json | str, problem: str) -> None:
    with Endpoint(lambda _: (status, body)) as endpoint, backend(endpoint, key=KEY) as made:
        with pytest.raises(BackendError) as raised:
            made.complete([query()])
        assert len(endpoint.asked) == 1
        assert str(raised.value).startswith(f"{endpoint.url}/v1/chat/completions: ")
    assert f"HTTP {status}" in str(raised.value)
    assert problem in str(raised.value)
    assert KEY not in f"{raised.value!r}{raised.value}{vars(raised.value)}"


def test_a_server_that_is_not_there_is_an_error() -> None:
    with Endpoint(lambda _: (200, said())) as endpoint:
        pass
    waits = Waits()
    with backend(endpoint, sleep=waits) as made, pytest.raises(BackendError, match="check that the server runs"):
        made.complete([query()])
    assert waits == [0.5, 1.0, 2.0]


def test_an_error_of_one_lane_is_raised_after_the_others_have_ended() -> None:
    answer: Callable[[Json], Answer] = lambda asked: (401, "no") if "1" in str(asked["messages"]) else (200, said())  # noqa: E731
    with Endpoint(answer) as endpoint, backend(endpoint, lanes=3) as made:
        with pytest.raises(BackendError) as raised:
            made.complete([query(lane, str(lane)) for lane in range(3)])
        assert len(endpoint.asked) == 3
    assert raised.value.lane == 1


def test_no_repr_shows_the_key_or_what_is_secret_in_a_url() -> None:
    made = EndpointBackend(f"http://someone:{KEY}@127.0.0.1:9/v1?key={KEY}", "a-model", key=KEY)
    made.close()
    assert KEY not in f"{made!r}{vars(made)}"
    with pytest.raises(ConfigError) as raised:
        EndpointBackend("http://127.0.0.1:9", "a-model", key=f"{KEY}\n")
    assert KEY not in f"{raised.value!r}{raised.value}"
    with pytest.raises(ConfigError, match="http or https"):
        EndpointBackend("127.0.0.1:9", "a-model")


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_a_base_url_may_have_any_usual_form(path: str) -> None:
    with (
        Endpoint(lambda _: (200, said())) as endpoint,
        closing(EndpointBackend(endpoint.url + path, "a-model")) as made,
    ):
        made.complete([query()])
    assert endpoint.paths == ["/v1/chat/completions"]
