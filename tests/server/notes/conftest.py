"""A person who writes notes to runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.notes.world import Operator
from tests.server.running import Running


@pytest.fixture(scope="session")
def operator(server: Running) -> Iterator[Operator]:
    with server.client() as http:
        yield Operator(running=server, http=http)
