"""Files that are deleted or replaced while they are open: nothing is written to a file without a name."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import JsonlSink, LocalStore, SQLiteMonitorSink
from reasonblocks.backends.embed import HashEmbedder
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.events import Event, RunFinish
from reasonblocks.exceptions import ConfigError, StoreError
from reasonblocks.types import Codebase, Finding, Pattern
from tests.core.stores.world import Numbers, answer, pattern, request
from tests.core.world import printed

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows keeps a file that a process has open")
CODEBASE = Codebase(org_id="acme", codebase_id="shop")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "patterns.db"


def local(path: Path, *patterns: Pattern) -> LocalStore:
    return LocalStore(path, patterns=patterns, embedder=Numbers())


def local_findings(path: Path) -> LocalFindings:
    return LocalFindings(path, embedder=HashEmbedder())


def note(name: str) -> Finding:
    return Finding(content=f"note {name}", finding_id=name, created_at="2026-01-01T00:00:00+00:00")


def deleted_whole(path: Path) -> None:
    for one in path.parent.glob(f"{path.name}*"):
        one.unlink()


def deleted_alone(path: Path) -> None:
    path.unlink()


DELETED: list[Callable[[Path], None]] = [deleted_whole, deleted_alone]
deleted = pytest.mark.parametrize("delete", DELETED)


def replaced(path: Path, *patterns: Pattern) -> None:
    deleted_whole(path)
    local(path, *patterns).close()


def read_by_another_process(path: Path, query: str) -> list[tuple[Any, ...]]:
    code = "import json, sqlite3, sys\nprint(json.dumps(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()))"
    return [tuple(row) for row in json.loads(printed(code, path, query))]


@deleted
def test_a_pattern_that_is_added_after_its_file_was_deleted_is_in_the_new_file(
    path: Path, delete: Callable[[Path], None]
) -> None:
    with local(path, pattern("a")) as store:
        delete(path)
        store.add([pattern("b")])
        assert [one.id for one in store.list("acme")] == ["b"]
        assert read_by_another_process(path, "SELECT id FROM patterns") == [("b",)]


@deleted
def test_a_store_whose_file_was_deleted_reads_as_empty(path: Path, delete: Callable[[Path], None]) -> None:
    with local(path, pattern("a")) as store:
        before = answer(store.search(request()))
        delete(path)
        assert (before, store.search(request()), len(store), path.exists()) == ([("a", 1.0)], (), 0, False)


def test_a_closed_store_whose_file_was_deleted_reads_as_empty(path: Path) -> None:
    with local(path, pattern("a")) as store:
        before = len(store)
        store.close()
        deleted_whole(path)
        assert (before, len(store)) == (1, 0)


def test_a_store_sees_the_file_that_replaces_its_own_and_writes_to_it(path: Path) -> None:
    with local(path, pattern("a")) as store:
        replaced(path, pattern("b"))
        found = [one.id for one in store.list("acme")]
        store.add([pattern("c")])
        store.count(["b"], "injected")
        assert found == ["b"]
        assert read_by_another_process(path, "SELECT id FROM patterns ORDER BY id") == [("b",), ("c",)]
        assert read_by_another_process(path, "SELECT id, injected FROM counts WHERE injected") == [("b", 1)]


def test_a_count_and_a_removal_reach_the_file_that_replaces_the_own(path: Path) -> None:
    with local(path, pattern("a")) as store:
        replaced(path, pattern("a"), pattern("b"))
        store.count(["a"], "injected")
        replaced(path, pattern("a"), pattern("b"))
        assert store.remove("a")
        assert read_by_another_process(path, "SELECT id FROM patterns") == [("b",)]


def test_two_stores_and_the_findings_of_one_process_go_on_in_one_new_file(path: Path) -> None:
    with local(path, pattern("a")) as one, local(path) as other, local_findings(path) as findings:
        findings.put(CODEBASE, [note("x")])
        before = len(other)
        deleted_alone(path)
        one.add([pattern("b")])
        findings.put(CODEBASE, [note("y")])
        other.add([pattern("c")])
        found = findings.search(CODEBASE, "note", top_k=9, score_threshold=0)
        assert (before, [one.id for one in other.list("acme")]) == (1, ["b", "c"])
        assert ([one.finding_id for one in found], findings.codebases("acme")[0].findings) == (["y"], 1)
        assert read_by_another_process(path, "PRAGMA integrity_check") == [("ok",)]


@deleted
def test_findings_of_a_deleted_file_are_gone_and_new_ones_are_stored(
    path: Path, delete: Callable[[Path], None]
) -> None:
    with local_findings(path) as findings:
        findings.put(CODEBASE, [note("x")])
        before = findings.page(CODEBASE)
        delete(path)
        assert (len(before), findings.page(CODEBASE)) == (1, ())
        findings.put(CODEBASE, [note("y")])
        assert read_by_another_process(path, "SELECT id FROM findings") == [("y",)]


def test_a_file_that_another_process_still_has_open_is_made_again(path: Path) -> None:
    code = (
        "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.execute('SELECT count(*) FROM patterns')"
        ".fetchone()\nprint('open', flush=True)\ninput()"
    )
    store = local(path, pattern("a"))
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        deleted_alone(path)
        with store:
            store.add([pattern("b")])
            assert [one.id for one in store.list("acme")] == ["b"]
        other.communicate("\n")
    assert read_by_another_process(path, "SELECT id FROM patterns") == [("b",)]


def test_a_file_put_in_place_of_one_whose_log_is_left_is_refused_until_the_log_is_gone(
    path: Path, tmp_path: Path
) -> None:
    local(tmp_path / "copy.db", pattern("b")).close()
    with local(path, pattern("a")) as store:
        os.replace(tmp_path / "copy.db", path)
        for use in (lambda: len(store), lambda: store.add([pattern("c")])):
            with pytest.raises(StoreError, match=r"was replaced, but .*delete .*patterns\.db-wal"):
                use()
        store.close()  # as a fork does
        with pytest.raises(StoreError, match="was replaced, but"):
            len(store)
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink()
        assert [one.id for one in store.list("acme")] == ["b"]


def finish(name: str) -> Event:
    return RunFinish(run_id=name, timestamp=1.0, outcome="success")


@deleted
def test_a_run_that_is_written_after_its_file_was_deleted_is_in_the_new_file(
    tmp_path: Path, delete: Callable[[Path], None]
) -> None:
    path = tmp_path / "runs.db"
    with closing(SQLiteMonitorSink(path)) as sink:
        sink.emit(finish("a"))
        delete(path)
        sink.emit(finish("b"))
        assert read_by_another_process(path, "SELECT run_id FROM runs") == [("b",)]


def test_a_run_is_written_to_the_file_that_replaces_the_own(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(SQLiteMonitorSink(path)) as sink:
        sink.emit(finish("a"))
        deleted_whole(path)
        with closing(SQLiteMonitorSink(path)) as other:
            other.emit(finish("b"))
            sink.emit(finish("c"))
        assert read_by_another_process(path, "SELECT run_id FROM runs ORDER BY 1") == [("b",), ("c",)]


def test_a_run_for_a_file_beside_which_the_log_of_the_own_is_left_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(SQLiteMonitorSink(path)) as sink:
        sink.emit(finish("a"))
        sqlite3.connect(tmp_path / "other.db").close()
        os.replace(tmp_path / "other.db", path)
        with pytest.raises(sqlite3.DatabaseError, match=r"was replaced, but .*runs\.db-wal"):
            sink.emit(finish("b"))


def ids(path: Path) -> list[str]:
    return [json.loads(line)["run_id"] for line in path.read_text("utf-8").splitlines()]


def test_a_line_that_is_written_after_its_file_was_deleted_is_in_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with closing(JsonlSink(path)) as sink:
        sink.emit(finish("a"))
        path.unlink()
        sink.emit(finish("b"))
        sink.emit(finish("c"))
        assert ids(path) == ["b", "c"]


def test_a_line_is_written_to_the_file_that_replaces_the_own(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with closing(JsonlSink(path)) as sink:
        sink.emit(finish("a"))
        path.rename(tmp_path / "runs.jsonl.1")  # as a log rotation does
        with closing(JsonlSink(path)) as other:
            other.emit(finish("b"))
        sink.emit(finish("c"))
        assert (ids(tmp_path / "runs.jsonl.1"), ids(path)) == (["a"], ["b", "c"])


def test_a_line_for_a_file_whose_folder_was_deleted_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "runs.jsonl"
    path.parent.mkdir()
    with closing(JsonlSink(path)) as sink:
        sink.emit(finish("a"))
        path.unlink()
        path.parent.rmdir()
        with pytest.raises(FileNotFoundError, match=r"runs\.jsonl"):
            sink.emit(finish("b"))


def test_a_sink_in_memory_is_refused_because_it_would_lose_all_runs() -> None:
    with pytest.raises(ConfigError, match="is lost with the process: give a file's path"):
        SQLiteMonitorSink(":memory:")
