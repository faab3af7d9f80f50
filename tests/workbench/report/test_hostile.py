"""The texts of agents and tools only ever become text: no element, attribute or address is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.events import RunFinish, RunStart
from reasonblocks.types import RunInfo
from reasonblocks_workbench.report import (
    Listing,
    NavLink,
    RunPage,
    Tally,
    health_page,
    page_of_log,
    run_line,
    run_page,
    runs_page,
)
from reasonblocks_workbench.report._chart import MOST_LANES, chart_of
from reasonblocks_workbench.report.page import Row
from reasonblocks_workbench.report.sources import MOST
from reasonblocks_workbench.report.view import cards
from reasonblocks_workbench.traces import RunLog
from tests.workbench.report.markup import Element, parsed
from tests.workbench.report.runs import ATTACKS, hostile, page, step, told

ADDRESS = re.compile(r"#|#(main|call-\d+)\Z")
SHOWN = ({"class": "cp"}, {"class": "cut"})
"""Elements that a text may have: the code point of a hidden character, and the place of a cut."""
FREE = frozenset({"value", "content", "data-agent", "data-failure"})
"""Attributes whose values are texts of the run."""


def skeleton(element: Element) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """All elements in their order with their attributes, but for those that a text may have."""
    return [
        (one.tag, tuple((name, "" if name in FREE else value) for name, value in sorted(one.attributes.items())))
        for one in element.all()
        if one.attributes not in SHOWN and one.tag not in ("script", "style")
    ]


def listed(page: RunPage) -> str:
    tally = Tally()
    tally.add(page)
    return runs_page(Listing(lines=[run_line(page, "#run-0")], tally=tally)) + health_page(tally)


def attributes(html: str) -> list[tuple[str, str, str]]:
    return [(one.tag, name, value) for one in parsed(html).all() for name, value in one.attributes.items()]


PLAIN = {False: skeleton(parsed(run_page(hostile("x")))), True: skeleton(parsed(listed(hostile("x"))))}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_makes_no_element_and_no_attribute(attack: str) -> None:
    page = hostile(f"x{attack}")
    assert skeleton(parsed(run_page(page))) == PLAIN[False]
    assert skeleton(parsed(listed(page))) == PLAIN[True]


@given(st.text(min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_no_text_makes_an_element_or_an_attribute(text: str) -> None:
    page = hostile(f"x{text}")
    assert skeleton(parsed(run_page(page))) == PLAIN[False]
    assert skeleton(parsed(listed(page))) == PLAIN[True]


def test_the_run_of_all_attacks_has_no_handler_and_no_foreign_address() -> None:
    for tag, name, value in attributes(run_page(hostile()) + listed(hostile())):
        assert not name.startswith("on"), (tag, name)
        assert name not in ("style", "srcdoc", "formaction", "src"), (tag, name)
        if name in ("href", "action"):
            assert ADDRESS.match(value), value


def test_hidden_characters_are_shown_by_their_code_points() -> None:
    html = run_page(hostile())
    shown = {one.text for one in parsed(html).find("b", class_="cp")}
    assert {"U+202E", "U+2066", "U+200B", "U+001B", "U+0000", "U+D800", "U+E0041", "U+FEFF"} <= shown
    assert not re.search("[\x00\x07\x1b\u202a-\u202e\u2066-\u2069\u200b\ufeff\ud800-\udfff]", html + listed(hostile()))


def test_every_long_text_is_in_a_pre_with_an_isolated_direction() -> None:
    pres = parsed(run_page(hostile())).find("pre")
    assert pres
    assert all([child.tag for child in pre.children] == ["bdi"] and not pre.text for pre in pres)


def test_a_megabyte_of_text_is_clipped() -> None:
    html = run_page(hostile("x", long=1_000_000))
    assert len(html) < 200_000
    assert "996,001 characters left out" in html


def test_all_of_a_text_is_shown_on_request() -> None:
    assert "characters left out" not in run_page(hostile("x", long=5_000), limit=None)


def test_numbers_that_are_none_are_missing() -> None:
    root = parsed(run_page(hostile("x")))
    assert not {"nan", "inf", "-inf"} & set(root.find("main")[0].words.lower().split())
    for one in root.find("svg")[0].all() + root.find("svg")[1].all():
        assert not {"nan", "inf", "-inf"} & set(one.attributes.values())


def test_the_addresses_of_a_server_are_quoted() -> None:
    nav = [NavLink(name="<b>", href='/ui/"><script>')]
    root = parsed(run_page(hostile(), nav=nav))
    assert [one.attributes["href"] for one in root.find("nav")[0].find("a")] == ['/ui/"><script>']


class Looks(tuple[Row, ...]):
    """Rows that count how often one of them is looked at."""

    taken = 0

    def __iter__(self) -> Iterator[Row]:
        for row in super().__iter__():
            self.taken += 1
            yield row


NUMBERS = (-1e308, -0.5, 0.0, 1e-300, 1.0, 1e308)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_out_of_range_is_a_page(number: float) -> None:
    numbers: dict[str, Any] = {"difficulty": number, "latency_ms": number, "overhead_ms": number}
    steps = [step(0), step(1, scores={"loop": number}, monitors_fired=("loop",), composite=number, **numbers)]
    start = RunStart(run=RunInfo(run_id="r"), timestamp=number)
    finish = RunFinish(run_id="r", outcome="success", timestamp=-number)
    odd = page_of_log(RunLog(run_id="r", start=start, steps=(*steps,), finish=finish, file="f", line=1))
    assert "loop" in run_page(odd)
    assert "r" in listed(odd)


def test_a_run_with_a_text_at_every_call_takes_time_in_proportion() -> None:
    calls = 600
    many = page(*[told(index, state="SLOW", composite=1.0) for index in range(calls)])
    looks = Looks(many.rows)
    assert len(cards(replace(many, rows=looks))) == calls
    assert looks.taken < 20 * calls


def test_names_of_monitors_without_end_are_cut() -> None:
    one = page(step(0), step(1, scores={f"m{at}": 1.0 for at in range(5_000)}, intervention_texts=("t",) * 5_000))
    assert len(one.rows[1].scores) == len(one.rows[1].told) == MOST
    many = page(*[step(at, scores={f"m{at}": 1.0}, monitors_fired=(f"m{at}",)) for at in range(300)])
    assert len(chart_of(many).lanes) == MOST_LANES
