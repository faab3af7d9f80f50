"""Which store a client asks, what is counted in it, and who closes it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reasonblocks import LocalStore, Pattern, QdrantStore, ReasonBlocks
from reasonblocks.exceptions import ExtraMissing
from reasonblocks.requests import Retrieve
from reasonblocks.types import ETrace
from tests.core.world import run

RULE = Pattern(id="mine", tier="e3", fields={"instruction": "Ask before you delete something."})


def told() -> tuple[str, ...]:
    """The standing rules of one call."""
    with ReasonBlocks(step_deadline_ms=20_000) as rb, rb.session(task="Fix it.") as session:
        (decision,) = run(session, 1)
    return tuple(one for injection in decision.injections for one in injection.pattern_ids)


def test_the_server_that_the_environment_names_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("qdrant_edge")
    from tests.core.stores.loopback import Loopback

    with Loopback(tmp_path) as server:
        with QdrantStore(server.url) as store:
            store.add([RULE])
        monkeypatch.setenv("QDRANT_URL", server.url)
        ids = told()
    assert ("mine" in ids, "rb-error-first" in ids) == (True, True)


def test_without_the_extra_a_server_in_the_environment_is_an_error_where_the_client_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    with pytest.raises(ExtraMissing, match="QDRANT_URL needs qdrant-client: pip install "):
        ReasonBlocks()


def test_what_came_of_a_lesson_is_counted_in_the_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path))
    LocalStore(tmp_path / "patterns.db", patterns=[RULE]).close()
    told()
    with LocalStore(tmp_path / "patterns.db") as store:
        counted = store.get("mine")
    assert counted is not None
    assert counted.stats == {"retrieved": 1, "injected": 1}


def test_a_store_of_the_callers_stays_open() -> None:
    class Closes:
        closed = False

        def search(self, request: Retrieve) -> tuple[ETrace, ...]:
            return ()

        def close(self) -> None:
            self.closed = True

    store = Closes()
    ReasonBlocks(pattern_store=store).close()
    assert store.closed is False
