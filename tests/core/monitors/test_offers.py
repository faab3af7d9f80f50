"""A member of a list is offered only if it is an identifier, from the agent's own tools, and for one that looks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reasonblocks.engine.gates import first_sentence
from reasonblocks.monitors.offers import LONGEST_NAME, may_offer
from reasonblocks.types import Step
from tests.core.monitors.conftest import play
from tests.core.monitors.sighted import said
from tests.core.steps import acted

TABLE = Path(__file__).parent / "offers.txt"


class Case(NamedTuple):
    """A list in a result, and calls of which each takes a member."""

    kind: str
    shows: str
    takes: str
    argument: str
    result: str
    used: Sequence[str]
    offered: Sequence[str] = ()
    hidden: Sequence[str] = ()
    roles: Sequence[tuple[str, str]] = ()

    def steps(self) -> list[Step]:
        """Play the history: the list, and the calls twice in turn."""
        own = self.shows == self.takes
        calls = [
            call(self.takes, self.result if own else f"text of {value}", {self.argument: value})
            for value in [*self.used] * 2
        ]
        return calls if own else [call(self.shows, self.result, {}), *calls]


def call(name: str, result: str, arguments: Mapping[str, str]) -> Step:
    """One step with one call."""
    return acted(name, dict(arguments), result)


def cases(text: str) -> Iterator[Case]:
    """Read the rows of a table."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            kind, shows, takes, result, *values = [part.strip() for part in line.split("|")]
            takes, _, argument = takes.removesuffix(")").partition("(")
            roles = [(name, role) for name, _, role in (shows.partition(":"), takes.partition(":")) if role]
            shows, takes = shows.partition(":")[0], takes.partition(":")[0]
            used, offered, hidden = [[*filter(None, map(str.strip, part.split(";")))] for part in [*values, ""][:3]]
            shows = takes if shows == "=" else shows
            yield Case(kind, shows, takes, argument, result.replace("\\n", "\n"), used, offered, hidden, roles)


CASES = [*cases(TABLE.read_text(encoding="utf-8"))]


def offers(steps: Sequence[Step], roles: Sequence[tuple[str, str]] = ()) -> str:
    """Return what a text after these steps says of what was not tried yet."""
    return said(steps, dict(roles))


def advice(steps: Sequence[Step], roles: Sequence[tuple[str, str]] = ()) -> str:
    """Return what all texts of the monitors say to do, without the evidence."""
    texts = [found.intervention_text or "" for found in play(steps, task="t", roles=dict(roles))]
    return "\n".join([text[len(first_sentence(text)) :] for text in texts])


@pytest.mark.parametrize("case", CASES, ids=[f"{at} {case.kind}" for at, case in enumerate(CASES)])
def test_a_list_is_offered_or_not(case: Case) -> None:
    offered = offers(case.steps(), case.roles)
    assert [value for value in case.offered if value not in offered] == []
    everything = f"{offered}\n{advice(case.steps(), case.roles)}"
    assert [value for value in case.hidden if value in everything] == []


def test_at_most_three_values_are_offered_and_none_twice() -> None:
    names = ", ".join(f"r{n}" for n in range(9))
    offered = offers(Case("", "go", "go", "door", f"Doors: {names}.", ["r0", "r1"]).steps())
    assert offered == 'Not tried yet: go(door="r2"), go(door="r3"), go(door="r4").'


FOREIGN = ("browse_web", "get_email", "slack_history", "list_tickets", "oracle", "payments")
NAMES = st.from_regex(r"[a-z]{3,8}(?:[_./-][a-z0-9]{1,8}){0,3}", fullmatch=True)
LISTS = st.lists(NAMES, min_size=4, max_size=12, unique=True)
LAYOUTS: Sequence[Callable[[Sequence[str]], str]] = (
    ", ".join, "\n".join, json.dumps,
    lambda names: "- " + "\n- ".join(names), lambda names: f"Names: {', '.join(names)}.",
)  # fmt: skip
FORMS = st.sampled_from(LAYOUTS)


@settings(deadline=None, max_examples=150)
@given(names=LISTS, form=FORMS, source=st.sampled_from(FOREIGN), taker=st.sampled_from(["read_file", "go", "search"]))
def test_no_member_of_a_list_of_other_people_is_offered(
    names: list[str], form: Callable[[Sequence[str]], str], source: str, taker: str
) -> None:
    assert offers(Case("", source, taker, "path", form(names), names[:2]).steps()) == ""


STYLES: Sequence[Callable[[Sequence[str]], str]] = (
    "_".join, "-".join, ".".join, "/".join, "".join, lambda words: "".join(map(str.capitalize, words)),
    lambda words: words[0] + "".join(map(str.capitalize, words[1:])), lambda words: "_".join(words).upper(),
)  # fmt: skip
ACTING = st.sampled_from(
    "send sends sent sending pay pays paid paying payment delete deletes deleted deleting refund refunded transfer "
    "transferring grant grants granted granting run runs ran running execute executed remove removing".split()
)
AROUND = st.sampled_from(["all", "user", "orders", "money", "data", "accounts", "now", "files"])


@settings(deadline=None, max_examples=200)
@given(
    word=ACTING, before=st.lists(AROUND, max_size=1), after=st.lists(AROUND, max_size=2), style=st.sampled_from(STYLES),
    look_alike=st.sampled_from(["aаａ", "eеｅ", "oо0", "sѕ5", "pр", "cс", "iі1"]), other=st.integers(0, 2),
)  # fmt: skip
@example(word="transferring", before=["all"], after=["all"], style=STYLES[5], look_alike="iі1", other=2)
def test_nothing_with_a_word_that_acts_is_offered(
    word: str, before: list[str], after: list[str], style: Callable[[Sequence[str]], str], look_alike: str, other: int
) -> None:
    if style is STYLES[4] and before and after:
        before = []  # a word that acts in the middle of a longer one is no word
    name = style([*before, word, *after])
    spelled = name.replace(look_alike[0], look_alike[other % len(look_alike)])
    assert not may_offer(name)
    assert not may_offer(spelled)


@settings(deadline=None, max_examples=300)
@given(value=st.text(max_size=80))
def test_what_is_offered_is_short_and_plain(value: str) -> None:
    if may_offer(value):
        assert len(value) <= LONGEST_NAME
        assert value.isprintable()
        assert {*value}.isdisjoint('<>{}[]()`*|\\$;&="!?,\n\t%')
