"""No test sees the patterns of whoever runs it, and none leaves any behind. Property tests are short but in `WHOLE`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.whole import QUICK_EXAMPLES, WHOLE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

settings.register_profile("every commit", max_examples=QUICK_EXAMPLES)
if not WHOLE:
    settings.load_profile("every commit")


@pytest.fixture(autouse=True, scope="session")
def _nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of ours that is not there, and no server of patterns."""
    home = tmp_path_factory.getbasetemp() / "no-home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REASONBLOCKS_HOME", os.fspath(home))
        patch.delenv("QDRANT_URL", raising=False)
        yield home
    assert not home.exists(), f"a test has written patterns into the default home: {sorted(home.iterdir())}"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A Chromium that is installed: one for all tests, since Playwright can be started once in a thread."""
    from _browser import browser, missing

    if why := missing():
        pytest.skip(why)
    with browser() as opened:
        yield opened
