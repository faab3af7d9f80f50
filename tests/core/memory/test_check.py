"""The limits of findings, the forms of paths, and ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from reasonblocks.exceptions import ConfigError
from reasonblocks.findings import (
    CONTENT_CHARS,
    PATH_CHARS,
    QUERY_CHARS,
    TYPE_CHARS,
    check_finding,
    checked_codebase,
    checked_path,
    checked_query,
    finding_id,
)
from reasonblocks.types import Codebase, Finding
from reasonblocks.util.json import compact
from reasonblocks.wire import FindingRequest
from tests.whole import QUICK_EXAMPLES, WHOLE

HERE = Codebase(org_id="acme", codebase_id="search")
ANY_TEXT = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=40)
PATHS = st.text(st.sampled_from("ab./\\:~ é\ud800\x00\n\u202e"), max_size=20) | ANY_TEXT
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
examples = settings(max_examples=100 if WHOLE else QUICK_EXAMPLES, deadline=None)


def note(**fields: Any) -> Finding:
    return Finding(**{"content": "Run the tests with nox", **fields})


@pytest.mark.parametrize(
    ("name", "most"), [("content", CONTENT_CHARS), ("file_path", PATH_CHARS), ("finding_type", TYPE_CHARS)]
)
@pytest.mark.parametrize("letter", ["a", "𝄞"])
def test_a_text_may_have_as_many_characters_as_its_limit_here_and_on_the_wire(
    name: str, most: int, letter: str
) -> None:
    longest: dict[str, Any] = {name: letter * most}
    longer: dict[str, Any] = {name: letter * (most + 1)}
    assert getattr(check_finding(note(**longest)), name) == letter * most
    assert FindingRequest(**{"content": "a", **longest}).finding() == Finding(**{"content": "a", **longest})
    with pytest.raises(ConfigError, match=f"{name}=.*at most {most:,}"):
        check_finding(note(**longer))
    with pytest.raises(ValidationError):
        FindingRequest(**{"content": "a", **longer})


def test_ids_have_1_to_512_characters() -> None:
    for length in (1, 512):
        assert checked_codebase("acme", "a" * length).codebase_id == "a" * length
    for length in (0, 513):
        with pytest.raises(ConfigError, match="codebase_id"):
            checked_codebase("acme", "a" * length)


@pytest.mark.parametrize("name", [" ", "a\nb", "\ud800", "a\u202eb", "a\x00", None, 5, b"a"])
def test_an_id_is_one_printable_line(name: object) -> None:
    for ids in ((name, "search"), ("acme", name)):
        with pytest.raises(ConfigError, match="printable"):
            checked_codebase(*ids)


@pytest.mark.parametrize(
    ("given_path", "path"),
    [
        ("", ""), (".", ""), ("./", ""), ("a//b/", "a/b"), ("./a/./b", "a/b"), ("a\\b", "a/b"), ("C:\\x", "C:/x"),
        ("a/../b", "a/../b"), ("../a", "../a"), ("/", "/"), ("/.", "/"), ("//a/", "/a"), ("\\", "/"), ("\\a", "/a"),
        ("\\\\server\\a", "/server/a"), ("~/a b.é", "~/a b.é"),
    ],
)  # fmt: skip
def test_a_path_has_one_form(given_path: str, path: str) -> None:
    assert checked_path(given_path) == path


@pytest.mark.parametrize("path", ["a\x00", "a\nb", "a\u202eb", "a\u200b", "caf\udce9", None, 5, b"a"])
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(ConfigError, match="file_path"):
        checked_path(path)


@pytest.mark.parametrize(
    "fields",
    [
        {"content": ""},
        {"content": " \n\u2003"},
        {"content": "a\x00"},
        {"content": None},
        {"finding_type": ""},
        {"finding_type": " "},
        {"finding_type": "a\u2028b"},
        {"finding_type": "\ud800"},
        {"metadata": None},
        {"metadata": [("a", 1)]},
        {"metadata": {1: 2}},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": 2**63}},
        {"metadata": {"a": 10**5_000}},
        {"metadata": {"a": "\ud800"}},
        {"metadata": {"a": b"x"}},
        {"metadata": {"a": "x" * 4_000}},
        {"metadata": {"a": [[]] * 4_000}},
    ],
)
def test_an_invalid_finding_is_refused_by_the_name_of_its_field(fields: dict[str, Any]) -> None:
    (name,) = fields
    with pytest.raises(ConfigError, match=f"^{name}="):
        check_finding(note(**fields))


def test_metadata_that_contains_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["a"] = endless
    with pytest.raises(ConfigError, match="levels deep"):
        check_finding(note(metadata=endless))


@pytest.mark.parametrize(
    "fields",
    [
        {"content": b"x" * 200},
        {"content": "x" * 9_000},
        {"file_path": "x" * 600},
        {"file_path": "\n" + "x" * 200},
        {"finding_type": "x" * 100},
        {"metadata": "x" * 200},
        {"metadata": {"a": "x" * 200, "b": b""}},
    ],
)
def test_an_error_shows_little_of_a_text_because_it_may_be_a_secret(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        check_finding(note(**fields))
    assert "x" * 81 not in f"{refused.value} {refused.value.value!r}"


def test_a_checked_finding_shares_nothing_with_its_metadata() -> None:
    given_metadata: dict[str, Any] = {"lines": [1]}
    found = check_finding(note(metadata=given_metadata))
    given_metadata["lines"].append(2)
    assert found.metadata == {"lines": [1]}


def _is_valid(check: Callable[[], Any]) -> Any:
    """Return the answer, or None after the one error that a check may raise."""
    try:
        return check()
    except ConfigError:
        return None


@examples
@given(PATHS)
def test_a_checked_path_is_plain_and_stays_as_it_is(path: str) -> None:
    found = _is_valid(lambda: checked_path(path))
    if found is not None:
        assert checked_path(found) == found
        assert found.isprintable()
        assert "\\" not in found
        assert not {"", "."} & {*found.removeprefix("/").split("/")} or found in ("", "/")
        assert found.startswith("/") == path.startswith(("/", "\\"))


@examples
@given(ANY_TEXT, PATHS, ANY_TEXT, st.dictionaries(ANY_TEXT, JSON, max_size=3))
def test_a_checked_finding_can_be_encoded_and_stays_as_it_is(
    content: str, path: str, kind: str, metadata: dict[str, Any]
) -> None:
    raw = Finding(content=content, file_path=path, finding_type=kind, metadata=metadata)
    found = _is_valid(lambda: check_finding(raw))
    if found is not None:
        assert check_finding(found) == found
        compact([found.content, found.file_path, found.finding_type, found.metadata]).encode()
        assert len(finding_id(HERE, found)) == 32


@examples
@given(st.text(min_size=1), st.integers(0, 3 * QUERY_CHARS))
def test_a_checked_query_is_short_and_not_blank(text: str, blanks: int) -> None:
    found = _is_valid(lambda: checked_query("\n" * blanks + text * 50))
    if found is not None:
        assert 1 <= len(found) <= QUERY_CHARS
        assert checked_query(found) == found


NAMED = st.tuples(*[st.text(st.sampled_from('ab",[]\\'), max_size=3)] * 5)


@examples
@given(NAMED, NAMED)
def test_findings_have_equal_ids_if_scope_path_type_and_content_are_equal(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    def named(org: str, codebase: str, path: str, kind: str, content: str, **fields: Any) -> str:
        scope = Codebase(org_id=org, codebase_id=codebase)
        return finding_id(scope, Finding(content=content, file_path=path, finding_type=kind, **fields))

    assert (named(*one) == named(*other)) == (one == other)
    assert named(*one) == named(*one, metadata={"a": 1}, created_at="2026-01-01T00:00:00+00:00", file_hash="a" * 64)


@pytest.mark.parametrize("at", [0, 4_000, CONTENT_CHARS - 1])
def test_every_character_of_the_longest_content_counts(at: int) -> None:
    plain = "a" * CONTENT_CHARS
    changed = f"{plain[:at]}b{plain[at + 1 :]}"
    assert finding_id(HERE, note(content=plain)) != finding_id(HERE, note(content=changed))
