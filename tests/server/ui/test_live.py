"""Open pages show new rows, new runs, and the end of a run. Without scripts, a link reloads the page."""

from __future__ import annotations

import time

from reasonblocks.events import RunFinish
from tests.server.board import Board
from tests.server.ui.conftest import Show
from tests.workbench.report.runs import step, told


def test_new_rows_appear_in_an_open_page_and_are_announced(show: Show, site: Board) -> None:
    site.start("grows")
    page = show("/ui/runs/grows")
    page.locator("#call-0 summary").click()
    site.ingest(step(1, run_id="grows", difficulty=0.4, action="read_file"), told(2, "Look there.", run_id="grows"))
    page.locator("#call-2").wait_for()
    assert page.locator("tr.row").count() == 3
    assert page.locator("tr.more").count() == 3
    assert page.locator("#more-0").is_visible(), "an opened row stays open"
    assert page.locator("#told-part").get_by_text("Look there.").first.is_visible()
    assert "call 2" in page.locator("#announce").inner_text()
    page.locator("#call-2 summary").click()
    assert page.locator("#more-2").is_visible()


def test_a_typed_note_survives_an_update_and_the_end_of_the_run_is_shown(show: Show, site: Board) -> None:
    site.start("ends")
    page = show("/ui/runs/ends")
    page.locator("#note").fill("not yet sent")
    page.locator("h1").click()
    site.ingest(step(1, run_id="ends"))
    page.locator("#call-1").wait_for()
    assert page.locator("#note").input_value() == "not yet sent"
    site.ingest(RunFinish(run_id="ends", outcome="success", timestamp=time.time()))
    page.locator("#head .o-success").wait_for()
    page.locator("#tell", has_text="the run has finished").wait_for()
    assert page.locator("#strip").count() == 0


def test_a_new_run_is_announced_in_the_list_and_a_live_row_changes(show: Show, site: Board) -> None:
    site.start("row", task="This row is live.")
    page = show("/ui/?q=row+is+live")
    row = page.locator(".runs tbody tr", has_text="This row is live.")
    assert "INIT" in row.inner_text()
    site.ingest(step(1, run_id="row", state="SLOW"))
    row.locator(".st-SLOW").wait_for()
    site.start("row-2", task="That row is live too.")
    link = page.locator("#announce a")
    link.wait_for()
    assert link.inner_text() == "1 new run: show"
    link.click()
    page.locator(".runs", has_text="That row is live too.").wait_for()


def test_a_newcomer_s_empty_list_shows_the_first_run(show: Show, site: Board) -> None:
    page = show("/ui/")
    token = site.login(org="newcomers")
    page.context.add_cookies([{"name": "rb_login", "value": token, "url": site.url}])
    page.reload()
    assert f'HttpSink("{site.url}"' in page.locator(".empty").inner_text()
    site.ingest(step(0, run_id="first"), org="newcomers")
    page.locator("#announce a").click()
    page.locator(".runs tbody tr").nth(0).wait_for()
    assert page.locator(".runs tbody tr").count() == 1


def test_without_a_script_a_link_reloads_the_page(show: Show, site: Board) -> None:
    site.start("plain")
    page = show("/ui/runs/plain", java_script_enabled=False)
    site.ingest(step(1, run_id="plain"))
    assert page.locator("tr.row").count() == 1
    page.get_by_role("link", name="Reload").click()
    page.locator("tr.row").nth(1).wait_for()
    assert page.locator("tr.row").count() == 2
    page.goto(site.url + "/ui/")
    page.locator('[name="q"]').fill("plain")
    page.get_by_role("button", name="Show").click()
    page.locator(".runs tbody tr").nth(0).wait_for()
    assert page.locator(".runs tbody tr").count() == 1
