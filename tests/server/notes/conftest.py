"""One real server for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.notes.world import Operator
from tests.server.running import running


@pytest.fixture(scope="session")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with running(tmp_path_factory.mktemp("notes")) as server, server.client() as http:
        yield Operator(running=server, http=http)
