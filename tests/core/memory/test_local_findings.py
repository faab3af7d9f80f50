"""`LocalFindings`: the contract, its file, and who else may use that."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from reasonblocks import LocalStore, Pattern
from reasonblocks.backends.embed import HashEmbedder
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.exceptions import ConfigError, StoreError
from reasonblocks.findings import MOST_FINDINGS
from reasonblocks.ports import Embedder
from reasonblocks.types import Codebase
from tests.core.memory.store_contract import HOME, Maker, StoreContract, all_of, noted, recalled
from tests.whole import WHOLE


class TestFile(StoreContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Maker]:
        with ExitStack() as stack:

            def made(*, most: int = MOST_FINDINGS) -> LocalFindings:
                path = tmp_path / "home" / "patterns.db"
                return stack.enter_context(LocalFindings(path, embedder=HashEmbedder(), most=most))

            yield made


class TestMemory(StoreContract):
    @pytest.fixture
    def make(self) -> Maker:
        stores: dict[int, LocalFindings] = {}

        def made(*, most: int = MOST_FINDINGS) -> LocalFindings:
            return stores.setdefault(most, LocalFindings(embedder=HashEmbedder(), most=most))

        return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "patterns.db"


def local(path: Path | None, embedder: Embedder | None = None) -> LocalFindings:
    return LocalFindings(path, embedder=embedder or HashEmbedder())


class Counting(HashEmbedder):
    """Counts the texts it embeds, and fails as soon as `broken` is set."""

    def __init__(self, name: str = "counting") -> None:
        self.id, self.texts, self.broken = name, 0, False

    def embed(self, text: str) -> tuple[float, ...]:
        if self.broken:
            raise RuntimeError("no embedder")
        self.texts += 1
        return super().embed(text)


# ------------------------------------------------------------ the file


def test_nothing_is_made_until_something_is_put(path: Path) -> None:
    with local(path) as store:
        found = store.page(HOME), recalled(store, "x"), store.remove(HOME, file_paths=["x"]), store.clear(HOME)
        assert (found, store.codebases("acme"), path.parent.exists()) == (((), [], 0, 0), (), False)


def test_an_empty_file_reads_as_empty(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with local(path) as store:
        assert (store.page(HOME), recalled(store, "x"), store.clear(HOME)) == ((), [], 0)
    assert path.read_bytes() == b""


def test_patterns_and_findings_share_a_file(path: Path) -> None:
    with LocalStore(path, embedder=HashEmbedder()) as patterns, local(path) as store:
        patterns.add([Pattern(id="a", tier="e3")])
        store.put(HOME, [noted("the tests need tox")])
        patterns.add([Pattern(id="b", tier="e3")])
        assert (len(patterns), recalled(store, "tests")) == (2, ["the tests need tox"])
        store.clear(HOME)
        assert (len(patterns), patterns.remove("a"), store.codebases("acme")) == (2, True, ())


def of_form_1(path: Path) -> None:
    """Make the file as it was before findings, with one pattern."""
    with LocalStore(path, embedder=HashEmbedder()) as patterns:
        patterns.add([Pattern(id="a", tier="e3")])
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "DROP TABLE findings; DROP TABLE finding_vectors; DROP TABLE codebases; PRAGMA user_version=1;"
            "PRAGMA journal_mode=DELETE"
        )


def test_an_older_file_is_read_as_it_is_and_gets_findings_by_the_first_put(path: Path) -> None:
    of_form_1(path)
    before = path.read_bytes()
    with local(path) as store, LocalStore(path, embedder=HashEmbedder()) as patterns:
        assert (store.page(HOME), recalled(store, "x"), store.clear(HOME), len(patterns)) == ((), [], 0, 1)
        assert path.read_bytes() == before
        store.put(HOME, [noted("the tests need tox")])
        patterns.add([Pattern(id="b", tier="e3")])
        assert (recalled(store, "tests"), len(patterns)) == (["the tests need tox"], 2)


def test_an_older_file_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    of_form_1(tmp_path / "patterns.db")
    with read_only(tmp_path), local(tmp_path / "patterns.db") as store:
        with LocalStore(tmp_path / "patterns.db", embedder=HashEmbedder()) as patterns:
            assert (len(patterns), recalled(store, "x"), store.page(HOME)) == (1, [], ())
        with pytest.raises(StoreError, match=r"patterns\.db: .*(read-?only|unable to open)"):
            store.put(HOME, [noted("x")])


@pytest.mark.parametrize("name", ["counting", "other"])
def test_a_file_that_cannot_be_written_is_searched(tmp_path: Path, name: str) -> None:
    with local(tmp_path / "patterns.db", Counting()) as store:
        store.put(HOME, [noted("the tests need tox")])
    with read_only(tmp_path), local(tmp_path / "patterns.db", Counting(name)) as store:
        assert recalled(store, "tests") == ["the tests need tox"]
        with pytest.raises(StoreError):
            store.clear(HOME)
        assert recalled(store, "tests") == ["the tests need tox"]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody may write in the folder; root becomes nobody, because root may write everywhere."""
    if os.name == "nt":
        pytest.skip("the folders of this system have no such modes")
    is_root = os.geteuid() == 0
    for name in (folder, *folder.parents) if is_root else ():
        if not os.stat(name).st_mode & 0o001:
            name.chmod(0o755)
    (folder / "patterns.db").chmod(0o444)
    folder.chmod(0o555)
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.parametrize("left", ["garbage", "half"])
def test_a_damaged_file_is_named_and_not_touched(path: Path, left: str) -> None:
    with local(path) as store:
        store.put(HOME, [noted(f"note {number}") for number in range(100)])
    data = b"not a database at all, " * 400 if left == "garbage" else path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(data)
    with local(path) as store, pytest.raises(StoreError, match=r"patterns\.db: the file is damaged .* move it away"):
        store.search(HOME, "note", top_k=50, score_threshold=0.0)
    assert path.read_bytes() == data


def test_the_file_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE runs (id)")
    with local(path) as store:
        for use in (lambda: store.page(HOME), lambda: store.put(HOME, [noted("x")])):
            with pytest.raises(StoreError, match="belongs to another program"):
                use()


def test_a_replaced_file_is_read_anew(path: Path) -> None:
    reader = local(path)
    for content in ("old tests", "new tests"):
        with local(path) as store:
            store.put(HOME, [noted(content)])
        assert recalled(reader, "tests") == [content]
        reader.close()
        path.unlink()
    assert recalled(reader, "tests") == []


# ------------------------------------------------------------ embedders and memory


def test_what_another_embedder_stored_is_embedded_once_for_all(path: Path) -> None:
    with local(path, Counting()) as store:
        store.put(HOME, [noted(f"note {number}") for number in range(9)])
    texts = []
    for _ in range(2):
        other = Counting("other")
        with local(path, other) as store:
            assert len(recalled(store, "note")) == 9
        texts.append(other.texts)
    assert texts == [10, 1]


def test_a_broken_embedder_changes_nothing(path: Path) -> None:
    embedder = Counting()
    with local(path, embedder) as store:
        store.put(HOME, [noted("the tests need tox")])
        embedder.broken = True
        with pytest.raises(RuntimeError, match="no embedder"):
            store.put(HOME, [noted("more tests")])
        embedder.broken = False
        assert recalled(store, "tests") == ["the tests need tox"]


@pytest.mark.parametrize("store", [LocalFindings, LocalStore])
def test_the_name_of_a_database_in_memory_is_no_file(store: Callable[[str], object]) -> None:
    with pytest.raises(ConfigError, match="None for a store in memory"):
        store(":memory:")


@pytest.mark.parametrize(
    ("limits", "left"), [({"findings": 2}, 2), ({"codebases": 3}, 3), ({"findings": 0}, 1), ({}, 5)]
)
def test_the_codebases_used_last_stay_in_memory(path: Path, limits: dict[str, int], left: int) -> None:
    scopes = [Codebase(org_id="acme", codebase_id=str(number)) for number in range(5)]
    with local(path) as store:
        for scope in scopes:
            store.put(scope, [noted("tests", codebase=scope)])
            assert recalled(store, "tests", scope) == ["tests"]
        store._drop_oldest(**limits)
        assert list(store._cached) == scopes[-left:]
        assert [recalled(store, "tests", scope) for scope in scopes] == [["tests"]] * 5


# ------------------------------------------------------------ threads and processes


WRITER = """
import sys
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.backends.embed import HashEmbedder
from tests.core.memory.store_contract import HOME, noted
name, rounds, size = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with LocalFindings(sys.argv[1], embedder=HashEmbedder()) as store:
    for number in range(rounds):
        store.put(HOME, [noted(f"{name} {number} {at}", f"{name}/{number}") for at in range(size)])
        store.search(HOME, name, top_k=5, score_threshold=0.0)
        print(number, flush=True)
"""


def writer(path: Path, name: str, rounds: int, size: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(rounds), str(size)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])


def test_processes_write_and_read_one_file(path: Path) -> None:
    rounds = 60 if WHOLE else 8
    running = [writer(path, name, rounds, 5) for name in ("one", "two", "three")]
    with local(path) as store:
        for process in running:
            process.communicate()
        assert [process.returncode for process in running] == [0, 0, 0]
        assert len(all_of(store)) == len(store.search(HOME, "one", top_k=9_999, score_threshold=0.0)) == 15 * rounds


def test_a_killed_put_leaves_all_of_it_or_nothing(path: Path) -> None:
    size = 300
    for number in range(20 if WHOLE else 2):
        process = writer(path, f"p{number}", 1_000, size)
        assert process.stdout is not None
        said = process.stdout.readline()
        process.kill()
        said += process.communicate()[0]
        with local(path) as store:
            there = Counter(one.file_path for one in all_of(store) if one.file_path.startswith(f"p{number}/"))
            assert {*there.values()} == {size}
            assert {f"p{number}/{line}" for line in said.split()} <= there.keys()
            store.clear(HOME)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("is_file", [True, False])
def test_a_fork_leaves_both_with_a_store_that_works(path: Path, is_file: bool) -> None:
    with local(path if is_file else None) as store:
        store.put(HOME, [noted("parent")])
        recalled(store, "parent")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                store.put(HOME, [noted("child")])
                code = 0 if sorted(recalled(store, "x")) == ["child", "parent"] else 2
                store.close()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert sorted(recalled(store, "x")) == (["child", "parent"] if is_file else ["parent"])


@pytest.mark.parametrize("is_file", [True, False])
def test_threads_lose_nothing(path: Path, is_file: bool) -> None:
    with local(path if is_file else None) as store:

        def work(thread: int) -> int:
            for number in range(20):
                store.put(HOME, [noted(f"{thread} {number}", f"{thread}/{number}")])
                assert len(recalled(store, f"{thread} {number}", top_k=100)) > number
            return sum(store.remove(HOME, file_paths=[f"{thread}/{number}"]) for number in range(0, 20, 2))

        with ThreadPoolExecutor(4) as threads:
            removed = list(threads.map(work, range(4)))
        assert (removed, len(all_of(store))) == ([10] * 4, 40)


def test_no_search_waits_for_another_process_that_writes(path: Path) -> None:
    with local(path, Counting("one")) as one, local(path, Counting("two")) as two:
        one.put(HOME, [noted("the tests need tox")])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            assert recalled(two, "tests") == ["the tests need tox"]
            assert time.monotonic() - started < 1.0


def test_removing_reads_a_codebase_once_however_many_paths_are_given(tmp_path: Path) -> None:
    statements = list[str]()
    with local(tmp_path / "f.db") as store:
        store.put(HOME, [noted("Run tox.", "src/a.py"), noted("Slow.", "/srv/a")])
        db = store._database.reading()
        assert db is not None
        db.set_trace_callback(statements.append)
        counts = []
        for number in (1, 5_000):
            statements.clear()
            assert store.remove(HOME, file_paths=[f"src/{at}.py" for at in range(number)]) == 0
            counts.append(len(statements))
        assert counts[0] == counts[1]
        assert store.remove(HOME, file_paths=["src/a", "srv", ""]) == 0
        assert store.remove(HOME, file_paths=["src", "/srv/"]) == 2
