"""Every adapter decides and says what the core does, entry by entry: files from each framework's own environment."""

from __future__ import annotations

import pytest

from tests.parity.compare import differences
from tests.parity.conftest import Tally
from tests.parity.exchange import ADAPTERS, files_of
from tests.parity.reference import core
from tests.parity.runs import NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_decides_as_the_core_does(adapter: str, name: str, tally: Tally) -> None:
    compared = [(file, mode) for file in files_of(adapter) for mode in file.modes]
    found: list[str] = [] if compared else [f"{adapter} has written of no mode"]
    for file, mode in compared:
        entries = core(name, file.caps)
        wrong = differences(file, name, mode, entries)
        tally.add(file.framework, len(entries), len(wrong))
        found += wrong
    assert not found, "\n".join(found)
