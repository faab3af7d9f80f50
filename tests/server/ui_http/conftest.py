"""One server for all tests of the dashboard that need no browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import httpx
import pytest

from reasonblocks_server.ui._visit import FORM, LOGIN, token_of
from reasonblocks_server.values import Scope
from tests.server.board import Board, board

Enter: TypeAlias = Callable[..., "Person"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with board(tmp_path_factory.mktemp("board")) as found:
        yield found


class Person:
    """An HTTP client that keeps cookies and sends forms as a browser does."""

    def __init__(self, client: httpx.Client, cookie: str) -> None:
        self.client, self.cookie = client, cookie

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def post(self, path: str, origin: str | None = "", token: str | None = "", **fields: str) -> httpx.Response:
        """Send a form. "" stands for the right origin or token, and None leaves it out."""
        sent = {"origin": str(self.client.base_url).rstrip("/") if origin == "" else origin}
        right = token_of(self.cookie or self.client.cookies.get(FORM) or "")
        given = {**fields, **({} if token is None else {"token": right if token == "" else token})}
        headers = {name: value for name, value in sent.items() if value is not None}
        return self.client.post(path, data=given, headers=headers)


@pytest.fixture
def enter(site: Board) -> Iterator[Enter]:
    """`enter(*scopes)` returns a person who is logged in with a new key, by default with all scopes."""
    with ExitStack() as open_ones:

        def person(*scopes: Scope, login: bool = True, **options: object) -> Person:
            cookie = site.login(*scopes, **options) if login else ""  # type: ignore[arg-type]  # checked by the server
            client = httpx.Client(base_url=site.url, cookies={LOGIN: cookie} if cookie else None, timeout=30)
            return Person(open_ones.enter_context(client), cookie)

        yield person
