"""A Chromium that is installed, without a network. Without one, these tests are skipped, and the reason says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from reasonblocks_workbench.report import OnePage, RunPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

Show: TypeAlias = "Callable[..., Page]"


class Watched:
    """Opens pages, and notes everything that a report must never do."""

    def __init__(self, chromium: Browser, folder: Path) -> None:
        self.chromium, self.folder = chromium, folder
        self.faults: list[str] = []
        self.contexts: list[BrowserContext] = []

    def open(self, html: str, *, hash: str = "", **options: object) -> Page:
        """Open a page from a file; the options are those of a context."""
        path = self.folder / f"page-{len(self.contexts)}.html"
        path.write_text(html, encoding="utf-8")
        context = self.chromium.new_context(offline=True, **{"viewport": {"width": 1280, "height": 900}, **options})  # type: ignore[arg-type]
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: self.faults.append(f"console: {said.text}"))
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on("request", lambda asked: self._asked(asked.url))
        page.goto(path.as_uri() + hash)
        return page

    def _asked(self, url: str) -> None:
        if not url.startswith(self.folder.as_uri()):
            self.faults.append(f"request: {url}")


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Show]:
    """`show(html)` opens a page. The test fails if it logs, asks for an address, opens a dialog or has an error."""
    watched = Watched(chromium, tmp_path)
    yield watched.open
    for context in watched.contexts:
        context.close()
    assert watched.faults == []


def one_page(*pages: RunPage) -> str:
    """Return the page that contains these runs."""
    book = OnePage()
    for page in pages:
        book.add(page)
    return "".join(book.parts())
