"""One finding that cannot be read is left out of a recall and of a list, and one warning names it."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.backends.embed import HashEmbedder
from reasonblocks.backends.http import Exchange, HttpFindings, address_of
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.ports import FindingStore
from reasonblocks.types import Codebase, Finding
from reasonblocks.util.secret import Secret
from reasonblocks_testing.loopback import Listener
from reasonblocks_testing.rb_api import KEY
from tests.core.memory.test_http import Minimal, handler

CODEBASE = Codebase(org_id="default", codebase_id="acme/shop")
NAMES = ("a", "b", "c", "d")


def noted(name: str) -> Finding:
    time = "2026-01-01T00:00:00+00:00"
    return Finding(content=f"the note {name}", finding_id=name, created_at=time, metadata={"n": 1})


def listed(store: FindingStore, limit: int = 100) -> list[str]:
    read, after = list[str](), ""
    while page := store.page(CODEBASE, after=after, limit=limit):
        read += [one.finding_id for one in page]
        after = read[-1]
    return read


def recalled(store: FindingStore) -> list[str]:
    found = store.search(CODEBASE, "the note", top_k=9, score_threshold=0.0)
    return sorted(one.finding_id for one in found)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "reasonblocks" and one.levelno == logging.WARNING]


def assert_left_out(store: FindingStore, caplog: pytest.LogCaptureFixture, name: str = "'b'") -> None:
    assert (recalled(store), recalled(store)) == (["a", "c", "d"], ["a", "c", "d"])
    assert (listed(store), listed(store, 1), listed(store, 2)) == (["a", "c", "d"],) * 3
    (line,) = warned(caplog)
    assert f"finding {name} cannot be read" in line


# --- a file

DAMAGES = {
    "metadata that is no JSON": "UPDATE findings SET metadata = '{' WHERE id = 'b'",
    "metadata that is a list": "UPDATE findings SET metadata = '[1]' WHERE id = 'b'",
    "metadata that is nested too deeply": f"UPDATE findings SET metadata = '{'[' * 200_000}' WHERE id = 'b'",
    "content of bytes": "UPDATE findings SET content = x'00ff' WHERE id = 'b'",
    "a path of bytes": "UPDATE findings SET file_path = x'00ff' WHERE id = 'b'",
}


def damaged(path: Path, statement: str) -> LocalFindings:
    """A store of a file that has all findings, and was changed by this statement."""
    with LocalFindings(path, embedder=HashEmbedder()) as store:
        store.put(CODEBASE, [noted(name) for name in NAMES])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)
    return LocalFindings(path, embedder=HashEmbedder())


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_finding_of_a_file_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    with damaged(tmp_path / "patterns.db", DAMAGES[damage]) as store:
        assert_left_out(store, caplog)


def test_a_finding_that_is_damaged_later_is_left_out_and_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "patterns.db"
    with LocalFindings(path, embedder=HashEmbedder()) as store, LocalFindings(path, embedder=HashEmbedder()) as other:
        store.put(CODEBASE, [noted(name) for name in NAMES])
        before = recalled(store)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE findings SET metadata = '{', changed = 9 WHERE id = 'b'")
            db.execute("UPDATE codebases SET changed = 9")
            db.execute("UPDATE meta SET change = 9")
        assert before == [*NAMES]
        assert_left_out(store, caplog)
        other.put(CODEBASE, [noted("b")])
        assert (recalled(store), listed(store)) == ([*NAMES], [*NAMES])


@pytest.mark.parametrize("data", ["x'00ff00'", "zeroblob(4)", "'text'"])
def test_a_finding_whose_vector_is_damaged_is_embedded_again(tmp_path: Path, data: str) -> None:
    with damaged(tmp_path / "patterns.db", f"UPDATE finding_vectors SET data = {data} WHERE finding = 2") as store:
        assert recalled(store) == [*NAMES]


# --- Qdrant

PAYLOADS: dict[str, Any] = {
    "no finding": None,
    "no JSON": "{",
    "no object": "[]",
    "no content": json.dumps({"finding_id": "b"}),
    "no id": json.dumps({"content": "the note b"}),
    "metadata of a list": json.dumps({"finding_id": "b", "content": "the note b", "metadata": [1]}),
    "content of a number": json.dumps({"finding_id": "b", "content": 1}),
    "a number": 3,
}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_damaged_finding_in_qdrant_is_left_out(caplog: pytest.LogCaptureFixture, payload: str) -> None:
    qdrant_client = pytest.importorskip("qdrant_client")
    from reasonblocks.backends.qdrant_store import QdrantFindings
    from reasonblocks.backends.qdrant_store.findings import _point_id

    client = qdrant_client.QdrantClient(location=":memory:")
    store = QdrantFindings(client=client, embedder=HashEmbedder())
    store.put(CODEBASE, [noted(name) for name in NAMES])
    (collection,) = [one.name for one in client.get_collections().collections]
    point = _point_id(CODEBASE, "b")
    if PAYLOADS[payload] is None:
        client.delete_payload(collection, ["finding"], points=[point])
    else:
        client.set_payload(collection, {"finding": PAYLOADS[payload]}, points=[point])
    has_id = '"b"' in str(PAYLOADS[payload])
    assert_left_out(store, caplog, "'b'" if has_id else repr(point))
    client.close()


# --- a server


@pytest.fixture
def minimal() -> Iterator[tuple[Minimal, HttpFindings]]:
    server = Minimal()
    listener = Listener(handler(server))
    store = HttpFindings(Exchange(address_of("base_url", f"http://127.0.0.1:{listener.port}", Secret(KEY))))
    yield server, store
    store.close()
    listener.stop()


ITEMS: dict[str, Any] = {
    "no content": {"finding_id": "b"},
    "content of a number": {"finding_id": "b", "content": 1},
    "metadata of a text": {"finding_id": "b", "content": "the note b", "metadata": "x"},
    "content beyond the limit": {"finding_id": "b", "content": "x" * 8_001},
    "a path beyond the limit": {"finding_id": "b", "content": "x", "file_path": "x" * 513},
    "metadata beyond the limit": {"finding_id": "b", "content": "x", "metadata": {"a": "x" * 5_000}},
    "blank content": {"finding_id": "b", "content": " "},
    "no object": "b",
    "null": None,
}


@pytest.mark.parametrize("item", ITEMS)
def test_a_finding_of_a_server_that_cannot_be_read_is_left_out(
    minimal: tuple[Minimal, HttpFindings], caplog: pytest.LogCaptureFixture, item: str
) -> None:
    server, store = minimal
    damaged = ITEMS[item]
    good = [{"finding_id": name, "content": f"the note {name}", "score": 0.5} for name in NAMES if name != "b"]
    given = [good[0], {**damaged, "score": 0.5} if isinstance(damaged, dict) else damaged, *good[1:]]
    server.answers["POST", "/v1/findings/acme%2Fshop/search"] = {"results": given}
    server.answers["GET", "/v1/findings/acme%2Fshop"] = {"findings": given}
    assert_left_out(store, caplog, "'b'" if isinstance(damaged, dict) else "number 2 of an answer")


def test_a_recalled_finding_without_a_valid_score_is_left_out(
    minimal: tuple[Minimal, HttpFindings], caplog: pytest.LogCaptureFixture
) -> None:
    server, store = minimal
    given = [{"finding_id": "a", "content": "x", "score": 0.5}, {"finding_id": "b", "content": "x", "score": 7}]
    server.answers["POST", "/v1/findings/acme%2Fshop/search"] = {"results": [*given, {"content": "x"}]}
    assert recalled(store) == ["a"]
    assert ["finding 'b'" in line for line in warned(caplog)] == [True, False]


def test_a_page_of_nothing_readable_before_another_goes_on(minimal: tuple[Minimal, HttpFindings]) -> None:
    server, store = minimal
    pages = iter(
        [{"findings": [{"finding_id": "a"}], "next": "a"}, {"findings": [{"finding_id": "b", "content": "x"}]}]
    )
    server.answers["GET", "/v1/findings/acme%2Fshop"] = lambda: next(pages)
    assert [one.finding_id for one in store.page(CODEBASE)] == ["b"]


def test_many_findings_that_cannot_be_read_do_not_fill_the_log(
    minimal: tuple[Minimal, HttpFindings], caplog: pytest.LogCaptureFixture
) -> None:
    server, store = minimal
    server.answers["GET", "/v1/findings/acme%2Fshop"] = {"findings": [{"finding_id": f"{n}"} for n in range(1_000)]}
    assert store.page(CODEBASE) == ()
    assert len(warned(caplog)) <= 101
