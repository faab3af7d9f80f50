"""People log in and out, write notes and change settings in a browser."""

from __future__ import annotations

import time

from tests.server.board import Board
from tests.server.running import ORG
from tests.server.ui.conftest import Show, Watched


def test_a_person_logs_in_with_a_key_and_out_again(show: Show, site: Board) -> None:
    page = show("/ui/health?days=30", login=False)
    assert page.url.startswith(f"{site.url}/ui/login?to=")
    page.locator("#key").fill(site.running.make_key("read", name="Mira"))
    page.get_by_role("button", name="Log in").click()
    assert page.url == f"{site.url}/ui/health?days=30"
    (cookie,) = [one for one in page.context.cookies() if one["name"] == "rb_login"]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Strict", False)
    assert 11 * 3_600 < cookie["expires"] - time.time() <= 12 * 3_600
    assert "Mira" in page.locator(".account").inner_text()
    page.get_by_role("button", name="Log out").click()
    page.get_by_text("You are logged out.").wait_for()
    page.goto(site.url + "/ui/")
    assert page.url.startswith(f"{site.url}/ui/login")


def test_a_wrong_key_is_refused_with_a_reason(watched: Watched, site: Board) -> None:
    page = watched.open("/ui/login", login=False)
    for key, why in (("rbk_no_key", "does not know this key"), (site.running.make_key("ingest"), "no scope read")):
        page.locator("#key").fill(key)
        page.get_by_role("button", name="Log in").click()
        assert why in page.get_by_role("alert").inner_text()
        watched.expected("the server responded with a status of 40")


def test_a_login_link_works_once(watched: Watched, site: Board) -> None:
    keys = site.running.server.storage.keys
    token = keys.link(site.running.key.split("_")[1], expires=time.time() + 60)
    page = watched.open(f"/ui/link/{token}", login=False)
    page.reload()
    page.get_by_role("button", name="Open the dashboard").click()
    page.wait_for_url(f"{site.url}/ui/")
    page.goto("about:blank")  # ends the stream of the page, which would ask again without its cookie
    page.context.clear_cookies()
    page.goto(f"{site.url}/ui/link/{token}")
    page.get_by_role("button", name="Open the dashboard").click()
    assert "used up" in page.locator("h1").inner_text()
    watched.expected("403")


def test_a_note_is_written_and_withdrawn(show: Show, site: Board) -> None:
    site.start("told")
    page = show("/ui/runs/told")
    page.locator("#note").fill("Run the unit tests only.\nAnd stop then.")
    page.get_by_role("button", name="Send the note").click()
    assert page.locator(".noted li").inner_text().startswith("waiting for the agent's next call")
    (waiting,) = site.running.server.live.waiting(ORG, "told", ())
    assert waiting.text == "Run the unit tests only.\nAnd stop then."
    page.get_by_role("button", name="Withdraw").click()
    assert page.locator(".noted li").inner_text().startswith("withdrawn")
    assert site.running.server.live.waiting(ORG, "told", ()) == ()


def test_a_refused_note_keeps_its_text(watched: Watched, site: Board) -> None:
    site.start("full")
    page = watched.open("/ui/runs/full")
    for text in ("one", "two", "three", "four"):
        page.locator("#note").fill(text)
        page.get_by_role("button", name="Send the note").click()
    assert "The note was not sent" in page.get_by_role("alert").inner_text()
    assert page.locator("#note").input_value() == "four"
    watched.expected("429")


def test_a_page_offers_only_actions_that_the_key_allows(show: Show, site: Board) -> None:
    site.start("read-only")
    page = show("/ui/runs/read-only", "read")
    assert page.locator("textarea, .danger, nav a[href='/ui/keys']").count() == 0
    assert "steer" in page.locator("#tell").inner_text()


def test_two_people_who_change_a_pattern_see_the_conflict(watched: Watched, site: Board) -> None:
    page = watched.open(site.paths["pattern"])
    other = watched.open(site.paths["pattern"])
    for one, text in ((other, "Theirs."), (page, "Mine.")):
        one.locator("#f-intervention").fill(text)
        one.get_by_role("button", name="Save").click()
    box = page.locator(".note-box")
    assert "Theirs." in box.inner_text()
    assert page.locator("#f-intervention").input_value() == "Mine."
    watched.expected("412")
    page.get_by_role("button", name="Save").click()
    assert page.locator("#f-intervention").input_value() == "Mine."
    assert page.get_by_text("The pattern is saved.").is_visible()


def test_a_new_key_is_shown_once_and_can_be_revoked(show: Show, site: Board) -> None:
    page = show("/ui/keys")
    page.locator("#name").fill("ci agents")
    page.get_by_label("ingest").check()
    page.get_by_role("button", name="Create the key").click()
    key = page.locator(".secret pre").first.inner_text().strip()
    assert site.running.server.auth.check(key).scopes == {"ingest"}
    page.goto(site.url + "/ui/keys")
    assert key not in page.content()
    page.get_by_role("button", name="Revoke the key ci agents").click()
    page.get_by_text("The key is revoked.").wait_for()
