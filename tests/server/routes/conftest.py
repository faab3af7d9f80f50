"""One server for the tests of this folder, and a caller of an org of its own for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.routes.world import Caller, World, running_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_world(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def caller(world: World) -> Caller:
    return world.caller()
