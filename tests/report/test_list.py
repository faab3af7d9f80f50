"""The list of runs in a browser: filters, search, sorting, and runs that open out of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reasonblocks_workbench.report import RunPage
from tests.report.conftest import Show, one_page
from tests.whole import in_whole
from tests.workbench.report.runs import hostile, ordinary, page, step

if TYPE_CHECKING:
    from playwright.sync_api import Page


def runs() -> list[RunPage]:
    return [
        ordinary(run_id="first"),
        ordinary(run_id="second", agent_name="writer", task="Write a page.", outcome="failure: E"),
        page(step(0), step(1), step(2), run_id="third", outcome="stopped: stalled", task="Clean up."),
    ]


def shown(page: Page) -> list[str]:
    texts = page.locator(".runs tbody tr:not([hidden]) .sub").all_inner_texts()
    return [text.split(" · ")[-1] for text in texts]


def test_all_runs_are_listed_without_a_script(show: Show) -> None:
    page = show(one_page(*runs()), java_script_enabled=False)
    assert shown(page) == ["first", "second", "third"]
    assert not page.locator(".filters").is_visible()
    assert page.locator("noscript").count() == 1


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("agent", "writer", ["second"]), ("outcome", "failure", ["second"]), ("outcome", "stopped", ["third"]),
        ("state", "SLOW", ["first", "second"]), ("told", "monitor", ["first", "second"]), ("failure", "loop", []),
    ],
)  # fmt: skip
def test_a_filter_leaves_the_runs_that_fit(show: Show, name: str, value: str, left: list[str]) -> None:
    page = show(one_page(*runs()))
    field = page.locator(f'[name="{name}"]')
    if not left:
        assert field.count() == 0, "a filter with one choice is left out"
        return
    field.select_option(value)
    assert shown(page) == left
    assert page.locator(".shown").inner_text() == f"{len(left)} of 3 runs"


@pytest.mark.parametrize(("words", "left"), [("PAGE", ["second"]), ("writer second", ["second"]), ("nothing", [])])
def test_the_search_finds_words_of_task_agent_and_id(show: Show, words: str, left: list[str]) -> None:
    page = show(one_page(*runs()))
    page.keyboard.press("/")
    page.keyboard.type(words)
    assert shown(page) == left


def test_the_list_can_be_sorted(show: Show) -> None:
    page = show(one_page(runs()[2], *runs()[:2]))
    assert shown(page) == ["third", "first", "second"]
    page.locator('[name="sort"]').select_option("steps")
    assert shown(page) == ["first", "second", "third"]
    page.locator('[name="sort"]').select_option("")
    assert shown(page) == ["third", "first", "second"]


def test_a_run_opens_and_the_way_back_leads_to_its_row(show: Show) -> None:
    page = show(one_page(*runs()))
    page.locator('a[href="#run-1"]').click()
    page.locator("#opened h1").wait_for()
    assert page.locator("#opened h1").inner_text() == "second"
    assert page.title() == "second – ReasonBlocks"
    assert page.evaluate("document.activeElement.tagName") == "H1"
    assert not page.locator("#list").is_visible()
    page.go_back()
    page.locator("#list").wait_for()
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#run-1"
    assert page.locator("#opened").inner_html() == ""


def test_an_address_opens_a_call_of_a_run(show: Show) -> None:
    page = show(one_page(*runs()), hash="#run-1-call-4")
    page.locator("#run-1-more-4").wait_for()
    assert page.locator("#opened h1").inner_text() == "second"


@pytest.mark.parametrize("hash", ["#run-99", "#run-x", "#run-1e3", "#main"])
def test_an_unknown_address_shows_the_list(show: Show, hash: str) -> None:
    page = show(one_page(*runs()), hash=hash)
    assert page.locator("#list").is_visible()
    assert shown(page) == ["first", "second", "third"]


def test_the_keys_open_a_run_and_step_through_it(show: Show) -> None:
    page = show(one_page(*runs()))
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("#opened h1").wait_for()
    assert page.locator("#opened h1").inner_text() == "second"
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.id") == "run-1-told-0"


def test_a_hostile_run_in_the_list_does_nothing(show: Show) -> None:
    page = show(one_page(hostile(), ordinary()))
    page.locator('a[href="#run-0"]').click()
    page.locator("#opened h1").wait_for()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.locator("#opened img, #opened script, #opened a:not([href^='#'])").count() == 0


@pytest.mark.parametrize("width", [1440, 360])
def test_the_list_is_as_wide_as_its_window(show: Show, width: int) -> None:
    page = show(one_page(*runs(), hostile()), viewport={"width": width, "height": 900})
    page.locator(".health-box summary").click()
    assert not page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth")


@in_whole
def test_two_thousand_runs_are_listed_and_searched(show: Show) -> None:
    page = show(one_page(*(ordinary(run_id=f"run-{number}") for number in range(2_000))))
    assert page.locator(".runs tbody tr").count() == 2_000
    page.locator('[name="q"]').fill("run-1999")
    assert shown(page) == ["run-1999"]
