"""Each seeded fault of the package fails the test that is there for it."""

from __future__ import annotations

import pytest

from tests.threads.mutants import MUTANTS, outcome
from tests.whole import in_whole


@in_whole
@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_fault_is_found(name: str) -> None:
    assert outcome(name) == MUTANTS[name].killer


def test_there_are_faults_of_every_kind() -> None:
    assert len(MUTANTS) >= 15
    assert len({mutant.module for mutant in MUTANTS.values()}) >= 8
