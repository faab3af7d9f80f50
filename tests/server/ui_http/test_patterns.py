"""The list of patterns is a page at a time, and the links to other pages keep the filters."""

from __future__ import annotations

import re
from html import unescape

from reasonblocks_server.ui._patterns import PAGE
from tests.server.board import Board
from tests.server.ui_http.conftest import Enter

ORG = "many-patterns"


def add(site: Board, number: int) -> None:
    given = [
        {"id": f"loop-{at:02}", "tier": "e3", "fields": {"instruction": f"Rule {at} of the till."}}
        for at in range(number)
    ]
    site.running.server.patterns.add(ORG, given)


def rows(text: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]*"><bdi>([^<]*)</bdi>', text)


def link(text: str, word: str) -> str | None:
    found = re.search(rf'<a [^>]*href="([^"]*)"[^>]*>{word}</a>', text)
    return unescape(found[1]) if found else None


def test_every_pattern_is_on_one_page_and_the_links_keep_the_filters(site: Board, enter: Enter) -> None:
    number = 2 * PAGE + 3
    add(site, number)
    person = enter("read", org=ORG)
    href: str | None = "/ui/patterns?tier=e3&q=till"
    found, pages = list[str](), list[str]()
    while href is not None:
        text = person.get(href).text
        pages.append(text)
        found += rows(text)
        assert len(rows(text)) <= PAGE
        href = link(text, "Next")
        assert href is None or ("tier=e3" in href and "q=till" in href)
    assert sorted(found) == [f"loop-{at:02}" for at in range(number)]
    assert [link(text, "Previous") is None for text in pages] == [True, False, False]
    assert f"Patterns {PAGE + 1} to {2 * PAGE} of {number}" in pages[1]


def test_a_page_beyond_the_end_is_the_last_one(site: Board, enter: Enter) -> None:
    add(site, 3)
    assert "loop-00" in rows(enter("read", org=ORG).get("/ui/patterns?tier=e3&q=till&page=99").text) or PAGE > 3
    assert rows(enter("read", org=ORG).get("/ui/patterns?q=till&page=99").text)
