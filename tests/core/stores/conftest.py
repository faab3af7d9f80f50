"""One contract, every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.stores.kinds import KINDS, Maker, maker


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    """Makes stores of each kind in turn."""
    with maker(request.param, tmp_path) as made:
        yield made
