"""Which patterns repeat each other: those of one tier, org and failure type that say the same or are found alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reasonblocks.types import Pattern
from reasonblocks_workbench.authoring import Near, near_duplicates
from tests.core.stores.world import Numbers, pattern


def lesson(name: str, *texts: str, **changes: Any) -> Pattern:
    """One that says what no other does."""
    said = {"diagnosis": name, "intervention": "Look.", "anti_pattern": "Guess."}
    return pattern(name, "e2", *texts, **{"fields": said, **changes})


def pairs(*patterns: Pattern) -> list[tuple[str, str]]:
    return [(near.first, near.second) for near in near_duplicates(patterns, Numbers())]


def test_two_with_one_exemplar_in_common_are_found_alike() -> None:
    found = near_duplicates([lesson("b", "1", "0 1"), lesson("a", "0 0 1", "0 1"), lesson("c", "0 0 0 1")], Numbers())
    assert found == (Near(first="a", second="b", similarity=1.0, same=False),)


def test_two_that_say_the_same_are_told_whatever_they_are_found_by() -> None:
    said = {"instruction": "Use the staging database."}
    rules = [pattern(name, "e3", text, fields=said) for name, text in (("a", "1"), ("b", "0 1"))]
    assert near_duplicates(rules, Numbers()) == (Near(first="a", second="b", similarity=1.0, same=True),)


@pytest.mark.parametrize(
    "apart", [{"org_id": "acme"}, {"failure_type": "drift"}, {"off": True}, {"tier": "e1", "org_id": "acme"}]
)
def test_those_that_never_compete_are_not_compared(apart: dict[str, Any]) -> None:
    one = lesson("a")
    assert pairs(one, lesson("b")) == [("a", "b")]
    assert pairs(one, replace(one, id="b", **apart)) == []


def test_those_that_say_the_same_come_first_then_the_nearest() -> None:
    two = [lesson("a"), lesson("b")]
    same = [
        lesson(name, text, fields={**two[0].fields, "diagnosis": "x"}) for name, text in (("c", "0 1"), ("d", "0 -1"))
    ]
    assert pairs(*two, *same) == [("c", "d"), ("a", "b")]
