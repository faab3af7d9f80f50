"""Every page of the dashboard is accessible, as wide as its window, and safe with hostile content."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.server.board import Board
from tests.server.ui.conftest import Show, Watched
from tests.whole import WHOLE

if TYPE_CHECKING:
    from playwright.sync_api import Page

NARROW: dict[str, object] = {"viewport": {"width": 360, "height": 800}}
SIZES: dict[str, dict[str, object]] = {"light": {}, "narrow and dark": {**NARROW, "color_scheme": "dark"}}
ALL_SIZES: dict[str, dict[str, object]] = (
    {**SIZES, "dark": {"color_scheme": "dark"}, "narrow": NARROW} if WHOLE else SIZES
)
ALIKE = {"filtered", "none", "long", "bad agent", "bad pattern", "threads in progress", "no threads", "ended threads",
         "answered thread", "split", "recalled", "hostile codebase"}  # fmt: skip
"""Pages that axe checks with `WHOLE` only, because it checks similar ones."""
NARROW_ONES = {"live", "run", "keys", "experiment", "pattern", "agents", "audit", "threads", "thread", "hostile thread",
               "codebase"}  # fmt: skip
"""Pages that axe checks narrow and dark at every commit. It checks the others wide and light; with `WHOLE`, all."""
HOSTILE = ("runs", "hostile", "attack", "bad pattern", "bad agent", "experiments", "agents", "keys", "audit",
           "memory", "hostile codebase", "threads", "hostile thread", "answered thread", "split")  # fmt: skip
WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"


def violations(page: Page) -> list[str]:
    """Return the rules of axe that a page breaks, with the elements."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("size", ALL_SIZES)
def test_every_page_is_accessible_and_as_wide_as_its_window(show: Show, site: Board, size: str) -> None:
    page, faults = show("/ui/", **ALL_SIZES[size]), list[str]()
    others = set(site.paths) - ALIKE - NARROW_ONES
    seen = set(site.paths) if WHOLE else others if size == "light" else NARROW_ONES
    for name, path in site.paths.items():
        page.goto(site.url + path)
        page.evaluate(OPEN)
        faults += [f"{name}: {one}" for one in violations(page)] if name in seen else []
        if page.evaluate(WIDE):
            faults.append(f"{name}: wider than its window")
    page.context.clear_cookies()
    page.goto(site.url + "/ui/login")
    assert faults + violations(page) == []


def test_hostile_texts_make_no_script_image_or_foreign_link(show: Show, site: Board) -> None:
    page = show("/ui/")
    for path in (site.paths[name] for name in HOSTILE):
        page.goto(site.url + path)
        page.evaluate(OPEN)
        assert page.locator("main script, main img, main iframe, main style").count() == 0, path
        foreign = "[...document.links].filter(one => one.origin !== location.origin).map(one => one.href)"
        assert page.evaluate(foreign) == [], path
        assert page.evaluate("[...document.forms].every(one => new URL(one.action).origin === location.origin)"), path


def test_the_policy_stops_a_script_that_is_not_the_page_s_own(watched: Watched) -> None:
    page = watched.open("/ui/")
    page.evaluate("() => { const one = document.createElement('script'); one.textContent = 'document.title = 1';"
                  " document.body.append(one); }")  # fmt: skip
    assert page.title() == "Runs – ReasonBlocks"
    watched.expected("Content Security Policy")


def test_a_run_of_any_id_is_found_from_the_list(show: Show, site: Board) -> None:
    page = show("/ui/?q=script")
    page.locator(".runs tbody a").first.click()
    assert page.locator("h1").inner_text().startswith('../x"><script>alert(1)</script>U+202E')


def test_a_long_text_opens_as_plain_text(show: Show, site: Board) -> None:
    page = show(site.paths["attack"])
    with page.expect_navigation():
        page.locator("a", has_text="All 100,").first.click()
    assert page.evaluate("document.contentType") == "text/plain"
    assert page.evaluate("document.scripts.length") == 0


def test_the_pages_of_a_long_run_lead_to_each_other(show: Show, site: Board) -> None:
    page = show(site.paths["long"])
    assert page.locator("tr.row").count() == 200
    assert page.locator("tr.row").last.get_attribute("id") == "call-419"
    page.get_by_role("link", name="Earlier").click()
    page.locator("#call-219").nth(0).wait_for()
    assert page.locator("#call-219").count() == 1
    page.locator('.col[data-call="10"]').click()
    page.locator("#more-10").wait_for()
    page.wait_for_function("document.activeElement.closest('#call-10')")


def test_the_keyboard_reaches_a_run_and_its_steps(show: Show, site: Board) -> None:
    page = show("/ui/?q=run-1")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(site.url + site.paths["run"])
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.locator("#more-0").is_visible()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
