"""A person decides in a browser: with the keyboard, and without scripts."""

from __future__ import annotations

from reasonblocks_server.ui._paths import thread_href
from reasonblocks_threads import Phase
from tests.server.board import Board, cause, proposals
from tests.server.running import ORG
from tests.server.ui.conftest import Show

SECONDS = 20.0


def asked(site: Board, key: str, action: str, parameters: dict[str, object]) -> str:
    """Open a thread that asks for consent, and return its id."""
    assert site.running.server.threads is not None
    with site.running.server.threads.of(ORG) as threads:
        thread = threads.open(cause(key, f"Decide about {key}"), proposals=proposals(action, parameters))
        return threads.wait(thread.id, SECONDS, until=lambda found: found.phase.waits).id


def phase_of(site: Board, thread_id: str) -> Phase:
    assert site.running.server.threads is not None
    with site.running.server.threads.of(ORG) as threads:
        return threads.wait(thread_id, SECONDS).phase


def test_a_card_is_corrected_and_approved_without_scripts(show: Show, site: Board) -> None:
    thread_id = asked(site, "no scripts", "acknowledge", {"note": "Red."})
    page = show("/ui/threads", "read", "steer", java_script_enabled=False)
    page.get_by_role("link", name="Decide about no scripts").click()
    page.get_by_text("Correct it").click()
    page.get_by_label("note", exact=True).fill("Green.")
    page.get_by_role("button", name="Save the correction").click()
    assert page.locator(".parameters").inner_text().split() == ["note", '"Green."']
    page.get_by_role("button", name="Run it exactly as shown").click()
    assert page.get_by_role("status").inner_text() == "Your answer is in the log of the thread."
    assert phase_of(site, thread_id) is Phase.DONE
    page.reload()
    assert page.get_by_role("button", name="Run it exactly as shown").count() == 0


def test_a_card_is_answered_with_the_keyboard(show: Show, site: Board) -> None:
    thread_id = asked(site, "keys", "acknowledge", {})
    page = show(thread_href(thread_id))
    page.get_by_role("button", name="Run it exactly as shown").focus()
    summary = "document.activeElement.tagName === 'SUMMARY' && document.activeElement.innerText.startsWith('Hand')"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate(summary):
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("the team on call")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert phase_of(site, thread_id) is Phase.HANDED_OFF
    assert "the team on call" in page.locator("main").inner_text()
