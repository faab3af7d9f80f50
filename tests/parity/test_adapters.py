"""Every adapter decides and says what the core does, entry by entry: files from each framework's own environment."""

from __future__ import annotations

import pytest

from tests.parity.conftest import Tally
from tests.parity.exchange import ADAPTERS, files_of
from tests.parity.limits import LIMITS, compared
from tests.parity.reference import core
from tests.parity.runs import NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_decides_as_the_core_does(adapter: str, name: str, tally: Tally) -> None:
    pairs = [(file, mode) for file in files_of(adapter) for mode in file.modes]
    wrong: list[str] = [] if pairs else [f"{adapter} has written of no mode"]
    for file, mode in pairs:
        entries = core(name, file.caps)
        found = compared(file, name, mode, entries, LIMITS.get(adapter, ()))
        known = {f"{limit.field} in {limit.run!r}: {limit.reason}": count for limit, count in found.declared.items()}
        tally.add(f"{file.framework}, {mode}", len(entries), len(found.wrong), known)
        wrong += found.wrong
    assert not wrong, "\n".join(wrong)
