"""The page of one run in a browser: rows that open, keys, the chart, themes, narrow screens, paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reasonblocks.types import StepLogEntry
from reasonblocks_workbench.report import Row, RunPage, run_page
from tests.report.conftest import Show
from tests.workbench.report.runs import hostile, ordinary, page, step, told

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"


def is_open(page: Page, call: int) -> bool:
    return page.locator(f"#more-{call}").is_visible()


def focused(page: Page) -> str:
    found: str = page.evaluate("document.activeElement.closest('[id]')?.id ?? ''")
    return found


def test_a_row_opens_and_closes_without_a_script(show: Show) -> None:
    page = show(run_page(ordinary()), java_script_enabled=False)
    assert not is_open(page, 4)
    page.locator("#call-4 summary").click()
    assert is_open(page, 4)
    assert page.locator("#more-4").get_by_text("Read the error.").is_visible()
    page.locator("#call-4 summary").press("Enter")
    assert not is_open(page, 4)
    assert not page.locator(".tools").is_visible()


def test_a_click_anywhere_in_a_row_opens_it(show: Show) -> None:
    page = show(run_page(ordinary()))
    page.locator("#call-2 .did").click()
    assert is_open(page, 2)


def test_the_keys_step_through_the_rows_and_the_texts(show: Show) -> None:
    page = show(run_page(page_of_two_texts()))
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = focused(page)
    page.keyboard.press("k")
    assert (second, focused(page)) == ("call-1", "call-0")
    page.keyboard.press("Enter")
    assert is_open(page, 0)
    page.keyboard.press("n")
    first = focused(page)
    page.keyboard.press("n")
    last = focused(page)
    page.keyboard.press("p")
    assert [first, last, focused(page)] == ["told-0", "told-1", "told-0"]


def page_of_two_texts() -> RunPage:
    return page(step(0), told(1), step(2), step(3), told(4, "Again."), step(5, final=True))


def test_the_keys_can_be_switched_off_and_stay_off(show: Show) -> None:
    page = show(run_page(ordinary()))
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.locator("dialog input").uncheck()
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    page.keyboard.press("j")
    assert focused(page) == ""
    page.reload()
    page.keyboard.press("?")
    assert not page.locator("dialog").is_visible()
    page.get_by_role("button", name="Keys").click()
    assert not page.locator("dialog input").is_checked()


def test_the_chart_leads_to_the_row_of_a_call(show: Show) -> None:
    page = show(run_page(ordinary()))
    page.locator('.col[data-call="5"]').click()
    assert is_open(page, 5)
    assert focused(page) == "call-5"


def test_the_place_of_a_text_leads_to_its_row(show: Show) -> None:
    page = show(run_page(ordinary()))
    page.get_by_role("link", name="before call 4").click()
    page.locator("#more-4").wait_for()  # a script opens the row when the address has changed
    assert is_open(page, 4)


@pytest.mark.parametrize("width", [1440, 760, 360])
@pytest.mark.parametrize("run", [ordinary(), hostile(), hostile("x" * 400)], ids=["ordinary", "hostile", "long word"])
def test_a_page_is_as_wide_as_its_window(show: Show, width: int, run: RunPage) -> None:
    page = show(run_page(run), viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert not page.evaluate(WIDE)


@pytest.mark.parametrize(("width", "scrolls"), [(1280, False), (1000, False), (360, True)])
def test_the_chart_of_fourteen_calls_fits_or_scrolls(show: Show, width: int, scrolls: bool) -> None:
    entries = [StepLogEntry(step=n, timestamp=0.0, fsm_state="NORMAL") for n in range(14)]
    run = RunPage(run_id="r", rows=tuple(Row(entry=one, after=one.step - 1 if one.step else None) for one in entries))
    page = show(run_page(run), viewport={"width": width, "height": 900})
    scroll = page.locator(".plot-scroll")
    assert scroll.evaluate("one => one.scrollWidth > one.clientWidth") is scrolls
    column = page.locator(".col").first.bounding_box()
    assert column
    assert column["width"] >= 23.9


def test_a_narrow_row_opens_to_what_it_leaves_out(show: Show) -> None:
    page = show(run_page(ordinary()), viewport={"width": 360, "height": 900})
    assert not page.locator("#call-4 .back").is_visible()
    page.locator("#call-4 summary").click()
    more = page.locator("#more-4").inner_text()
    assert all(word in more for word in ("Result", "1 failed", "inject: a monitor's text was chosen"))


def test_the_theme_follows_the_system_and_can_be_chosen(show: Show) -> None:
    page = show(run_page(ordinary()), color_scheme="dark")
    back = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(back)
    button = page.get_by_role("button", name="Theme")
    button.click()
    light = page.evaluate(back)
    assert (dark, light) == ("rgb(17, 21, 27)", "rgb(255, 255, 255)")
    page.reload()
    assert page.evaluate(back) == light
    button.click()
    assert page.evaluate(back) == dark


def test_the_labels_of_the_chart_stand_at_their_rows(show: Show) -> None:
    page = show(run_page(ordinary()))
    label = page.locator(".gutter text", has_text="semantic_loop").bounding_box()
    ring = page.locator(".plot .ring").bounding_box()
    assert label
    assert ring
    assert abs(label["y"] + label["height"] / 2 - ring["y"] - ring["height"] / 2) < 4


def test_the_page_prints_without_its_controls(show: Show) -> None:
    page = show(run_page(ordinary()))
    page.emulate_media(media="print")
    assert not page.locator(".bar").is_visible()
    assert page.locator(".plot").is_visible()
    assert len(page.pdf()) > 10_000


def test_a_hostile_run_does_nothing(show: Show) -> None:
    page = show(run_page(hostile()))
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("[...document.links].filter(one => !one.getAttribute('href').startsWith('#')).length") == 0


def test_the_policy_stops_a_script_that_is_not_the_page_s_own(show: Show, request: pytest.FixtureRequest) -> None:
    html = run_page(ordinary()).replace("</main>", "<script>document.title = 'taken'</script></main>")
    page = show(html)
    assert page.title() == "run-1 – ReasonBlocks"
    watched = show.__self__  # type: ignore[attr-defined]  # the method of Watched
    assert "Content Security Policy" in watched.faults.pop()


def test_a_text_is_read_in_its_own_direction(show: Show) -> None:
    page = show(run_page(hostile("\u05e9\u05dc\u05d5\u05dd abc")))
    assert page.evaluate("getComputedStyle(document.querySelector('pre bdi')).unicodeBidi") == "isolate"
