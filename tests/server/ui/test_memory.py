"""A person looks at findings and forgets some, with the keyboard and without scripts."""

from __future__ import annotations

from reasonblocks.types import Codebase
from reasonblocks_server.ui._paths import codebase_href
from tests.server.board import Board, finding
from tests.server.running import ORG
from tests.server.ui.conftest import Show


def test_findings_are_searched_and_forgotten_without_scripts(show: Show, site: Board) -> None:
    codebase, store = Codebase(org_id=ORG, codebase_id="a/b <i>"), site.running.server.findings.store
    store.put(codebase, [finding("1", "Run the tests with tox.", "tox.ini"), finding("2", "Line.\n" * 400, "docs/a.md"),
                         finding("3", "Prices are rounded twice.")])  # fmt: skip
    page = show("/ui/memory", java_script_enabled=False)
    page.get_by_role("link", name="a/b <i>").click()
    page.locator("summary", has_text="2,400 characters").focus()
    page.keyboard.press("Enter")
    assert page.locator("details[open] pre").inner_text().count("Line.") == 400
    page.get_by_role("searchbox").fill("how to run the tests")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Forget the finding: Run the tests with tox.").click()
    assert page.get_by_role("status").inner_text() == "The finding is forgotten."
    page.goto(site.url + codebase_href(codebase.codebase_id))
    page.get_by_text("Forget the findings about a file or folder").click()
    page.get_by_label("Path").fill("docs")
    page.get_by_role("button", name="Forget them").click()
    assert [one.finding_id for one in store.page(codebase)] == ["3"]
    assert page.get_by_role("button", name="Forget all").is_hidden()
    page.get_by_text("Forget all findings of this codebase").click()
    page.get_by_role("button", name="Forget all").click()
    assert page.url == f"{site.url}/ui/memory?said=findings-forgotten"
    assert store.page(codebase) == ()
