"""What is particular to a `QdrantStore`: its collections and indexes, a server that fails, and event loops."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from reasonblocks import QdrantStore
from reasonblocks.exceptions import ConfigError, ExtraMissing, StoreError, Unavailable
from reasonblocks.util.memo import Memo
from tests.core.stores.world import Numbers, answer, pattern, request
from tests.core.world import printed

pytest.importorskip("qdrant_client")
pytest.importorskip("qdrant_edge")


@pytest.fixture
def store(server: Any) -> Iterator[QdrantStore]:
    with QdrantStore(server.url, embedder=Numbers("org/model:1")) as made:
        yield made


def test_reading_makes_nothing(server: Any, store: QdrantStore) -> None:
    found = (len(store), store.search(request()), store.list("acme"), store.get("a"), store.remove("a"))
    assert (found, server.shards) == ((0, (), (), None, False), {})


def test_a_collection_is_of_one_embedder_and_the_org_is_its_tenant(server: Any, store: QdrantStore) -> None:
    store.add([pattern("a")])
    made = dict(server.indexes)
    assert list(made) == ["reasonblocks-org_2Fmodel_3A1"]
    assert any('"org_id"' in one and '"is_tenant": true' in one for one in made["reasonblocks-org_2Fmodel_3A1"])


def test_two_embedders_never_meet(server: Any, store: QdrantStore) -> None:
    store.add([pattern("a")])
    with QdrantStore(server.url, embedder=Numbers("other", dim=3)) as other:
        assert (other.search(request()), len(other)) == ((), 0)


def test_a_second_process_finds_at_once_what_is_added(server: Any, store: QdrantStore) -> None:
    store.search(request())
    with QdrantStore(server.url, embedder=Numbers("org/model:1")) as other:
        other.add([pattern("a")])
    assert answer(store.search(request())) == [("a", 1.0)]


def test_a_search_is_one_question_once_the_store_is_known(server: Any, store: QdrantStore) -> None:
    store.add([pattern("a")])
    store.search(request())
    server.asked.clear()
    store.search(request())
    assert server.asked == ["POST points/query"]


@pytest.mark.parametrize(("status", "error"), [(500, Unavailable), (429, Unavailable), (401, StoreError)])
def test_a_server_that_refuses(server: Any, store: QdrantStore, status: int, error: type[Exception]) -> None:
    store.add([pattern("a")])
    store.search(request())
    server.status = status
    for call in (lambda: store.search(request()), lambda: store.add([pattern("b")]), lambda: len(store)):
        with pytest.raises(error, match="Qdrant at http"):
            call()
    server.status = None
    assert answer(store.search(request())) == [("a", 1.0)]


def test_no_server_is_unavailable() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with QdrantStore(url, embedder=Numbers()) as store:
            with pytest.raises(Unavailable):
                store.search(request())
            with pytest.raises(Unavailable):
                asyncio.run(_awaited(store))


def test_a_server_that_never_answers_is_unavailable_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with QdrantStore(url, embedder=Numbers(), timeout=1) as store, pytest.raises(Unavailable, match="timed out"):
            store.search(request())


def test_each_event_loop_has_a_client_of_its_own(store: QdrantStore) -> None:
    store.add([pattern("a")])
    found = [asyncio.run(_awaited(store)) for _ in range(2)]
    assert found == [[("a", 1.0)]] * 2


@pytest.mark.parametrize("url", ["http://[", "http://127.0.0.1:port"])
def test_a_url_that_is_none_is_refused_when_the_store_is_made(url: str) -> None:
    with pytest.raises(ConfigError, match="url"):
        QdrantStore(url, embedder=Numbers())


def test_the_library_is_loaded_when_the_store_is_made_and_not_by_a_step() -> None:
    code = """
        import os, sys
        os.environ["QDRANT_URL"] = "http://127.0.0.1:1"
        from reasonblocks import ReasonBlocks, StepInput
        session = ReasonBlocks().session()
        before = {*sys.modules}
        session.begin_step(StepInput())
        print([name for name in {*sys.modules} - before if name.split(".")[0] in ("qdrant_client", "httpx", "ssl")])
    """
    assert printed(code) == "[]\n"


def test_the_client_of_an_event_loop_is_made_in_another_thread(
    store: QdrantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    import qdrant_client

    class Made(qdrant_client.AsyncQdrantClient):
        def __init__(self, **given: Any) -> None:
            threads.append(threading.current_thread().name)
            super().__init__(**given)

    threads: list[str] = []
    monkeypatch.setattr(qdrant_client, "AsyncQdrantClient", Made)
    asyncio.run(_awaited(store))
    assert threads == ["reasonblocks-worker"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_while_a_thread_adds_can_write(server: Any) -> None:
    class Slow(Numbers):
        def embed_many(self, texts: Sequence[str]) -> Any:
            came.set()
            released.wait(10)
            return super().embed_many(texts)

    came, released = threading.Event(), threading.Event()
    with QdrantStore(server.url, embedder=Slow()) as store:
        adding = threading.Thread(target=store.add, args=([pattern("a")],), daemon=True)
        adding.start()
        assert came.wait(5)
        child = os.fork()
        if child == 0:
            signal.alarm(5)  # ends the child that waits for a thread which it does not have
            store.remove("b")
            os._exit(0)
        released.set()
        adding.join()
        assert os.waitpid(child, 0)[1] == 0


async def _awaited(store: QdrantStore) -> Any:
    try:
        return answer(await store.asearch(request(memo=Memo())))
    finally:
        await store.aclose()


def test_one_of_url_and_client_is_given(server: Any) -> None:
    with pytest.raises(ConfigError, match="one of the two"):
        QdrantStore()


def test_without_qdrant_client_the_store_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'httpx\[http2\]>=0.27' 'qdrant-client>=1.12'$") as missing:
        QdrantStore("http://127.0.0.1:9")
    assert (missing.value.distribution, missing.value.extra) == ("qdrant-client", "qdrant")
