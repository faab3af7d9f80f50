"""What everything is compared with: the entries of the hand-written loop."""

from __future__ import annotations

import json
from functools import cache

from reasonblocks.types import AdapterCaps
from reasonblocks_testing import LoopHarness, ParityRun, parity_lines
from reasonblocks_testing._parity import Runner, without_errors
from tests.parity.exchange import Line
from tests.parity.runs import parity_runs, skip_if_not_recorded

CAPS = AdapterCaps()


@cache
def _runs() -> dict[str, ParityRun]:
    return parity_runs()


def entries(harness: Runner, name: str, mode: str, *, tool_errors: bool = True) -> list[Line]:
    """As they would stand in a file. Skips the test that asks for a recorded run where there is no corpus."""
    skip_if_not_recorded(name, _runs())
    run = _runs()[name] if tool_errors else without_errors(_runs()[name])
    lines, faults = parity_lines(harness, run, mode)
    assert faults == []
    found: list[Line] = json.loads(json.dumps(lines))
    return found


@cache
def core(name: str, caps: AdapterCaps = CAPS) -> list[Line]:
    """With what a framework can do: one that keeps what it is told is told it once."""
    return entries(LoopHarness(caps), name, "sync", tool_errors=caps.tool_errors)
