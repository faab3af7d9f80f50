"""A scripted rb-api that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reasonblocks_testing.rb_api import ScriptedRbApi


@pytest.fixture
def api() -> Iterator[ScriptedRbApi]:
    with ScriptedRbApi() as running:
        yield running
