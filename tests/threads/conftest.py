"""Threads in memory, which only commands move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.threads.driver import Driver


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver() as made:
        yield made
