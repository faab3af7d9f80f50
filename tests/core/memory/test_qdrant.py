"""`QdrantFindings`: the contract, its collections and order, and a server that fails."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import QdrantStore
from reasonblocks.backends.embed import HashEmbedder
from reasonblocks.backends.qdrant_store import QdrantFindings
from reasonblocks.backends.qdrant_store.findings import _order, _paths
from reasonblocks.exceptions import ConfigError, ExtraMissing, StoreError, Unavailable
from reasonblocks.findings import MOST_FINDINGS
from reasonblocks.types import Codebase, Finding
from tests.core.memory.store_contract import Maker, StoreContract
from tests.core.stores.world import Numbers
from tests.whole import QUICK_EXAMPLES, WHOLE, in_whole

client = pytest.importorskip("qdrant_client")
pytest.importorskip("qdrant_edge")

SERVER = os.environ.get("QDRANT_URL")
HERE = Codebase(org_id="acme", codebase_id="acme/search")
ELSEWHERE = Codebase(org_id="acme", codebase_id="00112233445566778899aabbccddeeff")  # a UUID to a local client
NAMESPACE = "reasonblocks-findings-numbers"


class Words(Numbers):
    """Gives every text the same vector, so that only the words rank."""

    def embed(self, text: str) -> list[float]:
        return [1.0, 0.0, 0.0, 0.0]


def finding(name: str, path: str = "", content: str = "a note", day: int = 1) -> Finding:
    time = f"2026-01-{day:02}T00:00:00+00:00"
    return Finding(content=content, file_path=path, finding_id=name, created_at=time, metadata={"n": [1, None, "ü"]})


def ids(findings: tuple[Finding, ...]) -> list[str]:
    return [one.finding_id for one in findings]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    from tests.core.stores.loopback import Loopback

    with Loopback(tmp_path) as made:
        yield made


@pytest.fixture(params=["loopback", "local"])
def store(request: pytest.FixtureRequest, server: Any) -> Iterator[QdrantFindings]:
    if request.param == "loopback":
        with QdrantFindings(server.url, embedder=Words()) as made:
            yield made
    else:
        local = client.QdrantClient(location=":memory:")
        yield QdrantFindings(client=local, embedder=Words())
        local.close()


class TestHttp(StoreContract):
    @pytest.fixture(params=["loopback", *(("server",) if SERVER else ())])
    def make(self, request: pytest.FixtureRequest, server: Any) -> Iterator[Maker]:
        url = SERVER if request.param == "server" else server.url
        prefix = f"test-{uuid4().hex}"
        with ExitStack() as stack:

            def made(*, most: int = MOST_FINDINGS) -> QdrantFindings:
                store = QdrantFindings(url, collection_prefix=prefix, embedder=HashEmbedder(), most=most)
                return stack.enter_context(store)

            yield made


@in_whole
class TestLocalMode(StoreContract):
    @pytest.fixture
    def make(self) -> Iterator[Maker]:
        local = client.QdrantClient(location=":memory:")
        yield lambda *, most=MOST_FINDINGS: QdrantFindings(client=local, embedder=HashEmbedder(), most=most)
        local.close()


def test_a_missing_collection_reads_as_empty_and_is_not_made(server: Any) -> None:
    with QdrantFindings(server.url, embedder=Words()) as store:
        found = (
            store.page(HERE),
            store.search(HERE, "note", top_k=5, score_threshold=0),
            store.remove(HERE, finding_ids=["a"]),
            store.clear(HERE),
            store.codebases("acme"),
            store.put(HERE, []),
        )
    assert (found, server.shards) == (((), (), 0, 0, (), ()), {})


def test_pages_are_in_the_order_of_ids_also_where_their_first_bytes_tie(store: QdrantFindings) -> None:
    names = ["b", "aaaaaab", "aaaaaaa", "aaaaaaaa", "ä", "𝄞", "\uffff", "a"]
    store.put(HERE, [finding(name) for name in names])
    store.put(ELSEWHERE, [finding("c")])
    read, after = [], ""
    while page := store.page(HERE, after=after, limit=2):
        read += ids(page)
        after = read[-1]
    assert read == sorted(names)


def test_a_page_of_many_ties_is_whole(server: Any) -> None:
    names = [f"same-prefix-{number:03}" for number in range(60)]
    with QdrantFindings(server.url, embedder=Words()) as store:
        store.put(HERE, [finding(name) for name in reversed(names)])
        assert ids(store.page(HERE, after=names[2], limit=2)) == names[3:5]


def test_codebases_have_their_counts_and_newest_times(store: QdrantFindings) -> None:
    store.put(HERE, [finding("a", day=1), finding("b", day=3), finding("c", day=2)])
    store.put(ELSEWHERE, [finding("a", day=4)])
    store.put(Codebase(org_id="other", codebase_id="theirs"), [finding("a")])
    found = [(one.codebase_id, one.findings, one.newest[:10]) for one in store.codebases("acme")]
    assert found == [(ELSEWHERE.codebase_id, 1, "2026-01-04"), (HERE.codebase_id, 3, "2026-01-03")]


def test_shared_words_rank(store: QdrantFindings) -> None:
    store.put(HERE, [finding("a", content="parse_rawHTML fails"), finding("b", content="the tests run by nox")])
    found = store.search(HERE, "how do the tests run", top_k=2, score_threshold=0)
    assert ids(found) == ["b", "a"]
    assert found[0].score > found[1].score


def test_the_org_is_the_tenant_of_a_collection_per_embedder(server: Any) -> None:
    with QdrantFindings(server.url, embedder=Words()) as store:
        store.put(HERE, [finding("a")])
    assert list(server.indexes) == [NAMESPACE]
    assert '"is_tenant": true' in server.indexes[NAMESPACE][0]


def test_200_findings_are_one_request(server: Any) -> None:
    with QdrantFindings(server.url, embedder=Words()) as store:
        store.put(HERE, [finding(f"{number}") for number in range(200)])
        assert server.asked.count("PUT points") == 1


def test_findings_beside_patterns_share_server_prefix_and_embedder(server: Any) -> None:
    with QdrantStore(server.url, collection_prefix="ours", embedder=Words()) as patterns:
        store = QdrantFindings.beside(patterns)
        store.put(HERE, [finding("a")])
        assert (list(server.shards), store.embedder) == (["ours-findings-numbers"], patterns.embedder)


def test_closing_findings_beside_patterns_leaves_the_connection_of_these(server: Any) -> None:
    with QdrantStore(server.url, embedder=Words()) as patterns:
        connection = patterns._clients.of_threads()
        QdrantFindings.beside(patterns).close()
        assert patterns._clients.of_threads() is connection


def test_another_process_may_make_the_collection_first(server: Any) -> None:
    with QdrantFindings(server.url, embedder=Words()) as one, QdrantFindings(server.url, embedder=Words()) as other:
        assert one.page(HERE) == ()
        other.put(HERE, [finding("a")])
        one.put(HERE, [finding("b")])
        assert ids(one.page(HERE)) == ids(other.page(HERE)) == ["a", "b"]


CALLS: tuple[Callable[[QdrantFindings], object], ...] = (
    lambda store: store.put(HERE, [finding("b")]),
    lambda store: store.search(HERE, "note", top_k=1, score_threshold=0),
    lambda store: store.page(HERE),
    lambda store: store.remove(HERE, finding_ids=["a"]),
    lambda store: store.clear(HERE),
    lambda store: store.codebases("acme"),
)


@pytest.mark.parametrize(("status", "error"), [(500, Unavailable), (429, Unavailable), (401, StoreError)])
def test_a_server_that_refuses_changes_nothing(server: Any, status: int, error: type[Exception]) -> None:
    with QdrantFindings(server.url, embedder=Words()) as store:
        store.put(HERE, [finding("a")])
        server.status = status
        for call in CALLS:
            with pytest.raises(error, match="Qdrant at http"):
                call(store)
        server.status = None
        assert ids(store.page(HERE)) == ["a"]


def test_no_server_is_unavailable() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with QdrantFindings(f"http://127.0.0.1:{held.getsockname()[1]}", embedder=Words()) as store:
            for call in CALLS:
                with pytest.raises(Unavailable):
                    call(store)


def test_a_server_that_never_answers_is_unavailable_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with QdrantFindings(url, embedder=Words(), timeout=1) as store, pytest.raises(Unavailable, match="timed out"):
            store.page(HERE)


def test_one_of_url_and_client_is_given() -> None:
    with pytest.raises(ConfigError, match="one of the two"):
        QdrantFindings()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(ExtraMissing, match="QdrantFindings needs qdrant-client"):
        QdrantFindings("http://127.0.0.1:9")


@settings(max_examples=100 if WHOLE else QUICK_EXAMPLES, deadline=None)
@given(st.text(), st.text())
def test_the_order_is_that_of_ids(one: str, other: str) -> None:
    low, high = sorted((one, other))
    assert _order(low) <= _order(high) < 2**48


@settings(max_examples=100 if WHOLE else QUICK_EXAMPLES, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", ".."]), min_size=1).map("/".join), st.sampled_from(["", "/"]))
def test_the_paths_of_a_finding_are_its_own_and_the_folders_above(path: str, root: str) -> None:
    path = root + path
    wanted = {path} | {above for above in _paths(path) if path.startswith(above.rstrip("/") + "/")}
    assert set(_paths(path)) == wanted
    assert len(_paths(path)) == path.count("/") + 1
