"""`CodebaseMemory`: stores, recalls, counts and removes findings, in sync and async code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import CodebaseMemory, LocalStore
from reasonblocks.backends.http.findings import HttpFindings
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.exceptions import BadAnswer, ConfigError, ExtraMissing
from reasonblocks.memory import Finding, memory_tools
from reasonblocks.memory.stores import finding_store
from reasonblocks.types import Codebase, RecalledFinding

CODEBASE = "acme/search"
TESTS = "Run the unit tests with pytest -q from the root folder."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "src" / "api").mkdir(parents=True)
    (folder / "src2").mkdir()
    for name in ("src/a.py", "src/api/b.py", "src2/c.py"):
        (folder / name).write_text(f"# {name}\n", encoding="utf-8")
    return folder


@pytest.fixture
def memory(root: Path) -> CodebaseMemory:
    return CodebaseMemory(CODEBASE, store=LocalFindings(), root=root)


def test_a_stored_finding_is_recalled_with_its_fields(memory: CodebaseMemory) -> None:
    stored = memory.store(TESTS, "src/a.py", "command", {"by": "agent", "lines": [1, 2]})
    (found,) = memory.recall("how are the unit tests run with pytest")
    assert (found.finding_id, found.content, found.file_path) == (stored, TESTS, "src/a.py")
    assert (found.finding_type, found.metadata, found.freshness) == (
        "command",
        {"by": "agent", "lines": [1, 2]},
        "fresh",
    )
    assert 0.25 <= found.score <= 1


def test_every_method_has_an_asynchronous_twin_with_the_same_answer(memory: CodebaseMemory, root: Path) -> None:
    async def lived() -> None:
        async with memory:
            one = await memory.astore(TESTS, "src/a.py")
            (two,) = await memory.astore_many([Finding(content="The index lives in src2.", file_path="src2/c.py")])
            assert [found.finding_id for found in await memory.alist_all()] == [one, two]
            assert [found.finding_id for found in await memory.arecall("unit tests pytest", 1)] == [one]
            assert await memory.acoverage_for(["src", "src2"]) == {"src": 1, "src2": 1}
            (root / "src2" / "c.py").write_text("changed", encoding="utf-8")
            assert [found.finding_id for found in await memory.astale()] == [two]
            assert await memory.ainvalidate_changed() == 1
            assert await memory.ainvalidate(["src2"]) == 0
            assert await memory.aforget([one]) == 1
            await memory.astore(TESTS)
            assert await memory.aclear() == 1

    asyncio.run(lived())


def test_the_same_finding_again_replaces_itself_with_the_state_of_now(memory: CodebaseMemory, root: Path) -> None:
    first = memory.store(TESTS, "src/a.py")
    (root / "src" / "a.py").write_text("changed", encoding="utf-8")
    assert memory.recall("unit tests pytest") == ()
    assert memory.store(TESTS, "./src/a.py") == first
    assert [found.freshness for found in memory.recall("unit tests pytest")] == ["fresh"]
    assert len(memory.list_all()) == 1


def test_many_findings_are_stored_all_or_none_and_doubles_have_one_id(memory: CodebaseMemory) -> None:
    given: list[Any] = [{"content": TESTS}, Finding(content="Another note."), {"content": TESTS, "metadata": {"n": 1}}]
    one, two, again = memory.store_many(given)
    assert one == again != two
    assert [found.metadata for found in memory.list_all() if found.finding_id == one] == [{"n": 1}]
    with pytest.raises(ConfigError, match="content"):
        memory.store_many([{"content": "This one is fine."}, {"content": " "}])
    assert len(memory.list_all()) == 2
    assert memory.store_many([]) == ()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("a text", "findings=.*must be a list"),
        ([3], "findings='int'.*must be a Finding"),
        ([{"contents": "x"}], "findings='contents'.*did you mean 'content'"),
        ([{"file_path": "a.py"}], "must have a content"),
        ([{"content": 3}], "content=.*must be a text"),
    ],
)
def test_what_is_no_finding_is_named(memory: CodebaseMemory, given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        memory.store_many(given)
    assert memory.list_all() == ()


def test_findings_are_listed_by_path_time_and_id(memory: CodebaseMemory) -> None:
    memory.store_many(
        [{"content": f"Note {n}", "file_path": path} for n, path in enumerate(("src2/c.py", "", "src/a.py"))]
    )
    assert [found.file_path for found in memory.list_all()] == ["", "src/a.py", "src2/c.py"]


def test_a_path_stands_for_its_file_and_a_folder_for_the_files_below_it(memory: CodebaseMemory, root: Path) -> None:
    for path in ("src/a.py", "src/api/b.py", "src2/c.py", ""):
        memory.store(f"A note about {path or 'nothing'}.", path)
    counted = memory.coverage_for(["src", "src/", "src/a.py", "src2", "src3", ".", root / "src"])
    assert counted == {"src": 2, "src/": 2, "src/a.py": 1, "src2": 1, "src3": 0, ".": 3, str(root / "src"): 2}
    assert memory.invalidate(["src3"]) == 0
    assert memory.invalidate([str(root / "src")]) == 2
    assert [found.file_path for found in memory.list_all()] == ["", "src2/c.py"]


@pytest.mark.parametrize("paths", ["src", b"src", 3, None])
def test_a_single_path_is_no_list_of_paths(memory: CodebaseMemory, paths: Any) -> None:
    for call in (memory.invalidate, memory.coverage_for):
        with pytest.raises(ConfigError, match="must be a list"):
            call(paths)


@pytest.mark.parametrize("wrong", [3, None, b"src", ["src"]])
def test_a_path_or_an_id_of_another_type_is_refused(memory: CodebaseMemory, wrong: Any) -> None:
    for call in (memory.invalidate, memory.coverage_for, memory.forget):
        with pytest.raises(ConfigError, match=r"file_path|finding_id"):
            call(["src", wrong])


@pytest.mark.parametrize("wrong", ["", " ", "\ud800", Path("a")])
def test_an_id_that_no_finding_can_have_is_refused(memory: CodebaseMemory, wrong: Any) -> None:
    with pytest.raises(ConfigError, match="finding_id"):
        memory.forget([wrong])


def test_the_whole_checkout_is_not_invalidated_by_a_path(memory: CodebaseMemory, root: Path) -> None:
    memory.store(TESTS, "src/a.py")
    for path in (".", "", root):
        with pytest.raises(ConfigError, match=r"clear\(\)"):
            memory.invalidate([path])
    assert len(memory.list_all()) == 1


def test_no_codebase_and_no_org_reads_or_changes_another(root: Path) -> None:
    store = LocalFindings()
    one = CodebaseMemory(CODEBASE, store=store, root=root)
    others = [CodebaseMemory("acme", store=store), CodebaseMemory(CODEBASE, store=store, org_id="other")]
    stored = one.store(TESTS, "src/a.py")
    for other in others:
        assert other.recall("unit tests pytest", score_threshold=0) == ()
        assert (other.list_all(), other.forget([stored]), other.invalidate(["src"]), other.clear()) == ((), 0, 0, 0)
    assert len(one.list_all()) == 1


def test_stale_findings_are_replaced_by_the_next(memory: CodebaseMemory, root: Path) -> None:
    memory.store_many([{"content": f"{TESTS} Part {n}.", "file_path": "src/a.py"} for n in range(12)])
    kept = memory.store_many([{"content": f"Unit tests number {n}.", "file_path": "src2/c.py"} for n in range(5)])
    (root / "src" / "a.py").write_text("changed", encoding="utf-8")
    assert {found.finding_id for found in memory.recall("run the unit tests", 5, 0.05)} == {*kept}


def test_marked_stale_findings_follow_the_fresh_ones_of_equal_score(root: Path) -> None:
    class Even(LocalFindings):
        def search(self, *given: Any, **options: Any) -> Any:
            return tuple([replace(found, score=0.5) for found in super().search(*given, **options)])

    memory = CodebaseMemory(CODEBASE, store=Even(), root=root, stale="mark")
    memory.store(TESTS, "src/a.py")
    memory.store(f"{TESTS} Again.", "src2/c.py")
    (root / "src" / "a.py").unlink()
    assert [(found.file_path, found.freshness) for found in memory.recall("unit tests")] == [
        ("src2/c.py", "fresh"),
        ("src/a.py", "stale"),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"query": " "}, "query"), ({"query": 3}, "query"), ({"top_k": 0}, "top_k"), ({"top_k": True}, "top_k"),
        ({"top_k": 51}, "top_k"), ({"score_threshold": 1.5}, "score_threshold"),
        ({"score_threshold": float("nan")}, "score_threshold"),
    ],
)  # fmt: skip
def test_a_wrong_question_is_refused(memory: CodebaseMemory, given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        memory.recall(**{"query": "anything", **given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"codebase_id": ""}, "codebase_id"),
        ({"codebase_id": "a\nb"}, "codebase_id"),
        ({"org_id": ""}, "org_id"),
        ({"stale": "keep"}, "stale='keep'.*drop, mark"),
        ({"root": "/no/such/folder"}, "root='/no/such/folder'"),
        ({"root": 3}, "root=3"),
        ({"redact": "no"}, "redact"),
        ({"store": 3}, "store='a value of type int'.*must be the path of a file"),
        ({"store": ""}, "store"),
        ({"store": LocalFindings}, "store"),
        ({"base_url": "http://127.0.0.1:9"}, "store=.*beside base_url"),
        ({"api_key": "rb_live_1"}, "store=.*beside api_key"),
        ({"embedder": 3}, "embedder=3"),
    ],
)
def test_a_wrong_option_is_named(given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        CodebaseMemory(**{"codebase_id": CODEBASE, "store": LocalFindings(), **given})


@pytest.fixture
def no_detectors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The extra `memory` is not installed."""
    from reasonblocks.masking._secrets import _loaded

    _loaded.cache_clear()
    for name in [*filter(lambda name: name.split(".")[0] == "detect_secrets", sys.modules), "detect_secrets"]:
        monkeypatch.setitem(sys.modules, name, None)
    yield
    _loaded.cache_clear()


@pytest.mark.parametrize("use", [lambda memory: memory.store(TESTS), memory_tools], ids=["store", "tools"])
def test_without_its_detectors_what_stores_names_the_extra_and_stores_nothing(
    no_detectors: None, use: Callable[[CodebaseMemory], object]
) -> None:
    memory = CodebaseMemory(CODEBASE, store=LocalFindings())
    with pytest.raises(ExtraMissing, match=r"storing in codebase memory needs detect-secrets: pip install") as raised:
        use(memory)
    assert raised.value.extra == "memory"
    assert memory.list_all() == ()


class Asked(LocalFindings):
    """A store that remembers the queries."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    def search(
        self, codebase: Codebase, query: str, *, top_k: int, score_threshold: float
    ) -> tuple[RecalledFinding, ...]:
        self.queries.append(query)
        return super().search(codebase, query, top_k=top_k, score_threshold=score_threshold)


def test_without_its_detectors_findings_are_recalled_listed_and_removed(request: pytest.FixtureRequest) -> None:
    store = Asked()
    CodebaseMemory(CODEBASE, store=store).store(TESTS)
    request.getfixturevalue("no_detectors")
    memory = CodebaseMemory(CODEBASE, store=store)
    (found,) = memory.recall(f"{TESTS} password=hunter2abc")
    assert found.content == TESTS
    assert store.queries == [f"{TESTS} password=#"]
    assert memory.forget([found.finding_id]) == 1
    assert memory.list_all() == ()
    with pytest.raises(ConfigError, match="must not contain a secret"):
        CodebaseMemory("password=hunter2abc", store=store)


def test_the_patterns_file_and_embedder_are_shared(tmp_path: Path) -> None:
    with LocalStore(tmp_path / "patterns.db") as patterns, CodebaseMemory(CODEBASE, store=patterns) as memory:
        memory.store(TESTS)
        found = memory._store
        assert isinstance(found, LocalFindings)
        assert (found.path, found.embedder) == (patterns.path, patterns.embedder)
    with CodebaseMemory(CODEBASE, store=tmp_path / "patterns.db") as again:
        assert len(again.list_all()) == 1


def test_the_store_is_the_one_of_the_environment(tmp_path: Path) -> None:
    server, home = {"REASONBLOCKS_BASE_URL": "http://127.0.0.1:9"}, {"REASONBLOCKS_HOME": str(tmp_path)}
    remote, local = finding_store(environ={**server, **home}), finding_store(environ=home)
    assert isinstance(remote, HttpFindings)
    remote.close()
    assert isinstance(local, LocalFindings)
    assert local.path == str(tmp_path / "patterns.db")
    assert isinstance(finding_store(base_url="", environ={**server, **home}), LocalFindings)


def test_a_given_store_is_not_closed(root: Path) -> None:
    class Open(LocalFindings):
        def close(self) -> None:
            raise AssertionError("it is the caller's")

    with CodebaseMemory(CODEBASE, store=Open(), root=root) as memory:
        memory.store(TESTS)


def test_a_store_that_returns_too_few_ids_is_named(root: Path) -> None:
    class Short(LocalFindings):
        def put(self, codebase: Codebase, findings: Any) -> tuple[str, ...]:
            return super().put(codebase, findings)[1:]

    with pytest.raises(BadAnswer, match="must be 1"):
        CodebaseMemory(CODEBASE, store=Short(), root=root).store(TESTS)
