"""What the untried alternatives are after the steps of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reasonblocks.account.calls import kind_of
from reasonblocks.account.results import read_result
from reasonblocks.monitors.sightings import OWN_MEMORY
from reasonblocks.monitors.told import untried_text
from reasonblocks.monitors.untried import Alternatives, alternatives
from reasonblocks.types import JSON, Step
from tests.core.monitors.conftest import NO_ROLES, requests


def sightings(steps: Sequence[Step], roles: Mapping[str, str] = NO_ROLES) -> JSON:
    """Return the memory of lists after the steps."""
    return requests(steps, roles=roles)[-1].memories[OWN_MEMORY] if steps else None


def found(steps: Sequence[Step], roles: Mapping[str, str] = NO_ROLES) -> Alternatives:
    """Return the untried alternatives after the steps."""
    return alternatives(sightings(steps, roles), len(steps) - 1)


def said(steps: Sequence[Step], roles: Mapping[str, str] = NO_ROLES) -> str:
    """Return the sentence about them, if the newest step is told."""
    last = steps[-1]
    call = last.tool_calls[-1]
    failed = any(read_result(result, kind=kind_of(call, roles)).failed for result in last.tool_results)
    return untried_text(found(steps, roles), call, failed=failed)
