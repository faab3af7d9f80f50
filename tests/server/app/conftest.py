"""A client of the running server."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.server.running import Running


@pytest.fixture(scope="session")
def client(server: Running) -> Iterator[httpx.Client]:
    """A client of the org "acme", with a key that has all scopes."""
    with server.client() as found:
        yield found
