"""Converts the trace state to plain JSON and back without loss; refuses snapshots of a newer version."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..exceptions import SnapshotError
from ..monitors.bounds import checked_account, checked_patience
from ..monitors.sightings import OWN_MEMORY as UNTRIED_MEMORY
from ..render import guidance as render
from ..types import JSON, ScoreMemory, StepDecision, TraceState
from ..util.codec import MISSING, Codec, Unreadable
from ..util.json import storable

VERSION = 6
"""Incremented when a change would make an older reader continue a run differently."""
_JUDGES_SINCE = 6
"""The version whose scorer and monitors write what those of today read."""
_OURS = frozenset(
    "claim_contradiction semantic_loop verification_skip cyclic_compression late_sprawl silent_topic_drift"
    " _evidence _novelty _persistence _recall _suite _server".split()
) | {UNTRIED_MEMORY}
"""Names of memories that this library's monitors kept, in this version or an older one."""
_log = logging.getLogger("reasonblocks")
_STATE = Codec(TraceState, check=storable)
_REBUILT = {"guidance", "warnings", "replayed", "doubts"}
"""Parts of the last decision that are rebuilt from its injections, or that occur only in a final decision."""


def prepare() -> None:
    """Build what snapshots need, which takes a tenth of a second: an adapter does so before its runs."""
    _STATE.prepare()


def encode(state: TraceState) -> dict[str, JSON]:
    """Return the state as plain JSON that shares nothing with it."""
    return {"version": VERSION, **_STATE.write(state, exclude={"last": _REBUILT, "last_auxiliary": _REBUILT})}


def decode(data: Mapping[str, Any]) -> TraceState:
    """Return the state that `encode` wrote. Raises `SnapshotError` with the field, its value and the rule.

    A state of an older version keeps its history, but its scorer and monitors start afresh.
    """
    version = _version(data)
    if version > VERSION:
        raise SnapshotError("version", version, f"is newer than this library's {VERSION}: upgrade reasonblocks-core")
    try:
        state = _STATE.read(data)
    except Unreadable as exc:
        if exc.value is MISSING:
            raise SnapshotError(".".join(exc.path[-2:]), MISSING, "give all that snapshot() gave") from exc
        raise SnapshotError(exc.path[-1], exc.value, exc.rule) from exc
    _check_numbers(state)
    state = replace(state, last=_rebuilt(state.last), last_auxiliary=_rebuilt(state.last_auxiliary))
    return state if version >= _JUDGES_SINCE else _without_our_memories(state)


def _rebuilt(decision: StepDecision | None) -> StepDecision | None:
    if decision is None:
        return None
    guidance = render.guidance(decision.injections)
    return replace(decision, guidance=guidance, warnings=(), replayed=False, doubts=())


def _without_our_memories(state: TraceState) -> TraceState:
    """Drop memories that would mislead today's scorer and monitors; keep those of the caller's monitors."""
    _log.info("run %r: the account of its steps starts anew, since its snapshot is of an older version", state.trace_id)
    kept = {name: memory for name, memory in state.memories.items() if name not in _OURS}
    return replace(state, memories=kept, score_memory=ScoreMemory())


def _check_numbers(state: TraceState) -> None:
    if not all(0 <= difficulty <= 1 for difficulty in state.difficulty_history):
        raise SnapshotError("difficulty_history", state.difficulty_history, "must be numbers in [0, 1]")
    for name in ("calls", "auxiliary_calls", "faults", "total_tokens", "seconds"):
        if getattr(state, name) < 0:
            raise SnapshotError(name, getattr(state, name), "must be at least 0")
    if state.cost_usd is not None and state.cost_usd < 0:
        raise SnapshotError("cost_usd", state.cost_usd, "must be at least 0, or null")
    if state.steps_begun < 0:
        raise SnapshotError("auxiliary_calls", state.auxiliary_calls, f"must be at most the {state.calls} calls")
    if state.token_budget is not None and state.token_budget < 1:
        raise SnapshotError("token_budget", state.token_budget, "must be at least 1, or null")
    try:
        checked_account(state.account)
        checked_patience(state.patience)
    except ValueError as exc:
        raise SnapshotError("account", "a value out of range", str(exc)) from exc


def _version(data: object) -> int:
    if not isinstance(data, Mapping):
        raise SnapshotError("", data, "a snapshot is a JSON object")
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise SnapshotError("version", version, "must be an int, at least 1")
    return version
