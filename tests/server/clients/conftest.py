"""One real server for all of these tests; each has an org of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.running import Running, running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("clients")) as found:
        yield found
