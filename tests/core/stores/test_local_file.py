"""The file of a `LocalStore`: when it is made and read, who else may use it, and what is said of one that is broken."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import LocalStore
from reasonblocks.exceptions import StoreError
from reasonblocks.types import Pattern
from tests.core.stores import crash
from tests.core.stores.world import Numbers, answer, pattern, request
from tests.core.world import printed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "patterns.db"


def local(path: Path | None, *patterns: Pattern, **changes: Any) -> LocalStore:
    return LocalStore(path, patterns=patterns, **{"embedder": Numbers(), **changes})


def _run(path: Path, statement: str) -> Any:
    with closing(sqlite3.connect(path)) as db, db:
        return (db.execute(statement).fetchone() or [None])[0]


def test_nothing_is_made_until_something_is_added(path: Path) -> None:
    with local(path, layer=[pattern("a")]) as store:
        found = (len(store), store.remove("a"), store.get("b"), answer(store.search(request())))
        store.count(["a"], "injected")
        assert (found, path.parent.exists()) == ((0, False, None, [("a", 1.0)]), False)


def test_a_file_that_appears_is_read(path: Path) -> None:
    with local(path) as reader, local(path) as writer:
        before = reader.search(request())
        writer.add([pattern("a")])
        assert (before, answer(reader.search(request()))) == ((), [("a", 1.0)])


def test_standing_rules_in_memory_need_neither_numpy_nor_an_embedder() -> None:
    code = (
        "import sys\nfrom reasonblocks import LocalStore, Pattern\nfrom reasonblocks.requests import Retrieve\n"
        "layer = [Pattern(id='c', tier='e2', exemplars=('x',)), Pattern(id='a', tier='e3')]\n"
        "asked = Retrieve(tier='e3', texts=(), top_k=9, similarity=0, org_id='x', failure_type=None, model='')\n"
        "print([one.pattern.id for one in LocalStore(layer=layer).search(asked)], 'numpy' in sys.modules)"
    )
    assert printed(code) == "['a'] False\n"


def test_another_process_sees_what_is_added_removed_and_counted(path: Path) -> None:
    with local(path, pattern("a"), pattern("b")) as one, local(path) as other:
        seen = [answer(other.search(request(top_k=9)))]
        one.add([pattern("c"), pattern("a", "e2", "0 1")])
        seen.append(answer(other.search(request(top_k=9))))
        one.remove("b")
        seen.append(answer(other.search(request(top_k=9))))
        one.count(["c"], "injected")
        stored = other.get("c")
        names = [[name for name, _ in found] for found in seen]
        assert (names, stored and stored.stats) == ([["a", "b"], ["b", "c"], ["c"]], {"injected": 1})


def test_only_what_changed_is_read_again(path: Path) -> None:
    with local(path, pattern("a")) as one, local(path) as other:
        kept = other.search(request())[0].pattern
        one.add([pattern("b", "e1")])
        other.search(request())
        assert other.search(request())[0].pattern is kept


def test_a_file_that_was_replaced_is_read_as_a_whole(path: Path) -> None:
    local(path, pattern("a"), pattern("b")).close()
    reader = local(path)
    before = len(reader)
    reader.close()
    path.unlink()
    local(path, pattern("c")).close()
    with reader:
        assert (before, [one.id for one in reader.list("acme")]) == (2, ["c"])


def test_two_embedders_share_a_file_and_none_sees_the_others_vectors(path: Path) -> None:
    with local(path, pattern("a", "e2", "1")) as one, local(path, embedder=Numbers("other", dim=7)) as other:
        found = [answer(store.search(request())) for store in (one, other, one, other)]
        one.add([pattern("a", "e2", "0 1")])
        found += [answer(store.search(request())) for store in (one, other)]
        assert found == [[("a", 1.0)]] * 4 + [[], []]


def test_what_another_embedder_stored_is_embedded_once_for_all(path: Path) -> None:
    local(path, *(pattern(f"p{number}") for number in range(9))).close()
    texts = []
    for _ in range(2):
        numbers = Numbers("other")
        with local(path, embedder=numbers) as store:
            store.search(request())
        texts.append(numbers.texts)
    assert texts == [10, 1]


def test_a_pattern_added_again_with_the_same_exemplars_is_not_embedded_again(path: Path) -> None:
    numbers = Numbers()
    with local(path, pattern("a"), embedder=numbers) as store:
        before = numbers.texts
        store.add([pattern("a", gate_threshold=0.3)])
        assert numbers.texts == before


def test_a_closed_store_opens_its_file_again(path: Path) -> None:
    store = local(path, pattern("a"))
    store.close()
    store.add([pattern("b")])
    store.close()
    found = len(store)
    store.close()
    assert found == 2


# ------------------------------------------------------------ broken files


def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    local(path, pattern("a")).close()
    _run(path, "PRAGMA user_version=99")
    with local(path) as store, pytest.raises(StoreError, match="form 99 is newer than this library's 2: upgrade"):
        store.search(request())
    with local(path) as store, pytest.raises(StoreError, match="form 99"):
        store.add([pattern("b")])
    assert _run(path, "SELECT count(*) FROM patterns") == 1


def test_the_file_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    _run(path, "CREATE TABLE runs (id)")
    with local(path) as store, pytest.raises(StoreError, match="belongs to another program"):
        store.add([pattern("a")])
    assert _run(path, "SELECT count(*) FROM sqlite_master") == 1


@pytest.mark.parametrize("left", ["garbage", "half"])
def test_a_damaged_file_is_named_with_what_to_do_and_not_touched(path: Path, left: str) -> None:
    local(path, *(pattern(f"p{number}", "e2", "1 2 3 4") for number in range(200))).close()
    data = b"not a database at all, " * 400 if left == "garbage" else path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(data)
    with local(path) as store, pytest.raises(StoreError, match=r"patterns\.db: the file is damaged .* move it away"):
        store.search(request())
    assert path.read_bytes() == data


@contextmanager
def as_nobody() -> Iterator[None]:
    """What root may do says nothing of what others may."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.mark.skipif(os.name == "nt", reason="the folders of this system have no such modes")
@pytest.mark.parametrize("mode", [0o555, 0o755])
@pytest.mark.parametrize("embedder", ["numbers", "other"])
def test_a_file_that_cannot_be_written_is_read(shared: Path, mode: int, embedder: str) -> None:
    local(shared / "patterns.db", pattern("a"), pattern("b", "e3")).close()
    (shared / "patterns.db").chmod(0o444)
    shared.chmod(mode)
    with as_nobody(), local(shared / "patterns.db", embedder=Numbers(embedder)) as store:
        found = [answer(store.search(request(tier))) for tier in ("e2", "e3")]
        with pytest.raises(StoreError, match=r"patterns\.db: .*(read-?only|unable to open)"):
            store.add([pattern("c")])
        assert (found, len(store)) == ([[("a", 1.0)], [("b", 1.0)]], 2)


@pytest.mark.skipif(os.name == "nt", reason="the folders of this system have no such modes")
def test_a_folder_that_cannot_be_made_is_named(shared: Path) -> None:
    shared.chmod(0o555)
    with (
        as_nobody(),
        local(shared / "new" / "patterns.db") as store,
        pytest.raises(StoreError, match="PermissionError"),
    ):
        store.add([pattern("a")])


def test_a_full_disk_keeps_the_batch_out_and_the_rest_in(path: Path) -> None:
    with local(path, pattern("a")) as store:
        storage: Any = store._storage
        storage._database._db.execute(
            f"PRAGMA max_page_count={storage._database._db.execute('PRAGMA page_count').fetchone()[0] + 4}"
        )
        with pytest.raises(StoreError, match="full"):
            store.add(pattern(f"p{number}", "e2", "1 2 3") for number in range(2_000))
        found = len(store), answer(store.search(request(top_k=9)))
    assert found == (1, [("a", 1.0)])


# ------------------------------------------------------------ threads, processes, loops


@pytest.mark.parametrize("is_file", [True, False])
def test_threads_that_read_and_write_at_once_lose_nothing(path: Path, is_file: bool) -> None:
    with local(path if is_file else None) as store:

        def work(thread: int) -> int:
            for number in range(40):
                store.add([pattern(f"{thread}-{number}", "e1", "1 1", "1")])
                found = store.search(request("e1", top_k=1_000))
                assert {f"{thread}-{at}" for at in range(number + 1)} <= {one.pattern.id for one in found}
                if number % 4 == 0:
                    store.count([f"{thread}-{number}"], "injected")
            return sum(store.remove(f"{thread}-{number}") for number in range(0, 40, 2))

        with ThreadPoolExecutor(4) as threads:
            removed = list(threads.map(work, range(4)))
        assert (removed, len(store)) == ([20] * 4, 80)


WRITER = """
import sys
from reasonblocks import LocalStore, Pattern
with LocalStore(sys.argv[1]) as store:
    for number in range(40):
        mine = Pattern(id=f"{sys.argv[2]}-{number}", tier="e3")
        store.add([mine, Pattern(id="both", tier="e3", fields={"n": number})])
        store.count(["both"], "injected")
"""


def test_two_processes_write_one_file(path: Path) -> None:
    commands = [[sys.executable, "-c", WRITER, str(path), name] for name in ("a", "b")]
    running = [subprocess.Popen(command) for command in commands]
    codes = [process.wait() for process in running]
    with local(path) as store:
        assert (codes, len(store)) == ([0, 0], 81)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_leaves_both_with_a_store_that_works(path: Path) -> None:
    with local(path, pattern("a")) as store:
        child = os.fork()
        if child == 0:
            try:
                store.add([pattern("child")])
                store.close()
            finally:
                os._exit(0 if len(store) == 2 else 1)
        _, status = os.waitpid(child, 0)
        store.add([pattern("parent")])
        assert (os.waitstatus_to_exitcode(status), len(store)) == (0, 3)


def test_a_killed_import_loses_nothing_that_was_acknowledged(path: Path) -> None:
    path.parent.mkdir()
    found = crash.rounds(path, 3, 10_000)
    assert [(one["lost"], one["torn"]) for one in found] == [(0, 0)] * 3


def test_an_awaited_search_reads_the_file_in_a_thread(path: Path) -> None:
    threads: set[int] = set()

    class Seen(Numbers):
        def embed(self, text: str) -> Any:
            threads.add(threading.get_ident())
            return super().embed(text)

    local(path, pattern("a")).close()
    with local(path, embedder=Seen()) as store:
        asyncio.run(store.asearch(request()))
    assert threading.get_ident() not in threads


def test_no_search_waits_for_another_process_that_writes(path: Path) -> None:
    with LocalStore(path, embedder=Numbers("other")) as other, LocalStore(path, embedder=Numbers()) as store:
        other.add([pattern("a")])
        store.search(request())
        other.add([pattern("b")])
        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            assert [one.pattern.id for one in store.search(request(top_k=2))] == ["a", "b"]
            assert time.monotonic() - started < 1.0


def test_no_search_waits_for_a_thread_that_waits_for_another_process(path: Path) -> None:
    from reasonblocks.concurrency.forks import no_fork

    with LocalStore(path, embedder=Numbers("other")) as other, LocalStore(path, embedder=Numbers()) as store:
        other.add([pattern("a")])
        len(store)  # reads the file, and lays nothing out
        found: list[object] = []
        with no_fork:
            search = threading.Thread(target=lambda: found.append(store.search(request())), daemon=True)
            search.start()
            search.join(5)
        assert len(found) == 1


def test_a_store_is_inline_once_its_file_is_read(path: Path) -> None:
    with LocalStore(path, patterns=[pattern("a")]) as made:
        before = LocalStore(path)
        inline = [before.inline]
        before.search(request())
        inline.append(before.inline)
        before.close()
        assert (inline, made.inline, local(None).inline) == ([False, True], True, False)


def test_no_socket_is_needed(path: Path) -> None:
    code = (
        "import socket, sys\nfrom reasonblocks import LocalStore, Pattern\n"
        "def no(*args, **named): raise OSError('no network')\nsocket.socket = socket.create_connection = no\n"
        "with LocalStore(sys.argv[1]) as store:\n    store.add([Pattern(id='a', tier='e2', exemplars=('one two',))])\n"
        "    print(len(store))"
    )
    assert printed(code, path) == "1\n"


@pytest.mark.parametrize("body", ["{", "[]", '{"id": "a", "tier": "e9"}'])
def test_a_damaged_row_is_said_with_its_id(path: Path, body: str) -> None:
    local(path, pattern("a")).close()
    _run(path, f"UPDATE patterns SET body='{body}'")
    with pytest.raises(StoreError, match="row 'a'"), LocalStore(path, embedder=Numbers()) as store:
        store.get("a")


def test_a_file_that_has_lost_its_own_mark_is_damaged(path: Path) -> None:
    local(path, pattern("a")).close()
    _run(path, "DELETE FROM meta")
    with pytest.raises(StoreError, match="is damaged"), LocalStore(path, embedder=Numbers()) as store:
        store.get("a")
