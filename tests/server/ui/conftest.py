"""One server and one browser for all tests of the dashboard. Forbidden behaviour of its pages fails the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import pytest

from reasonblocks_server.ui._visit import LOGIN
from reasonblocks_server.values import Scope
from tests.server.board import Board, board

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

Show: TypeAlias = "Callable[..., Page]"


@pytest.fixture(scope="session")
def site(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with board(tmp_path_factory.mktemp("board")) as found:
        yield found


class Watched:
    """Opens pages of the server, and records their forbidden behaviour."""

    def __init__(self, chromium: Browser, site: Board) -> None:
        self.chromium, self.site = chromium, site
        self.faults: list[str] = []
        self.contexts: list[BrowserContext] = []

    def open(self, path: str, *scopes: Scope, login: bool = True, **options: object) -> Page:
        """Open a page in a new browser context, logged in with these scopes, by default all."""
        given = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        context = self.chromium.new_context(**given)  # type: ignore[arg-type]
        self.contexts.append(context)
        if login:
            context.add_cookies([{"name": LOGIN, "value": self.site.login(*scopes), "url": self.site.url,
                                  "httpOnly": True, "sameSite": "Strict"}])  # fmt: skip
        page = context.new_page()
        page.on("console", lambda said: self.faults.append(f"console: {said.text}"))
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on("request", lambda asked: self._asked(asked.url))
        page.goto(self.site.url + path)
        return page

    def _asked(self, url: str) -> None:
        if not url.startswith(self.site.url + "/ui"):
            self.faults.append(f"request: {url}")

    def expected(self, part: str) -> None:
        """Remove one fault that the test expects."""
        found = next(fault for fault in self.faults if part in fault)
        self.faults.remove(found)


@pytest.fixture
def watched(chromium: Browser, site: Board) -> Iterator[Watched]:
    """A watcher that fails the test if a page logs, contacts another address, opens a dialog or has an error."""
    found = Watched(chromium, site)
    yield found
    for context in found.contexts:
        context.close()
    assert found.faults == []


@pytest.fixture
def show(watched: Watched) -> Show:
    """`show(path, *scopes)` opens a page."""
    return watched.open
