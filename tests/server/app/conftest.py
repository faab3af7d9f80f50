"""One running server for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.server.running import Running, running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("app")) as found:
        yield found


@pytest.fixture(scope="session")
def client(server: Running) -> Iterator[httpx.Client]:
    """A client of the org "acme", with a key that has all scopes."""
    with server.client() as found:
        yield found
