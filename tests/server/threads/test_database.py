"""Without a database of threads the pages are switched off; a wrong one is an error with a name."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_server.threads import store_of
from reasonblocks_threads import Phase, Threads
from tests.server.board import Board, cause, proposals
from tests.server.running import ORG, running
from tests.server.threads.world import SECONDS
from tests.server.ui_http.conftest import Enter
from tests.server.ui_http.conftest import enter as enter

DAMAGED = "damaged.db"


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Board]:
    """A server whose database of threads the test names; None for none."""
    name: str | None = request.param
    if name == DAMAGED:  # before the server looks for due work in it
        (tmp_path / name).write_bytes(b"no database " * 100)
    elif name is not None:
        with Threads(tmp_path / name) as threads:
            threads.list()
    with running(tmp_path, threads_url=None if name is None else str(tmp_path / name)) as server:
        yield Board(running=server, started=time.time())


@pytest.mark.parametrize("site", [None], indirect=True)
def test_without_a_database_one_sentence_says_how_to_switch_threads_on(enter: Enter) -> None:
    person = enter()
    answer = person.get("/ui/threads")
    assert (answer.status_code, "start it with --threads" in answer.text) == (200, True)
    assert 'href="/ui/threads"' not in person.get("/ui/").text
    assert person.get("/ui/threads/th_x").status_code == 404
    assert person.post("/ui/threads/th_x/answer", card="th_x.1", answer="approve").status_code == 404


@pytest.mark.parametrize("site", [DAMAGED], indirect=True)
def test_a_database_that_does_not_answer_leaves_the_other_pages_alone(
    enter: Enter, site: Board, tmp_path: Path
) -> None:
    person = enter()
    site.start("run-1")
    for path in ("/ui/threads", "/ui/threads/th_x"):
        answer = person.get(path)
        assert (answer.status_code, str(tmp_path) in answer.text) == (503, False)
    assert person.post("/ui/threads/th_x/answer", card="th_x.1", answer="approve").status_code == 503
    assert person.get("/ui/runs/run-1").status_code == 200
    (tmp_path / DAMAGED).unlink()
    assert person.get("/ui/threads").status_code == 200, "it is tried again"


@pytest.mark.parametrize("site", ["threads.db"], indirect=True)
def test_the_server_does_what_is_due_for_every_org_with_a_key(site: Board, tmp_path: Path) -> None:
    for org in (ORG, "other"):
        site.running.make_key("read", org=org)
    threads = [Threads(tmp_path / "threads.db", org_id=org) for org in (ORG, "other")]
    site.running.server.threads._listed = float("-inf")  # type: ignore[union-attr]  # the orgs are listed anew
    for each in threads:
        opened = each.open(cause("due", "Due"), proposals=proposals("acknowledge", {}))
        assert each.wait(opened.id, SECONDS, until=lambda found: found.phase.waits).phase is Phase.AWAITING_CONFIRMATION
        each.close()


def test_a_url_that_cannot_be_is_refused_before_it_is_used() -> None:
    with pytest.raises(ConfigError, match="PostgreSQL URL") as caught:
        store_of("postgresql://u:secret@[x")
    assert "secret" not in str(caught.value)


def test_a_file_that_does_not_exist_is_named_and_not_created(tmp_path: Path) -> None:
    path = tmp_path / "thread.db"
    with pytest.raises(ConfigError, match="start an agent first") as caught:
        store_of(str(path))
    assert str(path) in str(caught.value)
    assert not path.exists()
    with Threads(path) as threads:
        threads.list()
    store_of(str(path)).close()


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasonblocks_threads.stores", None)
    with pytest.raises(ConfigError, match=r"pip install \./packages/core \./packages/threads"):
        store_of("threads.db")
