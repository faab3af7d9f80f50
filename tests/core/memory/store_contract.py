"""The contract of every `FindingStore`. A test class inherits `StoreContract` and gives the fixture `make`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pytest

from reasonblocks.exceptions import StoreFull
from reasonblocks.findings import finding_id
from reasonblocks.ports import FindingStore
from reasonblocks.types import Codebase, Finding

HOME = Codebase(org_id="acme", codebase_id="acme/search")
NAMES = ("a", "a/b", "a%2Fb", "a/b/", "%", "_", "a b", "ä", "日本/語", "search", "a?x=1#y", "..", "'; --", "A", "\\")
"""Ids of codebases, which must not be confused."""
TIME = "2026-01-02T03:04:05+00:00"


class Maker(Protocol):
    """Makes a store on the data of this test. `most` is the limit of findings per codebase."""

    def __call__(self, *, most: int = ...) -> FindingStore: ...


def noted(content: str, path: str = "", kind: str = "note", *, codebase: Codebase = HOME, **fields: Any) -> Finding:
    """A finding as a facade puts it: with its id and time."""
    given = Finding(content=content, file_path=path, finding_type=kind, **{"created_at": TIME, **fields})
    return replace(given, finding_id=finding_id(codebase, given))


def all_of(store: FindingStore, codebase: Codebase = HOME, limit: int = 100) -> list[Finding]:
    found: list[Finding] = []
    while page := store.page(codebase, after=found[-1].finding_id if found else "", limit=limit):
        assert len(page) <= limit
        found += page
    return found


def contents(found: Iterable[Finding]) -> list[str]:
    return [finding.content for finding in found]


def timeless(found: Iterable[Finding]) -> list[Finding]:
    """Without times, which a server sets itself."""
    return [replace(finding, created_at="") for finding in found]


def recalled(store: FindingStore, query: str, codebase: Codebase = HOME, **limits: Any) -> list[str]:
    return contents(store.search(codebase, query, **{"top_k": 50, "score_threshold": 0.0, **limits}))


class StoreContract:
    @pytest.fixture
    def store(self, make: Maker) -> FindingStore:
        return make()

    # ------------------------------------------------------------ put and page

    def test_an_empty_store_has_nothing(self, store: FindingStore) -> None:
        assert (store.page(HOME), recalled(store, "tests"), store.put(HOME, [])) == ((), [], ())
        assert store.codebases("acme") == ()
        assert (store.remove(HOME, finding_ids=["x"], file_paths=["src"]), store.clear(HOME)) == (0, 0)

    def test_a_finding_comes_back_as_it_was_put(self, store: FindingStore) -> None:
        full = noted(
            'Run "tox"\n\tthen:\r\n  x = {"ä": \'日本\'} \\ %s 🙂',
            "src/größe/a b.py",
            "test command",
            metadata={"line": 3, "ok": True, "share": 0.5, "none": None, "deep": {"list": ["ä", 1]}},
            file_hash="a" * 64,
            git_blob="b" * 40,
        )
        assert store.put(HOME, [full]) == (full.finding_id,)
        (found,) = store.page(HOME)
        assert timeless([found]) == timeless([full])
        assert found.created_at

    def test_the_longest_finding_is_kept(self, store: FindingStore) -> None:
        long = noted("ä" * 7_999 + "b", "p" * 512, "k" * 64)
        store.put(HOME, [long])
        assert timeless(store.page(HOME)) == timeless([long])

    def test_the_ids_are_in_the_order_of_the_findings(self, store: FindingStore) -> None:
        given = [noted(f"note {number}") for number in range(7)]
        assert store.put(HOME, [*given, given[0]]) == tuple(one.finding_id for one in [*given, given[0]])
        assert len(all_of(store)) == 7

    def test_a_finding_with_a_stored_id_replaces_that_one(self, store: FindingStore) -> None:
        old = noted("The parser is in parse.py", "parse.py", metadata={"line": 1}, file_hash="a" * 64)
        new = replace(old, metadata={"line": 2}, file_hash="b" * 64)
        store.put(HOME, [old, noted("other")])
        assert recalled(store, "parser", top_k=1) == [old.content]
        store.put(HOME, [new])
        (found,) = store.search(HOME, "parser", top_k=1, score_threshold=0.25)
        assert (found.metadata, found.file_hash, len(all_of(store))) == ({"line": 2}, "b" * 64, 2)

    def test_of_one_id_put_twice_at_once_the_last_stays(self, store: FindingStore) -> None:
        given = noted("Run the tests with tox")
        store.put(HOME, [given, replace(given, file_hash="b" * 64)])
        assert [one.file_hash for one in all_of(store)] == ["b" * 64]

    def test_pages_are_in_the_order_of_ids(self, store: FindingStore) -> None:
        given = [noted(f"note {number}") for number in range(11)]
        store.put(HOME, given)
        wanted = sorted(one.finding_id for one in given)
        for limit in (1, 3, 11, 50):
            assert [one.finding_id for one in all_of(store, limit=limit)] == wanted
        assert [one.finding_id for one in store.page(HOME, after=wanted[4], limit=2)] == wanted[5:7]
        assert store.page(HOME, after=wanted[-1]) == ()

    def test_a_codebase_that_would_be_too_large_is_left_as_it_was(self, make: Maker) -> None:
        store = make(most=3)
        kept = [noted("one"), noted("two")]
        store.put(HOME, kept)
        with pytest.raises(StoreFull, match=r"3.*forget some"):
            store.put(HOME, [noted("three"), noted("four")])
        assert sorted(contents(all_of(store))) == ["one", "two"]
        assert sorted(recalled(store, "one two three four")) == ["one", "two"]
        store.put(HOME, [*kept, noted("three")])
        store.put(HOME, [kept[0]])
        assert len(all_of(store)) == 3
        store.remove(HOME, finding_ids=[kept[0].finding_id])
        store.put(HOME, [noted("four")])
        assert sorted(contents(all_of(store))) == ["four", "three", "two"]

    # ------------------------------------------------------------ scopes

    def test_codebases_are_apart(self, store: FindingStore) -> None:
        scopes = [Codebase(org_id="acme", codebase_id=name) for name in NAMES]
        for scope in scopes:
            store.put(scope, [noted(f"the tests of {scope.codebase_id}", "src/a.py", codebase=scope)])
        for scope in scopes:
            assert recalled(store, "tests", scope) == [f"the tests of {scope.codebase_id}"]
            assert contents(all_of(store, scope)) == [f"the tests of {scope.codebase_id}"]
        assert [one.codebase_id for one in store.codebases("acme")] == sorted(NAMES)
        gone = [scopes[number] for number in range(0, len(scopes), 2)]
        removed = [store.remove(scope, file_paths=["src"]) for scope in gone[::2]]
        assert removed + [store.clear(scope) for scope in gone[1::2]] == [1] * len(gone)
        kept = sorted({*NAMES} - {scope.codebase_id for scope in gone})
        assert [one.codebase_id for one in store.codebases("acme")] == kept

    def test_the_findings_of_another_codebase_cannot_be_removed_by_id(self, store: FindingStore) -> None:
        other = Codebase(org_id="acme", codebase_id="acme")
        (name,) = store.put(HOME, [noted("secret plan", "a.py")])
        assert (store.remove(other, finding_ids=[name], file_paths=["a.py"]), store.clear(other)) == (0, 0)
        assert recalled(store, "secret plan", other) == []
        assert recalled(store, "secret plan") == ["secret plan"]

    def test_a_summary_counts_findings_and_has_the_newest_time(self, store: FindingStore) -> None:
        for number in range(3):
            store.put(HOME, [noted(f"note {number}", created_at=f"2026-01-0{3 - number}T00:00:00+00:00")])
        (summary,) = store.codebases("acme")
        newest = max(one.created_at for one in all_of(store))
        assert (summary.codebase_id, summary.findings, summary.newest) == ("acme/search", 3, newest)

    # ------------------------------------------------------------ remove and clear

    @pytest.mark.parametrize(
        ("path", "gone"),
        [
            ("src", ["src/a.py", "src/deep/b.py"]), ("src/deep", ["src/deep/b.py"]), ("src/a.py", ["src/a.py"]),
            ("src2", []), ("sr", []), ("SRC", []), ("a_b", ["a_b/c.py"]), ("%", []), ("a*", []),
            ("größe", ["größe/x.py"]), ("/abs", ["/abs/x.py"]), ("/", ["/abs/x.py"]), ("", [""]),
        ],
    )  # fmt: skip
    def test_a_path_stands_for_its_file_or_for_all_below_its_folder(
        self, store: FindingStore, path: str, gone: Sequence[str]
    ) -> None:
        paths = [
            "src/a.py", "src/deep/b.py", "src2.py", "src0/x", "a_b/c.py", "axb/c.py", "größe/x.py", "/abs/x.py", "",
        ]  # fmt: skip
        store.put(HOME, [noted("note", name) for name in paths])
        assert store.remove(HOME, file_paths=[path]) == len(gone)
        kept = sorted({*paths} - {*gone})
        assert sorted(one.file_path for one in all_of(store)) == kept
        found = store.search(HOME, "note", top_k=50, score_threshold=0.0)
        assert sorted(one.file_path for one in found) == kept

    def test_nothing_removes_nothing_and_a_finding_that_is_meant_twice_is_counted_once(
        self, store: FindingStore
    ) -> None:
        one, two = store.put(HOME, [noted("one", "src/a.py"), noted("two", "b.py")])
        assert (store.remove(HOME), len(all_of(store))) == (0, 2)
        assert store.remove(HOME, finding_ids=[one, one, two, "unknown"], file_paths=["src", "src/a.py", "src"]) == 2
        assert (all_of(store), store.codebases("acme")) == ([], ())

    def test_a_cleared_codebase_can_be_filled_again(self, store: FindingStore) -> None:
        store.put(HOME, [noted(f"note {number}") for number in range(5)])
        assert len(recalled(store, "note")) == 5
        assert (store.clear(HOME), store.clear(HOME), recalled(store, "note")) == (5, 0, [])
        store.put(HOME, [noted("note 7")])
        assert recalled(store, "note") == ["note 7"]

    # ------------------------------------------------------------ search

    def test_the_nearest_finding_is_the_first(self, store: FindingStore) -> None:
        store.put(
            HOME,
            [
                noted("The configuration is read in load_settings", "src/config.py"),
                noted("Run the unit tests with: tox -e py312", "tox.ini", "command"),
                noted("The HTML parser drops comments", "src/html/parser.py", "gotcha"),
            ],
        )
        for query, wanted in {
            "how do I run the tests": "tox.ini",
            "where is load_settings": "src/config.py",
            "html parser comments": "src/html/parser.py",
            "src/html/parser.py": "src/html/parser.py",
        }.items():
            (found,) = store.search(HOME, query, top_k=1, score_threshold=0.0)
            assert found.file_path == wanted

    def test_scores_are_in_order_and_limits_hold(self, store: FindingStore) -> None:
        store.put(HOME, [noted(f"the tests of module {number} {'and more words ' * number}") for number in range(9)])
        full = store.search(HOME, "the tests of module 3", top_k=50, score_threshold=0.0)
        ranks = [(-one.score, one.finding_id) for one in full]
        assert ranks == sorted(ranks)
        assert all(0.0 <= one.score <= 1.0 for one in full)
        assert len(full) == 9
        for top_k in (1, 4):
            assert store.search(HOME, "the tests of module 3", top_k=top_k, score_threshold=0.0) == full[:top_k]
        for threshold in (full[3].score, full[0].score, 1.0):
            found = store.search(HOME, "the tests of module 3", top_k=50, score_threshold=threshold)
            assert found == tuple(one for one in full if one.score >= threshold)

    def test_ties_are_in_the_order_of_ids(self, store: FindingStore) -> None:
        given = [noted("Run the tests with tox", kind=f"kind {number}") for number in range(6)]
        store.put(HOME, given)
        found = store.search(HOME, "run the tests", top_k=4, score_threshold=0.0)
        assert len({one.score for one in found}) == 1
        assert [one.finding_id for one in found] == sorted(one.finding_id for one in given)[:4]

    def test_a_query_without_any_word_is_answered(self, store: FindingStore) -> None:
        store.put(HOME, [noted("Run the tests with tox"), noted("!!! ???")])
        for query in ("?", "日本", "🙂", "zzz qqq", "the", "a" * 2_000):
            assert all(0.0 <= one.score <= 1.0 for one in store.search(HOME, query, top_k=5, score_threshold=0.0))

    def test_a_search_sees_every_change(self, make: Maker) -> None:
        one, other = make(), make()
        seen = [recalled(other, "tests")]
        (name, _) = one.put(HOME, [noted("the tests are in tests"), noted("tests need tox")])
        seen.append(sorted(recalled(other, "tests")))
        one.remove(HOME, finding_ids=[name])
        seen.append(recalled(other, "tests"))
        other.clear(HOME)
        seen.append(recalled(one, "tests"))
        assert seen == [[], ["tests need tox", "the tests are in tests"], ["tests need tox"], []]

    def test_a_closed_store_is_opened_by_its_next_use(self, store: FindingStore) -> None:
        store.close()
        store.put(HOME, [noted("the tests need tox")])
        assert recalled(store, "tests") == ["the tests need tox"]
        store.close()
        store.close()
        assert recalled(store, "tests") == ["the tests need tox"]
        store.close()
