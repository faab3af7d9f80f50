"""Pages: the first page has an item that is nearly right, and the results show the way to the right one."""

from __future__ import annotations

import re

from _outcome.policies import reference_wins
from _outcome.tasks.pages import WORDINGS, Pages

SEEDS = range(60)


def begun(seed: int) -> tuple[Pages, str, str, str]:
    """Return the environment, and the name, colour and size that the task asks for."""
    pages = Pages()
    found = re.match(r"Find the (.+) in (\w+) with a \w+ of ([^:]+):", pages.reset(seed))
    assert found is not None
    return pages, found[1], found[2], found[3]


def test_the_first_page_has_a_near_item_and_not_the_right_one() -> None:
    for seed in SEEDS:
        pages, name, colour, size = begun(seed)
        pages.call("search", {"query": name, "page": "1"})
        first = pages.choices()["open.id"]
        near = [text for found in first if f"\ncolour: {colour}\n" in (text := pages.call("open", {"id": found}))]
        assert len(near) == 1
        assert f"\nname: {name}\n" in near[0]
        assert not near[0].endswith(f": {size}")
        for found in first:
            pages.call("answer", {"id": found})
            assert not pages.success()
            pages.reopen()


def test_the_right_item_is_on_a_later_page_or_under_a_spelling_that_the_results_show() -> None:
    respelled = 0
    for seed in SEEDS:
        pages, name, _, _ = begun(seed)
        first = pages.call("search", {"query": name, "page": "1"})
        assert reference_wins(pages, pages.max_steps)
        spellings = [query for query in pages.choices()["search.query"] if query not in (name, *name.split())]
        assert all(query in first for query in spellings)
        respelled += len(spellings)
    assert 0.3 * len(SEEDS) < respelled < 0.7 * len(SEEDS)


def test_other_words_of_a_query_change_nothing_and_a_page_after_the_last_is_empty() -> None:
    pages, name, _, _ = begun(1)
    first = pages.call("search", {"query": name, "page": "1"})
    assert pages.call("search", {"query": f"{name} 40 cm".upper(), "page": "1"}) == first
    known = pages.choices()["open.id"]
    for query, page in ((name, "99"), ("roof", "1"), ("", "1")):
        empty = pages.call("search", {"query": query, "page": page})
        assert not any(found in empty for found in known)
    assert pages.choices()["open.id"] == known


def test_the_words_of_results_vary_by_seed() -> None:
    said = set()
    for seed in SEEDS:
        pages, name, _, _ = begun(seed)
        said.add(pages.call("search", {"query": name, "page": "99"}))
    assert len(said) == len(WORDINGS)
