"""`LocalFindings`: the contract, its file, and who else may use that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from reasonblocks._findings import MOST_FINDINGS
from reasonblocks.backends._local_store._findings import LocalFindings
from reasonblocks.backends.embed import HashEmbedder
from tests.core.memory.store_contract import Maker, StoreContract


class TestFile(StoreContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Maker]:
        with ExitStack() as stack:

            def made(*, most: int = MOST_FINDINGS) -> LocalFindings:
                path = tmp_path / "home" / "patterns.db"
                return stack.enter_context(LocalFindings(path, embedder=HashEmbedder(), most=most))

            yield made


class TestMemory(StoreContract):
    @pytest.fixture
    def make(self) -> Maker:
        stores: dict[int, LocalFindings] = {}

        def made(*, most: int = MOST_FINDINGS) -> LocalFindings:
            return stores.setdefault(most, LocalFindings(embedder=HashEmbedder(), most=most))

        return made
