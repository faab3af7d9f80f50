"""A scripted server for each test, and no variable of the user's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reasonblocks_testing.rb_api import ScriptedRbApi


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "BASE_URL", "STRICT", "DISABLED"):
        monkeypatch.delenv(f"REASONBLOCKS_{name}", raising=False)


@pytest.fixture
def api() -> Iterator[ScriptedRbApi]:
    with ScriptedRbApi() as server:
        yield server
