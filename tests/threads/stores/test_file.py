"""A file that is locked, full, damaged, newer or gone; forks; and who may read it."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_threads.errors import StoreUnavailable
from reasonblocks_threads.ports import Store
from reasonblocks_threads.stores import SqliteStore, default_file, open_store
from reasonblocks_threads.values import Letter, Rows
from tests.threads.stores.lines import claimed, following, head, noting, opened, opening
from tests.whole import WHOLE

USES: tuple[Callable[[Store], object], ...] = (
    lambda store: opened(store, "another"),
    lambda store: head(store, "th_1"),
    lambda store: store.waiting("r"),
    lambda store: claimed(store, 1.0),
)
OLDER = ("CREATE TABLE call (id TEXT PRIMARY KEY)", "PRAGMA user_version=1")
"""The statements that make a file of form 2 one of form 1."""
posix = pytest.mark.skipif(sys.platform == "win32", reason="this system has no such modes or forks")
FORKS = 20 if WHOLE else 3
forks = [posix, pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]


def change(path: Path, *statements: str) -> None:
    """Change a file behind the store's back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def test_a_store_that_is_not_used_makes_no_file(path: Path) -> None:
    open_store(path).close()
    assert not path.exists()


@posix
def test_the_file_is_its_users_own(file: SqliteStore, path: Path) -> None:
    opened(file)
    for each in path.parent.glob("threads.db*"):
        assert stat.S_IMODE(each.stat().st_mode) == 0o600, each


@posix
def test_the_default_folder_is_created_for_its_user(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "of" / "mine"
    for _ in range(2):
        assert default_file({"REASONBLOCKS_HOME": os.fspath(folder)}) == folder / "threads.db"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_user_without_a_home_is_asked_for_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobodys() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobodys)
    with pytest.raises(ConfigError, match="REASONBLOCKS_HOME"):
        default_file({})


@pytest.mark.parametrize("use", USES)
def test_a_folder_that_does_not_exist_is_named(tmp_path: Path, use: Callable[[Store], object]) -> None:
    store = open_store(tmp_path / "missing" / "threads.db")
    with pytest.raises(StoreUnavailable, match="folder does not exist"):
        use(store)
    assert not (tmp_path / "missing").exists()
    store.close()


@pytest.mark.parametrize("use", USES)
def test_a_newer_form_is_refused(file: SqliteStore, path: Path, use: Callable[[Store], object]) -> None:
    thread = opened(file)
    file.close()
    change(path, "PRAGMA user_version=99")
    with pytest.raises(StoreUnavailable, match="form 99 is newer than this library's 2; upgrade"):
        use(file)
    change(path, "PRAGMA user_version=2")
    assert head(file, thread.id) == thread


@pytest.mark.parametrize("use", USES)
def test_an_older_form_is_changed_and_keeps_its_threads(
    file: SqliteStore, path: Path, use: Callable[[Store], object]
) -> None:
    thread = opened(file)
    file.close()
    change(path, *OLDER, "INSERT INTO call VALUES ('c')")
    use(file)
    assert head(file, thread.id) == thread
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'call'").fetchone() == (0,)


def test_stores_that_find_an_older_form_at_once_change_it_once(file: SqliteStore, path: Path) -> None:
    thread = opened(file)
    file.close()
    change(path, *OLDER)
    stores = [SqliteStore(path) for _ in range(8)]
    with ThreadPoolExecutor(len(stores)) as pool:
        found = [*pool.map(lambda store: head(store, thread.id), stores)]
    assert found == [thread] * len(stores)
    for store in stores:
        store.close()


@pytest.mark.parametrize("use", USES)
def test_a_file_of_another_program_is_refused(file: SqliteStore, path: Path, use: Callable[[Store], object]) -> None:
    change(path, "CREATE TABLE theirs (a)")
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="belongs to another program"):
        use(file)
    assert path.read_bytes() == before


@pytest.mark.parametrize("use", USES)
def test_a_file_that_is_no_database_is_refused(file: SqliteStore, path: Path, use: Callable[[Store], object]) -> None:
    path.write_bytes(b"no database at all" * 500)
    with pytest.raises(StoreUnavailable, match="no SQLite file"):
        use(file)
    assert path.read_bytes() == b"no database at all" * 500


@posix
def test_a_pipe_is_refused(file: SqliteStore, path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StoreUnavailable, match="not a regular file"):
        opened(file)


def test_a_damaged_file_is_unavailable(file: SqliteStore, path: Path) -> None:
    thread = noting(opened(file), 200, text="x" * 200).put(file)
    file.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="damaged"):
            head(file, thread.id)
    path.write_bytes(whole)
    file.close()
    assert head(file, thread.id) == thread


def test_a_file_that_another_process_locks_is_unavailable_to_writers_only(path: Path) -> None:
    store = SqliteStore(path, busy_s=0.05)
    thread = opened(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="another process wrote for too long"):
            noting(thread).put(store)
        assert head(store, thread.id) == thread
        assert list(store.waiting("r")) == []
        other.execute("ROLLBACK")
    noting(thread).put(store)
    store.close()


def test_a_new_file_that_another_process_locks_is_unavailable(path: Path) -> None:
    store = SqliteStore(path, busy_s=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for use in USES:
            with pytest.raises(StoreUnavailable, match="another process wrote for too long"):
                use(store)
        other.execute("ROLLBACK")
    opened(store)
    store.close()


@pytest.mark.parametrize("memory", [False, True])
def test_a_thread_that_writes_for_too_long_makes_others_give_up(path: Path, memory: bool) -> None:
    store = SqliteStore(None if memory else path, busy_s=0.05)
    errors: list[str] = []

    def write() -> None:
        try:
            opened(store, "other")
        except StoreUnavailable as error:
            errors.append(str(error))

    with store.write():
        other = threading.Thread(target=write)
        other.start()
        other.join()
    assert len(errors) == 1
    assert "another thread wrote for more than 0.05 s" in errors[0]
    opened(store, "other")
    store.close()


def test_a_transaction_in_another_of_its_thread_is_refused(file: SqliteStore) -> None:
    with file.write() as writing:
        writing.set_meta({"a": "1"})
        with pytest.raises(RuntimeError, match="end it before"), file.write():
            pass
        with file.read() as reading:
            assert dict(reading.meta()) == {}
    with file.read() as reading:
        assert dict(reading.meta()) == {"a": "1"}


def test_a_full_disk_is_unavailable_and_loses_nothing(file: SqliteStore) -> None:
    thread = opened(file)
    link = file._writer
    assert link is not None
    pages = link.db.execute("PRAGMA page_count").fetchone()[0]
    link.db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreUnavailable, match="disk is full; free some space"):
        noting(thread, 50, text="x" * 9_000).put(file)
    assert head(file, thread.id) == thread
    link.db.execute("PRAGMA max_page_count=1000000")
    after = noting(thread, 50, text="x" * 9_000).put(file)
    assert head(file, thread.id) == after


@posix
@pytest.mark.parametrize("use", USES)
def test_a_deleted_file_is_unavailable_until_it_is_back(
    file: SqliteStore, path: Path, tmp_path: Path, use: Callable[[Store], object]
) -> None:
    thread = opened(file)
    for each in USES:
        each(file)
    file.close()
    copy = path.read_bytes()
    for each in USES[1:]:
        each(file)
    for one in tmp_path.glob("threads.db*"):
        one.unlink()
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="was deleted"):
            use(file)
    assert not path.exists()
    path.write_bytes(copy)
    assert head(file, thread.id) == thread


@posix
def test_a_replaced_file_is_noticed(file: SqliteStore, path: Path) -> None:
    opened(file, "old")
    for one in path.parent.glob("threads.db*"):
        one.rename(path.parent / f"old-{one.name}")
    other = SqliteStore(path)
    new = opened(other, "new")
    other.close()
    with pytest.raises(StoreUnavailable, match="replaced"):
        opened(file, "newer")
    assert head(file, new.id) == new


@posix
def test_a_file_put_in_place_of_one_whose_log_is_left_is_refused(file: SqliteStore, path: Path, tmp_path: Path) -> None:
    opened(file, "old")
    copy = tmp_path / "copy.db"
    other = SqliteStore(copy)
    new = opened(other, "new")
    other.close()
    os.replace(copy, path)
    for expected in ("replaced", "replaced, but the log .* delete .*threads.db-wal", "replaced, but the log"):
        with pytest.raises(StoreUnavailable, match=expected):
            head(file, new.id)
    for end in ("-wal", "-shm"):
        Path(f"{path}{end}").unlink()
    assert head(file, new.id) == new


@posix
def test_the_file_of_a_link_is_created(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "there" / "threads.db")
    with closing(SqliteStore(tmp_path / "link.db")) as store:
        opened(store)
    assert stat.S_IMODE((tmp_path / "there" / "threads.db").stat().st_mode) == 0o600


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Act as a user who can read a folder's files, but not change them."""
    folder.chmod(0o555)
    for path in folder.iterdir():
        path.chmod(0o444)
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(65_534)
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o600)


@posix
def test_a_file_that_may_not_be_written_is_unavailable() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rb-read-only-"))
    store = SqliteStore(folder / "threads.db")
    try:
        opened(store)
        store.close()
        for use in USES:
            with as_nobody(folder), pytest.raises(StoreUnavailable, match="permissions"):
                use(store)
        opened(store, "k2")
    finally:
        store.close()
        shutil.rmtree(folder)


def in_child(do: Callable[[], None]) -> int:
    """Return 0 if `do` returns in a forked process."""
    child = os.fork()
    if not child:
        code = 1
        try:
            do()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("_", [pytest.param(0, marks=forks)])
def test_a_fork_leaves_both_with_a_store_that_works(on_disk: Store, _: int) -> None:
    thread = opened(on_disk)
    on_disk.waiting("r")

    def append() -> None:
        assert head(on_disk, thread.id) == thread
        on_disk.waiting("r")
        after = noting(thread).put(on_disk)
        assert head(on_disk, thread.id) == after
        on_disk.close()

    assert in_child(append) == 0
    with on_disk.read() as reading:
        now = reading.head(thread.id)
    assert now is not None
    assert now.version == 2
    assert noting(now).put(on_disk).version == 3


@pytest.mark.parametrize("_", [pytest.param(0, marks=forks)])
def test_a_fork_waits_for_the_transactions_of_other_threads(on_disk: Store, _: int) -> None:
    opened(on_disk, "start")
    stop, done = threading.Event(), [0]

    def write() -> None:
        while not stop.is_set():
            opened(on_disk, f"k{done[0]}")
            done[0] += 1

    writers = [threading.Thread(target=write)]
    for each in writers:
        each.start()
    try:
        for number in range(FORKS):

            def use(number: int = number) -> None:
                opened(on_disk, f"child {number}")
                on_disk.close()

            assert in_child(use) == 0
    finally:
        stop.set()
        for each in writers:
            each.join()
    with on_disk.read() as reading:
        assert reading.live_count("default") == 1 + done[0] + FORKS


@pytest.mark.parametrize("_", [pytest.param(0, marks=forks)])
def test_threads_in_memory_are_copied_by_a_fork(_: int) -> None:
    store = open_store(None)
    thread = opened(store)

    def append() -> None:
        assert noting(thread).put(store) == head(store, thread.id)

    assert in_child(append) == 0
    assert head(store, thread.id) == thread
    store.close()


@pytest.mark.parametrize("_", [pytest.param(0, marks=forks)])
def test_a_read_in_which_its_thread_forks_ends(on_disk: Store, _: int) -> None:
    thread = opened(on_disk)

    def append() -> None:
        noting(thread).put(on_disk)
        on_disk.close()

    def read_and_fork() -> None:
        with on_disk.read() as reading:
            assert reading.head(thread.id) == thread
            assert in_child(append) == 0
            reading.head(thread.id)

    with pytest.raises(StoreUnavailable):
        read_and_fork()
    after = head(on_disk, thread.id)
    assert after is not None
    assert after.version == 2


def test_a_store_that_is_closed_while_a_thread_reads_keeps_no_connection(on_disk: Store) -> None:
    thread = opened(on_disk)
    with on_disk.read() as reading:
        on_disk.close()
        assert reading.head(thread.id) == thread
    gc.collect()  # a connection that nobody closed is a warning, which is an error here


@pytest.mark.parametrize("_", [pytest.param(0, marks=forks)])
def test_a_transaction_in_which_its_thread_forks_is_undone(file: SqliteStore, _: int) -> None:
    thread = opened(file)
    lines = noting(thread)

    def fork_in_it() -> None:
        with file.write([thread.id]) as writing:
            writing.append(thread, lines.after, lines.events, Rows(), lines.known())
            assert in_child(lambda: None) == 0

    with pytest.raises(StoreUnavailable, match="the process forked in a transaction"):
        fork_in_it()
    assert head(file, thread.id) == thread
    lines.put(file)


def files_with(text: str, folder: Path) -> int:
    """Count the files with a text, in another process: one that closes a file drops all of its own locks on it."""
    code = f"print(sum({text.encode()!r} in open(path, 'rb').read() for path in __import__('sys').argv[1:]))"
    command = [sys.executable, "-W", "ignore", "-S", "-c", code, *map(os.fspath, folder.iterdir())]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_erased_texts_are_gone_from_the_disk(file: SqliteStore, path: Path) -> None:
    secret = "xyzzy" * 3_000
    hidden = {"id": "e", "label": "l", "text": "", "blob": "h"}
    thread = following(opened(file), ("evidence_added", {"items": [hidden]})).put(file)
    with file.write() as writing:
        writing.put_blob("h", secret)
        writing.put_blob("other", "kept")
    assert files_with("xyzzy", path.parent) > 0
    with file.write() as writing:
        assert writing.erase_blobs(thread.id) == 1
    assert files_with("xyzzy", path.parent) == 0
    with file.read() as reading:
        assert (reading.blob("h"), reading.blob("other")) == (None, "kept")


def test_a_store_works_again_after_it_was_closed(file: SqliteStore) -> None:
    thread = opened(file)
    for _ in range(3):
        file.close()
        thread = noting(thread).put(file)
    file.close()
    assert head(file, thread.id) == thread
    assert opening("k").id == thread.id


def test_letters_are_read_anew_after_a_store_was_closed(file: SqliteStore, path: Path) -> None:
    assert list(file.waiting("r")) == []
    file.close()
    other = SqliteStore(path)
    with other.write() as writing:
        writing.add_letter(Letter(id="l", thread_id="t", run_id="r", text="x", at=1.0))
    other.close()
    assert [each.id for each in file.waiting("r")] == ["l"]
