"""Findings over HTTP: the requests, the faults of servers, and servers that implement only the shared contract."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reasonblocks.backends.http import Exchange, HttpFindings, address_of
from reasonblocks.backends.http import findings as module
from reasonblocks.concurrency.breaker import FAILURES_IN_A_ROW
from reasonblocks.exceptions import BadAnswer, ConfigError, StoreError, SwitchedOff, Unavailable
from reasonblocks.findings import finding_id
from reasonblocks.types import Codebase, Finding
from reasonblocks.util.secret import Secret
from reasonblocks.wire import MOST_STORED
from reasonblocks_testing.loopback import Listener
from reasonblocks_testing.rb_api import KEY, HangUp, Lie, Lying, ScriptedRbApi, Slow, Status

CODEBASE = Codebase(org_id="default", codebase_id="acme/shop")
ONE = Finding(content="The tests run with `make check`.", file_path="Makefile", finding_type="command")
IDS = [
    "search", "a/search", "a/invalidate", "..", ".", "../x", "a%2Fb", "a/b", "a?b#c", "żółć 🙂", "a/", "/", "a//b",
    "+ &",
]  # fmt: skip


@pytest.fixture
def api() -> Iterator[ScriptedRbApi]:
    with ScriptedRbApi() as server:
        yield server


@pytest.fixture
def store(api: ScriptedRbApi) -> Iterator[HttpFindings]:
    yield from opened(api.url)


def opened(url: str) -> Iterator[HttpFindings]:
    found = HttpFindings(Exchange(address_of("base_url", url, Secret(KEY))))
    yield found
    found.close()


def scope(codebase_id: str) -> Codebase:
    return Codebase(org_id="default", codebase_id=codebase_id)


def many(count: int, chars: int = 0) -> list[Finding]:
    return [Finding(content=f"Note {number}. {'x' * chars}", file_path=f"src/{number}.py") for number in range(count)]


CALLS: Sequence[Callable[[HttpFindings], object]] = (
    lambda store: store.put(CODEBASE, [ONE]),
    lambda store: store.put(CODEBASE, many(2)),
    lambda store: store.search(CODEBASE, "tests", top_k=5, score_threshold=0.25),
    lambda store: store.page(CODEBASE),
    lambda store: store.remove(CODEBASE, file_paths=["Makefile"]),
    lambda store: store.clear(CODEBASE),
    lambda store: store.codebases("default"),
)


def test_a_finding_is_stored_recalled_listed_and_removed(store: HttpFindings) -> None:
    (name,) = store.put(CODEBASE, [ONE])
    assert name == finding_id(CODEBASE, ONE)
    (found,) = store.search(CODEBASE, "How are the tests run?", top_k=5, score_threshold=0.0)
    assert (found.finding_id, found.content, found.file_path) == (name, ONE.content, "Makefile")
    (listed,) = store.page(CODEBASE)
    assert (listed.finding_type, listed.created_at[-6:]) == ("command", "+00:00")
    assert [(one.codebase_id, one.findings) for one in store.codebases("default")] == [("acme/shop", 1)]
    assert store.remove(CODEBASE, finding_ids=[name]) == 1
    assert store.page(CODEBASE) == ()
    assert store.codebases("default") == ()


@pytest.mark.parametrize("codebase_id", IDS)
def test_an_id_may_have_any_characters(store: HttpFindings, codebase_id: str) -> None:
    for other in {*IDS} - {codebase_id}:
        store.put(scope(other), [Finding(content="Of another one.")])
    store.put(scope(codebase_id), [ONE])
    assert [one.content for one in store.page(scope(codebase_id))] == [ONE.content]
    assert [one.content for one in store.search(scope(codebase_id), "tests", top_k=9, score_threshold=0.0)] == [
        ONE.content
    ]
    assert store.remove(scope(codebase_id), file_paths=["Makefile"]) == 1
    assert len(store.codebases("default")) == len(IDS) - 1
    assert store.clear(scope(codebase_id)) == 0


def test_a_request_has_no_field_that_the_server_computes(api: ScriptedRbApi, store: HttpFindings) -> None:
    store.put(CODEBASE, [Finding(content="a", finding_id="mine", created_at="1970", file_hash="0" * 64)])
    (request,) = api.requests
    assert (request.method, request.path) == ("POST", "/findings/acme%2Fshop")
    assert request.body == {"content": "a", "finding_type": "note", "file_hash": "0" * 64}


def test_many_findings_take_a_request_for_each_500(api: ScriptedRbApi, store: HttpFindings) -> None:
    given = many(MOST_STORED + 2)
    ids = store.put(CODEBASE, given)
    assert [len(request.body["findings"]) for request in api.requests] == [MOST_STORED, 2]
    assert list(ids) == [finding_id(CODEBASE, finding) for finding in given]
    assert {one.finding_id for one in store.page(CODEBASE, limit=1_000)} == {*ids}


def test_no_body_is_larger_than_servers_take() -> None:
    bodies = [json.dumps({"content": "é" * 8_000}, ensure_ascii=False)] * MOST_STORED
    batches = list(module._batches(bodies))
    assert sum(map(len, batches)) == MOST_STORED
    assert all(len(",".join(batch).encode()) < 5_000_000 - 20 for batch in batches)
    assert len(batches) == 2


def test_pages_are_filled_by_several_answers(api: ScriptedRbApi, store: HttpFindings) -> None:
    ids = sorted(store.put(CODEBASE, many(60, 6_000)))
    before = len(api.requests)
    assert [one.finding_id for one in store.page(CODEBASE, limit=50)] == ids[:50]
    assert len(api.requests) - before == 2
    assert [one.finding_id for one in store.page(CODEBASE, after=ids[49], limit=50)] == ids[50:]
    assert store.page(CODEBASE, after=ids[-1]) == ()


def test_a_later_failure_has_the_number_of_stored_findings(api: ScriptedRbApi, store: HttpFindings) -> None:
    given = [*many(MOST_STORED), Finding(content="x" * 9_000)]
    with pytest.raises(StoreError, match=r"500 of 501 findings are stored, then: .*HTTP 422: content"):
        store.put(CODEBASE, given)
    assert len(store.page(CODEBASE, limit=1_000)) == MOST_STORED


# --- faults


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", [302, 403, 404, 429, 500, 503])
def test_a_refusal_is_unavailable_with_the_reason(
    api: ScriptedRbApi, store: HttpFindings, status: int, call: Callable[[HttpFindings], object]
) -> None:
    headers = {"Retry-After": "7", "Location": "https://other.example"}
    api.misbehave(Status(code=status, detail=f"because of {KEY}", headers=headers))
    with pytest.raises(Unavailable, match=rf"HTTP {status}: because of \*\*\*") as raised:
        call(store)
    assert raised.value.retry_after == 7
    assert KEY not in repr(raised.value)


def test_a_refusal_switches_nothing_off(api: ScriptedRbApi, store: HttpFindings) -> None:
    for status in (403, 404, 422, 500):
        api.misbehave(Status(code=status))
        for _ in range(FAILURES_IN_A_ROW + 1):
            with pytest.raises((Unavailable, ConfigError)):
                store.clear(CODEBASE)
    api.behave()
    assert store.clear(CODEBASE) == 0


def test_a_wrong_key_is_reported_once(
    api: ScriptedRbApi, store: HttpFindings, caplog: pytest.LogCaptureFixture
) -> None:
    api.revoke()
    with pytest.raises(Unavailable, match="HTTP 401"):
        store.page(CODEBASE)
    with pytest.raises(SwitchedOff):
        store.page(CODEBASE)
    assert len(api.requests) == 1
    (record,) = caplog.records
    assert "was refused (401)" in record.getMessage()
    assert KEY not in record.getMessage()


def test_a_key_without_the_scope_is_reported_once(
    api: ScriptedRbApi, store: HttpFindings, caplog: pytest.LogCaptureFixture
) -> None:
    api.misbehave(Status(code=403, detail="the key lacks the scope 'evaluate'"))
    for _ in range(3):
        with pytest.raises(Unavailable, match="lacks the scope"):
            store.page(CODEBASE)
    (record,) = caplog.records
    assert "HTTP 403: the key lacks the scope 'evaluate'; logged once" in record.getMessage()
    assert KEY not in record.getMessage()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_wrong_request_is_an_error_of_its_values(api: ScriptedRbApi, store: HttpFindings, status: int) -> None:
    api.misbehave(Status(code=status, detail="content: is too long"))
    with pytest.raises(ConfigError, match=f"HTTP {status}: content: is too long"):
        store.put(CODEBASE, [ONE])


def test_a_full_codebase_is_an_error_of_the_store(api: ScriptedRbApi, store: HttpFindings) -> None:
    api.misbehave(Status(code=409, detail="a codebase may have 20,000 findings: forget some first"))
    with pytest.raises(StoreError, match="20,000 findings: forget some"):
        store.put(CODEBASE, many(2))


@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_is_away_is_unavailable(
    store: HttpFindings, api: ScriptedRbApi, call: Callable[[HttpFindings], object]
) -> None:
    api.close_port()
    with pytest.raises(Unavailable):
        call(store)


def test_a_slow_server_costs_the_deadline(
    api: ScriptedRbApi, store: HttpFindings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.1)
    api.misbehave(Slow(seconds=30))
    with pytest.raises(Unavailable, match=r"no answer within 0\.1 s"):
        store.page(CODEBASE)
    assert api.requests[0].headers["reasonblocks-deadline-ms"] == "100"
    api.behave()


def test_a_connection_that_breaks_is_unavailable(api: ScriptedRbApi, store: HttpFindings) -> None:
    api.misbehave(HangUp())
    with pytest.raises(Unavailable, match=r"RemoteProtocolError|ReadError"):
        store.put(CODEBASE, [ONE])


LIES: Sequence[Lie] = ("html", "empty", "list", "truncated", "deep", "huge", "bomb", "not gzip", "nan", "wrong types")


@pytest.mark.parametrize("lie", LIES)
def test_garbage_is_a_bad_answer(api: ScriptedRbApi, store: HttpFindings, lie: Lie) -> None:
    store.put(CODEBASE, [ONE])
    api.misbehave(Lying(lie=lie))
    with pytest.raises(BadAnswer):
        store.search(CODEBASE, "How are the tests run?", top_k=5, score_threshold=0.0)


# --- other servers


class Minimal:
    """A server that implements only the shared contract: no ids, no pages, one finding a request."""

    def __init__(self) -> None:
        self.findings: list[dict[str, Any]] = []
        self.answers: dict[tuple[str, str], Any] = {}
        self.requests: list[str] = []


def handler(minimal: Minimal) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
            status, answer = answered(minimal, self.command, self.path, body)
            minimal.requests.append(self.command)
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


def answered(minimal: Minimal, method: str, path: str, body: Any) -> tuple[int, Any]:
    path = path.partition("?")[0]
    if (method, path) in minimal.answers:
        found = minimal.answers[method, path]
        return 200, found() if callable(found) else found
    if path == "/v1/findings":
        return 404, {"detail": "Not Found"}
    if method == "DELETE":
        minimal.findings.clear()
        return 200, {"status": "cleared"}
    if method == "GET":
        return 200, {"findings": minimal.findings}
    if path.endswith("/search"):
        return 200, {"results": [{"score": 0.5, **one} for one in minimal.findings]}
    if path.endswith("/invalidate"):
        kept = [one for one in minimal.findings if one["file_path"] not in body["file_paths"]]
        gone, minimal.findings[:] = len(minimal.findings) - len(kept), kept
        return 200, {"invalidated": gone}
    if "content" not in body:
        return 422, {"detail": [{"loc": ["body", "content"], "msg": "Field required", "input": body}]}
    minimal.findings.append({name: body.get(name, "") for name in ("content", "file_path", "finding_type")})
    return 200, {"finding_id": f"their-{len(minimal.findings)}"}


@pytest.fixture
def minimal() -> Minimal:
    return Minimal()


@pytest.fixture
def other(minimal: Minimal) -> Iterator[HttpFindings]:
    listener = Listener(handler(minimal))
    yield from opened(f"http://127.0.0.1:{listener.port}")
    listener.stop()


def test_many_long_ids_fit_into_the_requests_that_remove_them(store: HttpFindings) -> None:
    store.put(CODEBASE, [ONE])
    (name,) = [one.finding_id for one in store.page(CODEBASE)]
    assert store.remove(CODEBASE, finding_ids=["\N{GRINNING FACE}" * 512] * 2_500 + [name]) == 1


def test_a_server_without_lists_is_sent_one_finding_a_request(minimal: Minimal, other: HttpFindings) -> None:
    assert other.put(CODEBASE, many(3)) == ("their-1", "their-2", "their-3")
    assert len(minimal.requests) == 4
    assert other.put(CODEBASE, many(2)) == ("their-4", "their-5")
    assert len(minimal.requests) == 6


def test_a_server_without_ids_and_pages_is_listed_and_searched(minimal: Minimal, other: HttpFindings) -> None:
    given = many(5)
    other.put(CODEBASE, given)
    ids = sorted(finding_id(CODEBASE, finding) for finding in given)
    first = other.page(CODEBASE, limit=3)
    assert [one.finding_id for one in first] == ids[:3]
    assert [one.finding_id for one in other.page(CODEBASE, after=ids[2], limit=3)] == ids[3:]
    assert other.page(CODEBASE, after=ids[-1]) == ()
    found = other.search(CODEBASE, "note", top_k=2, score_threshold=0.25)
    assert [one.score for one in found] == [0.5, 0.5]
    assert {one.finding_id for one in found} <= {*ids}
    assert other.remove(CODEBASE, file_paths=["src/0.py"]) == 1
    assert other.clear(CODEBASE) == 0
    assert other.page(CODEBASE) == ()


def test_the_best_of_an_unordered_answer_are_returned(minimal: Minimal, other: HttpFindings) -> None:
    minimal.findings += [{"content": text, "score": score} for text, score in (("b", 0.4), ("a", 0.5), ("c", 0.9))]
    found = other.search(CODEBASE, "note", top_k=2, score_threshold=0.25)
    assert [one.content for one in found] == ["c", "a"]


def test_a_server_that_lists_no_codebases_says_so(other: HttpFindings) -> None:
    with pytest.raises(Unavailable, match="this server does not list codebases"):
        other.codebases("default")


@pytest.mark.parametrize(("following", "said"), [("a", "must be after 'a'"), ("b", "must have a finding")])
def test_pages_that_do_not_go_on_or_are_empty_are_a_bad_answer(
    minimal: Minimal, other: HttpFindings, following: str, said: str
) -> None:
    minimal.answers["GET", "/v1/findings/acme%2Fshop"] = {"findings": [], "next": following}
    with pytest.raises(BadAnswer, match=said):
        other.page(CODEBASE, after="a")


def test_an_answer_with_other_numbers_of_ids_is_a_bad_answer(minimal: Minimal, other: HttpFindings) -> None:
    minimal.answers["POST", "/v1/findings/acme%2Fshop"] = {"finding_id": "a", "finding_ids": ["a"]}
    with pytest.raises(BadAnswer, match="must be 2"):
        other.put(CODEBASE, many(2))


@settings(derandomize=True, deadline=None, database=None, max_examples=200)
@given(st.lists(st.integers(1, 3_000_000), max_size=12))
@example([1] * (2 * MOST_STORED + 1))
def test_batches_keep_the_order_and_the_limits(sizes: list[int]) -> None:
    bodies = ["x" * size for size in sizes]
    batches = list(module._batches(bodies))
    assert [body for batch in batches for body in batch] == bodies
    for batch in batches:
        assert 1 <= len(batch) <= MOST_STORED
        assert len(batch) == 1 or sum(len(body) + 1 for body in batch) <= module.BODY_BYTES
