"""One contract, every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.core.stores.kinds import KINDS, Maker, maker


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    """Makes stores of each kind in turn."""
    with maker(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may look into."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    """A Qdrant server of this test's own."""
    from tests.core.stores.loopback import Loopback

    with Loopback(tmp_path) as made:
        yield made
