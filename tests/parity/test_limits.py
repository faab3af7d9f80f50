"""What is declared as a framework's limit is counted, and is not declared a day longer than it differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasonblocks.types import AdapterCaps
from tests.parity.exchange import ADAPTERS, Line, ParityFile
from tests.parity.limits import LIMITS, Limit, compared
from tests.parity.runs import NAMES

RUN = "golden order"
LIMIT = Limit(run=RUN, field="completed.observation", reason="it is cut off")
WANTED: list[Line] = [{"entry": at, "gate_decision": None, "completed": {"observation": f" {at}"}} for at in range(3)]


@pytest.fixture
def file() -> ParityFile:
    """What a framework wrote that cuts off the white space of the last two entries."""
    lines: list[Line] = [
        WANTED[0],
        *({**line, "completed": {"observation": f"{line['entry']}"}} for line in WANTED[1:]),
    ]
    return ParityFile(framework="f 1.0", code="", modes=("sync",), caps=AdapterCaps(), entries={(RUN, "sync"): lines})


def test_what_nobody_declared_is_wrong(file: ParityFile) -> None:
    assert len(compared(file, RUN, "sync", WANTED).wrong) == 2


def test_a_declared_difference_is_counted_and_not_wrong(file: ParityFile) -> None:
    found = compared(file, RUN, "sync", WANTED, [LIMIT])
    assert (found.wrong, found.declared) == ([], {LIMIT: 2})


def test_a_limit_explains_its_own_field_alone(file: ParityFile) -> None:
    lines: list[Line] = [{**line, "gate_decision": "speak"} for line in file.entries[RUN, "sync"]]
    found = compared(replace(file, entries={(RUN, "sync"): lines}), RUN, "sync", WANTED, [LIMIT])
    assert (len(found.wrong), found.declared) == (3, {LIMIT: 2})


def test_a_limit_explains_its_own_run_alone(file: ParityFile) -> None:
    found = compared(file, RUN, "sync", WANTED, [replace(LIMIT, run="another")])
    assert (len(found.wrong), found.declared) == (2, {})


def test_a_limit_that_no_longer_differs_is_wrong(file: ParityFile) -> None:
    whole = replace(file, entries={(RUN, "sync"): WANTED})
    assert compared(whole, RUN, "sync", WANTED, [LIMIT]).wrong == [
        "f 1.0, sync, golden order: completed.observation is declared as a limit (it is cut off), and does not differ"
    ]


@pytest.mark.parametrize("adapter", LIMITS)
def test_a_limit_names_an_adapter_a_run_and_a_reason(adapter: str) -> None:
    assert adapter in ADAPTERS
    assert [limit for limit in LIMITS[adapter] if limit.run not in NAMES or not limit.reason] == []
